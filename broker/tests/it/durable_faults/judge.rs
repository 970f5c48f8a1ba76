//! Holds what was told against what was asked for and answered.

use std::time::Instant;

use serde_json::{Value, json};

use super::ledger::{Client, Event, Ledger, is_durable};
use super::timeline::{Span, Timeline, overlap};
use super::world::{On, Place, Spot, Wish};
use crate::harness::Http;

/// Live events that are asked for after each recovery.
const ASKED_MAX: usize = 60;

/// Checks that what was acknowledged is there right after a recovery, before anybody has asked for anything else. Called
/// while nothing is under way but what the last end of the broker has left without an answer.
pub(crate) async fn check_recovered(ledger: &std::sync::Mutex<Ledger>, http: &Http) {
    check_state(ledger, http, (Instant::now(), None)).await;
}

/// Checks what a broker shows that begins with what was there at some time in a stretch, and that nobody else asks.
pub(crate) async fn check_state(ledger: &std::sync::Mutex<Ledger>, http: &Http, stretch: Span) {
    let lock = || ledger.lock().expect("nobody panicked");
    let names = lock().clients.iter().map(|client| client.name.clone()).collect::<Vec<_>>();
    for (idx, name) in names.iter().enumerate() {
        let forms = http.get(&format!("/v1/clients/{name}/subscriptions")).await.expect(200).json();
        let question = json!({
            "client": name,
            "subscription": {"filters": [{"area": {"radius_m": 1}}]},
            "event": {"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}, "properties": {}},
        });
        let told = explained(http, &question).await.expect("a document is always explained");
        let mut ledger = lock();
        let faults = faults_of_state(&ledger.clients[idx], stretch, &forms, &told["position"]["coordinates"]);
        ledger.faults.extend(faults);
    }
    let live = {
        let ledger = lock();
        let live = ledger.events.values().filter(|event| event.object.is_some() && event.acked.is_some());
        live.rev().map(|event| event.number).take(ASKED_MAX).collect::<Vec<_>>()
    };
    for number in live {
        let question =
            json!({"client": "nobody", "subscription": {"filters": [{}]}, "event": format!("e{number}")});
        let is_live = explained(http, &question).await.is_some();
        let mut ledger = lock();
        let event = &ledger.events[&number];
        // It was live all the time, and still is after it was asked for; or it may have been some time.
        let asked = Instant::now();
        let must = event
            .certain_life()
            .is_some_and(|life| life.0 <= stretch.0 && life.1.is_none_or(|end| end > asked));
        let may = event.life().is_some_and(|life| overlap(&[life, stretch]).is_some());
        if is_live && !may || !is_live && must {
            let fault = format!(
                "event {number} is {}: {}",
                if is_live { "live again" } else { "lost" },
                history(event)
            );
            ledger.fault(fault);
        }
    }
}

async fn explained(http: &Http, question: &Value) -> Option<Value> {
    let answer = http.post("/v1/explain", "application/json", question.to_string()).await;
    (answer.status != 404).then(|| answer.expect(200).json())
}

/// What of a client's subscriptions and position cannot be.
fn faults_of_state(client: &Client, stretch: Span, forms: &Value, coordinates: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let forms = forms.as_array().expect("a list");
    let form = |id: &str| forms.iter().find(|form| form["id"] == id);
    for (id, wish) in &client.wishes {
        let fits = |wish: &Option<Wish>| match (wish, form(id)) {
            (Some(wish), Some(form)) => wish.is_shown_by(form),
            (None, None) => true,
            _ => false,
        };
        let wishes = wish.during(stretch);
        if !wishes.iter().any(fits) {
            faults.push(format!("{}: {id} is {:?} after recovery and was {wishes:?}", client.name, form(id)));
        }
    }
    for form in forms {
        let id = form["id"].as_str().unwrap_or_default();
        if !client.wishes.contains_key(id) {
            faults.push(format!("{}: nobody asked for {form}", client.name));
        }
    }
    let places = client.place.during(stretch);
    let shown = |place: &Option<Place>| match place {
        Some(place) => *coordinates == json!(place.coordinates()),
        None => coordinates.is_null(),
    };
    if !places.iter().any(shown) {
        faults.push(format!("{}: at {coordinates} after recovery and was at {places:?}", client.name));
    }
    faults
}

/// Decides all that has come until now: all is answered, nothing more is asked for, and everybody has read everything.
pub(crate) fn settle(ledger: &mut Ledger) {
    let mut faults = Vec::new();
    for client in ledger.clients.iter().filter(|client| client.seen > 0) {
        for event in ledger.events.values() {
            let places = Places::of(client, event);
            for (id, wish) in client.wishes.iter().filter(|(_, wish)| !is_of_transitions(wish)) {
                let pair = (id.clone(), event.number);
                let told = client.told.get(&pair).copied().unwrap_or_default();
                let told_before = client.told_before.get(&pair).copied().unwrap_or_default();
                let (must, may) = places.expected(event, wish);
                let fault = match told {
                    0 if must && is_durable(id) => "never came",
                    1.. if !may && told > told_before => "came and did not match",
                    // What is not durable has forgotten at a start what it had and was not inside then.
                    2.. if told > event.attempts_count && is_durable(id) => "came too often",
                    _ => continue,
                };
                faults.push(format!(
                    "{}, {id}: event {} {fault} ({told} times): {}; client {}; subscription {}",
                    client.name,
                    event.number,
                    history(event),
                    history_of(event, client.place.perhaps()),
                    history_of(event, wish.perhaps()),
                ));
            }
        }
        for (id, wish) in client.wishes.iter().filter(|(_, wish)| is_of_transitions(wish)) {
            faults.extend(wish.last().and_then(|wish| fault_of_standing(ledger, client, id, wish)));
        }
    }
    ledger.faults.extend(faults);
    ledger.forget();
}

/// Whether a subscription hears of transitions: it never turns into one to events.
pub(crate) fn is_of_transitions(wish: &Timeline<Option<Wish>>) -> bool {
    wish.perhaps().any(|(_, wish)| wish.is_some_and(|wish| wish.on != On::Events))
}

/// Where a client was during an event.
pub(crate) struct Places {
    /// Where it may have been while the event was or may have been matched.
    perhaps: Vec<(Span, Option<Spot>)>,
    /// The same for the last time that it was published.
    at_last: Vec<(Span, Option<Spot>)>,
    /// Where it was for certain while the event was live for certain.
    certain: Vec<(Span, Option<Spot>)>,
    /// When a track led over it while it was live for certain.
    passings: Vec<Span>,
}

impl Places {
    pub(crate) fn of(client: &Client, event: &Event) -> Self {
        fn within(
            span: Option<Span>,
            places: impl Iterator<Item = (Span, Option<Place>)>,
        ) -> Vec<(Span, Option<Spot>)> {
            let Some(span) = span else { return Vec::new() };
            let places = places.filter_map(|(there, place)| Some((overlap(&[span, there])?, place)));
            places.map(|(span, place)| (span, place.map(|place| place.spot))).collect()
        }
        let last = event.last_sent.zip(event.acked).map(|(sent, acked)| (sent, Some(acked)));
        let tracks = client.place.changes();
        let tracks = tracks.filter(|(_, place)| place.is_some_and(|place| place.has_passed(event.spot)));
        // Only of a live event is what was passed before the last point of a track.
        let passings = tracks.map(|(span, _)| span).filter(|_| event.object.is_some()).collect::<Vec<_>>();
        let mut perhaps = within(event.life(), client.place.perhaps());
        let passed = passings.iter().filter_map(|passing| overlap(&[*passing, event.life()?]));
        perhaps.extend(passed.map(|span| (span, Some(event.spot))));
        Self {
            perhaps,
            at_last: within(last, client.place.perhaps()),
            certain: within(event.certain_life(), client.place.certain()),
            passings: passings
                .into_iter()
                .filter(|passing| event.certain_life().is_some_and(|life| covers(life, *passing)))
                .collect(),
        }
    }

    /// Whether the event must have come to a subscription, and whether it may have.
    pub(crate) fn expected(&self, event: &Event, wish: &Timeline<Option<Wish>>) -> (bool, bool) {
        let perhaps = || wish.perhaps();
        let together = |there: Span, in_force: Span| overlap(&[there, in_force]).is_some();
        let takes = |spot: Option<Spot>, wish: Option<Wish>| {
            wish.is_some_and(|wish| wish.takes(spot, event.spot, event.kind))
        };
        let may = self.perhaps.iter().any(|(there, spot)| {
            perhaps().any(|(in_force, wish)| takes(*spot, wish) && together(*there, in_force))
        });
        let must = may
            && if event.object.is_some() {
                self.certain.iter().any(|(there, spot)| {
                    wish.certain().any(|(in_force, wish)| takes(*spot, wish) && together(*there, in_force))
                }) || self.passings.iter().any(|passing| {
                    let mut certain = wish.certain();
                    certain
                        .any(|(in_force, wish)| takes(Some(event.spot), wish) && covers(in_force, *passing))
                })
            } else {
                self.at_last.iter().all(|(there, spot)| {
                    perhaps().all(|(in_force, wish)| takes(*spot, wish) || !together(*there, in_force))
                })
            };
        (must, may)
    }
}

/// Whether a stretch of time holds all of another one, which has an end.
fn covers(stretch: Span, other: Span) -> bool {
    let ends = |end: Instant| stretch.1.is_none_or(|last| end <= last);
    stretch.0 <= other.0 && other.1.is_some_and(ends)
}

/// What was told of who is inside, against who is.
fn fault_of_standing(ledger: &Ledger, client: &Client, id: &str, wish: Wish) -> Option<String> {
    let now = Instant::now();
    let spot = client.place.last().map(|place| place.spot);
    for event in ledger.events.values() {
        let Some(object) = event.object.as_ref().filter(|object| ledger.is_last(object, event.number)) else {
            continue;
        };
        let is_over = event.life().is_none_or(|life| life.1.is_some_and(|end| end < now));
        let is_inside = !is_over && wish.takes(spot, event.spot, event.kind);
        let told_inside = client.inside.contains(&(id.to_owned(), object.clone()));
        if is_inside != told_inside {
            let told = if told_inside { "told to be inside" } else { "not told to be inside" };
            return Some(format!(
                "{}, {id}: {object} is {told}: {}; client at {spot:?}; {wish:?}",
                client.name,
                history(event)
            ));
        }
    }
    None
}

/// An event's life in milliseconds before now.
pub(crate) fn history(event: &Event) -> String {
    let ago = |span: Option<Span>| {
        span.map(|(from, to)| (from.elapsed().as_millis(), to.map(|to| to.elapsed().as_millis())))
    };
    format!(
        "{} sent {} times, matched or live from {:?} ms ago, certainly {:?}",
        event.document,
        event.attempts_count,
        ago(event.life()),
        ago(event.certain_life()),
    )
}

/// What there was during an event.
fn history_of<T: std::fmt::Debug>(event: &Event, values: impl Iterator<Item = (Span, T)>) -> String {
    let values =
        values.filter(|(span, _)| event.life().is_some_and(|life| overlap(&[life, *span]).is_some()));
    let ago = |at: Instant| at.elapsed().as_millis();
    let told =
        values.map(|((from, to), value)| format!("{value:?} from {} to {:?} ms ago", ago(from), to.map(ago)));
    told.collect::<Vec<_>>().join(", ")
}
