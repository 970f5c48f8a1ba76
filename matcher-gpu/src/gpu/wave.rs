//! A part of a batch on its way: written down for the device, searched, answered and decided. Waves are independent of
//! each other, so their kernels and decisions overlap.

use std::sync::atomic::{AtomicU64, Ordering};

use kernels::gpu::{ANSWER_DOUBT, EVENT_DOUBT, Event as DeviceEvent, NAME_ARRAY, UNSORTED};
use matcher::engine::MatchRows;
use matcher::event::Event;
use matcher::subscription::SubscriptionId;

use super::share::Share;
use crate::filters::{Filters, Seen};
use crate::launchers::gpu::{Batch, Through};
use crate::rounding::{rounded, slack, to_f32};
use device::{Buffer, Device, DriverError, Priority, SharedWords, Stream};

/// Words of 64 bits that an event takes; an attribute and an answer take one.
const EVENT_WORDS: usize = size_of::<DeviceEvent>() / size_of::<u64>();
/// Warps that a device is kept busy with by few events.
const WARPS: usize = 4096;
/// Warps an event at most.
const PARTS_MAX: usize = 32;
/// Room for pairs at first, and always.
const PAIRS_MIN: usize = 1024;
/// Pairs of a wave of several events at most; where there are more, it is taken in halves. This bounds what a lane holds.
const PAIRS_MAX: usize = 1 << 22;

/// Set in a sorted answer that is the number of a filter in doubt.
const DOUBT: u64 = 1 << 32;
/// Set in an answer likewise.
const ANSWERED_DOUBT: u64 = ANSWER_DOUBT as u64;

/// Stream and memory on each device with which one thread takes a wave through.
#[derive(Debug)]
pub(super) struct Lane {
    ways: Vec<Way>,
    seen: Seen,
    /// Where the answers of each event begin, and the answers in that order.
    starts: Vec<usize>,
    sorted: Vec<u64>,
    /// Events with filters in doubt.
    doubtful: Vec<usize>,
}

/// A lane's way to one device and back. Host and device see the same words at the same time: a wave takes one call of the
/// driver.
#[derive(Debug)]
struct Way {
    device: Device,
    stream: Stream,
    /// Events and attributes.
    sent: SharedWords,
    /// How many answers there are and one, once the device is done; and the answers.
    found: SharedWords,
    /// The device's own count of them.
    tally: Buffer<u64>,
    /// A wave is searched for.
    busy: bool,
    /// Answers that came back last time.
    answers: usize,
}

/// A wave that a lane's devices search for, or why they do not.
pub(super) type Begun = Result<Layout, DriverError>;

/// What was written down of a wave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    events: usize,
    /// Words, attributes included.
    words: usize,
    /// Warps an event.
    parts: usize,
}

impl Lane {
    pub(super) fn new<'a>(devices: impl Iterator<Item = &'a Device>) -> Result<Self, DriverError> {
        let way = |device: &Device| {
            Ok(Way {
                device: device.clone(),
                stream: device.stream(Priority::High)?,
                sent: device.shared(0)?,
                found: device.shared(1 + PAIRS_MIN)?,
                tally: device.buffer(1)?,
                busy: false,
                answers: 0,
            })
        };
        let ways = devices.map(way).collect::<Result<_, DriverError>>()?;
        Ok(Self { ways, seen: Seen::default(), starts: Vec::new(), sorted: Vec::new(), doubtful: Vec::new() })
    }

    /// Matches a wave: a row for each event. There is at least one.
    ///
    /// # Errors
    /// When the answers to a single event are too much for a device's memory, or it fails.
    pub(super) fn run(
        &mut self,
        events: &[&Event],
        filters: &Filters<()>,
        shares: &[Share],
        rows: &mut MatchRows,
    ) -> Result<(), DriverError> {
        let begun = self.begin(events, events.len(), filters, shares);
        self.finish(begun, events, filters, shares, rows)
    }

    /// Writes a wave down and lets all devices search, without a wait; `together` events are on their way at a time. It is
    /// finished before another one begins.
    pub(super) fn begin(
        &mut self,
        events: &[&Event],
        together: usize,
        filters: &Filters<()>,
        shares: &[Share],
    ) -> Begun {
        let attributes: usize = events.iter().map(|event| event.attributes.len()).sum();
        let room = events.len() * EVENT_WORDS + attributes;
        let (first, others) = self.ways.split_first_mut().expect("a GPU engine has a device");
        first.make_room(room, events.len())?;
        let words = encode(events, filters, first.sent.words());
        for other in others.iter_mut() {
            other.make_room(room, events.len())?;
            for (to, from) in other.sent.words().iter().zip(&first.sent.words()[..words]) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        let parts = (WARPS / together).clamp(1, PARTS_MAX);
        let layout = Layout { events: events.len(), words, parts };
        for (way, share) in self.ways.iter_mut().zip(shares) {
            share.order_after_changes(&way.stream)?;
            way.submit(layout, share)?;
        }
        Ok(layout)
    }

    /// Waits for a wave that has begun, and writes its rows.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(super) fn finish(
        &mut self,
        begun: Begun,
        events: &[&Event],
        filters: &Filters<()>,
        shares: &[Share],
        rows: &mut MatchRows,
    ) -> Result<(), DriverError> {
        match begun.and_then(|layout| self.receive(layout, shares)) {
            Ok(true) => {
                self.sort_answers(shares);
                self.decide(events, filters, rows);
                return Ok(());
            }
            // Fewer events have fewer answers.
            Ok(false) | Err(DriverError::OutOfMemory { .. } | DriverError::OutOfPinnedMemory { .. })
                if events.len() > 1 => {}
            Ok(false) => unreachable!("a single event's answers are brought however many they are"),
            Err(error) => return Err(error),
        }
        let (first, second) = events.split_at(events.len() / 2);
        self.run(first, filters, shares, rows)?;
        self.run(second, filters, shares, rows)
    }

    /// Counts the answers of each event; false when there are too many to be brought at once.
    fn receive(&mut self, layout: Layout, shares: &[Share]) -> Result<bool, DriverError> {
        self.starts.clear();
        self.starts.resize(layout.events + 1, 0);
        for (way, share) in self.ways.iter_mut().zip(shares) {
            if !way.receive(layout, share)? {
                return Ok(false);
            }
            for answer in way.answers() {
                self.starts[event_of(answer) + 1] += 1;
            }
        }
        Ok(true)
    }

    /// Puts the answers of each event together: a counting sort.
    fn sort_answers(&mut self, shares: &[Share]) {
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.sorted.resize(end, 0);
        self.doubtful.clear();
        for (way, share) in self.ways.iter().zip(shares) {
            for answer in way.answers() {
                // Counted down from where the next event's begin, so that each start ends where it has to.
                let event = event_of(answer);
                let place = &mut self.starts[event + 1];
                *place -= 1;
                let id = number(answer >> 32);
                self.sorted[*place] = if answer & ANSWERED_DOUBT == 0 {
                    u64::from(id)
                } else {
                    self.doubtful.push(event);
                    DOUBT | u64::from(share.entries.filter(id))
                };
            }
        }
    }

    /// Writes the rows; filters in doubt are decided exactly.
    fn decide(&mut self, events: &[&Event], filters: &Filters<()>, rows: &mut MatchRows) {
        let Self { seen, starts, sorted, doubtful, .. } = self;
        // After the sort, start i + 1 is where the answers of event i begin.
        starts.push(sorted.len());
        let starts = &starts[1..];
        rows.reserve(events.len(), sorted.len());
        let certain = |rows: &mut MatchRows, from: usize, to: usize| {
            let ids = sorted[starts[from]..starts[to]].iter().map(|answer| SubscriptionId(number(*answer)));
            rows.push_many(ids, starts[from..=to].windows(2).map(|bounds| bounds[1] - bounds[0]));
        };
        doubtful.sort_unstable();
        doubtful.dedup();
        let mut written = 0;
        for &event in &*doubtful {
            certain(rows, written, event);
            let answers = &sorted[starts[event]..starts[event + 1]];
            let viewed = filters.see(events[event], seen);
            rows.push_with(|ids| {
                ids.extend(answers.iter().filter_map(|answer| {
                    let id = number(*answer);
                    if answer & DOUBT == 0 {
                        return Some(SubscriptionId(id));
                    }
                    filters.decide(id, &viewed).then(|| SubscriptionId(filters.subscription(id)))
                }));
            });
            written = event + 1;
        }
        certain(rows, written, events.len());
    }

    /// Bytes of the devices' memory.
    pub(super) fn bytes(&self) -> usize {
        self.ways.iter().map(|way| way.tally.bytes()).sum()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is the number")]
fn number(answer: u64) -> u32 {
    answer as u32
}

/// The event that an answer is to.
fn event_of(answer: u64) -> usize {
    (number(answer) & !ANSWER_DOUBT) as usize
}

impl Way {
    /// Makes room for a wave with this number of words, and for as many answers as it probably has.
    fn make_room(&mut self, words: usize, events: usize) -> Result<(), DriverError> {
        if self.busy {
            // A wave was given up: nobody waited for its answers.
            self.stream.synchronize()?;
            self.busy = false;
        }
        fit(&self.device, &mut self.sent, words)?;
        let guess = (self.answers + self.answers / 8).max(2 * events) + PAIRS_MIN;
        fit(&self.device, &mut self.found, 1 + if events > 1 { guess.min(PAIRS_MAX) } else { guess })
    }

    fn capacity(&self) -> usize {
        // A parameter of 32 bits.
        (self.found.words().len() - 1).min(u32::MAX as usize)
    }

    /// Searches for a wave that was written down.
    fn submit(&mut self, layout: Layout, share: &Share) -> Result<(), DriverError> {
        let word = |number: usize| u32::try_from(number).expect("a wave has fewer than 2^32 of anything");
        let batch = Batch {
            events: word(layout.events),
            words: layout.words,
            parts: word(layout.parts),
            attributes_at: word(layout.events * EVENT_WORDS),
            capacity: word(self.capacity()),
        };
        self.found.words()[0].store(0, Ordering::Relaxed);
        // Even where the launch fails: whether the kernel runs is not known then.
        self.busy = true;
        let Share { kernels, table, base, log, .. } = share;
        let Self { stream, sent, found, tally, .. } = self;
        kernels.search(stream, batch, Through { sent, found, tally }, table, base, log)
    }

    /// Waits for the answers; asks again where there was too little room for them. False when several events have too many.
    fn receive(&mut self, layout: Layout, share: &Share) -> Result<bool, DriverError> {
        loop {
            let count = self.found.wait(&self.stream, 0, |count| count != 0)? - 1;
            self.busy = false;
            self.answers = usize::try_from(count).unwrap_or(usize::MAX);
            if self.answers <= self.capacity() {
                return Ok(true);
            }
            if self.answers > PAIRS_MAX && layout.events > 1 {
                return Ok(false);
            }
            fit(&self.device, &mut self.found, 1 + self.answers)?;
            self.submit(layout, share)?;
        }
    }

    /// The answers that came last.
    fn answers(&self) -> impl Iterator<Item = u64> {
        self.found.words()[1..=self.answers].iter().map(|word| word.load(Ordering::Relaxed))
    }
}

/// Makes memory of this many words: longer where it is too short, shorter where a single event once had more answers than
/// any wave.
fn fit(device: &Device, memory: &mut SharedWords, words: usize) -> Result<(), DriverError> {
    const KEPT: usize = 2 * PAIRS_MAX;
    let held = memory.words().len();
    if words > held || held > KEPT && words <= KEPT {
        *memory = device.shared(words.next_power_of_two())?;
    }
    Ok(())
}

/// Writes down a wave as a device reads it: the events, and their attributes that filters name. Answers how many words that
/// takes. Each word is put together in registers: halves that were written apart are slow to read as one.
fn encode(events: &[&Event], filters: &Filters<()>, sent: &[AtomicU64]) -> usize {
    let (event_words, attribute_words) = sent.split_at(events.len() * EVENT_WORDS);
    let mut end = 0;
    for (event, device_event) in events.iter().zip(event_words.chunks_exact(EVENT_WORDS)) {
        let start = end;
        let mut mask = 0;
        for attribute in &event.attributes {
            let Some((name, name_mask, code)) = filters.known(attribute) else { continue };
            mask |= name_mask;
            let array = if code.is_none() { NAME_ARRAY } else { 0 };
            attribute_words[end].store(pair(name | array, code.unwrap_or_default()), Ordering::Relaxed);
            end += 1;
        }
        if end - start > UNSORTED {
            sort_by_name(&attribute_words[start..end]);
        }
        let point = event.position.point();
        let [x, y, z] = rounded(point).map(f32::to_bits);
        let doubt = if event.reach.is_some() { EVENT_DOUBT } else { 0 };
        let word = |number: usize| u32::try_from(number).expect("a wave has fewer than 2^31 attributes");
        let words = [
            pair(x, y),
            pair(z, to_f32(slack(point)).to_bits()),
            pair(mask, word(end - start) | doubt),
            pair(word(start), 0),
        ];
        for (to, from) in device_event.iter().zip(words) {
            to.store(from, Ordering::Relaxed);
        }
    }
    events.len() * EVENT_WORDS + end
}

/// Two words of a record as they lie in memory.
fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

#[cold]
fn sort_by_name(attributes: &[AtomicU64]) {
    let mut sorted: Vec<u64> = attributes.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    sorted.sort_unstable_by_key(|attribute| number(*attribute) & !NAME_ARRAY);
    for (to, from) in attributes.iter().zip(sorted) {
        to.store(from, Ordering::Relaxed);
    }
}
