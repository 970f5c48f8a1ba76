//! A part of a batch on its way: written down for the device, searched, read back and decided. Waves are independent of
//! each other, so their copies, kernels and decisions overlap.

use kernels::gpu::{
    ANSWER_DOUBT, Answer, Attribute, EVENT_DOUBT, Event as DeviceEvent, FOUND_HEAD, NAME_ARRAY, UNSORTED,
};
use matcher::engine::MatchRows;
use matcher::event::Event;
use matcher::subscription::SubscriptionId;

use super::share::Share;
use crate::filters::{Filters, Seen};
use crate::launchers::gpu::Batch;
use crate::rounding::{rounded, slack, to_f32};
use device::{Buffer, Device, DriverError, Pinned, Priority, Stream};

const WORD: usize = size_of::<u32>();
const EVENT_WORDS: usize = size_of::<DeviceEvent>() / WORD;
const ATTRIBUTE_WORDS: usize = size_of::<Attribute>() / WORD;
const ANSWER_WORDS: usize = size_of::<Answer>() / WORD;
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

/// Stream and memory on each device with which one thread takes a wave through.
#[derive(Debug)]
pub(super) struct Lane {
    ways: Vec<Way>,
    seen: Seen,
    /// Where the answers of each event begin, and the answers in that order.
    starts: Vec<usize>,
    sorted: Vec<u64>,
}

/// A lane's way to one device and back.
#[derive(Debug)]
struct Way {
    device: Device,
    stream: Stream,
    /// Events, attributes and a zero for the count.
    sent: Pinned<u32>,
    /// The same, and pairs behind it.
    exchange: Buffer<u32>,
    /// The count and the pairs.
    found: Pinned<u32>,
    /// Pairs that came back last time, for a guess.
    pairs_before: usize,
}

/// A wave that a lane's devices search for, or why they do not.
pub(super) type Begun = Result<Layout, DriverError>;

/// Where the parts of a wave lie, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    events: usize,
    attributes_at: usize,
    found_at: usize,
}

impl Lane {
    pub(super) fn new<'a>(devices: impl Iterator<Item = &'a Device>) -> Result<Self, DriverError> {
        let way = |device: &Device| {
            Ok(Way {
                device: device.clone(),
                stream: device.stream(Priority::High)?,
                sent: device.pinned(0)?,
                exchange: device.buffer(0)?,
                found: device.pinned(FOUND_HEAD + PAIRS_MIN * ANSWER_WORDS)?,
                pairs_before: 0,
            })
        };
        let ways = devices.map(way).collect::<Result<_, DriverError>>()?;
        Ok(Self { ways, seen: Seen::default(), starts: Vec::new(), sorted: Vec::new() })
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
        let begun = self.begin(events, filters, shares);
        self.finish(begun, events, filters, shares, rows)
    }

    /// Writes a wave down and lets all devices search, without a wait. It is finished before another one begins.
    pub(super) fn begin(&mut self, events: &[&Event], filters: &Filters<()>, shares: &[Share]) -> Begun {
        let attributes: usize = events.iter().map(|event| event.attributes.len()).sum();
        let room = events.len() * EVENT_WORDS + attributes * ATTRIBUTE_WORDS + 2 * FOUND_HEAD;
        let (first, others) = self.ways.split_first_mut().expect("a GPU engine has a device");
        first.make_room_to_send(room)?;
        let sent = first.sent.slice_mut()?;
        let layout = encode(events, filters, sent);
        for other in others.iter_mut() {
            other.make_room_to_send(room)?;
            let end = layout.found_at + FOUND_HEAD;
            other.sent.slice_mut()?[..end].copy_from_slice(&sent[..end]);
        }
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
                self.sort_answers(shares)?;
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
            let Some(answers) = way.receive(layout, share)? else { return Ok(false) };
            for answer in answers {
                self.starts[(answer.event & !ANSWER_DOUBT) as usize + 1] += 1;
            }
        }
        Ok(true)
    }

    /// Puts the answers of each event together: a counting sort.
    fn sort_answers(&mut self, shares: &[Share]) -> Result<(), DriverError> {
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.sorted.resize(end, 0);
        for (way, share) in self.ways.iter_mut().zip(shares) {
            for answer in way.answers()? {
                // Counted down from where the next event's begin, so that each start ends where it has to.
                let event = (answer.event & !ANSWER_DOUBT) as usize;
                let place = &mut self.starts[event + 1];
                *place -= 1;
                self.sorted[*place] = if answer.event & ANSWER_DOUBT == 0 {
                    u64::from(answer.id)
                } else {
                    DOUBT | u64::from(share.entries.filter(answer.id))
                };
            }
        }
        Ok(())
    }

    /// Writes the rows; filters in doubt are decided exactly.
    fn decide(&mut self, events: &[&Event], filters: &Filters<()>, rows: &mut MatchRows) {
        let Self { seen, starts, sorted, .. } = self;
        // After the sort, start i + 1 is where the answers of event i begin.
        starts.push(sorted.len());
        rows.reserve(events.len(), sorted.len());
        for (event, bounds) in events.iter().zip(starts[1..].windows(2)) {
            let answers = &sorted[bounds[0]..bounds[1]];
            rows.push_with(|ids| {
                let mut doubts = false;
                for answer in answers {
                    if answer & DOUBT == 0 {
                        ids.push(SubscriptionId(number(*answer)));
                    } else {
                        doubts = true;
                    }
                }
                if !doubts {
                    return;
                }
                let viewed = filters.see(event, seen);
                let doubtful =
                    answers.iter().filter(|answer| *answer & DOUBT != 0).map(|answer| number(*answer));
                let decided = doubtful.filter(|filter| filters.decide(*filter, &viewed));
                ids.extend(decided.map(|filter| SubscriptionId(filters.subscription(filter))));
            });
        }
    }

    /// Bytes of the devices' memory.
    pub(super) fn bytes(&self) -> usize {
        self.ways.iter().map(|way| way.exchange.bytes()).sum()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is the number")]
fn number(answer: u64) -> u32 {
    answer as u32
}

impl Way {
    fn make_room_to_send(&mut self, words: usize) -> Result<(), DriverError> {
        if words > self.sent.len() {
            self.sent = self.device.pinned(words.next_power_of_two())?;
        }
        Ok(())
    }

    /// Pairs that probably come back from `events` events.
    fn guess(&self, events: usize) -> usize {
        let guess = (self.pairs_before + self.pairs_before / 8).max(2 * events) + PAIRS_MIN;
        if events > 1 { guess.min(PAIRS_MAX) } else { guess }
    }

    fn capacity(&self, layout: Layout) -> usize {
        // The kernel counts places in 32 bits.
        ((self.exchange.len() - layout.found_at - FOUND_HEAD) / ANSWER_WORDS).min(u32::MAX as usize)
    }

    /// Sends the wave, searches and lets the answers come, all in the order of the stream.
    fn submit(&mut self, layout: Layout, share: &Share) -> Result<(), DriverError> {
        let guess = self.guess(layout.events);
        let read = FOUND_HEAD + guess * ANSWER_WORDS;
        fit(&mut self.exchange, layout.found_at + read, |len| self.device.buffer(len), Buffer::len)?;
        fit(&mut self.found, read, |len| self.device.pinned(len), Pinned::len)?;
        let parts = (WARPS / layout.events).clamp(1, PARTS_MAX);
        let word = |number: usize| u32::try_from(number).expect("a wave has fewer than 2^32 of anything");
        let batch = Batch {
            events: word(layout.events),
            parts: word(parts),
            attributes_at: word(layout.attributes_at),
            found_at: word(layout.found_at),
            capacity: word(self.capacity(layout)),
        };
        self.stream.upload(&mut self.sent, 0..layout.found_at + FOUND_HEAD, &self.exchange, 0)?;
        let Share { kernels, table, base, log, .. } = share;
        kernels.search(&self.stream, &self.exchange, batch, table, base, log)?;
        self.stream.download(&self.exchange, layout.found_at..layout.found_at + read, &mut self.found, 0)
    }

    /// Waits for the answers; asks again where there was too little room for them. `None` when several events have too many.
    fn receive(&mut self, layout: Layout, share: &Share) -> Result<Option<&[Answer]>, DriverError> {
        loop {
            self.stream.synchronize()?;
            let guess = self.guess(layout.events);
            let head = self.found.slice()?;
            let count = u64::from(head[1]) << 32 | u64::from(head[0]);
            // What does not fit 64 bits of an address does not fit any memory either.
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let fits = count <= self.capacity(layout);
            self.pairs_before = count;
            if count > PAIRS_MAX && layout.events > 1 {
                return Ok(None);
            }
            if !fits {
                self.submit(layout, share)?;
                continue;
            }
            if count > guess {
                let all = FOUND_HEAD + count * ANSWER_WORDS;
                fit(&mut self.found, all, |len| self.device.pinned(len), Pinned::len)?;
                let range = layout.found_at..layout.found_at + all;
                self.stream.download(&self.exchange, range, &mut self.found, 0)?;
                self.stream.synchronize()?;
            }
            return Ok(Some(self.answers()?));
        }
    }

    /// The answers that came back last.
    fn answers(&mut self) -> Result<&[Answer], DriverError> {
        let words = FOUND_HEAD..FOUND_HEAD + self.pairs_before * ANSWER_WORDS;
        Ok(bytemuck::cast_slice(&self.found.slice()?[words]))
    }
}

/// Makes memory of this many words: longer where it is too short, shorter where a single event once had more answers than
/// any wave.
fn fit<B>(
    memory: &mut B,
    words: usize,
    make: impl Fn(usize) -> Result<B, DriverError>,
    len: impl Fn(&B) -> usize,
) -> Result<(), DriverError> {
    const KEPT: usize = 2 * PAIRS_MAX * ANSWER_WORDS;
    let held = len(memory);
    if words > held || held > KEPT && words <= KEPT {
        *memory = make(words.next_power_of_two())?;
    }
    Ok(())
}

/// Writes down a wave as a device reads it: the events, their attributes that filters name, and a zero to count from.
fn encode(events: &[&Event], filters: &Filters<()>, sent: &mut [u32]) -> Layout {
    let attributes_at = events.len() * EVENT_WORDS;
    let (event_words, words) = sent.split_at_mut(attributes_at);
    let device_events: &mut [DeviceEvent] = bytemuck::cast_slice_mut(event_words);
    let even = words.len() / ATTRIBUTE_WORDS * ATTRIBUTE_WORDS;
    let attributes: &mut [Attribute] = bytemuck::cast_slice_mut(&mut words[..even]);
    let mut end = 0;
    for (event, device_event) in events.iter().zip(device_events) {
        let start = end;
        let mut mask = 0;
        for attribute in &event.attributes {
            let Some((name, name_mask, code)) = filters.known(attribute) else { continue };
            mask |= name_mask;
            let array = if code.is_none() { NAME_ARRAY } else { 0 };
            attributes[end] = Attribute { name: name | array, code: code.unwrap_or_default() };
            end += 1;
        }
        if end - start > UNSORTED {
            attributes[start..end].sort_unstable_by_key(|attribute| attribute.name & !NAME_ARRAY);
        }
        let point = event.position.point();
        let doubt = if event.reach.is_some() { EVENT_DOUBT } else { 0 };
        let word = |number: usize| u32::try_from(number).expect("a wave has fewer than 2^31 attributes");
        *device_event = DeviceEvent {
            position: rounded(point),
            slack: to_f32(slack(point)),
            mask,
            flags: word(end - start) | doubt,
            attributes: word(start),
            unused: 0,
        };
    }
    let found_at = (attributes_at + end * ATTRIBUTE_WORDS).next_multiple_of(FOUND_HEAD);
    sent[found_at..found_at + FOUND_HEAD].fill(0);
    Layout { events: events.len(), attributes_at, found_at }
}
