//! `scan`, the oracle: every filter of every subscription, exactly, for each event.

use std::collections::{BTreeMap, HashMap};

use super::{Engine, Footprint, InstallError, MatchError, MatchRows};
use crate::area::Area;
use crate::condition::expression::Truth;
use crate::event::Event;
use crate::geo::{Position, World};
use crate::subscription::{ClientId, Filter, Subscription, SubscriptionId};

/// Looks at everything. The definition of a right answer: it evaluates conditions as they were written and
/// circles by the distance itself, and shares neither normal forms nor pre-tests nor indexes with the fast
/// engines.
#[derive(Debug)]
pub struct Scan {
    world: World,
    subscriptions: BTreeMap<SubscriptionId, Subscription>,
    positions: HashMap<ClientId, Position>,
}

impl Scan {
    /// An empty engine.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { world, subscriptions: BTreeMap::new(), positions: HashMap::new() }
    }

    /// Position of a client.
    #[must_use]
    pub fn position(&self, client: ClientId) -> Option<&Position> {
        self.positions.get(&client)
    }

    /// How many filters it looks at for each event.
    #[must_use]
    pub fn filters_count(&self) -> usize {
        self.subscriptions.values().map(|held| held.filters.len()).sum()
    }

    /// Whether an event satisfies a subscription: some filter takes it, and it reaches the client, which is
    /// there or nowhere.
    fn satisfies(&self, event: &Event, subscription: &Subscription, client: Option<&Position>) -> bool {
        let satisfied = |filter: &Filter| {
            filter.condition.expression().truth_for(event, client) == Truth::True
                && self.holds(&filter.area, client, &event.position)
        };
        subscription.filters.iter().any(satisfied) && self.reaches(event, client)
    }

    /// Whether an area holds a position; `client` is where its client is.
    fn holds(&self, area: &Area, client: Option<&Position>, position: &Position) -> bool {
        match area {
            Area::Everywhere => true,
            Area::Following(radius) => {
                client.is_some_and(|centre| self.world.distance_m(centre, position) <= radius.metres())
            }
            Area::Circle { centre, radius } => self.world.distance_m(centre, position) <= radius.metres(),
            Area::Polygon(polygon) => polygon.holds(position),
            Area::Corridor(corridor) => corridor.holds(self.world, position),
        }
    }

    /// Whether the client is in the event's own area. One without a position is not held to it.
    fn reaches(&self, event: &Event, client: Option<&Position>) -> bool {
        match (&event.reach, client) {
            (Some(reach), Some(client)) => self.world.distance_m(&event.position, client) <= reach.metres(),
            (None, _) | (_, None) => true,
        }
    }
}

impl Engine for Scan {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError> {
        self.subscriptions.insert(id, subscription.clone());
        Ok(())
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        self.subscriptions.remove(&id).is_some()
    }

    fn move_client(&mut self, client: ClientId, position: Option<Position>) {
        match position {
            Some(position) => self.positions.insert(client, position),
            None => self.positions.remove(&client),
        };
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        // Subscription by subscription rather than event by event, so that each is read once a batch.
        let mut found = vec![Vec::new(); events.len()];
        for (&id, subscription) in &self.subscriptions {
            let client = self.positions.get(&subscription.client);
            for (event, ids) in events.iter().zip(&mut found) {
                if self.satisfies(event, subscription, client) {
                    ids.push(id);
                }
            }
        }
        for ids in found {
            rows.push_with(|row| row.extend(ids));
        }
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        let entries = self.subscriptions.values().map(|held| {
            let conjunctions =
                held.filters.iter().map(|filter| filter.condition.normal().conjunctions().len());
            (conjunctions.sum::<usize>(), size_of_val(held.filters.as_slice()))
        });
        let (filters, bytes) = entries.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Footprint { subscriptions: self.subscriptions.len(), filters, bytes }
    }
}
