//! Room for what is kept, once all that there may be over all clients is taken: the client that has most gives way.
//!
//! So clients that are away for good cannot take the room of those that come and go.

use std::collections::BinaryHeap;

use matcher::violated;

use super::Sessions;
use super::durable::bounds_of;

/// The clients of a shard by what is kept for them, as it was when this was made.
#[derive(Default)]
pub(super) struct EvictionOrder {
    by_bytes: BinaryHeap<(usize, u32)>,
    /// Losses until it is made anew. Clients that came or grew since are not in it.
    losses_left: usize,
}

/// Losses for which a few clients are good enough.
const LOSSES_MIN: usize = 64;

impl Sessions {
    /// Makes room for a match of a client, at the cost of those of this shard for whom more is kept. Where nobody is like that
    /// it is left to the client's own oldest matches.
    ///
    /// Cost: a look at a counter while there is room; then O(log clients) a loss, amortised.
    pub(super) fn make_room(&mut self, id: u32, bytes: usize) {
        if self.kept_total.has_room(bytes) {
            return;
        }
        let log = self.clients.get(id).and_then(|client| client.log.as_ref());
        let bounds = self.clients.get(id).map_or(&self.kept_bounds, |client| {
            bounds_of(&client.name, &self.kept_bounds, &self.own_kept_bounds)
        });
        if log.is_none_or(|log| log.lock().is_at_bound(bytes, bounds)) {
            return;
        }
        if self.kept_total.is_full_anew() {
            tracing::warn!(
                "all that may be kept over all clients is taken (sessions.kept_total_bytes): those for whom most is kept lose their \
                 oldest matches"
            );
        }
        let own = self.kept_bytes(id);
        while !self.kept_total.has_room(bytes)
            && let Some(heaviest) = self.heaviest()
            && self.kept_bytes(heaviest) > own
        {
            self.give_way(heaviest);
        }
    }

    fn kept_bytes(&self, id: u32) -> usize {
        let log = self.clients.get(id).and_then(|client| client.log.as_ref());
        log.map_or(0, |log| log.lock().kept_bytes())
    }

    fn heaviest(&mut self) -> Option<u32> {
        if self.heaviest.losses_left == 0 {
            let bytes = |id: u32| (self.kept_bytes(id), id);
            let by_bytes: BinaryHeap<_> = self.ids.values().map(|id| bytes(*id)).collect();
            self.heaviest = EvictionOrder { losses_left: by_bytes.len().max(LOSSES_MIN), by_bytes };
        }
        self.heaviest.losses_left -= 1;
        loop {
            let (before, id) = *self.heaviest.by_bytes.peek()?;
            let bytes = self.kept_bytes(id);
            if bytes >= before {
                return Some(id);
            }
            self.heaviest.by_bytes.pop();
            self.heaviest.by_bytes.push((bytes, id));
        }
    }

    /// A client loses a match for another's.
    fn give_way(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(id) else {
            return violated!("a client that gives way is there");
        };
        let (Some(durable), Some(log)) = (&mut client.durable, &client.log) else {
            return violated!("a client that keeps matches is durable");
        };
        let mut cut = Vec::new();
        if !log.lock().lose_kept(self.kept_bounds.overflow, &mut durable.gone, &mut cut) {
            return;
        }
        self.metrics.dropped.add(1);
        if !self.ledger.has_disk() {
            durable.gone.clear();
        }
        self.cut_off(id, &cut);
        self.session_changed(id, false);
        self.settle(id);
    }
}
