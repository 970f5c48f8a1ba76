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
        let mut state =
            State { clients: (0..clients_count).map(|_| Client::default()).collect(), rows: Vec::new() };
        let mut expected = Expected::default();
        for step in rx {
            match step {
                Step::Move { client_idx, place } => state.move_to(client_idx, place),
                Step::Subscribe { client_idx, id, subscription } => state.put(client_idx, id, subscription),
                Step::Unsubscribe { client_idx, id } => state.remove(client_idx, &id),
                Step::Publish { id, place, reach_m, properties } => {
                    state.publish(&id, place, reach_m, &properties, &mut expected);
                }
            }
        }
        expected
    });
    (tx, thread)
}

struct State {
    clients: Vec<Client>,
    /// All filters that there ever were, in one list: most time goes into running over it.
    rows: Vec<Row>,
}

#[derive(Default)]
struct Client {
    place: Option<Place>,
    /// The rows of each subscription.
    subscriptions: HashMap<String, Vec<usize>>,
}

struct Row {
    /// A box that the area lies in; of a filter that is gone, nothing.
    frame: Frame,
    filter: Filter,
    client_idx: usize,
    id: String,
}

impl State {
    fn move_to(&mut self, client_idx: usize, place: Place) {
        let client = &mut self.clients[client_idx];
        client.place = Some(place);
        for row_idx in client.subscriptions.values().flatten() {
            let row = &mut self.rows[*row_idx];
            row.frame = row.filter.area.frame(Some(place));
        }
    }

    fn put(&mut self, client_idx: usize, id: String, subscription: Subscription) {
        self.retire(client_idx, &id);
        let first = self.rows.len();
        for filter in subscription {
            let frame = filter.area.frame(self.clients[client_idx].place);
            self.rows.push(Row { frame, filter, client_idx, id: id.clone() });
        }
        self.clients[client_idx].subscriptions.insert(id, (first..self.rows.len()).collect());
    }

    fn remove(&mut self, client_idx: usize, id: &str) {
        assert!(self.retire(client_idx, id), "the plan removes what is not there: {id}");
    }

    fn retire(&mut self, client_idx: usize, id: &str) -> bool {
        let rows = self.clients[client_idx].subscriptions.remove(id);
        for row_idx in rows.iter().flatten() {
            self.rows[*row_idx].frame = Frame::NOTHING;
        }
        rows.is_some()
    }

    fn publish(
        &self,
        event: &str,
        place: Place,
        reach_m: Option<f64>,
        properties: &Value,
        expected: &mut Expected,
    ) {
        let truths = CONDITIONS.iter().map(|condition| (condition.holds)(properties)).collect::<Vec<_>>();
        let mut found = BTreeMap::<usize, BTreeMap<&str, Side>>::new();
        for row in &self.rows {
            if !row.frame.holds(place) || !truths[row.filter.condition_idx] {
                continue;
            }
            let side = row.filter.area.side(self.clients[row.client_idx].place, place);
            if side == Side::Outside {
                continue;
            }
            let known = found.entry(row.client_idx).or_default().entry(&row.id).or_insert(side);
            if side == Side::Inside {
                *known = side;
            }
        }
        for (client_idx, subscriptions) in found {
            let reached = match (reach_m, self.clients[client_idx].place) {
                (Some(reach_m), Some(position)) => within(distance_m(position, place), reach_m),
                (None, _) | (_, None) => Side::Inside,
            };
            let pair = (client_idx, event.to_owned());
            if reached == Side::Border || subscriptions.values().any(|side| *side == Side::Border) {
                expected.undecided.insert(pair);
            } else if reached == Side::Inside {
                expected.deliveries.insert(pair, subscriptions.into_keys().map(str::to_owned).collect());
            }
        }
    }
}
