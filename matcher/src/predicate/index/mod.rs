//! Events by what a predicate compares, so that an event finds its partners without a look at all others.
//!
//! [`of_predicates`] says by what the events of two variables can be joined, [`IndexJoin::lookup`] how those of one are found from one of
//! the other, and an [`Index`] holds them. What an index finds may be more than what a predicate admits, and never less.

mod joins;

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::Subject;
use crate::event::{Scalar, Symbol, Value};
pub use joins::{IndexJoin, Lookup, of_predicates};

/// The number by which an event was put into an index.
pub type Slot = u32;

/// A number that an event has by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Coordinate {
    /// An attribute.
    Attribute(Symbol),
    /// Longitude in degrees, or x in metres.
    Longitude,
    /// Latitude in degrees, or y in metres.
    Latitude,
    /// Its time in milliseconds.
    Time,
    /// A coordinate of its point in space.
    Point(usize),
}

/// What events are looked up by.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// An attribute's value, or each element of an array.
    Attribute(Symbol),
    /// A cell of a grid: coordinates, each with the width of a cell.
    Cells(Vec<(Coordinate, f64)>),
}

/// What of another event is looked up.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// Events that have the value of this attribute.
    Attribute(Symbol),
    /// Events in a range of each axis: from the other's coordinate plus a number to the same plus another.
    Ranges(Vec<(Coordinate, f64, f64)>),
}

/// A key of a bucket: a hash, for what a bucket has too much is refused by the predicate.
pub type Hashed = u64;

/// Cells up to which a range is looked up; there are more where numbers are so large that their rounding is wider than a cell.
const CELLS_MAX: usize = 64;

/// Events by a key.
#[derive(Debug)]
pub struct Index {
    key: Key,
    /// Slots of each key, those that were put in first at the front.
    buckets: HashMap<Hashed, VecDeque<Slot>, FixedState>,
}

impl Coordinate {
    /// The number of an event; `None` where it has none, so that no comparison with it is true.
    fn of(&self, subject: &Subject<'_>) -> Option<f64> {
        match self {
            Self::Attribute(name) => match subject.event.value(name)? {
                Value::Scalar(Scalar::Number(number)) => Some(*number),
                Value::Scalar(_) | Value::Array(_) => None,
            },
            Self::Longitude => Some(subject.event.position.x()),
            Self::Latitude => Some(subject.event.position.y()),
            #[expect(clippy::cast_precision_loss, reason = "times of this age are exact")]
            Self::Time => Some(subject.time_ms as f64),
            Self::Point(axis) => Some(subject.event.position.point()[*axis]),
        }
    }
}

/// What the hash of a cell begins with.
const SEED: Hashed = 0x51_7cc1_b727_2202;

fn mix(hash: Hashed, word: u64) -> Hashed {
    let product = u128::from(hash.rotate_left(32) ^ word) * 0x9e37_79b9_7f4a_7c15;
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

fn hash_scalar(scalar: &Scalar) -> Hashed {
    match scalar {
        // Zero has two names.
        Scalar::Number(number) => mix(1, (number + 0.0).to_bits()),
        Scalar::Text(text) => text.hash(),
        Scalar::Bool(truth) => mix(2, u64::from(*truth)),
    }
}

/// The cell of a number. It saturates, and it does not fall where the number grows.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn cell(number: f64, width: f64) -> i64 {
    (number / width).floor() as i64
}

impl Key {
    /// Calls `visit` with each key of an event.
    pub fn of_event(&self, subject: &Subject<'_>, mut visit: impl FnMut(Hashed)) {
        match self {
            Self::Attribute(name) => {
                let value = subject.event.value(name);
                value.map_or(&[][..], Value::elements).iter().for_each(|scalar| visit(hash_scalar(scalar)));
            }
            Self::Cells(axes) => {
                let cells = axes.iter().try_fold(SEED, |hash, (term, width)| {
                    Some(mix(hash, cell(term.of(subject)?, *width).cast_unsigned()))
                });
                cells.into_iter().for_each(visit);
            }
        }
    }

    /// Appends the keys of the events that another one may be joined to; `false` where these are too many, and all events have to be
    /// looked at.
    pub fn look_up(&self, probe: &Probe, other: &Subject<'_>, keys: &mut Vec<Hashed>) -> bool {
        match (probe, self) {
            (Probe::Attribute(name), _) => {
                let value = other.event.value(name);
                keys.extend(value.map_or(&[][..], Value::elements).iter().map(hash_scalar));
                true
            }
            (Probe::Ranges(ranges), Self::Cells(axes)) => {
                keys.push(SEED);
                for ((term, from, to), (_, width)) in ranges.iter().zip(axes) {
                    let Some(number) = term.of(other) else {
                        keys.clear();
                        return true;
                    };
                    // Wider by more than what rounding may do to the sum here and to the comparison in the predicate, and than what a square
                    // may be the root of that underflows.
                    let margin = (number.abs() + from.abs() + to.abs()) * 1e-12 + 1e-150;
                    let first = cell(number + from - margin, *width);
                    let last = cell(number + to + margin, *width);
                    let count = usize::try_from(last.abs_diff(first))
                        .map_or(usize::MAX, |more| more.saturating_add(1));
                    if count.saturating_mul(keys.len()) > CELLS_MAX {
                        return false;
                    }
                    let before = std::mem::take(keys);
                    keys.extend(
                        (first..=last)
                            .flat_map(|cell| before.iter().map(move |&hash| mix(hash, cell.cast_unsigned()))),
                    );
                }
                true
            }
            (Probe::Ranges(_), Self::Attribute(_)) => false,
        }
    }
}

impl Index {
    /// An index without events.
    #[must_use]
    pub fn new(key: Key) -> Self {
        Self { key, buckets: HashMap::default() }
    }

    /// What events are looked up by.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Forgets all events.
    pub fn clear(&mut self) {
        self.buckets = HashMap::default();
    }

    /// Puts an event in.
    pub fn insert(&mut self, subject: &Subject<'_>, slot: Slot) {
        let mut buckets = std::mem::take(&mut self.buckets);
        self.key.of_event(subject, |key| buckets.entry(key).or_default().push_back(slot));
        self.buckets = buckets;
    }

    /// Takes an event out. Cost: the events of its buckets at worst, little for those that were put in first.
    ///
    /// # Panics
    /// When it was not put in with this slot.
    pub fn remove(&mut self, subject: &Subject<'_>, slot: Slot) {
        let mut buckets = std::mem::take(&mut self.buckets);
        self.key.of_event(subject, |key| {
            let bucket = buckets.get_mut(&key).expect("an event has the keys that it had");
            // Mostly the oldest.
            let place = bucket.iter().position(|&other| other == slot).expect("it was put there");
            bucket.remove(place);
            if bucket.is_empty() {
                buckets.remove(&key);
            }
        });
        self.buckets = buckets;
    }

    /// Does what [`Key::look_up`] does.
    pub fn look_up(&self, probe: &Probe, other: &Subject<'_>, keys: &mut Vec<Hashed>) -> bool {
        self.key.look_up(probe, other, keys)
    }

    /// Slots of a key, those that were put in last at the front.
    pub fn bucket(&self, key: Hashed) -> impl Iterator<Item = Slot> {
        self.buckets.get(&key).into_iter().flat_map(|bucket| bucket.iter().rev().copied())
    }

    /// How many slots a key has.
    #[must_use]
    pub fn count(&self, key: Hashed) -> usize {
        self.buckets.get(&key).map_or(0, VecDeque::len)
    }

    /// The memory that it takes, events not included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let slots: usize = self.buckets.values().map(|bucket| 4 * bucket.capacity()).sum();
        slots + self.buckets.capacity() * size_of::<(Hashed, VecDeque<Slot>)>()
    }
}
