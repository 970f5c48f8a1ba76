//! Values: attributes, literals, arithmetic and functions.

use matcher::area::Polygon;
use matcher::condition::expression::{Comparand, Date, Timestamp};
use matcher::event::{Scalar, Symbol};
use matcher::geo::Position;
use matcher::predicate::node::{Attribute, Folding, Operand, Operator, Place, Temporal};
use serde_json::Value;

use super::{
    JsonConditionError, Operation, Part, Path, Reader, check_depth, event_variable, fixed, operation,
    unknown_op, variable,
};

/// Description of what a value may be.
const EXPECTED: &str =
    "a number, a text, true, false, {\"property\": ..}, a date, a timestamp or an operation on these";

impl Reader {
    /// A value. Arrays and intervals are read where they may stand.
    pub(super) fn operand(self, part: Part<'_>, depth: usize) -> Result<Operand, JsonConditionError> {
        match part.value {
            Value::Bool(truth) => Ok(Scalar::Bool(*truth).into()),
            Value::String(text) => Ok(Scalar::Text(Symbol::from(text.as_str())).into()),
            Value::Number(number) => match number.as_f64().filter(|number| number.is_finite()) {
                Some(number) => Ok(Scalar::Number(number).into()),
                None => Err(part.wrong(format!("the number {number} is too large"))),
            },
            Value::Null => Err(part.wrong("whether an attribute is absent is asked with isNull")),
            Value::Array(_) => Err(part.expected(EXPECTED)),
            Value::Object(members) => match members.get("property") {
                Some(Value::String(name)) => {
                    Ok(Operand::Attribute(Attribute { variable: 0, name: Symbol::from(name.as_str()) }))
                }
                Some(name) => {
                    Err(Part { value: name, path: &Path::Key(part.path, "property") }.expected("a text"))
                }
                None if members.contains_key("op") => self.function(part, depth),
                None => match (members.get("date"), members.get("timestamp")) {
                    (Some(text), _) => moment(part, "date", text),
                    (None, Some(text)) => moment(part, "timestamp", text),
                    (None, None) if members.contains_key("interval") => {
                        Err(part.wrong("an interval stands in operations such as t_during"))
                    }
                    (None, None) => Err(part.expected(EXPECTED)),
                },
            },
        }
    }

    /// Arithmetic or a function.
    fn function(self, part: Part<'_>, depth: usize) -> Result<Operand, JsonConditionError> {
        let Operation { op, args } = operation(part)?;
        check_depth(part, depth)?;
        let path = Path::Key(part.path, "args");
        let args = Part { value: args, path: &path };
        let at = |index| Path::Index(&path, index);
        if let Some(operator) = operator(op) {
            let [left, right] = self.pair(args, depth + 1)?;
            return Ok(Operand::arithmetic(operator, left, right));
        }
        let events = || {
            let [a, b] = fixed(args)?;
            let a = event_variable(Part { value: a, path: &at(0) })?;
            Ok((a, event_variable(Part { value: b, path: &at(1) })?))
        };
        let of = || {
            let [of] = fixed(args)?;
            variable(Part { value: of, path: &at(0) })
        };
        match op {
            "casei" | "accenti" => {
                let [inner] = fixed(args)?;
                let inner = Part { value: inner, path: &at(0) };
                let folding = if op == "casei" { Folding::Case } else { Folding::Accents };
                let expected = || inner.expected("a text or {\"property\": ..}");
                Operand::folded(folding, self.operand(inner, depth + 1)?).ok_or_else(expected)
            }
            "abs" => {
                let [inner] = fixed(args)?;
                Ok(Operand::absolute(self.operand(Part { value: inner, path: &at(0) }, depth + 1)?))
            }
            "distance" => {
                let [a, b] = fixed(args)?;
                let a = self.place(Part { value: a, path: &at(0) })?;
                let b = self.place(Part { value: b, path: &at(1) })?;
                Ok(Operand::Distance(Box::new([a, b])))
            }
            "elapsed" => events().map(|(from, to)| Operand::Elapsed(from, to)),
            "speed" => events().map(|(a, b)| Operand::Speed(a, b)),
            "lon" => of().map(Operand::Longitude),
            "lat" => of().map(Operand::Latitude),
            _ => Err(unknown_op(part, op, " here")),
        }
    }

    /// The event, the client or a point.
    fn place(self, part: Part<'_>) -> Result<Place, JsonConditionError> {
        if part.value.get("type").and_then(Value::as_str) != Some("Point") {
            return variable(part).map(Place::Of);
        }
        let Some(coordinates) = part.value.get("coordinates") else {
            return Err(part.wrong("a Point has coordinates"));
        };
        let path = Path::Key(part.path, "coordinates");
        Ok(Place::At(self.position(Part { value: coordinates, path: &path })?))
    }

    fn position(self, part: Part<'_>) -> Result<Position, JsonConditionError> {
        let numbers = part.elements("an array of numbers")?.iter().map(Value::as_f64);
        let Some(numbers) = numbers.collect::<Option<Vec<f64>>>() else {
            return Err(part.expected("an array of numbers"));
        };
        self.world.position(&numbers).map_err(|error| part.wrong(error.to_string()))
    }

    /// A GeoJSON polygon.
    pub(super) fn polygon(self, part: Part<'_>) -> Result<Polygon, JsonConditionError> {
        let is_polygon = part.value.get("type").and_then(Value::as_str) == Some("Polygon");
        let Some(rings) = part.value.get("coordinates").filter(|_| is_polygon) else {
            return Err(part.expected("{\"type\": \"Polygon\", \"coordinates\": ..}"));
        };
        let path = Path::Key(part.path, "coordinates");
        let rings = Part { value: rings, path: &path };
        let ring = |(index, value)| {
            let path = Path::Index(&path, index);
            let positions = Part { value, path: &path }.elements("an array of positions")?.iter().enumerate();
            let position = |(index, value)| self.position(Part { value, path: &Path::Index(&path, index) });
            positions.map(position).collect::<Result<Vec<_>, _>>()
        };
        let read = rings.elements("an array of rings")?.iter().enumerate().map(ring);
        let read = read.collect::<Result<Vec<_>, _>>()?;
        Polygon::new(self.world, &[read]).map_err(|error| rings.wrong(error.to_string()))
    }

    /// An argument of a temporal operation.
    pub(super) fn temporal(
        self,
        part: Part<'_>,
        relation: Temporal,
        depth: usize,
    ) -> Result<Operand, JsonConditionError> {
        if let Some(interval) = part.value.get("interval") {
            let path = Path::Key(part.path, "interval");
            let [from, to] = fixed(Part { value: interval, path: &path })?;
            let from = self.bound(Part { value: from, path: &Path::Index(&path, 0) }, depth)?;
            let to = self.bound(Part { value: to, path: &Path::Index(&path, 1) }, depth)?;
            let interval = Operand::interval(from, to);
            return interval.ok_or_else(|| {
                part.wrong("an interval is from a date to a date, or from a timestamp to a timestamp")
            });
        }
        if relation.is_of_intervals() {
            return Err(part.expected("{\"interval\": [.., ..]}"));
        }
        let operand = self.operand(part, depth)?;
        if operand.is_moment() {
            Ok(operand)
        } else {
            Err(part.expected("{\"property\": ..}, a date, a timestamp or an interval"))
        }
    }

    /// An end of an interval.
    fn bound(self, part: Part<'_>, depth: usize) -> Result<Option<Operand>, JsonConditionError> {
        let expected = || part.expected("\"..\", a date, a timestamp in UTC or {\"property\": ..}");
        match part.value.as_str() {
            Some("..") => Ok(None),
            Some(text) => {
                let date = Date::parse(text).map(Comparand::Date);
                let moment = date.or_else(|| Timestamp::parse(text).map(Comparand::Timestamp));
                moment.map(|moment| Some(Operand::Value(moment))).ok_or_else(expected)
            }
            None => {
                let operand = self.operand(part, depth)?;
                if operand.is_moment() { Ok(Some(operand)) } else { Err(expected()) }
            }
        }
    }

    /// An argument of an array operation.
    pub(super) fn array(self, part: Part<'_>, depth: usize) -> Result<Operand, JsonConditionError> {
        if let Value::Array(elements) = part.value {
            let element =
                |(index, value)| self.operand(Part { value, path: &Path::Index(part.path, index) }, depth);
            return elements.iter().enumerate().map(element).collect::<Result<_, _>>().map(Operand::Array);
        }
        let operand = self.operand(part, depth)?;
        if matches!(operand, Operand::Attribute(_) | Operand::Folded(..)) {
            return Ok(operand);
        }
        Err(part.expected("an array or {\"property\": ..}"))
    }
}

fn operator(op: &str) -> Option<Operator> {
    const OPERATORS: [Operator; 7] = [
        Operator::Add,
        Operator::Subtract,
        Operator::Multiply,
        Operator::Divide,
        Operator::Remainder,
        Operator::IntegerDivide,
        Operator::Power,
    ];
    OPERATORS.into_iter().find(|operator| operator.as_str() == op)
}

/// `{"date": ".."}` or `{"timestamp": ".."}`.
fn moment(part: Part<'_>, kind: &'static str, value: &Value) -> Result<Operand, JsonConditionError> {
    let part = Part { value, path: &Path::Key(part.path, kind) };
    let text = value.as_str().ok_or_else(|| part.expected("a text"))?;
    let (read, form) = if kind == "date" {
        (Date::parse(text).map(Comparand::Date), "2026-01-31")
    } else {
        (Timestamp::parse(text).map(Comparand::Timestamp), "2026-01-31T08:30:00Z, in UTC")
    };
    read.map(Operand::Value).ok_or_else(|| part.wrong(format!("must be a {kind} such as {form}")))
}
