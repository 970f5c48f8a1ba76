//! The question why an event comes to a client, or does not.

use std::sync::Arc;

use matcher::geo::{Position, World};
use wire::Fault;

use super::feature::{FeatureReader, Observed, Rehearsed};
use super::json::{self, Members};
use super::near;
use super::position;
use super::subscription::{Prepared, SubscriptionReader, below};
use super::{Behalf, Confinement, Weighed};
use crate::model::error::ApiError;
use crate::model::tenant;

/// A checked question.
#[derive(Debug)]
pub(crate) struct Question {
    /// Client that has the subscription, by name as it was given.
    pub(crate) client: String,
    pub(crate) subscription: AskedSubscription,
    pub(crate) event: AskedEvent,
    /// The confinement of the asker: live events outside it do not count.
    pub(crate) confinement: Option<Arc<Confinement>>,
    /// A place to put in place of the client's position.
    pub(crate) position: Option<Position>,
}

impl Weighed for Box<Question> {
    fn bytes(&self) -> usize {
        match &self.subscription {
            AskedSubscription::Held(_) => 0,
            AskedSubscription::Told { prepared, .. } => prepared.document.len(),
        }
    }
}

/// A subscription that is there, or one that is not.
#[derive(Debug)]
pub(crate) enum AskedSubscription {
    Held(Arc<str>),
    Told {
        /// Its own `id`, where it has one.
        id: Option<Arc<str>>,
        prepared: Box<Prepared>,
    },
}

/// An event that is there, or one that is not.
#[derive(Debug)]
pub(crate) enum AskedEvent {
    /// A live one, by its id as the broker knows it.
    Live(Arc<str>),
    Told {
        /// The Feature's own id, where it has one.
        id: Option<serde_json::Value>,
        rehearsed: Box<Rehearsed>,
        /// The same, as checks would see it.
        observed: Arc<Observed>,
    },
}

/// Reads questions.
pub(crate) struct QuestionReader<'a> {
    pub(crate) world: World,
    pub(crate) behalf: Behalf<'a>,
    pub(crate) features: &'a FeatureReader,
    pub(crate) subscriptions: &'a SubscriptionReader,
}

impl QuestionReader<'_> {
    /// Reads `{"client", "subscription", "event", "position"}`. Other members are refused: a misspelt `position` would
    /// explain something else.
    pub(crate) fn parse(&self, text: &str) -> Result<Question, ApiError> {
        let mut members = Members::parse(text)?;
        let mut faults = Vec::new();
        let client = take(&mut members, "client", &mut faults)
            .and_then(|text| json::read(text, "/client", "a text").map_err(|fault| faults.push(fault)).ok());
        let place = members.take("position").and_then(|text| {
            position::coordinates(self.world, text, "/position").map_err(|fault| faults.push(fault)).ok()
        });
        let subscription = take(&mut members, "subscription", &mut faults);
        let subscription = part("/subscription", subscription, &mut faults, |text| self.subscription(text))?;
        let event = take(&mut members, "event", &mut faults);
        let event = part("/event", event, &mut faults, |text| self.event(text))?;
        members.refuse_rest("", &near::QUESTION, 0, &mut faults);
        match (client, subscription, event) {
            (Some(client), Some(subscription), Some(event)) if faults.is_empty() => {
                let confinement = self.behalf.confinement.cloned();
                Ok(Question { client, subscription, event, confinement, position: place })
            }
            _ => Err(ApiError::Invalid(faults)),
        }
    }

    fn subscription(&self, text: &str) -> Result<AskedSubscription, ApiError> {
        if let Some(id) = named(text)? {
            return Ok(AskedSubscription::Held(id));
        }
        let id: Option<Arc<str>> = match Members::parse(text)?.get("id") {
            Some(id) => Some(json::read::<String>(id, "/id", "a text")?.into()),
            None => None,
        };
        // The document needs a name, which nobody will see where it has none.
        let prepared = self.subscriptions.parse(id.as_deref().unwrap_or("explained"), text)?;
        Ok(AskedSubscription::Told { id, prepared: Box::new(prepared.on_behalf(self.behalf)?) })
    }

    fn event(&self, text: &str) -> Result<AskedEvent, ApiError> {
        if let Some(id) = named(text)? {
            let id = tenant::inside(self.behalf.tenant_name(), &id);
            return Ok(AskedEvent::Live(id.into()));
        }
        let rehearsed = self.features.rehearse(self.behalf, text)?;
        let id = Members::parse(text)?
            .get("id")
            .map(|id| json::read(id, "/id", "a text or a number"))
            .transpose()?;
        let observed = Arc::new(self.features.observe(text)?);
        Ok(AskedEvent::Told { id, rehearsed: Box::new(rehearsed), observed })
    }
}

/// The name that a text is, `None` for anything else.
fn named(text: &str) -> Result<Option<Arc<str>>, ApiError> {
    if !text.starts_with('"') {
        return Ok(None);
    }
    Ok(Some(json::read::<String>(text, "", "an id or a document")?.into()))
}

fn take<'a>(members: &mut Members<'a>, name: &str, faults: &mut Vec<Fault>) -> Option<&'a str> {
    let text = members.take(name);
    if text.is_none() {
        faults.push(Fault { pointer: json::pointer("", name), detail: "must be there".to_owned() });
    }
    text
}

/// Reads a part, whose faults are told with all others.
fn part<T>(
    pointer: &str,
    text: Option<&str>,
    faults: &mut Vec<Fault>,
    read: impl FnOnce(&str) -> Result<T, ApiError>,
) -> Result<Option<T>, ApiError> {
    match text.map(read) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(refusal)) => below(pointer, refusal, faults).map(|()| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::model::delivery::OverflowName;

    const FEATURE: &str = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]}}"#;

    fn parse(text: &str) -> Result<Question, ApiError> {
        let (world, limits) = (World::Geodetic, Config::default().limits);
        let features = FeatureReader::new(world, &limits, 7);
        let subscriptions = SubscriptionReader::new(world, limits, OverflowName::DropOldest);
        let behalf = Behalf::default();
        QuestionReader { world, behalf, features: &features, subscriptions: &subscriptions }.parse(text)
    }

    #[test]
    fn subscription_and_event_are_named_or_told() {
        let question =
            parse(&format!(r#"{{"client":"c","subscription":"s","event":{FEATURE},"position":[9,45]}}"#))
                .unwrap();
        assert_eq!(question.client, "c");
        assert!(matches!(question.subscription, AskedSubscription::Held(id) if &*id == "s"));
        assert!(matches!(question.event, AskedEvent::Told { id: None, .. }));
        assert_eq!(question.position.unwrap().x(), 9.0);
        let question =
            parse(r#"{"client":"c","subscription":{"id":"s","filters":[{}]},"event":"e","position":null}"#)
                .unwrap();
        let AskedSubscription::Told { id: Some(id), prepared } = question.subscription else {
            panic!("it was told")
        };
        assert_eq!((&*id, prepared.filters.len()), ("s", 1));
        assert!(matches!(question.event, AskedEvent::Live(id) if &*id == "e"));
        assert!(question.position.is_none());
    }

    #[track_caller]
    fn check_faults(text: &str, expected: &[&str]) {
        let Err(ApiError::Invalid(faults)) = parse(text) else { panic!("{text} must be refused") };
        let pointers: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, expected, "{text}: {faults:?}");
    }

    #[test]
    fn every_fault_is_told_with_its_pointer() {
        check_faults("{}", &["/client", "/subscription", "/event"]);
        check_faults("[]", &[""]);
        check_faults(r#"{"client":7,"subscription":7,"event":"e"}"#, &["/client", "/subscription"]);
        let text = r#"{"client":"c","subscription":{"filters":[]},"event":{"type":"Feature"},"position":[200,0],"x":1}"#;
        check_faults(text, &["/position", "/subscription/filters", "/event/geometry", "/x"]);
        check_faults(
            r#"{"client":"c","subscription":{"id":7,"filters":[{}]},"event":"e"}"#,
            &["/subscription/id"],
        );
        check_faults(r#"{"client":"c","subscription":"\ud800","event":"e"}"#, &["/subscription"]);
        assert!(matches!(parse("{"), Err(ApiError::Malformed { .. })));
    }
}
