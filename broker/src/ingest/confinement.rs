//! The claim `nearcast`: to which events a token confines its holder.
//!
//! In matching a confinement is a condition more on every filter, as a tenant is. Events that are published, ended or asked
//! about are held against it one by one.

use std::sync::Arc;

use matcher::condition::Condition;
use matcher::condition::expression::{Constraint, Expression, Truth};
use matcher::event::Event;
use matcher::subscription::Filter;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

use super::position::Move;
use super::zones::{self, Zone, Zones};
use crate::model::error::ApiError;

/// Events of a content, in zones, or both: of others its holder neither hears nor tells anything.
#[derive(Debug)]
pub(crate) struct Confinement {
    /// The claim, each that says the same in the same words.
    text: Box<str>,
    condition: Condition,
    zones: Option<InZones>,
}

#[derive(Debug)]
struct InZones {
    /// The zones that exist. The name of a zone that is gone since holds nothing.
    zones: Vec<Arc<Zone>>,
    /// The zones as a constraint on events.
    constraint: Constraint,
}

/// Two claims are equal if they ask for the same zones, in whatever order, and for the same condition to the letter.
impl PartialEq for Confinement {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Confinement {}

impl Confinement {
    /// Reads the claim; `None` of one that confines to nothing. What is not understood is refused: it could confine to less.
    ///
    /// # Errors
    /// A description of the claim's fault.
    pub(crate) fn read(claim: &Value, zones: &Zones) -> Result<Option<Self>, String> {
        let claim = claim.as_object().ok_or("the claim nearcast must be an object")?;
        let Some(read) = Self::understand(claim, zones)? else { return Ok(None) };
        let names = claim.get("zones").and_then(Value::as_array).into_iter().flatten();
        match names.filter_map(Value::as_str).find(|name| zones.get(name).is_none()) {
            Some(name) => Err(format!("the claim nearcast names the zone {name:?}, which there is not")),
            None => Ok(Some(read)),
        }
    }

    /// Reads what [`text`](Self::text) gave, whatever zones there are by now.
    ///
    /// # Errors
    /// A description of the claim's fault.
    pub(crate) fn read_again(text: &str, zones: &Zones) -> Result<Self, String> {
        let claim = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Self::understand(&claim, zones)?.ok_or_else(|| "it confines to nothing".to_owned())
    }

    fn understand(claim: &Map<String, Value>, zones: &Zones) -> Result<Option<Self>, String> {
        if let Some(name) = claim.keys().find(|name| !matches!(name.as_str(), "where" | "zones")) {
            return Err(format!("the claim nearcast has the member {name:?}, which is not understood"));
        }
        let mut text = Map::new();
        let mut condition = Condition::always();
        if let Some(told) = claim.get("where") {
            let told = told.as_str().ok_or("the claim nearcast has a where that is not CQL2 text")?;
            condition = Condition::parse(told)
                .map_err(|error| format!("the claim nearcast has a where that is no condition: {error}"))?;
            text.insert("where".to_owned(), told.into());
        }
        let mut in_zones = None;
        if let Some(told) = claim.get("zones") {
            let names = names(told).ok_or("the claim nearcast has zones that are not an array of names")?;
            let known = names.iter().filter_map(|name| zones.get(name)).map(Arc::clone).collect();
            in_zones = Some(InZones { zones: known, constraint: zones::in_one_of(&names) });
            text.insert("zones".to_owned(), names.into());
        }
        let text: Value = text.into();
        let is_one = claim.contains_key("where") || in_zones.is_some();
        Ok(is_one.then(|| Self { text: text.to_string().into(), condition, zones: in_zones }))
    }

    /// The claim, by which it is known.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A short name for it, the same in every run.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:032x}", xxh3_128(self.text.as_bytes()))
    }

    /// Whether an event is among those that it is about, which has to say in which zones it is.
    pub(crate) fn holds(&self, event: &Event) -> bool {
        let is_in = |InZones { constraint, .. }: &InZones| {
            constraint.truth(event.value(&constraint.name)) == Truth::True
        };
        self.condition.expression().truth(event) == Truth::True && self.zones.as_ref().is_none_or(is_in)
    }

    /// The confinement as an expression, for callers that count what a test of it takes.
    pub(crate) fn expression(&self) -> Expression {
        let in_zones =
            self.zones.as_ref().map(|in_zones| Expression::Constraint(in_zones.constraint.clone()));
        Expression::And([self.condition.expression().clone()].into_iter().chain(in_zones).collect())
    }

    /// Refuses an event that is not.
    pub(crate) fn check(&self, event: &Event) -> Result<(), ApiError> {
        if self.holds(event) {
            return Ok(());
        }
        Err(forbidden(
            "the claim nearcast of the token, to which its holder is confined, does not hold of this event",
        ))
    }

    /// Refuses a client that is outside of its zones, now or on its way there.
    pub(crate) fn check_move(&self, told: &Move) -> Result<(), ApiError> {
        let Some(InZones { zones, .. }) = &self.zones else { return Ok(()) };
        let mut places = told.track.iter().flatten().chain([&told.fix.position]);
        if places.all(|place| zones.iter().any(|zone| zone.holds(place))) {
            return Ok(());
        }
        Err(forbidden("this is outside of the zones that the token is confined to (claim nearcast)"))
    }

    /// Lets filters take such events alone.
    ///
    /// # Errors
    /// Where a filter's condition together with this one is too large.
    pub(crate) fn confine(&self, filters: &mut [Filter]) -> Result<(), ApiError> {
        for (index, filter) in filters.iter_mut().enumerate() {
            let own = std::mem::take(&mut filter.condition);
            let both = own.both(&self.condition).map_err(|error| {
                let detail = format!("together with what the token is confined to (claim nearcast), {error}");
                ApiError::invalid(format!("/filters/{index}/where"), detail)
            })?;
            filter.condition = match &self.zones {
                Some(InZones { constraint, .. }) => both.and(constraint.clone()),
                None => both,
            };
        }
        Ok(())
    }

    /// How many constraints [`confine`](Self::confine) puts behind those of a filter.
    pub(crate) fn constraints_count(&self) -> usize {
        constraints_count(self.condition.expression()) + usize::from(self.zones.is_some())
    }
}

fn forbidden(detail: &str) -> ApiError {
    ApiError::Forbidden { detail: detail.to_owned(), scope: None }
}

/// Names of zones, one at least, in their order and each once.
fn names(value: &Value) -> Option<Vec<String>> {
    let names = value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
    let mut names: Vec<_> = names.collect::<Option<_>>()?;
    names.sort_unstable();
    names.dedup();
    Some(names).filter(|names| !names.is_empty())
}

fn constraints_count(expression: &Expression) -> usize {
    match expression {
        Expression::Constant(_) => 0,
        Expression::Constraint(_) | Expression::Residual(_) => 1,
        Expression::Not(inner) => constraints_count(inner),
        Expression::And(inner) | Expression::Or(inner) => inner.iter().map(constraints_count).sum(),
    }
}

#[cfg(test)]
mod tests {
    use matcher::area::Area;
    use matcher::geo::World;
    use serde_json::json;

    use super::*;

    fn read(claim: Value) -> Result<Option<Confinement>, String> {
        Confinement::read(&claim, &Zones::default())
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for claim in [
            json!(null),
            json!("a = 1"),
            json!([]),
            json!({"were": "a = 1"}),
            json!({"where": "a = 1", "until": 5}),
            json!({"where": null}),
            json!({"where": true}),
            json!({"where": ""}),
            json!({"where": "a ="}),
            json!({"where": (0..33).map(|n| format!("a < {n}")).collect::<Vec<_>>().join(" AND ")}),
            json!({"zones": null}),
            json!({"zones": []}),
            json!({"zones": "harbour"}),
            json!({"zones": [5]}),
            json!({"zones": ["harbour"]}),
        ] {
            assert!(read(claim.clone()).is_err(), "{claim}");
        }
        assert_eq!(read(json!({})), Ok(None));
        assert!(read(json!({"where": "a = 1"})).is_ok_and(|read| read.is_some()));
    }

    #[test]
    fn it_reads_again_as_the_same() {
        let zones = Zones::default();
        let claim = json!({"zones": ["b", "a", "b"], "where": "a = 1 OR NOT (b = 2 AND c = 3)"});
        let first = Confinement::understand(claim.as_object().unwrap(), &zones).unwrap().unwrap();
        assert_eq!(first.text(), r#"{"where":"a = 1 OR NOT (b = 2 AND c = 3)","zones":["a","b"]}"#);
        assert_eq!(first.constraints_count(), 4);
        let again = Confinement::read_again(first.text(), &zones).unwrap();
        assert_eq!((&again, again.fingerprint()), (&first, first.fingerprint()));
        let other = read(json!({"where": "a = 1"})).unwrap().unwrap();
        assert_ne!(other, first);
        assert_ne!(other.fingerprint(), first.fingerprint());
        assert!(Confinement::read_again("{}", &zones).is_err());
    }

    #[test]
    fn filters_that_are_too_large_with_it_are_told_so() {
        let of = |count: u64| (0..count).map(|n| format!("a = {n}")).collect::<Vec<_>>().join(" OR ");
        let confinement = read(json!({"where": of(8)})).unwrap().unwrap();
        let filter = |condition: &str| Filter {
            area: Area::Everywhere,
            condition: Condition::parse(condition).unwrap(),
        };
        let mut filters = [filter("b = 1"), filter(&of(8))];
        confinement.confine(&mut filters).unwrap();
        assert_eq!(filters.map(|filter| filter.condition.normal().conjunctions().len()), [8, 64]);
        let refused = confinement.confine(&mut [filter("b = 1"), filter(&of(9))]);
        let Err(ApiError::Invalid(faults)) = refused else { panic!("{refused:?}") };
        assert_eq!(faults[0].pointer, "/filters/1/where");
        assert!(faults[0].detail.contains("72 conjunctions, at most 64"), "{faults:?}");
    }

    #[test]
    fn only_what_is_true_holds() {
        let confinement = read(json!({"where": "severity < 3"})).unwrap().unwrap();
        let at = Event::at(World::Planar.position(&[0.0, 0.0]).unwrap());
        let mild = at.clone().with("severity", 2.0);
        assert!(confinement.holds(&mild) && confinement.expression().truth(&mild) == Truth::True);
        for event in [at.clone().with("severity", 3.0), at.clone().with("severity", "2"), at] {
            assert!(!confinement.holds(&event) && confinement.expression().truth(&event) != Truth::True);
            assert!(matches!(confinement.check(&event), Err(ApiError::Forbidden { scope: None, .. })));
        }
    }
}
