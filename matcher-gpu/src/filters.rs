//! Filters on the host, to put them on a device and to decide exactly the cases that the device leaves in doubt.

use matcher::area::Area;
use matcher::compiled::codes::value_code;
use matcher::compiled::constraints::{Bound, Constraints, bounds, has_residual};
use matcher::compiled::names::Names;
use matcher::compiled::roster::Roster;
use matcher::compiled::shapes::{Shapes, following};
use matcher::compiled::slab::Slab;
use matcher::compiled::texts::Texts;
use matcher::compiled::view::{View, Viewed, ViewedAttribute, append_attributes, value_bits};
use matcher::engine::InstallError;
use matcher::event::{Attribute, Event};
use matcher::geo::{Position, World};
use matcher::subscription::Subscription;

/// Filters by number: one for each conjunction of each filter of a subscription. `P` is what an engine keeps of a name.
#[derive(Debug)]
pub(crate) struct Filters<P> {
    world: World,
    pub(crate) names: Names<P>,
    texts: Texts,
    constraints: Constraints,
    /// With how far each reaches, in the units of points.
    shapes: Shapes<f64>,
    pub(crate) roster: Roster,
    held: Slab<Held>,
    count: usize,
    words_bytes: usize,
    /// Numbers of filters are below this.
    end_max: u32,
}

#[derive(Debug, Default)]
struct Held {
    subscription: u32,
    shape: u32,
    words: Box<[u64]>,
}

/// A filter as devices see it: the circle around its area and what it asks of the names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circle {
    /// Its centre in units of points, `None` while it is nowhere.
    pub(crate) centre: Option<[f64; 3]>,
    /// How far it reaches, infinite without a bound.
    pub(crate) reach: f64,
    /// Whether it is all of the area, and bounds are all of the condition.
    pub(crate) complete: bool,
}

/// How many constraints a subscription's filters have, in their normal form.
pub(crate) fn constraints_count(subscription: &Subscription) -> usize {
    let conjunctions =
        subscription.filters.iter().flat_map(|filter| filter.condition.normal().conjunctions());
    conjunctions.map(|conjunction| conjunction.literals.len() + conjunction.required().count()).sum()
}

/// Parts of the exact decisions about one event that these share; kept for their memory.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    view: View,
    attributes: Vec<ViewedAttribute>,
}

impl<P: Default> Filters<P> {
    /// None, with room for `end_max`.
    pub(crate) fn new(world: World, end_max: u32) -> Self {
        Self {
            world,
            names: Names::new(),
            texts: Texts::new(),
            constraints: Constraints::new(),
            shapes: Shapes::new(world),
            roster: Roster::new(),
            held: Slab::new(),
            count: 0,
            words_bytes: 0,
            end_max,
        }
    }

    /// Sees whether there is room for a subscription, in place of the one of that number.
    ///
    /// # Errors
    /// When there is not.
    pub(crate) fn check_room(&self, id: u32, subscription: &Subscription) -> Result<(), InstallError> {
        let replaced = if self.roster.is_installed(id) { self.roster.records(id).len() } else { 0 };
        let conjunctions =
            subscription.filters.iter().map(|filter| filter.condition.normal().conjunctions().len());
        if self.count - replaced + conjunctions.sum::<usize>() > self.end_max as usize {
            return Err(InstallError::Full { held: self.count as u64 });
        }
        Ok(())
    }

    /// Adds the filters of a subscription; there is none of that number.
    ///
    /// # Errors
    /// When there is no room for all of them; then none is added.
    pub(crate) fn enter(&mut self, id: u32, subscription: &Subscription) -> Result<(), InstallError> {
        self.roster.enter(id, subscription.client.0);
        for filter in &subscription.filters {
            for conjunction in filter.condition.normal().conjunctions() {
                let added = self
                    .constraints
                    .acquire(conjunction, &mut self.names, &mut self.texts)
                    .and_then(|words| self.add(id, &filter.area, words.into_boxed_slice()));
                let Some(number) = added else {
                    let error = InstallError::Full { held: self.count as u64 };
                    self.leave(id);
                    return Err(error);
                };
                self.roster.records_mut(id).push(number);
            }
        }
        self.roster.records_mut(id).shrink_to_fit();
        Ok(())
    }

    fn add(&mut self, subscription: u32, area: &Area, words: Box<[u64]>) -> Option<u32> {
        let room = self.count < self.end_max as usize;
        let shape = if room { self.shapes.acquire(area, |reach| reach) } else { None };
        let Some(shape) = shape else {
            self.constraints.release(&words, &mut self.names, &mut self.texts);
            return None;
        };
        self.count += 1;
        self.words_bytes += size_of_val(&*words);
        // There are fewer filters than numbers.
        self.held.insert(Held { subscription, shape, words })
    }

    /// Takes a subscription and its filters out.
    pub(crate) fn leave(&mut self, id: u32) {
        for number in self.roster.leave(id).1 {
            let held = self.held.remove(number);
            self.constraints.release(&held.words, &mut self.names, &mut self.texts);
            self.shapes.release(held.shape);
            self.count -= 1;
            self.words_bytes -= size_of_val(&*held.words);
        }
    }
}

impl<P> Filters<P> {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The subscription that a filter belongs to.
    #[inline]
    pub(crate) fn subscription(&self, number: u32) -> u32 {
        self.held[number].subscription
    }

    /// Whether a filter's area moves with its client.
    pub(crate) fn follows(&self, number: u32) -> bool {
        following(self.shapes.area(self.held[number].shape))
    }

    /// Bounds of a filter's constraints: a coarse form of them.
    pub(crate) fn bounds(&self, number: u32) -> impl Iterator<Item = Bound> + '_ {
        bounds(&self.held[number].words)
    }

    /// The mask of the names that a filter requires (CLCB, section 4.3).
    pub(crate) fn mask(&self, number: u32) -> u32 {
        let required = self.bounds(number).filter(|bound| bound.requires_presence);
        required.fold(0, |mask, bound| mask | self.names.name(bound.name).mask)
    }

    /// The centre of the circle around a filter's area, where that is now; `None` while it is nowhere.
    pub(crate) fn centre(&self, number: u32) -> Option<[f64; 3]> {
        let Held { subscription, shape, .. } = self.held[number];
        self.shapes.centre(shape, self.roster.position(self.roster.client(subscription)))
    }

    /// The circle around a filter's area, where that is now.
    pub(crate) fn circle(&self, number: u32) -> Circle {
        let Held { shape, ref words, .. } = self.held[number];
        let reach = *self.shapes.extent(shape);
        let complete = match self.shapes.area(shape) {
            Area::Everywhere => true,
            Area::Following(_) | Area::Circle { .. } => reach.is_finite(),
            Area::Polygon(_) | Area::Corridor(_) => false,
        };
        let complete = complete && !has_residual(words);
        Circle { centre: self.centre(number), reach, complete }
    }

    /// Looks an event's attributes up, for `decide` and `any`.
    pub(crate) fn see<'a>(&self, event: &'a Event, seen: &'a mut Seen) -> Viewed<'a> {
        seen.attributes.clear();
        append_attributes(event, &self.names, &self.texts, &mut seen.attributes);
        seen.view.show(&seen.attributes, self.names.end());
        seen.view.make_room(self.constraints.written_end(), event.attributes.len());
        Viewed { event, attributes: &seen.attributes, view: &seen.view }
    }

    /// Whether an event satisfies a filter: exactly.
    pub(crate) fn decide(&self, number: u32, viewed: &Viewed<'_>) -> bool {
        let Held { subscription, shape, words } = &self.held[number];
        let client = self.roster.position(self.roster.client(*subscription));
        let area = self.shapes.area(*shape);
        area.holds(self.world, client.filter(|_| following(area)), &viewed.event.position)
            && self.constraints.satisfied(words, viewed, &self.texts, || client)
            && self.reaches(viewed.event, client)
    }

    /// Whether an event satisfies any filter of a subscription: exactly.
    pub(crate) fn any(&self, subscription: u32, viewed: &Viewed<'_>) -> bool {
        self.roster.records(subscription).iter().any(|number| self.decide(*number, viewed))
    }

    fn reaches(&self, event: &Event, client: Option<&Position>) -> bool {
        match (&event.reach, client) {
            (Some(reach), Some(client)) => reach.holds(self.world, &event.position, client),
            (None, _) | (_, None) => true,
        }
    }

    /// An attribute whose name filters use: the name's number and mask, and the value's code unless it is several.
    #[inline]
    pub(crate) fn known(&self, attribute: &Attribute) -> Option<(u32, u32, Option<u32>)> {
        let (name, mask) = self.names.find_with_mask(&attribute.name)?;
        let (kind, bits) = value_bits(&attribute.value, &self.texts);
        Some((name, mask, value_code(kind, bits)))
    }

    /// Bytes of the host's memory.
    pub(crate) fn bytes(&self) -> usize {
        self.names.bytes()
            + self.texts.bytes()
            + self.constraints.bytes()
            + self.shapes.bytes()
            + self.roster.bytes()
            + self.held.bytes()
            + self.words_bytes
    }
}

#[cfg(test)]
mod tests {
    use matcher::condition::Condition;
    use matcher::subscription::{ClientId, Filter};

    use super::*;

    #[test]
    fn there_is_room_for_a_replacement_but_not_for_more() {
        let of = |conditions: &[&str]| Subscription {
            client: ClientId(1),
            filters: conditions
                .iter()
                .map(|text| Filter { area: Area::Everywhere, condition: Condition::parse(text).unwrap() })
                .collect(),
        };
        let mut filters = Filters::<()>::new(World::Planar, 3);
        filters.enter(7, &of(&["a = 1", "b = 2 OR c = 3"])).unwrap();
        assert_eq!(filters.check_room(7, &of(&["a = 1 OR b = 2", "c = 3"])), Ok(()));
        assert_eq!(
            filters.check_room(7, &of(&["a = 1 OR b = 2", "c = 3 OR d = 4"])),
            Err(InstallError::Full { held: 3 })
        );
        assert_eq!(filters.check_room(8, &of(&["a = 1"])), Err(InstallError::Full { held: 3 }));
        assert_eq!(filters.enter(8, &of(&["a = 1"])), Err(InstallError::Full { held: 3 }));
        assert_eq!(filters.count(), 3);
        filters.leave(7);
        assert_eq!((filters.count(), filters.roster.subscriptions_count()), (0, 0));
    }
}
