//! The oracle: what each checked client had to get, compared with what it got.
//!
//! An event is matched at some time between its being sent and its being accepted, and a move comes into force at some time
//! between its being sent and the answer that it is. Where these overlap both answers are right. Otherwise there is one,
//! and `matcher::evaluation` knows it, which shares neither normal forms nor indexes with the engines.

use std::collections::{BTreeMap, HashMap};

use matcher::evaluation::{filter_matches, reaches};
use matcher::event::Event;
use matcher::geo::{Position, World};

use crate::drive::Phase;
use crate::plan::{Act, Client, Occurrence, Plan};
use crate::report::record::{Check, Truth};

/// Pairs of event and client that are looked at: some seconds of work. Of more events every so many are.
const PAIRS_MAX: u64 = 60_000_000;

/// Events that are kept to be looked at.
const EVENTS_MAX: u64 = 300_000;

/// Wrong deliveries that are described in words.
const EXAMPLES_MAX: usize = 5;

/// By how much the broker may be off when it ends a life, in nanoseconds: its clock is its own.
const END_OF_LIFE: u64 = 1_000_000_000;

/// A place that a client was at, and from when.
#[derive(Clone, Copy)]
struct Stay {
    position: Option<Position>,
    /// Where it was in truth.
    truth: Option<Position>,
    /// From then on it may have been in force.
    sent: u64,
    /// From then on it was; never, where nobody said so.
    in_force: u64,
}

/// A client's history.
struct Track<'a> {
    client: &'a Client,
    stays: Vec<Stay>,
    /// When it may not have been subscribed: from the break of its connection to the answer to its new one.
    absences: Vec<(u64, u64)>,
}

/// An event, and when it was one.
struct Life {
    number: u64,
    occurrence: Box<Occurrence>,
    sent: u64,
    /// Never, where nobody said so; none where it was refused.
    accepted: Option<u64>,
    /// When a newer one took its place: sent, accepted.
    replaced: Option<(u64, u64)>,
}

/// What one client had to get of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Required,
    Forbidden,
    /// Either.
    Open,
}

/// Holds what came against what had to come. Where the broker is not exact, what nobody asked for is superfluous, not wrong.
#[must_use]
pub fn check(plan: &dyn Plan, clients: &[Client], phase: &Phase, stride: u64, is_exact: bool) -> Check {
    let (world, stride) = (plan.world(), stride.max(1));
    let checked: Vec<u32> = phase.checked.clone();
    let events_sent = phase.sent.all_events / stride + 1;
    let events_max = EVENTS_MAX.min(PAIRS_MAX / (checked.len() as u64).max(1));
    let noted = stride;
    let stride = stride * events_sent.div_ceil(events_max.max(1));
    let (tracks, lives) = histories(plan, clients, phase, &checked, [noted, stride]);
    let mut came: HashMap<(u32, u64), u32> = HashMap::new();
    for (client, number, _) in &phase.heard.journal.deliveries {
        if number.is_multiple_of(stride) && *number >= phase.first_number {
            *came.entry((*client, *number)).or_default() += 1;
        }
    }
    let has_noise = tracks.iter().flat_map(|track| &track.stays).any(|stay| stay.truth != stay.position);
    let mut truth = Truth::default();
    let mut told_lost: HashMap<u32, u64> = HashMap::new();
    for (client, count) in &phase.heard.journal.lossy {
        *told_lost.entry(*client).or_default() += count;
    }
    let mut verdict = Check {
        clients_checked: checked.len() as u64,
        clients_count: clients.len() as u64,
        ..Check::default()
    };
    for (client, track) in checked.iter().zip(&tracks) {
        // What it was told to be lost may be any of what did not come.
        let mut excused = told_lost.get(client).copied().unwrap_or(0);
        for life in &lives {
            let times = came.get(&(*client, life.number)).copied().unwrap_or(0);
            verdict.duplicates += u64::from(times).saturating_sub(1 + track.times_again(life));
            if has_noise {
                let [in_truth, as_told] = track.at_publish(world, life);
                truth.wanted += u64::from(in_truth);
                truth.told += u64::from(in_truth && as_told);
                truth.beside += u64::from(as_told && !in_truth);
            }
            match track.due(world, life, is_exact) {
                Due::Required => {
                    verdict.required += 1;
                    verdict.came += u64::from(times > 0);
                    if times == 0 && excused > 0 {
                        excused -= 1;
                    } else if times == 0 {
                        verdict.missing += 1;
                        tell(&mut verdict, track, life, "did not come to");
                    }
                }
                Due::Forbidden if times > 0 && !is_exact => verdict.superfluous += 1,
                Due::Forbidden if times > 0 => {
                    verdict.spurious += 1;
                    tell(&mut verdict, track, life, "should not have come to");
                }
                Due::Open => verdict.ambiguous += 1,
                Due::Forbidden => {}
            }
        }
    }
    verdict.truth = has_noise.then_some(truth);
    verdict
}

/// Positions are shown to nobody, not even in a report.
fn tell(verdict: &mut Check, track: &Track<'_>, life: &Life, what: &str) {
    if verdict.examples.len() < EXAMPLES_MAX {
        verdict.examples.push(format!("event {} {what} {}", life.number, track.client.name));
    }
}

/// What checked clients did, and which events there were.
fn histories<'a>(
    plan: &dyn Plan,
    clients: &'a [Client],
    phase: &Phase,
    checked: &[u32],
    [noted, stride]: [u64; 2],
) -> (Vec<Track<'a>>, Vec<Life>) {
    let mut breaks: HashMap<u32, Vec<u64>> = HashMap::new();
    for (client, at) in &phase.sent.journal.breaks {
        breaks.entry(*client).or_default().push(*at);
    }
    let mut returns: HashMap<u32, Vec<u64>> = HashMap::new();
    for (client, at) in &phase.heard.journal.returns {
        returns.entry(*client).or_default().push(*at);
    }
    let sent: HashMap<(u32, u64), u64> =
        phase.sent.journal.moves.iter().map(|(client, nth, at)| ((*client, *nth), *at)).collect();
    let in_force: HashMap<(u32, u64), u64> =
        phase.heard.journal.moves.iter().map(|(client, nth, at)| ((*client, *nth), *at)).collect();
    let mut tracks: Vec<Track<'_>> = checked
        .iter()
        .map(|index| {
            let client = &clients[*index as usize];
            let returns = returns.get(index).map_or(&[][..], Vec::as_slice);
            let absence = |broken: &u64| {
                let back = returns.iter().copied().find(|back| back > broken);
                (*broken, back.unwrap_or(u64::MAX))
            };
            let absences = breaks.get(index).map_or(&[][..], Vec::as_slice).iter().map(absence).collect();
            let stays = vec![Stay { position: client.home, truth: client.home, sent: 0, in_force: 0 }];
            Track { client, stays, absences }
        })
        .collect();
    let place: HashMap<u32, usize> =
        checked.iter().enumerate().map(|(place, client)| (*client, place)).collect();
    let events_sent: HashMap<u64, u64> = phase.sent.journal.events.iter().copied().collect();
    let events_heard: HashMap<u64, Option<u64>> = phase.heard.journal.events.iter().copied().collect();
    let mut moves = vec![0; checked.len()];
    let mut lives: Vec<Life> = Vec::new();
    let mut latest: BTreeMap<String, usize> = BTreeMap::new();
    let mut number = phase.first_number;
    let steps = usize::try_from(phase.sent.journal.steps).unwrap_or(usize::MAX);
    for step in plan.steps().take(steps) {
        match step.act {
            Act::Move { client, to, truth } => {
                let Some(place) = place.get(&client).copied() else { continue };
                let nth = moves[place];
                moves[place] += 1;
                let track = &mut tracks[place];
                let stay = match sent.get(&(client, nth)) {
                    Some(sent) => {
                        let in_force = in_force.get(&(client, nth)).copied().unwrap_or(u64::MAX);
                        Stay { position: Some(to), truth: truth.or(Some(to)), sent: *sent, in_force }
                    }
                    // It was away, and said so when it was back.
                    None => {
                        let due = phase.began + u64::try_from(step.at.as_nanos()).unwrap_or(u64::MAX);
                        // On a busy machine a step comes after its time, and never before the one ahead of it.
                        let from = track.stays.last().map_or(due, |before| before.sent.max(due));
                        let away = track.absences.iter().find(|(_, back)| *back >= from);
                        let (sent, in_force) = away.copied().unwrap_or((0, u64::MAX));
                        Stay { position: Some(to), truth: truth.or(Some(to)), sent, in_force }
                    }
                };
                track.stays.push(stay);
            }
            Act::Publish(occurrence) => {
                let this = number;
                number += 1;
                // Of others nobody noted when they were sent; of one that takes another's place about that much is known.
                let about = || {
                    let due = phase.began + u64::try_from(step.at.as_nanos()).unwrap_or(u64::MAX);
                    (occurrence.key.is_some() && !this.is_multiple_of(noted)).then_some(due)
                };
                let Some(sent) = events_sent.get(&this).copied().or_else(about) else { continue };
                let accepted = events_heard.get(&this).copied().unwrap_or(Some(u64::MAX));
                // One that was refused takes nobody's place.
                if let (Some(key), Some(accepted)) = (&occurrence.key, accepted)
                    && let Some(before) = latest.insert(key.clone(), lives.len())
                    && let Some(before) = lives.get_mut(before)
                {
                    before.replaced = Some((sent, accepted));
                }
                if this.is_multiple_of(stride) || occurrence.key.is_some() {
                    lives.push(Life { number: this, occurrence, sent, accepted, replaced: None });
                }
            }
            Act::Reconnect { .. } => {}
        }
    }
    for track in &mut tracks {
        // What came after a stay was in force ended it, whether its own answer was heard or not.
        for index in (1..track.stays.len()).rev() {
            track.stays[index - 1].in_force =
                track.stays[index - 1].in_force.min(track.stays[index].in_force);
        }
    }
    lives.retain(|life| life.number.is_multiple_of(stride));
    (tracks, lives)
}

impl Track<'_> {
    /// Whether an event of some place is wanted at some place.
    fn wants(&self, world: World, position: Option<&Position>, event: &Event) -> bool {
        let mut filters = self.client.wishes.iter().flat_map(|wish| &wish.filters);
        reaches(world, event, position)
            && filters.any(|filter| filter_matches(world, filter, position, event))
    }

    /// Whether it is wanted when it is published, by the truth and by what was told.
    fn at_publish(&self, world: World, life: &Life) -> [bool; 2] {
        let last = self.stays.partition_point(|stay| stay.sent <= life.sent).saturating_sub(1);
        let stay = &self.stays[last];
        let told = &life.occurrence.event;
        let truth = life.occurrence.truth.map(|position| Event { position, ..told.clone() });
        [
            self.wants(world, stay.truth.as_ref(), truth.as_ref().unwrap_or(told)),
            self.wants(world, stay.position.as_ref(), told),
        ]
    }

    fn due(&self, world: World, life: &Life, is_exact: bool) -> Due {
        let Some(accepted) = life.accepted else { return Due::Forbidden };
        let event = &life.occurrence.event;
        let wants = |position: Option<&Position>| self.wants(world, position, event);
        // When it may have been matched, and when it surely was live.
        #[expect(clippy::cast_possible_truncation, reason = "a time of life is some days at most")]
        let ttl = (life.occurrence.ttl_s * 1e9) as u64;
        let is_live = ttl > 0 || life.occurrence.key.is_some();
        let lasting = if ttl > 0 { ttl } else { u64::MAX / 2 };
        let (possible_end, certain_end) = if is_live {
            let by_ttl = (
                accepted.saturating_add(lasting + END_OF_LIFE),
                (life.sent + lasting).saturating_sub(END_OF_LIFE),
            );
            match life.replaced {
                Some((sent, accepted)) => (by_ttl.0.min(accepted), by_ttl.1.min(sent)),
                None => by_ttl,
            }
        } else {
            (accepted, 0)
        };
        let mut at_publish = Vec::new();
        let (mut may, mut must) = (false, false);
        // The first stay that could have been in force then; they are in order.
        let first = self.stays.partition_point(|stay| stay.in_force < life.sent).saturating_sub(1);
        for (index, stay) in self.stays.iter().enumerate().skip(first) {
            if stay.sent > possible_end {
                break;
            }
            let next = self.stays.get(index + 1);
            let (next_sent, next_in_force) =
                next.map_or((u64::MAX, u64::MAX), |next| (next.sent, next.in_force));
            if next_in_force < life.sent {
                continue;
            }
            let is_wanted = wants(stay.position.as_ref());
            if stay.sent <= accepted {
                at_publish.push(is_wanted);
            }
            may |= is_wanted;
            let (from, until) = (stay.in_force.max(accepted), next_sent.min(certain_end));
            // A delivery that was under way when a connection broke is nobody's fault, and peers bring nothing by a move.
            let is_here = !self.is_away(from, until.saturating_add(END_OF_LIFE));
            must |= is_exact && is_wanted && is_live && from < until && is_here;
        }
        let is_durable = self.client.wishes.iter().all(|wish| wish.is_durable);
        let is_here =
            is_exact && is_durable || !self.is_away(life.sent, accepted.saturating_add(END_OF_LIFE));
        must |= is_here
            && accepted < u64::MAX
            && at_publish.iter().all(|wanted| *wanted)
            && !at_publish.is_empty();
        match (may, must) {
            (_, true) => Due::Required,
            (true, false) => Due::Open,
            (false, false) => Due::Forbidden,
        }
    }

    /// How often a live event may come again: once for each new subscription of a client whose own ended with its connection.
    fn times_again(&self, life: &Life) -> u64 {
        let is_durable = self.client.wishes.iter().all(|wish| wish.is_durable);
        if is_durable {
            return 0;
        }
        self.absences.iter().filter(|(_, back)| *back >= life.sent).count() as u64
    }

    /// Whether it may have been away at some time in between.
    fn is_away(&self, from: u64, until: u64) -> bool {
        self.absences.iter().any(|(broken, back)| *broken <= until && *back >= from)
    }
}
