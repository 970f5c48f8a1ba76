//! How far shards have read the stream of events of a cluster.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Restored, Sessions};
use crate::model::event::{Frontier, Origin, Placed, Published, StreamPlace};
use crate::store::{Batch, StoredFinding, StoredFrontier};

impl Restored {
    /// Takes for another number of shards, by which clients are dealt out otherwise, the least that any had read, and says what of it has to be
    /// written before they begin: what some of them write alone says nothing of the others.
    pub(crate) fn deal_frontiers(&mut self, count: usize) -> Option<Batch> {
        let shards = u32::try_from(count).ok()?;
        let frontier = self.frontiers.iter().map(|(_, stored)| stored.frontier).min()?;
        if self.frontiers.iter().all(|(_, stored)| stored.shards == shards) {
            return None;
        }
        tracing::warn!(
            shards,
            "the number of shards is another one: some events of the cluster may come twice"
        );
        self.frontiers = (0..shards).map(|shard| (shard, StoredFrontier { frontier, shards })).collect();
        let mut batch = Batch::default();
        batch.remove_frontiers();
        self.frontiers.iter().for_each(|(shard, stored)| batch.put_frontier(*shard, stored));
        let mut least = HashMap::<_, StoredFinding>::new();
        for (_, client, finding) in self.findings_read.drain(..) {
            let known = least.entry(client).or_insert_with(|| finding.clone());
            if (&finding.version, finding.number) < (&known.version, known.number) {
                *known = finding;
            }
        }
        batch.remove_findings();
        for (client, finding) in least {
            for shard in 0..shards {
                batch.put_finding(shard, &client, &finding);
                self.findings_read.push((shard, Arc::clone(&client), finding.clone()));
            }
        }
        Some(batch)
    }

    /// The last finding of each situation that the stream had brought to a shard, by the situation's client.
    pub(crate) fn findings_of(&self, shard: usize) -> HashMap<Arc<str>, StoredFinding> {
        let own = self.findings_read.iter().filter(|(number, ..)| *number as usize == shard);
        own.map(|(_, client, finding)| (Arc::clone(client), finding.clone())).collect()
    }

    /// How far a shard had read the stream of events.
    pub(crate) fn frontier_of(&self, shard: usize) -> Option<Frontier> {
        let own = self.frontiers.iter().find(|(number, _)| *number as usize == shard);
        own.map(|(_, stored)| stored.frontier)
    }

    /// How far all shards had read it; `None` where some shard has read nothing.
    pub(crate) fn frontier(&self, count: usize) -> Option<Frontier> {
        (0..count).map(|shard| self.frontier_of(shard)).min().flatten()
    }
}

impl Sessions {
    /// Whether the effects of an event of the stream are in what this shard has.
    pub(crate) fn has_had(&self, place: Option<Placed>) -> bool {
        place.zip(self.next).is_some_and(|(place, next)| place.at < next)
    }

    /// Where the shard goes on reading the stream, and the findings that it has had.
    pub(crate) fn begin_at(&mut self, next: Option<StreamPlace>, had: HashMap<Arc<str>, StoredFinding>) {
        self.next = next;
        self.findings_read = had;
    }

    /// Whether the stream has brought a finding before, or one of a later version of the situation. A situation whose broker died, or did not
    /// hear that its finding was appended, appends it again, under the same number and behind all those before it.
    pub(super) fn has_had_finding(&mut self, published: &Published) -> bool {
        let (Some(_), Some(Origin { client, version, number })) = (published.place, &published.origin) else {
            return false;
        };
        let known = self.findings_read.get(client);
        if known.is_some_and(|known| (&*known.version, known.number) >= (&**version, *number)) {
            return true;
        }
        let finding = StoredFinding { version: Arc::clone(version), number: *number };
        if let Some(batch) = self.ledger.record() {
            batch.put_finding(u32::try_from(self.shard).unwrap_or(u32::MAX), client, &finding);
        }
        self.findings_read.insert(Arc::clone(client), finding);
        false
    }

    /// The number of the last finding of a version of a situation that the stream has brought; 0 before the first.
    pub(crate) fn finding_read(&self, client: &str, version: &str) -> u64 {
        let known = self.findings_read.get(client).filter(|known| *known.version == *version);
        known.map_or(0, |known| known.number)
    }

    /// Notes that all effects of an event are in the batch, and those of all before it.
    pub(crate) fn came_to(&mut self, place: Option<Placed>) {
        if let Some(Placed { behind, .. }) = place {
            self.next = Some(behind.next);
            self.ledger.came_to(behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_another_number_of_shards_all_read_on_from_the_least_place() {
        let stored = |sequence, shards| {
            let frontier = Placed::new(sequence, 7, 0, 1).behind;
            StoredFrontier { frontier, shards }
        };
        let read = |restored: &Restored, count| {
            let of = |shard| restored.frontier_of(shard).map(|frontier| frontier.sequence);
            (
                restored.frontier(count).map(|frontier| frontier.sequence),
                (0..count).map(of).collect::<Vec<_>>(),
            )
        };
        let mut restored = Restored::default();
        assert!(restored.deal_frontiers(2).is_none(), "nothing was read");
        assert_eq!(read(&restored, 2), (None, vec![None, None]));
        restored.frontiers = vec![(0, stored(5, 2))];
        assert_eq!(
            read(&restored, 2),
            (None, vec![Some(5), None]),
            "nobody knows what the second one has read"
        );
        restored.frontiers.push((1, stored(3, 2)));
        assert!(restored.deal_frontiers(2).is_none());
        assert_eq!(read(&restored, 2), (Some(3), vec![Some(5), Some(3)]));
        assert!(restored.deal_frontiers(3).is_some_and(|batch| !batch.is_empty()));
        assert_eq!(read(&restored, 3), (Some(3), vec![Some(3); 3]));
        assert!(restored.deal_frontiers(3).is_none());
    }
}
