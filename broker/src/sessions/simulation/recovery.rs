//! Checks of the data that are found after a crash against everything that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::model::{Client, Held, Known, Live, Shard};
use super::session::Session;
use super::spec::Event;
use crate::store::{Recovered, RecoveredClient};

/// Live events that were published, and what became of them.
#[derive(Default)]
pub(super) struct Publications {
    /// Live events by their texts.
    pub(super) live: BTreeMap<String, Live>,
    /// Numbers of the events that were acknowledged.
    pub(super) acknowledged: BTreeSet<u64>,
    /// Ids that were revoked, answered or not: up to which event.
    pub(super) revoked: BTreeMap<String, u64>,
    /// Ids whose revocation was acknowledged: up to which event.
    pub(super) ended: BTreeMap<String, u64>,
}

impl Publications {
    /// Whether an event is live no more for sure: because of what was acknowledged, or of what somebody was told.
    fn is_over(&self, event: &Event, shards: &[Shard]) -> bool {
        let is_newer = |other: &Event| {
            other.is_live() && other.object() == event.object() && other.number > event.number
        };
        if self.ended.get(&event.id).is_some_and(|last| *last > event.number) {
            return true;
        }
        let acknowledged = self.live.values().filter(|one| self.acknowledged.contains(&one.event.number));
        let clients = shards.iter().flat_map(|shard| shard.clients.values());
        let told = clients.filter(|client| client.is_durable_on_disk());
        let told = told.flat_map(|client| &client.session.told).filter(|told| told.is_kept);
        acknowledged.map(|one| &one.event).chain(told.map(|told| &told.event)).any(|other| is_newer(other))
    }

    /// Whether everything that was acknowledged, is not over and was not replaced is there.
    fn all_there(&self, live: &BTreeMap<String, Live>, now_ms: u64) -> Result<(), String> {
        for one in self.live.values().filter(|one| self.acknowledged.contains(&one.event.number)) {
            let Live { event, expires_ms, .. } = one;
            let is_revoked = self.revoked.get(&event.id).is_some_and(|last| *last > event.number);
            let is_newer =
                |other: &Live| other.event.object() == event.object() && other.event.number > event.number;
            let is_over = *expires_ms <= now_ms || is_revoked || self.live.values().any(is_newer);
            let is_there = live.get(&event.object()).is_some_and(|live| live.event.number == event.number);
            if !is_over && !is_there {
                return Err(format!("{one:?} was acknowledged, and is not there"));
            }
        }
        Ok(())
    }
}

/// Says how a shard that was as `shard` differs from what was found; `is_own` tells its clients.
pub(super) fn differs(shard: &Shard, found: &Recovered, is_own: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let found: BTreeMap<&str, &RecoveredClient> =
        found.clients.iter().map(|client| (&*client.name, client)).filter(|(name, _)| is_own(name)).collect();
    let names: BTreeSet<&str> =
        shard.clients.keys().map(String::as_str).chain(found.keys().copied()).collect();
    for name in names {
        let outcome = match (shard.clients.get(name), found.get(name)) {
            (Some(client), Some(found)) => same(client, found, shard.is_fresh),
            (Some(client), None) if is_stored(client) => Err("is not there".to_owned()),
            (None, Some(found))
                if found.position.is_some() || !found.subscriptions.is_empty() || !found.kept.is_empty() =>
            {
                Err(format!("is there again: {found:?}"))
            }
            _ => Ok(()),
        };
        outcome.map_err(|what| format!("client {name} {what}"))?;
    }
    Ok(())
}

fn is_stored(client: &Client) -> bool {
    client.at.is_some()
        || client.is_durable_on_disk()
        || client.subscriptions.values().any(|held| held.is_stored)
}

fn same(client: &Client, found: &RecoveredClient, is_fresh: bool) -> Result<(), String> {
    #[expect(clippy::cast_possible_truncation, reason = "whole metres, and few")]
    let at = found.position.as_ref().map(|position| position.coordinates[0] as i64);
    if at != client.at {
        return Err(format!("is at {at:?} and not at {:?}", client.at));
    }
    let stored = client.subscriptions.iter().filter(|(_, held)| held.is_stored);
    let stored: Vec<_> = stored.map(|(id, held)| (id.clone(), held.spec.document())).collect();
    let there = found.subscriptions.iter().map(|one| (one.id.to_string(), one.text.to_string()));
    let there: Vec<_> = there.collect();
    if there != stored {
        return Err(format!("has {there:?} and not {stored:?}"));
    }
    for one in &found.subscriptions {
        let held = &client.subscriptions[&*one.id];
        let known = held.known.iter().map(|(object, known)| (object.as_str(), known.waits.is_some()));
        let known: BTreeMap<_, _> = known.filter(|_| held.spec.durable).collect();
        let mut there: BTreeMap<_, _> =
            one.standings.iter().map(|(object, standing)| (&**object, standing.waits.is_some())).collect();
        if is_fresh {
            there.retain(|object, _| known.contains_key(object));
        }
        if there != known {
            return Err(format!("{} knows {there:?} and not {known:?}", one.id));
        }
    }
    if !client.is_durable_on_disk() {
        let kept = found.kept.len();
        return if kept == 0 { Ok(()) } else { Err(format!("keeps {kept}")) };
    }
    let session = found.session.as_ref().ok_or("has no session")?;
    let Session { epoch, acknowledged, kept, .. } = &client.session;
    let right = (client.session.offset(), *acknowledged, client.session.last_loss());
    let is_right = (session.offset, session.acknowledged, session.lost) == right
        && epoch.as_ref().is_none_or(|epoch| **epoch == *session.epoch);
    if !is_right {
        return Err(format!(
            "has the session {session:?} and not {right:?} of {epoch:?}, and keeps {:?}",
            found.kept
        ));
    }
    let offsets: Vec<_> = found.kept.iter().map(|one| one.kept.offset).collect();
    if !offsets.iter().eq(kept.keys()) {
        return Err(format!("keeps {offsets:?} and not {:?}", kept.keys()));
    }
    for one in &found.kept {
        let told = client.session.at(one.kept.offset).ok_or("keeps what was not told")?;
        let names = one.kept.subscriptions.as_slice().iter().map(|name| name.trim_matches('"').to_owned());
        let is_right = names.collect::<BTreeSet<_>>() == told.subscriptions
            && (one.kept.cause, one.kept.transition) == (told.cause, told.transition)
            && one.kept.at_ms == told.at_ms
            && *one.body.text == *told.event.text();
        if !is_right {
            return Err(format!("keeps {one:?} and not {told:?}"));
        }
    }
    Ok(())
}

/// Says which live event of the first shard, which writes them, was not found.
pub(super) fn has_live(shard: &Shard, found: &Recovered) -> Result<(), String> {
    for (object, live) in &shard.live {
        let is_newer = |sequence: u64| sequence >= live.sequence;
        if !found.live.iter().any(|one| *one.live.object == **object && is_newer(one.live.sequence)) {
            return Err(format!("the live event {live:?} is not there"));
        }
    }
    Ok(())
}

/// Compares the live events that were found with what the shards had delivered of them.
pub(super) fn live_events(
    found: &Recovered,
    shards: &[Shard],
    published: &Publications,
    now_ms: u64,
) -> Result<(BTreeMap<String, Live>, Vec<String>), String> {
    let mut live = BTreeMap::new();
    let mut revoked = Vec::new();
    for one in &found.live {
        let known =
            published.live.get(&*one.body.text).ok_or_else(|| format!("{one:?} was never published"))?;
        let Live { event, sequence, expires_ms } = known;
        let is_right = (one.live.sequence, one.live.expires_ms) == (*sequence, *expires_ms);
        if !is_right || *one.live.id != *event.id {
            return Err(format!("{one:?} was {known:?}"));
        }
        if one.live.is_revoked {
            revoked.push(event.object());
        } else if *expires_ms > now_ms && published.is_over(event, shards) {
            return Err(format!("{one:?} was over"));
        }
        live.insert(event.object(), known.clone());
    }
    published.all_there(&live, now_ms)?;
    revoked.sort_by_key(|object| live[object].sequence);
    Ok((live, revoked))
}

/// The events that are older than the live one of their object, by object.
pub(super) fn overtaken(
    found: &Recovered,
    published: &Publications,
) -> Result<BTreeMap<String, Vec<Live>>, String> {
    let mut overtaken: BTreeMap<String, Vec<Live>> = BTreeMap::new();
    for one in &found.overtaken {
        let known =
            published.live.get(&*one.body.text).ok_or_else(|| format!("{one:?} was never published"))?;
        overtaken.entry(known.event.object()).or_default().push(known.clone());
    }
    Ok(overtaken)
}

/// A client as it goes on after a crash; none where nothing of it was on disk. `number` is for a new session.
pub(super) fn taken_up(
    client: &Client,
    live: &BTreeMap<String, Live>,
    overtaken: &BTreeMap<String, Vec<Live>>,
    number: u64,
    now_ms: u64,
) -> Result<Option<Client>, String> {
    if !is_stored(client) {
        return Ok(None);
    }
    let mut session = Session::new(number);
    if client.is_durable_on_disk() {
        session = client.session.clone();
        session.forget_reasons();
        session.durable = true;
        session.released = session.offset();
        session.ages_from_ms = now_ms + 1;
    }
    let stored = client.subscriptions.iter().filter(|(_, held)| held.is_stored);
    let mut subscriptions = BTreeMap::new();
    for (id, held) in stored {
        let held = held.taken_up(client.at, live, overtaken).map_err(|what| format!("{id}: {what}"))?;
        subscriptions.insert(id.clone(), held);
    }
    // The policy of what is kept is that of the subscriptions that there are now.
    for offset in session.kept.keys().copied().collect::<Vec<_>>() {
        let index = usize::try_from(offset - 1).map_err(|error| error.to_string())?;
        let names = &session.told[index].subscriptions;
        let policies = names.iter().filter_map(|name| subscriptions.get(name)?.spec.overflow);
        session.told[index].overflow = policies.max();
    }
    Ok(Some(Client { at: client.at, subscriptions, session, readers: BTreeSet::new(), is_held: false }))
}

impl Held {
    fn taken_up(
        &self,
        client: Option<i64>,
        live: &BTreeMap<String, Live>,
        overtaken: &BTreeMap<String, Vec<Live>>,
    ) -> Result<Self, String> {
        let mut held = Self::new(self.spec.clone(), None, true);
        if !self.spec.durable {
            // What is inside is known, silently.
            let inside = live.iter().filter(|(_, live)| self.spec.holds(client, &live.event));
            held.known = inside
                .map(|(object, live)| (object.clone(), Known { number: live.event.number, waits: None }))
                .collect();
            held.entered = held.known.keys().cloned().collect();
            return Ok(held);
        }
        held.misses = true;
        held.had = self.had.clone();
        held.entered = self.entered.clone();
        for (object, known) in &self.known {
            let now = live.get(object).map(|live| &live.event);
            let is_it = |event: &Arc<Event>| event.number == known.number;
            if self.spec.transitions.is_none() && !now.is_some_and(is_it) {
                continue;
            }
            // Where an exit is owed the event is there until that is delivered.
            let owes_exit = known.waits.is_none() && self.spec.transitions.is_some_and(|how| how.exit);
            if now.is_none() && !owes_exit {
                continue;
            }
            if now.is_none() {
                return Err(format!("{object} is inside, and not live any more"));
            }
            if let (Some(_), Some(now)) = (self.spec.transitions, now)
                && !self.spec.holds(client, now)
            {
                if known.waits.is_some() {
                    continue;
                }
                // Its shard may have come to the live event and told nothing yet: the exit tells what was inside.
                let older = overtaken.get(object).into_iter().flatten();
                let inside = older.filter(|older| self.spec.holds(client, &older.event));
                let Some(last) = inside.max_by_key(|older| older.sequence) else {
                    return Err(format!("{object} is inside, and nothing is there by which it was"));
                };
                held.recalled.insert(object.clone(), last.clone());
            }
            held.known.insert(object.clone(), known.clone());
        }
        Ok(held)
    }
}
