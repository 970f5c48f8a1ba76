//! Clients that nobody has been heard of for long enough are forgotten, with all that is held for them.
//!
//! When each was last heard of is in memory alone, and counts from when the broker began or, where that is known, from a client's last
//! position. All clients are looked at again and again, a few at a time, so that one is forgotten up to an eighth of the time late.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Client, Sessions};
use crate::model::{clock, tenant};

/// Which clients are looked at next, and when.
pub(super) struct Idle {
    /// `None`: nobody is forgotten.
    after: Option<Duration>,
    next_slot: u32,
    next_look: Instant,
}

/// Clients that are looked at together: some microseconds.
const LOOK_CLIENTS: u32 = 1_024;

/// Clients that are forgotten together. Each takes as long as it has subscriptions and kept matches, and others wait for it.
const FORGET_CLIENTS: usize = 32;

/// The longest time between two looks.
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// A look is never sooner than that.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(10);

impl Idle {
    pub(super) fn new(idle_s: u64) -> Self {
        let after = Some(Duration::from_secs(idle_s)).filter(|after| !after.is_zero());
        Self { after, next_slot: 0, next_look: clock::now() }
    }

    /// When there is something to look at.
    pub(super) fn next_look(&self, clients: usize) -> Option<Instant> {
        (self.after.is_some() && clients > 0).then_some(self.next_look)
    }

    /// When a client counts as last heard of that was as old as that when the broker began. Whatever the clock said then, it has a quarter of the
    /// time left.
    pub(super) fn restored(&self, now: Instant, age: Duration) -> Instant {
        let age = age.min(self.after.unwrap_or_default() / 4 * 3);
        now.checked_sub(age).unwrap_or(now)
    }

    /// The slots to look at now, if it is time; `of` slots are there.
    fn due(&mut self, now: Instant, of: u32) -> Option<std::ops::Range<u32>> {
        let after = self.after.filter(|_| now >= self.next_look && of > 0)?;
        let looks = of / LOOK_CLIENTS + 1;
        self.next_look = now + (after / 8 / looks).clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX);
        let start = if self.next_slot < of { self.next_slot } else { 0 };
        let end = start.saturating_add(LOOK_CLIENTS).min(of);
        self.next_slot = end;
        Some(start..end)
    }

    /// There is more to forget, from a slot on: what waits for the thread comes in between.
    fn go_on(&mut self, slot: u32, now: Instant) {
        (self.next_slot, self.next_look) = (slot, now);
    }
}

impl Client {
    /// Something came from it, or a connection of its ended.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }
}

impl Sessions {
    /// Forgets clients that have no connection and were not heard of for `sessions.idle_s`.
    pub(super) fn forget_idle(&mut self, now: Instant) {
        let Some(after) = self.idle.after else { return };
        let Some(slots) = self.idle.due(now, self.clients.slots_count()) else { return };
        if self.refuses_changes() {
            // What cannot be taken off the disk would be back at the next start. The next look is due later all the same, so that the
            // thread does not wait for the disk awake.
            return;
        }
        let is_over = |client: &&Client| {
            client.readers.is_empty() && now.saturating_duration_since(client.heard) >= after
        };
        let mut over = slots.filter(|slot| self.clients.get(*slot).as_ref().is_some_and(is_over));
        let forgotten: Vec<_> = over.by_ref().take(FORGET_CLIENTS).collect();
        if let Some(slot) = over.next() {
            self.idle.go_on(slot, now);
        }
        let name = |slot: &u32| self.clients.get(*slot).map(|client| Arc::clone(&client.name));
        let names: Vec<_> = forgotten.iter().filter_map(name).collect();
        for name in names {
            let (tenant, client) = tenant::split(&name);
            tracing::debug!(
                tenant,
                client,
                "forgotten, for it was not heard of for so long (sessions.idle_s)"
            );
            self.forget(&name);
            self.metrics.clients_idle.add(1);
        }
    }
}
