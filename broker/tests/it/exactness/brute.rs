//! Who must get what, by trying every filter on every event.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use super::conditions::CONDITIONS;
use super::geometry::{Area, Frame, Place, Side, distance_m, within};

/// A filter: an area and a row of the table of conditions.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) area: Area,
    pub(crate) condition_idx: usize,
}

/// A subscription is a list of filters.
pub(crate) type Subscription = Vec<Filter>;

/// A subscription as PROTOCOL writes it.
pub(crate) fn document(subscription: &Subscription) -> Value {
    let filters = subscription.iter().map(|filter| {
        let mut document = json!({});
        if let Some(area) = filter.area.document() {
            document["area"] = area;
        }
        if let Some(text) = (CONDITIONS[filter.condition_idx].text)() {
            document["where"] = text;
        }
        document
    });
    json!({"filters": filters.collect::<Vec<_>>()})
}

/// What happens, in the order in which it took effect.
pub(crate) enum Step {
    Move { client_idx: usize, place: Place },
    Subscribe { client_idx: usize, id: String, subscription: Subscription },
    Unsubscribe { client_idx: usize, id: String },
    Publish { id: String, place: Place, reach_m: Option<f64>, properties: Value },
}

/// Deliveries that must be, and pairs that are too near to a border to tell.
#[derive(Default)]
pub(crate) struct Expected {
    /// Subscriptions by client and event, ids in order.
    pub(crate) deliveries: HashMap<(usize, String), Vec<String>>,
    /// Left out of the comparison.
    pub(crate) undecided: HashSet<(usize, String)>,
}

/// Starts a thread that works through the steps while the broker does its own work.
pub(crate) fn start(clients_count: usize) -> (mpsc::Sender<Step>, JoinHandle<Expected>) {
    let (tx, rx) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut clients = (0..clients_count).map(|_| Client::default()).collect::<Vec<_>>();
        let mut expected = Expected::default();
        for step in rx {
            match step {
                Step::Move { client_idx, place } => clients[client_idx].move_to(place),
                Step::Subscribe { client_idx, id, subscription } => clients[client_idx].put(id, subscription),
                Step::Unsubscribe { client_idx, id } => clients[client_idx].remove(&id),
                Step::Publish { id, place, reach_m, properties } => {
                    publish(&clients, &id, place, reach_m, &properties, &mut expected);
                }
            }
        }
        expected
    });
    (tx, thread)
}

#[derive(Default)]
struct Client {
    place: Option<Place>,
    /// Each filter beside the box that its area lies in.
    subscriptions: BTreeMap<String, Vec<(Frame, Filter)>>,
}

impl Client {
    fn move_to(&mut self, place: Place) {
        self.place = Some(place);
        for (frame, filter) in self.subscriptions.values_mut().flatten() {
            *frame = filter.area.frame(Some(place));
        }
    }

    fn put(&mut self, id: String, subscription: Subscription) {
        let framed = subscription.into_iter().map(|filter| (filter.area.frame(self.place), filter)).collect();
        self.subscriptions.insert(id, framed);
    }

    fn remove(&mut self, id: &str) {
        assert!(self.subscriptions.remove(id).is_some(), "the plan removes what is not there: {id}");
    }
}

fn publish(
    clients: &[Client],
    id: &str,
    place: Place,
    reach_m: Option<f64>,
    properties: &Value,
    expected: &mut Expected,
) {
    let truths = CONDITIONS.iter().map(|condition| (condition.holds)(properties)).collect::<Vec<_>>();
    for (client_idx, client) in clients.iter().enumerate() {
        let reached = match (reach_m, client.place) {
            (Some(reach_m), Some(position)) => within(distance_m(position, place), reach_m),
            (None, _) | (_, None) => Side::Inside,
        };
        if reached == Side::Outside {
            continue;
        }
        let mut ids = Vec::new();
        let mut undecided = false;
        for (id, filters) in &client.subscriptions {
            match side(filters, &truths, client.place, place) {
                Side::Inside => ids.push(id.clone()),
                Side::Border => undecided = true,
                Side::Outside => {}
            }
        }
        undecided |= reached == Side::Border && !ids.is_empty();
        if undecided {
            expected.undecided.insert((client_idx, id.to_owned()));
        } else if !ids.is_empty() {
            expected.deliveries.insert((client_idx, id.to_owned()), ids);
        }
    }
}

fn side(filters: &[(Frame, Filter)], truths: &[bool], client: Option<Place>, place: Place) -> Side {
    let mut best = Side::Outside;
    for (frame, filter) in filters {
        if !truths[filter.condition_idx] || !frame.holds(place) {
            continue;
        }
        match filter.area.side(client, place) {
            Side::Inside => return Side::Inside,
            Side::Border => best = Side::Border,
            Side::Outside => {}
        }
    }
    best
}
