//! Knows what clients sent and were answered, and holds the deliveries against it. A delivery is required where every state says so that
//! can have been in force, forbidden where none does, and free otherwise.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{AddAssign, Range};
use std::time::Duration;

use cluster::events::{Outcome, Stream};
use cluster::log::{Identity, Stored};
use cluster::record::{Body, Incarnation, Record};
use cluster::simulated::World;

use super::LAG;
use super::plane::{Disc, Event};

/// Counts of what happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) acknowledged: u64,
    pub(super) unknown: u64,
    pub(super) refused: u64,
    pub(super) changes: u64,
    pub(super) changes_refused: u64,
    pub(super) markers: u64,
    pub(super) markers_unknown: u64,
    pub(super) attachments: u64,
    pub(super) detached: u64,
    pub(super) faults: u64,
    pub(super) told_dropped: u64,
    pub(super) told_went_back: u64,
    pub(super) required: u64,
    pub(super) free: u64,
    pub(super) forbidden: u64,
    pub(super) excused: u64,
    pub(super) deliveries: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.refused += other.refused;
        self.changes += other.changes;
        self.changes_refused += other.changes_refused;
        self.markers += other.markers;
        self.markers_unknown += other.markers_unknown;
        self.attachments += other.attachments;
        self.detached += other.detached;
        self.faults += other.faults;
        self.told_dropped += other.told_dropped;
        self.told_went_back += other.told_went_back;
        self.required += other.required;
        self.free += other.free;
        self.forbidden += other.forbidden;
        self.excused += other.excused;
        self.deliveries += other.deliveries;
    }
}

/// A move, a subscription or its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) client: usize,
    pub(super) disc: Option<Disc>,
    pub(super) is_ahead: bool,
    pub(super) sent: Duration,
    pub(super) answered: Option<Duration>,
    is_refused: bool,
}

#[derive(Debug)]
struct Publish {
    sent: Duration,
    answered: Option<(Duration, Outcome)>,
    events: Vec<Event>,
}

/// A record that a broker's engine has worked off, since reading of its stream began for the n-th time.
#[derive(Clone, Copy, Debug)]
struct WorkedOff {
    identity: Identity,
    beginning: u64,
}

pub(super) struct Judge {
    worlds: Vec<World>,
    pub(super) tally: Tally,
    pub(super) changes: Vec<Change>,
    /// The changes of each client, in the order in which they were sent.
    by_client: Vec<Vec<usize>>,
    publishes: Vec<Publish>,
    deliveries: HashMap<(usize, u64), u64>,
    beginnings: BTreeMap<(usize, Stream), u64>,
    worked_off: BTreeMap<(usize, Stream), Vec<WorkedOff>>,
    /// What brokers told to be lost.
    lost: BTreeMap<(usize, Stream), Vec<Range<u64>>>,
    /// The first sequence of each stream that ever was another one.
    floors: BTreeMap<Stream, u64>,
    gone: Vec<Identity>,
    gone_events: HashSet<u64>,
    /// After that everything is taken.
    pub(super) is_whole_from: Duration,
}

impl Judge {
    pub(super) fn new(worlds: Vec<World>, clients: usize, is_whole_from: Duration) -> Self {
        let nothing = |client| Change {
            client,
            disc: None,
            is_ahead: false,
            sent: Duration::ZERO,
            answered: Some(Duration::ZERO),
            is_refused: false,
        };
        Self {
            worlds,
            tally: Tally::default(),
            changes: (0..clients).map(nothing).collect(),
            by_client: (0..clients).map(|client| vec![client]).collect(),
            publishes: Vec::new(),
            deliveries: HashMap::new(),
            beginnings: BTreeMap::new(),
            worked_off: BTreeMap::new(),
            lost: BTreeMap::new(),
            floors: BTreeMap::new(),
            gone: Vec::new(),
            gone_events: HashSet::new(),
            is_whole_from,
        }
    }

    /// A client sends a change.
    pub(super) fn change(
        &mut self,
        now: Duration,
        client: usize,
        disc: Option<Disc>,
        is_ahead: bool,
    ) -> usize {
        let change = Change { client, disc, is_ahead, sent: now, answered: None, is_refused: false };
        self.changes.push(change);
        self.by_client[client].push(self.changes.len() - 1);
        self.changes.len() - 1
    }

    /// A client's broker has died, which the client knows.
    pub(super) fn disconnected(&mut self, now: Duration, client: usize) {
        let change = self.change(now, client, None, false);
        self.changes[change].answered = Some(now);
    }

    pub(super) fn is_waiting(&self, client: usize) -> bool {
        self.by_client[client].last().is_some_and(|last| {
            let change = &self.changes[*last];
            change.answered.is_none() && !change.is_refused
        })
    }

    pub(super) fn refused(&mut self, now: Duration, change: usize) -> Result<(), String> {
        self.tally.changes_refused += 1;
        let change = &mut self.changes[change];
        change.is_refused = true;
        let is_wrong = change.sent >= self.is_whole_from;
        if is_wrong { Err(format!("{change:?} is refused at {now:?}")) } else { Ok(()) }
    }

    pub(super) fn publish(&mut self, now: Duration, events: Vec<Event>) -> usize {
        self.publishes.push(Publish { sent: now, answered: None, events });
        self.publishes.len() - 1
    }

    pub(super) fn answered(&mut self, now: Duration, publish: usize, outcome: Outcome) -> Result<(), String> {
        let publish = &mut self.publishes[publish];
        publish.answered.get_or_insert((now, outcome));
        match outcome {
            Outcome::Acknowledged => self.tally.acknowledged += 1,
            Outcome::Unknown => self.tally.unknown += 1,
            Outcome::Refused => self.tally.refused += 1,
        }
        let is_wrong = outcome != Outcome::Acknowledged && publish.sent >= self.is_whole_from;
        if is_wrong { Err(format!("{publish:?} is {outcome:?}")) } else { Ok(()) }
    }

    pub(super) fn delivered(&mut self, client: u64, event: u64) {
        self.tally.deliveries += 1;
        *self.deliveries.entry((usize::try_from(client).unwrap(), event)).or_default() += 1;
    }

    pub(super) fn worked_off(&mut self, broker: usize, stream: Stream, identity: Identity) {
        let beginning = self.beginnings[&(broker, stream)];
        self.worked_off.entry((broker, stream)).or_default().push(WorkedOff { identity, beginning });
    }

    /// A broker begins to read a stream, behind a record.
    pub(super) fn begins(&mut self, broker: usize, stream: Stream, sequence: u64) {
        *self.beginnings.entry((broker, stream)).or_default() += 1;
        let last = self.lost.get_mut(&(broker, stream)).and_then(|lost| lost.last_mut());
        if let Some(open) = last.filter(|lost| lost.end == u64::MAX) {
            open.end = sequence + 1;
        }
    }

    /// A broker has lost what it knew of a stream, until reading begins again.
    pub(super) fn lost_from(&mut self, broker: usize, stream: Stream, from: u64) {
        // It may not have noticed yet that the log went back.
        let from = self.floors.get(&stream).map_or(from, |floor| from.min(*floor));
        self.lost.entry((broker, stream)).or_default().push(from..u64::MAX);
    }

    pub(super) fn dropped(
        &mut self,
        broker: usize,
        stream: Stream,
        dropped: Range<u64>,
    ) -> Result<(), String> {
        self.tally.told_dropped += 1;
        let first = self.worlds[stream.0 as usize].bounds().first;
        // A log that went back has others there by now.
        if dropped.end > first && !self.floors.contains_key(&stream) {
            return Err(format!("{dropped:?} were reported as lost, and the log begins with {first}"));
        }
        // Where the log has dropped what a reader knows as well, nothing shows that it went back before: the loss is that of all of it.
        let floor = self.floors.get(&stream).copied().unwrap_or(u64::MAX);
        self.lost.entry((broker, stream)).or_default().push(dropped.start.min(floor)..dropped.end);
        Ok(())
    }

    pub(super) fn went_back(&mut self, broker: usize, stream: Stream, resumed: u64) -> Result<(), String> {
        self.tally.told_went_back += 1;
        let floor = *self.floors.get(&stream).ok_or("a log did not go back, and a broker says so")?;
        self.lost.entry((broker, stream)).or_default().push(floor..resumed + 1);
        Ok(())
    }

    /// Records of a log are gone.
    pub(super) fn gone(&mut self, stream: Stream, gone: &[Stored]) -> Result<(), String> {
        for stored in gone {
            let floor = self.floors.entry(stream).or_insert(stored.sequence);
            *floor = stored.sequence.min(*floor);
            self.gone.push(stored.identity());
            self.gone_events.extend(events(stored)?.1.iter().map(|event| event.id));
        }
        Ok(())
    }

    /// Holds everything against the logs.
    pub(super) fn check(&mut self, broker_of: impl Fn(usize) -> usize) -> Result<(), String> {
        let streams = (0_u32..).map(Stream);
        let histories: BTreeMap<_, _> = streams.zip(self.worlds.iter().map(World::history)).collect();
        let places = self.check_places(&histories)?;
        self.check_order(&histories)?;
        self.check_deliveries(&places, broker_of)
    }

    /// I1: what was acknowledged is in the log at one place, and what was refused is not.
    fn check_places(&self, histories: &BTreeMap<Stream, Vec<Stored>>) -> Result<HashMap<u64, u64>, String> {
        let has_given_up = self.tally.unknown + self.tally.markers_unknown > 0;
        let mut places = HashMap::new();
        for (stream, history) in histories {
            let mut numbers = HashMap::<Incarnation, u64>::new();
            for stored in history {
                let (record, events) = events(stored)?;
                let before = numbers.insert(record.0, record.1).unwrap_or(0);
                // A record that was given up may come late.
                if record.1 <= before && !has_given_up && !self.floors.contains_key(stream) {
                    return Err(format!("{stream:?}: record {} behind {before} of one writer", record.1));
                }
                for event in events {
                    if event.at.stream() != *stream {
                        return Err(format!("event {} is in {stream:?}", event.id));
                    }
                    if places.insert(event.id, stored.sequence).is_some() {
                        return Err(format!("event {} is in the log twice", event.id));
                    }
                }
            }
        }
        for publish in &self.publishes {
            for event in &publish.events {
                let is_there = places.contains_key(&event.id);
                let why = match publish.answered {
                    Some((_, Outcome::Acknowledged))
                        if !is_there && !self.gone_events.contains(&event.id) =>
                    {
                        "is acknowledged and not in the log"
                    }
                    Some((_, Outcome::Refused)) if is_there => "is refused and in the log",
                    Some(_) | None => continue,
                };
                return Err(format!("event {} of {publish:?} {why}", event.id));
            }
        }
        Ok(places)
    }

    /// I3: each engine works off the log's records, in their order, each once, and none is left out untold.
    fn check_order(&self, histories: &BTreeMap<Stream, Vec<Stored>>) -> Result<(), String> {
        for (key, worked_off) in &self.worked_off {
            let (broker, stream) = key;
            let wrong = |why: &str, identity: Identity| {
                Err(format!("broker {broker}, {stream:?}: {why} {}", identity.sequence))
            };
            let (history, has_gone_back) = (&histories[stream], self.floors.contains_key(stream));
            for WorkedOff { identity, .. } in worked_off {
                let at = usize::try_from(identity.sequence - 1).unwrap();
                let is_there = history.get(at).is_some_and(|stored| stored.identity().is(identity));
                if !is_there && !self.gone.iter().any(|gone| gone.is(identity)) {
                    return wrong("worked off what was not in the log:", *identity);
                }
            }
            for pair in worked_off.windows(2) {
                let [before, next] = [pair[0].identity, pair[1].identity];
                let is_same_reading = pair[0].beginning == pair[1].beginning;
                if next.sequence <= before.sequence && (is_same_reading || !has_gone_back) {
                    return wrong("worked off again or too late:", next);
                }
                let mut left_out = before.sequence + 1..next.sequence;
                if is_same_reading && left_out.any(|sequence| !self.is_lost(*broker, *stream, sequence)) {
                    return wrong("left something out before", next);
                }
            }
        }
        Ok(())
    }

    fn is_lost(&self, broker: usize, stream: Stream, sequence: u64) -> bool {
        let lost = self.lost.get(&(broker, stream));
        lost.is_some_and(|lost| lost.iter().any(|lost| lost.contains(&sequence)))
    }

    /// I2: what is published after a change was answered sees it.
    fn check_deliveries(
        &mut self,
        places: &HashMap<u64, u64>,
        broker_of: impl Fn(usize) -> usize,
    ) -> Result<(), String> {
        let mut tally = self.tally;
        for publish in &self.publishes {
            for (event, client) in publish
                .events
                .iter()
                .flat_map(|event| (0..self.by_client.len()).map(move |client| (event, client)))
            {
                let count = self.deliveries.get(&(client, event.id)).copied().unwrap_or(0);
                let is_gone = self.gone_events.contains(&event.id);
                if count > 1 && !is_gone {
                    return Err(format!("client {client} has event {} {count} times", event.id));
                }
                let (has_match, has_other) = self.matches(client, publish, event, is_gone);
                let stream = event.at.stream();
                let is_excused =
                    || places.get(&event.id).is_none_or(|at| self.is_lost(broker_of(client), stream, *at));
                let tell = |what: &str| {
                    let changes: Vec<_> =
                        self.by_client[client].iter().map(|at| &self.changes[*at]).collect();
                    Err(format!(
                        "{what}: {event:?} of {publish:?} in {stream:?}, client {client}: {changes:#?}"
                    ))
                };
                let is_acknowledged = matches!(publish.answered, Some((_, Outcome::Acknowledged)));
                match (has_match, has_other) {
                    (false, _) if count > 0 => return tell("spurious"),
                    (false, _) => tally.forbidden += 1,
                    (true, false) if is_acknowledged && count == 0 && is_excused() => tally.excused += 1,
                    (true, false) if is_acknowledged && count == 0 => return tell("missing"),
                    (true, false) if is_acknowledged => tally.required += 1,
                    (true, _) => tally.free += 1,
                }
            }
        }
        self.tally = tally;
        Ok(())
    }

    /// Whether a state of a client that can have been in force matches an event, and whether one does not.
    fn matches(&self, client: usize, publish: &Publish, event: &Event, is_gone: bool) -> (bool, bool) {
        // What is not acknowledged, or was gone, may come to be at any time.
        let until = match publish.answered {
            Some((answered, Outcome::Acknowledged)) if !is_gone => answered + LAG,
            Some(_) | None => Duration::MAX,
        };
        let (mut has_match, mut has_other) = (false, false);
        for change in self.by_client[client].iter().rev().map(|at| &self.changes[*at]) {
            if change.is_refused || change.sent > until {
                continue;
            }
            let is_match = change.disc.is_some_and(|disc| disc.holds(event.at));
            (has_match, has_other) = (has_match | is_match, has_other | !is_match);
            if change.answered.is_some_and(|answered| answered < publish.sent) {
                break;
            }
        }
        (has_match, has_other)
    }
}

type Named = ((Incarnation, u64), Vec<Event>);

fn events(stored: &Stored) -> Result<Named, String> {
    let record = Record::decode(&stored.record).map_err(|error| error.to_string())?;
    let events = match record.body().map_err(|error| error.to_string())? {
        Body::Events(events) => events.into_iter().map(Event::read).collect(),
        Body::Marker => Vec::new(),
        body @ (Body::Rows(_) | Body::Seal(_) | Body::Chunk(_)) => return Err(format!("{body:?}")),
    };
    Ok(((record.header.incarnation, record.header.number), events))
}
