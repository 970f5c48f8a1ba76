//! Topics by cell, for brokers that match nothing else, whatever their bytes.
//!
//! A client subscribes to the topics of all cells that its circles touch, and changes those when it moves; an event is published
//! under the topic of its cell. Nothing of that is answered by itself, but brokers carry out what one connection says in turn, so
//! that the answer to a ping says that all before it is done.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use matcher::area::Area;
use matcher::geo::Position;

use super::cells::{Cell, Cells};
use super::documents::push_feature;
use super::{Garbled, Speak, Told};
use crate::plan::{Client, Occurrence};

/// What is lost when a scenario is put into topics.
pub(super) const LACKS: &[&str] = &[
    "no conditions: a client gets all events of its cells",
    "areas are told as cells: what lies in a cell and outside of the area comes, too, and the receiver has to throw it away",
    "a circle of more than 1,000 cells is told as everything",
    "a move unsubscribes from the cells that were left and subscribes to those that were entered",
    "no live events: what happened before a client came is not told, and no transitions either",
    "events are not acknowledged, and lost when a receiver is slow: `accepted` is when a ping behind them was answered",
    "nothing is kept for a client that is away",
    "alarms do not go first, and the reach of an event is not heeded",
    "no subscriptions without a connection: `clients.silent` are left out",
];

/// What is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Topic {
    /// All that there are; then no other beside it, so that nothing comes twice.
    All,
    /// One cell's.
    Of(Cell),
}

/// A broker's own bytes.
pub(super) trait Tongue: Send {
    /// At once when the connection is there.
    fn open(&mut self, _out: &mut Vec<u8>) {}

    /// When the broker has said that the conversation can begin.
    fn greet(&mut self, _out: &mut Vec<u8>) {}

    /// Subscribes to topics, one at least.
    fn subscribe(&mut self, topics: &[Topic], out: &mut Vec<u8>);

    /// Ends that.
    fn unsubscribe(&mut self, topics: &[Topic], out: &mut Vec<u8>);

    /// Publishes.
    fn publish(&mut self, cell: Cell, payload: &[u8], out: &mut Vec<u8>);

    /// Asks for an answer.
    fn ping(&mut self, out: &mut Vec<u8>);

    /// Answers.
    fn pong(&mut self, out: &mut Vec<u8>);
}

/// What pings that are under way stand for, in their order: who speaks adds, who hears takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Mutex<VecDeque<Turn>>>);

#[derive(Clone, Copy, Debug)]
enum Turn {
    /// What a client said of itself.
    Itself,
    /// A move under a number.
    Move(u64),
    /// So many events.
    Events(u64),
}

impl Turns {
    fn add(&self, turn: Turn) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(turn);
    }

    /// What the answer to a ping says.
    pub(super) fn answered(&self) -> Result<Told<'static>, Garbled> {
        let turn = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match turn {
            Some(Turn::Itself) => Ok(Told::Done(None)),
            Some(Turn::Move(number)) => Ok(Told::Done(Some(number))),
            Some(Turn::Events(count)) => Ok(Told::Batch(Ok(count))),
            None => Err(Garbled("an answer to a ping that nobody sent".to_owned())),
        }
    }
}

/// Says everything in topics. Who publishes has no areas.
pub(super) struct Speaker<T> {
    tongue: T,
    cells: Cells,
    areas: Vec<Area>,
    subscribed: BTreeSet<Topic>,
    turns: Turns,
    /// Events that were published since the last ping.
    unasked: Vec<u64>,
    /// Whether a ping behind events is under way.
    is_asked: bool,
    payload: Vec<u8>,
}

impl<T: Tongue> Speaker<T> {
    pub(super) fn new(tongue: T, cells: Cells, client: Option<&Client>, turns: Turns) -> Self {
        let filters = client.into_iter().flat_map(|client| &client.wishes).flat_map(|wish| &wish.filters);
        Self {
            tongue,
            cells,
            areas: filters.map(|filter| filter.area.clone()).collect(),
            subscribed: BTreeSet::new(),
            turns,
            unasked: Vec::new(),
            is_asked: false,
            payload: Vec::new(),
        }
    }

    /// Subscribes to what the areas touch from somewhere. First to what is new, so that nothing is missed in between.
    fn settle(&mut self, position: Option<&Position>, out: &mut Vec<u8>) {
        let wanted = topics(&self.cells, &self.areas, position);
        let entered: Vec<Topic> = wanted.difference(&self.subscribed).copied().collect();
        let left: Vec<Topic> = self.subscribed.difference(&wanted).copied().collect();
        if !entered.is_empty() {
            self.tongue.subscribe(&entered, out);
        }
        if !left.is_empty() {
            self.tongue.unsubscribe(&left, out);
        }
        self.subscribed = wanted;
    }

    fn ask(&mut self, turn: Turn, out: &mut Vec<u8>) {
        self.turns.add(turn);
        self.tongue.ping(out);
    }
}

/// The topics of what areas touch.
fn topics(cells: &Cells, areas: &[Area], position: Option<&Position>) -> BTreeSet<Topic> {
    let mut topics = BTreeSet::new();
    for area in areas {
        let circle = match area {
            Area::Everywhere => None,
            Area::Following(radius) => match position {
                Some(position) => Some((position, radius)),
                None => continue,
            },
            Area::Circle { centre, radius } => Some((centre, radius)),
            Area::Polygon(_) | Area::Corridor(_) => unreachable!("no plan has such areas"),
        };
        match circle.and_then(|(centre, radius)| cells.cover(centre, radius.metres())) {
            Some(cells) => topics.extend(cells.into_iter().map(Topic::Of)),
            None => return BTreeSet::from([Topic::All]),
        }
    }
    topics
}

impl<T: Tongue> Speak for Speaker<T> {
    fn open(&mut self, _resume: Option<&str>, out: &mut Vec<u8>) {
        self.tongue.open(out);
    }

    fn introduce(&mut self, position: Option<&Position>, out: &mut Vec<u8>) -> u64 {
        self.tongue.greet(out);
        self.settle(position, out);
        self.ask(Turn::Itself, out);
        1
    }

    fn move_home(&mut self, to: &Position, out: &mut Vec<u8>) {
        self.settle(Some(to), out);
        self.ask(Turn::Itself, out);
    }

    fn move_to(&mut self, to: &Position, number: Option<u64>, out: &mut Vec<u8>) {
        self.settle(Some(to), out);
        if let Some(number) = number {
            self.ask(Turn::Move(number), out);
        }
    }

    fn publish(&mut self, number: u64, occurrence: &Occurrence, out: &mut Vec<u8>) {
        self.payload.clear();
        push_feature(number, occurrence, &mut self.payload);
        self.tongue.publish(self.cells.at(&occurrence.event.position), &self.payload, out);
        self.unasked.push(number);
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> Option<Vec<u64>> {
        if self.is_asked || self.unasked.is_empty() {
            return None;
        }
        self.ask(Turn::Events(self.unasked.len() as u64), out);
        self.is_asked = true;
        Some(std::mem::take(&mut self.unasked))
    }

    fn answered(&mut self) {
        self.is_asked = false;
    }

    fn pong(&mut self, _payload: &[u8], out: &mut Vec<u8>) {
        self.tongue.pong(out);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use matcher::condition::Condition;
    use matcher::event::Event;
    use matcher::geo::{Radius, World};
    use matcher::subscription::Filter;

    use super::*;
    use crate::plan::Wish;
    use crate::wire::Hear;

    /// What was said on a plane of cells of 100 m.
    pub(in super::super) struct Said {
        pub(in super::super) open: Vec<u8>,
        /// What a client says first whose circle touches the cells 0/0 and 0/1.
        pub(in super::super) introduction: Vec<u8>,
        /// When it moved to 0/1 and 0/2, under a number.
        pub(in super::super) moved: Vec<u8>,
        /// When it moved within those, without.
        pub(in super::super) stayed: Vec<u8>,
        /// An event in -1/2.
        pub(in super::super) feature: Vec<u8>,
        pub(in super::super) published: Vec<u8>,
    }

    /// What a client and a publisher say over their wire.
    pub(in super::super) fn conversation(
        ends: impl Fn(Option<&Client>, Cells) -> (Box<dyn Speak>, Box<dyn Hear>),
    ) -> Said {
        let (world, cells) = (World::Planar, Cells::new(World::Planar, 100.0));
        let at = |x: f64, y: f64| world.position(&[x, y]).unwrap();
        let area = Area::Following(Radius::new(world, 20.0).unwrap());
        let filters = vec![Filter { area, condition: Condition::parse("severity >= 1").unwrap() }];
        let wishes = vec![Wish { id: "near".to_owned(), filters, is_durable: false }];
        let client = Client { name: "ann".to_owned(), home: None, wishes };
        let (mut ann, _) = ends(Some(&client), cells);
        let (mut open, mut introduction, mut moved, mut stayed) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        ann.open(None, &mut open);
        assert_eq!(ann.introduce(Some(&at(95.0, 50.0)), &mut introduction), 1);
        ann.move_to(&at(195.0, 50.0), Some(7), &mut moved);
        ann.move_to(&at(190.0, 40.0), None, &mut stayed);
        let (mut publisher, _) = ends(None, cells);
        let event = Event::at(at(250.0, -50.0)).with("severity", 3.0);
        let occurrence =
            Occurrence { event, ttl_s: 60.0, key: Some("k".repeat(100)), is_alarm: false, truth: None };
        let (mut feature, mut published) = (Vec::new(), Vec::new());
        push_feature(4711, &occurrence, &mut feature);
        publisher.publish(4711, &occurrence, &mut published);
        assert_eq!(publisher.flush(&mut published), Some(vec![4711]));
        // One ping at a time.
        let mut further = Vec::new();
        publisher.publish(4712, &occurrence, &mut further);
        assert_eq!(publisher.flush(&mut further), None);
        publisher.answered();
        assert_eq!(publisher.flush(&mut further), Some(vec![4712]));
        assert_eq!(publisher.flush(&mut further), None);
        Said { open, introduction, moved, stayed, feature, published }
    }

    /// What was told, to be kept.
    #[derive(Clone, Debug, PartialEq)]
    pub(in super::super) enum Heard {
        Ready,
        Ping,
        Done(Option<u64>),
        Event(Option<u64>),
        Refused(String),
        Closed(String),
    }

    /// What comes byte by byte is reported once; one ping is under way.
    pub(in super::super) fn byte_by_byte(
        bytes: &[u8],
        listener: impl FnOnce(Turns) -> Box<dyn Hear>,
    ) -> Result<Vec<Heard>, Garbled> {
        let turns = Turns::default();
        turns.add(Turn::Itself);
        let mut listener = listener(turns);
        let (mut pending, mut heard) = (Vec::new(), Vec::new());
        for byte in bytes {
            pending.push(*byte);
            let read = listener.hear(&pending, &mut |told| {
                heard.push(match told {
                    Told::Ready { .. } => Heard::Ready,
                    Told::Ping(_) => Heard::Ping,
                    Told::Done(number) => Heard::Done(number),
                    Told::Event { number, .. } => Heard::Event(number),
                    Told::Refused(_, why) => Heard::Refused(why.to_owned()),
                    Told::Closed(why) => Heard::Closed(why.to_owned()),
                    Told::Batch(_) | Told::Gap { .. } | Told::Retry(_) => {
                        unreachable!("{told:?} was not asked for")
                    }
                });
            })?;
            pending.drain(..read);
        }
        assert!(pending.is_empty(), "{pending:?} is left");
        Ok(heard)
    }

    #[test]
    fn who_wants_everything_has_one_topic() {
        let cells = Cells::new(World::Planar, 100.0);
        let circle = Area::Following(Radius::new(World::Planar, 20.0).unwrap());
        let at = World::Planar.position(&[50.0, 50.0]).unwrap();
        let of = |areas: &[Area], position| Vec::from_iter(topics(&cells, areas, position));
        assert_eq!(of(&[circle.clone(), Area::Everywhere], Some(&at)), [Topic::All]);
        assert_eq!(of(&[circle.clone(), circle.clone()], Some(&at)), [Topic::Of(Cell { row: 0, column: 0 })]);
        assert_eq!(of(&[circle], None), []);
        let wide = Area::Circle { centre: at, radius: Radius::new(World::Planar, 1e5).unwrap() };
        assert_eq!(of(&[wide], None), [Topic::All]);
    }
}
