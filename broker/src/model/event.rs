//! Events that were read and checked, and are going to be matched and delivered.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::hash::BuildHasher as _;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Instant;

use matcher::event::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use cluster::record::ROWS_MAX;

use super::clock;
use super::record::{LiveRecord, StoredBody};

/// An accepted event: what engines match, and what subscribers get.
#[derive(Debug)]
pub(crate) struct Published {
    /// The event as engines match it.
    pub(crate) event: Arc<Event>,
    /// The event as subscribers get it.
    pub(crate) body: Arc<Body>,
    /// Its life, where it does not end at once.
    pub(crate) live: Option<Live>,
    /// The situation that found it, if one did.
    pub(crate) origin: Option<Origin>,
    /// Where it is in the stream of events of the cluster, where there is one.
    pub(crate) place: Option<Placed>,
    /// Whether it is taken, which the first shard that comes to it decides for all.
    is_taken: OnceLock<bool>,
}

/// A place in the stream of events of a cluster: a record, and an event in it. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct StreamPlace(u64);

/// Bits of the number of an event in its record.
const INDEX_BITS: u32 = ROWS_MAX.ilog2();

impl StreamPlace {
    /// The place of the `index`-th event, from 0, of the record with that sequence.
    pub(crate) fn new(sequence: u64, index: usize) -> Self {
        debug_assert!(index < ROWS_MAX);
        Self(sequence << INDEX_BITS | index as u64)
    }

    /// The sequence of the record.
    pub(crate) fn sequence(self) -> u64 {
        self.0 >> INDEX_BITS
    }
}

/// Where something is in the stream of events of a cluster, and how far a broker is that has carried it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) at: StreamPlace,
    pub(crate) behind: Frontier,
}

/// How far the stream of events of a cluster was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Frontier {
    /// The place that is wanted next.
    pub(crate) next: StreamPlace,
    /// The record that was read last, and the CRC-32 of its bytes.
    pub(crate) sequence: u64,
    pub(crate) crc: u32,
}

impl Placed {
    /// The `index`-th of `count` entries of a record.
    pub(crate) fn new(sequence: u64, crc: u32, index: usize, count: usize) -> Self {
        let at = StreamPlace::new(sequence, index);
        let next = if index + 1 < count {
            StreamPlace::new(sequence, index + 1)
        } else {
            StreamPlace::new(sequence + 1, 0)
        };
        Self { at, behind: Frontier { next, sequence, crc } }
    }
}

/// The situation that found an event.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The situation's client.
    pub(crate) client: Arc<str>,
    /// The situation's version, which is the id of its subscription.
    pub(crate) version: Arc<str>,
    /// The number of the finding: of two of one situation the later one has the greater number.
    pub(crate) number: u64,
}

/// An event as it is delivered: the published Feature with `id` and `time`. Made once, shared by all who get it.
#[derive(Debug)]
pub(crate) struct Body {
    /// JSON on one line.
    pub(crate) text: Box<str>,
    /// When the broker had read it, or read it back.
    pub(crate) received: Instant,
    /// When another run of the broker had read it, in Unix milliseconds, where one did.
    pub(crate) first_received_ms: Option<NonZeroU64>,
    /// Short name of its publisher's confinement, if there is one.
    pub(crate) within: Option<Box<str>>,
    /// Hash of the object that the event is about.
    pub(crate) object: ObjectHash,
    /// Whether it goes before others (`"priority": "alarm"`).
    pub(crate) is_alarm: bool,
    /// When it is too late to deliver it (`deadline_ms`), if that is ever.
    pub(crate) deadline: Option<Instant>,
    /// Its record on disk, once there is a need for one, which is there for as long as the body is.
    pub(crate) stored: OnceLock<Arc<StoredBody>>,
    /// What stands beside the event: its trace, and the checks that mark it.
    pub(crate) carried: Option<Box<Carried>>,
    /// What some readers get in its place.
    pub(crate) veil: Option<Box<Veil>>,
}

/// A finding as readers get it who are confined otherwise than the situation: without the ids of events that they may not see.
#[derive(Debug)]
pub(crate) struct Veil {
    /// The claim to which the situation is confined.
    pub(crate) confinement: Option<Box<str>>,
    pub(crate) body: Arc<Body>,
}

impl Published {
    pub(crate) fn new(event: Event, body: Body, live: Option<Live>) -> Self {
        let (event, body) = (Arc::new(event), Arc::new(body));
        Self { event, body, live, origin: None, place: None, is_taken: OnceLock::new() }
    }

    /// The event as the stream of events has it. It is taken, and of two live ones of an object that with the later place is the newer.
    pub(crate) fn placed(self, place: Placed) -> Self {
        let live = self.live.map(|live| Live { sequence: place.at.0, ..live });
        Self { live, place: Some(place), is_taken: OnceLock::from(true), ..self }
    }

    /// A live event that was published before the broker began.
    pub(crate) fn again(event: Event, body: Arc<Body>, live: Live) -> Self {
        let (event, live) = (Arc::new(event), Some(live));
        Self { event, body, live, origin: None, place: None, is_taken: OnceLock::from(true) }
    }

    /// The event as a finding of a situation.
    pub(crate) fn derived(self, origin: Origin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// Keeps ids of the events that a finding follows from to readers who may see them, as [`Body::veil`] does.
    pub(crate) fn veil(&mut self, confinement: Option<&str>) {
        if let Some(body) = Arc::get_mut(&mut self.body) {
            body.veil(confinement);
        }
    }

    /// Whether it is taken. A shard that finds the disk full refuses it for all of them, unless another has taken it before.
    pub(crate) fn is_taken(&self, is_refused: impl FnOnce() -> bool) -> bool {
        *self.is_taken.get_or_init(|| !is_refused())
    }

    /// Gives it what it is to carry, as long as nobody else has it.
    pub(crate) fn carry(&mut self, carried: Option<Box<Carried>>) {
        if carried.is_some()
            && let Some(body) = Arc::get_mut(&mut self.body)
        {
            body.carried = carried;
        }
    }
}

impl Body {
    /// The body that a reader gets who is confined by a claim, or is not.
    pub(crate) fn seen_by<'a>(self: &'a Arc<Self>, confinement: Option<&str>) -> &'a Arc<Self> {
        match &self.veil {
            Some(veil) if confinement.is_some() && confinement != veil.confinement.as_deref() => &veil.body,
            _ => self,
        }
    }

    pub(crate) fn new(text: Box<str>, received: Instant, object: ObjectHash) -> Self {
        Self {
            text,
            received,
            first_received_ms: None,
            within: None,
            object,
            is_alarm: false,
            deadline: None,
            stored: OnceLock::new(),
            carried: None,
            veil: None,
        }
    }

    /// Keeps ids of the events that a finding follows from to readers who may see them: to those without a confinement, and with that of the
    /// situation. Other events stay as they are.
    pub(crate) fn veil(&mut self, confinement: Option<&str>) {
        let Some(text) = without_ids(&self.text) else { return };
        let (is_alarm, deadline, within) = (self.is_alarm, self.deadline, self.within.clone());
        let first_received_ms = self.first_received_ms;
        let veiled = Self {
            is_alarm,
            deadline,
            within,
            first_received_ms,
            ..Self::new(text.into(), self.received, self.object)
        };
        self.veil = Some(Box::new(Veil { confinement: confinement.map(Box::from), body: Arc::new(veiled) }));
    }

    /// When a broker had first read it, in Unix milliseconds.
    pub(crate) fn arrived_ms(&self) -> u64 {
        self.first_received_ms.map_or_else(
            || {
                let ago = clock::now().saturating_duration_since(self.received).as_millis();
                clock::unix_ms().saturating_sub(u64::try_from(ago).unwrap_or_default())
            },
            NonZeroU64::get,
        )
    }

    /// The event as it is on disk: behind its publisher's confinement and the names of the checks that mark it, if there are some.
    pub(crate) fn stored_text(&self) -> Cow<'_, str> {
        let marks = self.carried.as_ref().map_or("", |carried| &*carried.marks);
        match &self.within {
            Some(within) => Cow::Owned([WITHIN, within, WITHIN_END, marks, &*self.text].concat()),
            None if marks.is_empty() => Cow::Borrowed(&self.text),
            None => Cow::Owned([marks, &*self.text].concat()),
        }
    }

    /// Members that stand before the event in a frame, each with a comma behind it.
    pub(crate) fn trace_members(&self) -> &str {
        self.carried.as_ref().map_or("", |carried| &carried.members)
    }
}

/// The text of a finding without the ids of other events and the names of objects; `None` for any other event.
fn without_ids(text: &str) -> Option<String> {
    if !text.contains(r#""derived""#) {
        return None;
    }
    let mut event: Value = serde_json::from_str(text).ok()?;
    event.get_mut("derived")?.as_object_mut()?.remove("from");
    let properties = event.get_mut("properties")?.as_object_mut()?;
    for name in ["bindings", "links", "roles"] {
        properties.remove(name);
    }
    Some(event.to_string())
}

/// Tells the object of an event from others, its key, or its id where it has none, within its publisher's confinement: alike for
/// the same object as long as the process lives. That two objects have the same is as good as impossible, and would cost no more
/// than a delivery that is lost before its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ObjectHash(u64);

/// Hasher of objects. It is keyed, so that nobody outside can make two objects alike.
static OBJECTS: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);

impl ObjectHash {
    /// The object of an event with this key, or with this id where it has none, of a publisher with this confinement.
    pub(crate) fn new(within: Option<&str>, key: Option<&str>, id: &str) -> Self {
        Self(OBJECTS.hash_one((within, key.map_or((false, id), |key| (true, key)))))
    }
}

/// What stands beside an event in its frames: its trace, and the checks that mark it.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Members of the frame of each delivery, each with a comma behind it.
    pub(crate) members: Box<str>,
    /// Members that outlive the broker: the names of the checks that mark the event.
    pub(crate) marks: Box<str>,
    /// Where spans are recorded of it: telemetry knows what that is.
    pub(crate) trace: Option<Arc<dyn Any + Send + Sync>>,
}

/// Stands before the names of the checks that mark an event.
const MARKS: &str = r#""violates":"#;

/// Stand before and behind the short name of a confinement.
const WITHIN: &str = r#""within":""#;
const WITHIN_END: &str = r#"","#;

/// Tells the short name of its publisher's confinement, if there is one, from the rest of an event on disk.
pub(crate) fn split_within(stored: &str) -> (Option<&str>, &str) {
    let within = stored.strip_prefix(WITHIN).and_then(|rest| rest.split_once(WITHIN_END));
    within.map_or((None, stored), |(within, rest)| (Some(within), rest))
}

impl Carried {
    /// Adds the names of the checks that mark the event.
    pub(crate) fn mark(&mut self, names: &[Arc<str>]) {
        let names = serde_json::to_string(names).unwrap_or_default();
        self.marks = format!("{MARKS}{names},").into();
        self.members = [&*self.members, &*self.marks].concat().into();
    }

    /// Tells an event on disk from the names of the checks that mark it.
    pub(crate) fn split(stored: &str) -> (Option<Box<Self>>, &str) {
        let Some(behind) = stored.strip_prefix(MARKS) else { return (None, stored) };
        let mut names = serde_json::Deserializer::from_str(behind).into_iter::<Vec<String>>();
        let Some(Ok(_)) = names.next() else { return (None, stored) };
        // With the comma.
        let Some((marks, text)) = stored.split_at_checked(MARKS.len() + names.byte_offset() + 1) else {
            return (None, stored);
        };
        (Some(Box::new(Self { members: marks.into(), marks: marks.into(), trace: None })), text)
    }
}

/// A reservation for a live event, given back when it is dropped.
pub(crate) type Reserved = Box<dyn Debug + Send + Sync>;

/// The life of an event, which begins when it arrives.
#[derive(Debug)]
pub(crate) struct Live {
    /// Name of the object that the event is about, within its tenant: `key:` and its key, or `id:` and its id where it has
    /// none. For publishers who are confined, it is a name within what they are confined to.
    pub(crate) object: Arc<str>,
    /// Its id, within its tenant: a text as it reads, the digits of a number, or the one that this broker made.
    pub(crate) id: Arc<str>,
    /// Sequence number: of two events of one object, the event with the greater number is the newer.
    pub(crate) sequence: u64,
    /// When its life is over by itself.
    pub(crate) expires: Instant,
    /// Its record on disk, once there is one.
    pub(crate) record: OnceLock<LiveRecord>,
    /// Whether it is on disk, whichever shard put it there.
    pub(crate) is_written: AtomicBool,
    /// The event's reservation, held for as long as anybody keeps this.
    pub(crate) _reserved: Reserved,
}
