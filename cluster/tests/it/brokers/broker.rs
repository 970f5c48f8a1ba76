//! A broker of the simulated cluster: what it appends and reads, the queue of its engine, and the engine, which is a loop over all areas.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use cluster::events::{Action, Claim, Decision, Frontier, Outcome, Publisher, Reader, Stream, Taken, Timing};
use cluster::log::{AppendError, Appended, Attachable as _, Attachment as _, Identity, Log as _, Sent};
use cluster::record::{Body, Incarnation};
use cluster::simulated::{Attachment, Partition, Simulated};
use rand::Rng as _;
use rand::rngs::StdRng;

use super::Sabotage;
use super::judge::{Change, Judge};
use super::plane::{Disc, Event};

pub(super) const TIMING: Timing = Timing {
    retry: Duration::from_millis(100),
    busy: Duration::from_secs(1),
    give_up: Duration::from_secs(12),
    silence: Duration::from_secs(3),
    missing: Duration::from_secs(8),
    keep: Duration::from_secs(4),
    stale: Duration::from_secs(2),
    wait: Duration::from_secs(6),
};

/// How much wider than its area is what a client reads ahead.
const AHEAD: f64 = 0.03;

type Call = Pin<Box<dyn Future<Output = Result<Appended, AppendError>>>>;

/// What clients ask for.
#[derive(Debug)]
pub(super) enum Request {
    Publish { publish: usize, events: Vec<(Event, usize)> },
    Change(usize),
}

#[derive(Debug)]
enum Work {
    /// Reading of a stream begins behind a record.
    Begin(Stream, u64),
    Record {
        stream: Stream,
        identity: Identity,
        events: Vec<Event>,
    },
    Change {
        change: usize,
        frontier: Frontier,
    },
}

pub(super) struct Broker {
    pub(super) number: usize,
    pub(super) sides: Vec<Simulated>,
    sabotage: Sabotage,
    publisher: Publisher,
    reader: Reader,
    calls: Vec<(Stream, Call)>,
    attachments: BTreeMap<Stream, (u64, Attachment)>,
    inbox: VecDeque<(Duration, Request)>,
    /// Publishes of clients, by the publisher's number.
    publishes: HashMap<u64, usize>,
    /// What is in the engine's queue, and when its turn comes.
    queue: VecDeque<(Duration, Work)>,
    late: VecDeque<(Duration, usize)>,
    areas: BTreeMap<u64, Disc>,
    worked_off: Frontier,
    /// The last record of each stream that was ever read.
    known: BTreeMap<Stream, Identity>,
    attempts: u64,
    pub(super) stopped_until: Duration,
    pub(super) down_until: Option<Duration>,
}

impl Broker {
    pub(super) fn new(
        number: usize,
        sides: Vec<Simulated>,
        incarnation: Incarnation,
        sabotage: Sabotage,
    ) -> Self {
        Self {
            number,
            sides,
            sabotage,
            publisher: Publisher::new(incarnation, TIMING),
            reader: Reader::new(TIMING),
            calls: Vec::new(),
            attachments: BTreeMap::new(),
            inbox: VecDeque::new(),
            publishes: HashMap::new(),
            queue: VecDeque::new(),
            late: VecDeque::new(),
            areas: BTreeMap::new(),
            worked_off: Frontier::new(),
            known: BTreeMap::new(),
            attempts: 0,
            stopped_until: Duration::ZERO,
            down_until: None,
        }
    }

    pub(super) fn is_running(&self, now: Duration) -> bool {
        self.down_until.is_none() && self.stopped_until <= now
    }

    /// Dies. Its clients know at once, and what it has appended goes on.
    pub(super) fn die(&mut self, until: Duration, judge: &mut Judge) {
        // What is in the queue is gone as well.
        for (_, work) in &self.queue {
            if let Work::Begin(stream, sequence) = work {
                self.worked_off.entry(*stream).or_insert(*sequence);
            }
        }
        for (stream, last) in &self.worked_off {
            judge.lost_from(self.number, *stream, last + 1);
        }
        let fresh = Self::new(self.number, self.sides.clone(), Incarnation::default(), self.sabotage);
        *self = Self { down_until: Some(until), ..fresh };
    }

    pub(super) fn start(&mut self, incarnation: Incarnation) {
        (self.publisher, self.down_until) = (Publisher::new(incarnation, TIMING), None);
    }

    pub(super) fn set_partition(&self, partition: Partition) {
        self.sides.iter().for_each(|side| side.set_partition(partition));
    }

    pub(super) fn ask(&mut self, now: Duration, random: &mut StdRng, request: Request) {
        let at = now + Duration::from_millis(random.random_range(0..50));
        let at = self.inbox.back().map_or(at, |(before, _)| at.max(*before));
        self.inbox.push_back((at, request));
    }

    pub(super) fn run(
        &mut self,
        now: Duration,
        random: &mut StdRng,
        judge: &mut Judge,
    ) -> Result<(), String> {
        if !self.is_running(now) {
            return Ok(());
        }
        self.take_answers(now, judge)?;
        self.take_requests(now, judge)?;
        self.receive(now, random, judge)?;
        self.decide(now, random, judge)?;
        self.act(now, judge)?;
        self.work_off(now, judge)
    }

    fn take_answers(&mut self, now: Duration, judge: &mut Judge) -> Result<(), String> {
        let mut answers = Vec::new();
        self.calls.retain_mut(|(stream, call)| match poll(call.as_mut()) {
            Poll::Ready(answer) => {
                answers.push((*stream, answer));
                false
            }
            Poll::Pending => true,
        });
        for (stream, answer) in answers {
            self.publisher.answer(now, stream, answer);
        }
        self.take_outcomes(now, judge)
    }

    fn take_outcomes(&mut self, now: Duration, judge: &mut Judge) -> Result<(), String> {
        while let Some((number, outcome)) = self.publisher.take_outcome() {
            let publish = self.publishes.remove(&number).ok_or("an outcome that nobody waits for")?;
            judge.answered(now, publish, outcome)?;
        }
        while let Some((stream, marker)) = self.publisher.take_marker() {
            self.marked(now, stream, marker, judge)?;
        }
        Ok(())
    }

    fn marked(
        &mut self,
        now: Duration,
        stream: Stream,
        marker: Option<Identity>,
        judge: &mut Judge,
    ) -> Result<(), String> {
        let is_lost = self.reader.marked(now, stream, marker);
        let Some(marker) = marker else {
            judge.tally.markers_unknown += 1;
            return Ok(());
        };
        self.queue_up(now, Work::Begin(stream, marker.sequence));
        if is_lost { judge.went_back(self.number, stream, marker.sequence) } else { Ok(()) }
    }

    fn take_requests(&mut self, now: Duration, judge: &mut Judge) -> Result<(), String> {
        while let Some(request) = pop_due(&mut self.inbox, now) {
            match request {
                Request::Publish { publish, events } => {
                    let stream = |(event, padding): (Event, usize)| {
                        (event.at.stream(), Bytes::from(event.bytes(padding)))
                    };
                    let events = events.into_iter().map(stream).collect();
                    match self.publisher.publish(now, events) {
                        Ok(number) => {
                            self.publishes.insert(number, publish);
                            if self.sabotage == Sabotage::AcknowledgesAtOnce {
                                judge.answered(now, publish, Outcome::Acknowledged)?;
                            }
                        }
                        Err(_) => judge.answered(now, publish, Outcome::Refused)?,
                    }
                }
                Request::Change(change) => {
                    let Change { client, disc, is_ahead, .. } = judge.changes[change];
                    let cover = disc.map(|disc| disc.cover()).unwrap_or_default();
                    let ahead = disc.filter(|_| is_ahead).map(|disc| disc.wider(AHEAD).cover());
                    let (command, client, ahead) = (change as u64, client as u64, ahead.unwrap_or_default());
                    let claim = Claim { command, client, cover, ahead };
                    self.reader.claim(now, claim).map_err(|error| error.to_string())?;
                    if self.sabotage == Sabotage::AnswersBeforeMarker {
                        judge.changes[change].answered = Some(now);
                    }
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, now: Duration, random: &mut StdRng, judge: &mut Judge) -> Result<(), String> {
        let mut works = Vec::new();
        for (stream, (number, attachment)) in &mut self.attachments {
            while let Poll::Ready(Some(sent)) = poll(pin!(attachment.receive())) {
                let taken = self.reader.take(now, *stream, *number, &sent);
                let Ok(taken) = taken else {
                    judge.tally.faults += 1;
                    self.known.remove(stream);
                    continue;
                };
                let Taken::Record { sequence, record, dropped } = taken else { continue };
                if let Some(dropped) = dropped.filter(|_| self.sabotage != Sabotage::LosesInSilence) {
                    judge.dropped(self.number, *stream, dropped)?;
                }
                let identity = identity(&sent).ok_or("a record without a record")?;
                if identity.sequence != sequence {
                    return Err(format!("record {} is taken for {sequence}", identity.sequence));
                }
                self.known.insert(*stream, identity);
                let events = match record.body().map_err(|error| error.to_string())? {
                    Body::Events(events) => events.into_iter().map(Event::read).collect(),
                    Body::Marker => Vec::new(),
                    body @ (Body::Rows(_) | Body::Seal(_) | Body::Chunk(_)) => {
                        return Err(format!("{body:?} in a stream of events"));
                    }
                };
                works.push(Work::Record { stream: *stream, identity, events });
            }
        }
        // The engine takes a while for some records.
        for work in works {
            let later = if random.random_bool(0.1) { random.random_range(0..150) } else { 0 };
            self.queue_up(now + Duration::from_millis(later), work);
        }
        Ok(())
    }

    fn queue_up(&mut self, at: Duration, work: Work) {
        let at = self.queue.back().map_or(at, |(before, _)| at.max(*before));
        self.queue.push_back((at, work));
    }

    fn decide(&mut self, now: Duration, random: &mut StdRng, judge: &mut Judge) -> Result<(), String> {
        while let Some(decision) = self.reader.decide(now) {
            match decision {
                Decision::Carry(command) => {
                    let change = usize::try_from(command).unwrap();
                    judge.changes[change].answered.get_or_insert(now);
                    judge.tally.changes += 1;
                    if self.sabotage == Sabotage::QueuesLate && random.random_bool(0.2) {
                        self.late.push_back((now + Duration::from_millis(500), change));
                    } else {
                        self.queue_up(now, Work::Change { change, frontier: self.reader.frontier() });
                    }
                }
                Decision::Refuse(command) => judge.refused(now, usize::try_from(command).unwrap())?,
            }
        }
        while let Some(change) = pop_due(&mut self.late, now) {
            self.queue_up(now, Work::Change { change, frontier: Frontier::new() });
        }
        Ok(())
    }

    fn act(&mut self, now: Duration, judge: &mut Judge) -> Result<(), String> {
        while let Some(action) = self.reader.poll(now) {
            match action {
                Action::Mark(stream) => {
                    judge.tally.markers += 1;
                    let known = self.known.get(&stream).copied();
                    match known.filter(|_| self.sabotage == Sabotage::ReadsFromKnown) {
                        Some(known) => self.marked(now, stream, Some(known), judge)?,
                        None => self.publisher.mark(stream),
                    }
                }
                Action::Attach(stream, attach) => {
                    judge.tally.attachments += 1;
                    let attachment = crate::now(self.sides[stream.0 as usize].attach(attach.from));
                    let attachment = attachment.map_err(|error| error.to_string())?;
                    self.attachments.insert(stream, (attach.attachment, attachment));
                }
                Action::Detach(stream) => {
                    judge.tally.detached += 1;
                    self.attachments.remove(&stream);
                }
            }
        }
        while let Some((stream, mut append)) = self.publisher.poll(now) {
            if self.sabotage == Sabotage::AppendsAnew {
                self.attempts += 1;
                append.id = format!("{}/{}", append.id, self.attempts);
            }
            let log = self.sides[stream.0 as usize].clone();
            let mut call: Call = Box::pin(async move { log.append(append).await });
            // The request goes out when it is asked for the first time.
            match poll(call.as_mut()) {
                Poll::Ready(answer) => self.publisher.answer(now, stream, answer),
                Poll::Pending => self.calls.push((stream, call)),
            }
        }
        self.take_outcomes(now, judge)
    }

    fn work_off(&mut self, now: Duration, judge: &mut Judge) -> Result<(), String> {
        while let Some(work) = pop_due(&mut self.queue, now) {
            match work {
                Work::Begin(stream, sequence) => {
                    judge.begins(self.number, stream, sequence);
                    self.worked_off.insert(stream, sequence);
                }
                Work::Change { change, frontier } => {
                    for (stream, last) in frontier {
                        let worked_off = self.worked_off.get(&stream);
                        if worked_off != Some(&last) {
                            return Err(format!("{stream:?}: {worked_off:?}, and the frontier is {last}"));
                        }
                    }
                    let Change { client, disc, .. } = judge.changes[change];
                    match disc {
                        Some(disc) => self.areas.insert(client as u64, disc),
                        None => self.areas.remove(&(client as u64)),
                    };
                }
                Work::Record { stream, identity, events } => {
                    judge.worked_off(self.number, stream, identity);
                    self.worked_off.insert(stream, identity.sequence);
                    for event in events {
                        let holders = self.areas.iter().filter(|(_, disc)| disc.holds(event.at));
                        holders.for_each(|(client, _)| judge.delivered(*client, event.id));
                    }
                }
            }
        }
        Ok(())
    }

    /// What is read, and up to where.
    pub(super) fn frontier(&self) -> Frontier {
        self.reader.frontier()
    }
}

fn poll<T>(call: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
    call.poll(&mut Context::from_waker(Waker::noop()))
}

fn pop_due<T>(queue: &mut VecDeque<(Duration, T)>, now: Duration) -> Option<T> {
    queue.front().is_some_and(|(at, _)| *at <= now).then(|| queue.pop_front()).flatten().map(|(_, work)| work)
}

fn identity(sent: &Sent) -> Option<Identity> {
    match sent {
        Sent::Record { stored, .. } => Some(stored.identity()),
        Sent::Idle { .. } => None,
    }
}
