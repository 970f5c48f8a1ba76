//! Calls: functions of values, and the predicates that are written as functions.

use super::lexer::Kind;
use super::{Parsed, Parser, Scope, VALUE};
use crate::area::Polygon;
use crate::condition::error::ConditionError;
use crate::condition::expression::{Comparand, Date, Timestamp};
use crate::condition::residual::CLIENT;
use crate::geo::{Position, World};
use crate::predicate::node::{Folding, Node, Operand, Operator, Place, Sets, Temporal};

/// The functions that have a value, and the predicates of places and events.
pub(super) const FUNCTIONS: [&str; 14] = [
    "DISTANCE",
    "ELAPSED",
    "SPEED",
    "LON",
    "LAT",
    "ABS",
    "S_WITHIN",
    "SAME",
    "CASEI",
    "ACCENTI",
    "DATE",
    "TIMESTAMP",
    "INTERVAL",
    "POINT",
];

impl Parser<'_> {
    /// A name with an open parenthesis behind it.
    pub(super) fn call(&mut self, name: &str, expected: &'static str) -> Result<Parsed, ConditionError> {
        let upper = name.to_ascii_uppercase();
        if let Some(relation) = Temporal::of(&upper) {
            return self.arguments(|parser| {
                let first = parser.temporal(relation)?;
                parser.comma()?;
                Ok(Parsed::Truth(Node::Temporal(relation, Box::new([first, parser.temporal(relation)?]))))
            });
        }
        if let Some(relation) = Sets::of(&upper) {
            return self.arguments(|parser| {
                let first = parser.array()?;
                parser.comma()?;
                Ok(Parsed::Truth(Node::Sets(relation, Box::new([first, parser.array()?]))))
            });
        }
        match upper.as_str() {
            "CASEI" => self.arguments(|parser| parser.folded(Folding::Case).map(Parsed::Value)),
            "ACCENTI" => self.arguments(|parser| parser.folded(Folding::Accents).map(Parsed::Value)),
            "DATE" | "TIMESTAMP" => {
                self.arguments(|parser| parser.moment(&upper).map(Operand::Value).map(Parsed::Value))
            }
            "ABS" => self.arguments(|parser| Ok(Parsed::Value(Operand::absolute(parser.value()?)))),
            "LON" => self.arguments(|parser| Ok(Parsed::Value(Operand::Longitude(parser.variable()?)))),
            "LAT" => self.arguments(|parser| Ok(Parsed::Value(Operand::Latitude(parser.variable()?)))),
            "ELAPSED" => self.arguments(|parser| {
                let [from, to] = parser.two_events()?;
                Ok(Parsed::Value(Operand::Elapsed(from, to)))
            }),
            "SPEED" => {
                self.world(name)?;
                self.arguments(|parser| {
                    let [a, b] = parser.two_events()?;
                    Ok(Parsed::Value(Operand::Speed(a, b)))
                })
            }
            "SAME" => self.arguments(|parser| {
                let [a, b] = parser.two_events()?;
                Ok(Parsed::Truth(Node::Same(a, b)))
            }),
            "DISTANCE" => {
                let world = self.world(name)?;
                self.arguments(|parser| {
                    let first = parser.spot(world)?;
                    parser.comma()?;
                    let second = parser.spot(world)?;
                    Ok(Parsed::Value(Operand::Distance(Box::new([first, second]))))
                })
            }
            "S_WITHIN" => {
                let world = self.world(name)?;
                self.arguments(|parser| {
                    let variable = parser.variable()?;
                    parser.comma()?;
                    Ok(Parsed::Truth(Node::Within(variable, Box::new(parser.polygon(world)?))))
                })
            }
            _ => Err(self.wrong(expected)),
        }
    }

    /// Reads what stands between the parentheses of a call.
    fn arguments<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ConditionError>,
    ) -> Result<T, ConditionError> {
        self.enter(self.next)?;
        self.next += 2;
        let arguments = read(self)?;
        self.depth -= 1;
        self.expect(&Kind::Close, "')'")?;
        Ok(arguments)
    }

    fn comma(&mut self) -> Result<(), ConditionError> {
        self.expect(&Kind::Comma, "','")
    }

    fn world(&self, name: &str) -> Result<World, ConditionError> {
        self.world.ok_or_else(|| {
            let what = format!("{} in this place", name.to_ascii_uppercase());
            self.unsupported(self.next, what, None)
        })
    }

    /// A variable as an argument: the event, or the client where that has a place.
    fn variable(&mut self) -> Result<usize, ConditionError> {
        let place = self.next;
        let Some(Kind::Name { name, .. }) = self.peek() else {
            return Err(self.wrong(match self.scope {
                Scope::Event => "event",
                Scope::Client => "event or me",
                Scope::Variables(_) => "a variable",
            }));
        };
        let name = name.clone();
        let variable = match self.scope {
            Scope::Event if name == "me" => {
                return Err(self.unsupported(
                    place,
                    "'me' in this place",
                    Some("conditions of subscriptions have it, which are of a client"),
                ));
            }
            Scope::Client => self.variable_idx(place, &name, &["event", "me"])?,
            Scope::Event => self.variable_idx(place, &name, &["event"])?,
            Scope::Variables(variables) => self.variable_idx(place, &name, variables)?,
        };
        self.next += 1;
        Ok(variable)
    }

    fn two_events(&mut self) -> Result<[usize; 2], ConditionError> {
        let first = self.event()?;
        self.comma()?;
        Ok([first, self.event()?])
    }

    /// A variable that is an event, which has a time and is the same as itself.
    fn event(&mut self) -> Result<usize, ConditionError> {
        let place = self.next;
        let variable = self.variable()?;
        if matches!(self.scope, Scope::Client) && variable == CLIENT {
            let advice = "a client has a place, for DISTANCE, LON, LAT and S_WITHIN, and no time";
            return Err(self.unsupported(place, "'me' in this function", Some(advice)));
        }
        Ok(variable)
    }

    /// A variable or `POINT(lon lat)`.
    fn spot(&mut self, world: World) -> Result<Place, ConditionError> {
        if !self.take_word("POINT") {
            return self.variable().map(Place::Of);
        }
        self.expect(&Kind::Open, "'('")?;
        let position = self.position(world)?;
        self.expect(&Kind::Close, "')'")?;
        Ok(Place::At(position))
    }

    /// `POLYGON((lon lat, ..), ..)`
    fn polygon(&mut self, world: World) -> Result<Polygon, ConditionError> {
        let place = self.next;
        if !self.take_word("POLYGON") {
            return Err(self.wrong("POLYGON((..))"));
        }
        self.expect(&Kind::Open, "'('")?;
        let mut rings = Vec::new();
        loop {
            self.expect(&Kind::Open, "'(' and a ring of positions")?;
            let mut ring = vec![self.position(world)?];
            while self.take(&Kind::Comma) {
                ring.push(self.position(world)?);
            }
            self.expect(&Kind::Close, "',' or ')'")?;
            rings.push(ring);
            if !self.take(&Kind::Comma) {
                break;
            }
        }
        self.expect(&Kind::Close, "',' or ')'")?;
        Polygon::new(world, &[rings])
            .map_err(|error| ConditionError::Geometry { source: error.into(), place: self.place(place) })
    }

    /// `lon lat`
    fn position(&mut self, world: World) -> Result<Position, ConditionError> {
        let place = self.next;
        let coordinates = [self.coordinate()?, self.coordinate()?];
        world
            .position(&coordinates)
            .map_err(|error| ConditionError::Geometry { source: error.into(), place: self.place(place) })
    }

    fn coordinate(&mut self) -> Result<f64, ConditionError> {
        let negative = self.take(&Kind::Arithmetic(Operator::Subtract));
        if !negative {
            self.take(&Kind::Arithmetic(Operator::Add));
        }
        let Some(&Kind::Number(number)) = self.peek() else { return Err(self.wrong("a coordinate")) };
        self.next += 1;
        Ok(if negative { -number } else { number })
    }

    /// Takes a word that has a parenthesis behind it.
    fn take_word(&mut self, word: &str) -> bool {
        let is_word = |kind: &Kind| matches!(kind, Kind::Name { name, quoted: false } if name.eq_ignore_ascii_case(word));
        let found = self.peek().is_some_and(is_word) && self.peek_second() == Some(&Kind::Open);
        self.next += usize::from(found);
        found
    }

    /// The argument of `CASEI` and `ACCENTI`; a text is folded here, once.
    fn folded(&mut self, folding: Folding) -> Result<Operand, ConditionError> {
        const EXPECTED: &str = "a name or a text";
        let start = self.next;
        if !matches!(self.peek(), Some(Kind::Name { .. } | Kind::Text(_))) {
            return Err(self.wrong(EXPECTED));
        }
        let inner = match self.factor_of_product(EXPECTED)? {
            Parsed::Value(inner) => Operand::folded(folding, inner),
            Parsed::Truth(_) => None,
        };
        inner.ok_or_else(|| {
            let name = match folding {
                Folding::Case => "CASEI",
                Folding::Accents => "ACCENTI",
            };
            self.unsupported(start, format!("{name} of anything but a name or a text"), None)
        })
    }

    /// The text within `DATE(..)` or `TIMESTAMP(..)`.
    fn moment(&mut self, kind: &str) -> Result<Comparand, ConditionError> {
        let (read, expected): (fn(&str) -> Option<Comparand>, _) = if kind == "DATE" {
            (|text| Date::parse(text).map(Comparand::Date), "a date such as '2026-01-31'")
        } else {
            (
                |text| Timestamp::parse(text).map(Comparand::Timestamp),
                "a timestamp in UTC such as '2026-01-31T08:30:00Z'",
            )
        };
        let moment = if let Some(Kind::Text(text)) = self.peek() { read(text) } else { None };
        let moment = moment.ok_or_else(|| self.wrong(expected))?;
        self.next += 1;
        Ok(moment)
    }

    /// An argument of a temporal predicate: an attribute, a date, a timestamp or an interval.
    fn temporal(&mut self, relation: Temporal) -> Result<Operand, ConditionError> {
        let start = self.next;
        if self.take_word("INTERVAL") {
            self.next = start;
            return self.arguments(|parser| {
                let place = parser.next;
                let from = parser.bound()?;
                parser.comma()?;
                let to = parser.bound()?;
                Operand::interval(from, to).ok_or_else(|| {
                    let what = "an interval from a date to a timestamp or the other way round";
                    parser.unsupported(place, what, None)
                })
            });
        }
        let expected = if relation.is_of_intervals() {
            "an INTERVAL"
        } else {
            "an attribute, a DATE, a TIMESTAMP or an INTERVAL"
        };
        match self.factor_of_product(VALUE)? {
            Parsed::Value(value) if value.is_moment() && !relation.is_of_intervals() => Ok(value),
            Parsed::Value(_) | Parsed::Truth(_) => {
                self.next = start;
                Err(self.advise(expected, "moments are compared with < and >, or with T_BEFORE and T_AFTER"))
            }
        }
    }

    /// An end of an interval: `'..'`, a date or a timestamp, or an attribute.
    fn bound(&mut self) -> Result<Option<Operand>, ConditionError> {
        const EXPECTED: &str = "'..', a date, a timestamp in UTC or an attribute";
        let start = self.next;
        if let Some(Kind::Text(text)) = self.peek() {
            let bound = match text.as_str() {
                ".." => Some(None),
                text => {
                    let date = Date::parse(text).map(Comparand::Date);
                    let moment = date.or_else(|| Timestamp::parse(text).map(Comparand::Timestamp));
                    moment.map(|moment| Some(Operand::Value(moment)))
                }
            };
            let bound = bound.ok_or_else(|| self.wrong(EXPECTED))?;
            self.next += 1;
            return Ok(bound);
        }
        match self.factor_of_product(EXPECTED)? {
            Parsed::Value(value) if value.is_moment() => Ok(Some(value)),
            Parsed::Value(_) | Parsed::Truth(_) => {
                self.next = start;
                Err(self.wrong(EXPECTED))
            }
        }
    }

    /// An argument of an array predicate: an attribute or `(.., ..)`.
    fn array(&mut self) -> Result<Operand, ConditionError> {
        const EXPECTED: &str = "an attribute or an array such as ('a', 'b')";
        let start = self.next;
        if self.take(&Kind::Open) {
            if self.take(&Kind::Close) {
                return Ok(Operand::Array(Vec::new()));
            }
            return self.values().map(Operand::Array);
        }
        match self.factor_of_product(EXPECTED)? {
            Parsed::Value(value @ (Operand::Attribute(_) | Operand::Folded(..))) => Ok(value),
            Parsed::Value(_) | Parsed::Truth(_) => {
                self.next = start;
                Err(self.wrong(EXPECTED))
            }
        }
    }
}
