//! Areas as entries refer to them: following circles are shared by radius, others stand for themselves.

use super::slab::Slab;
use super::table::NumberTable;
use crate::area::Area;
use crate::event::process_key;
use crate::geo::{Position, World};

/// Areas by number, each with what an engine makes of how far it reaches.
#[derive(Debug)]
pub struct Shapes<E> {
    world: World,
    held: Slab<Option<Shape<E>>>,
    following_by_radius: NumberTable,
}

#[derive(Debug)]
struct Shape<E> {
    area: Area,
    extent: E,
    uses: u32,
}

impl<E> Shapes<E> {
    /// No areas.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { world, held: Slab::new(), following_by_radius: NumberTable::new() }
    }

    /// The number of an area, with one more use; `None` when numbers are used up. `extent` makes what is kept of a new
    /// one from its reach: how far it goes from its centre in the units of points, infinite without a bound.
    pub fn acquire(&mut self, area: &Area, extent: impl FnOnce(f64) -> E) -> Option<u32> {
        let hash = following_hash(area);
        if let Some(hash) = hash {
            let is_it = |number: &u32| self.held[*number].as_ref().is_some_and(|shape| shape.area == *area);
            if let Some(number) = self.following_by_radius.find(hash, is_it) {
                if let Some(shape) = &mut self.held[number] {
                    shape.uses += 1;
                }
                return Some(number);
            }
        }
        let extent = extent(area.reach(self.world));
        let number = self.held.insert(Some(Shape { area: area.clone(), extent, uses: 1 }))?;
        if let Some(hash) = hash {
            let held = &self.held;
            self.following_by_radius.insert(hash, number, |other| {
                held[*other].as_ref().and_then(|shape| following_hash(&shape.area)).unwrap_or(0)
            });
        }
        Some(number)
    }

    /// One use less.
    pub fn release(&mut self, number: u32) {
        let Some(shape) = &mut self.held[number] else { return };
        shape.uses -= 1;
        if shape.uses == 0 {
            if let Some(hash) = following_hash(&shape.area) {
                self.following_by_radius.remove(hash, number);
            }
            self.held.remove(number);
        }
    }

    /// The area of a number.
    ///
    /// # Panics
    /// When nobody uses it.
    #[inline]
    #[must_use]
    pub fn area(&self, number: u32) -> &Area {
        &self.shape(number).area
    }

    /// The engine's own form of the area's reach.
    ///
    /// # Panics
    /// When nobody uses it.
    #[inline]
    #[must_use]
    pub fn extent(&self, number: u32) -> &E {
        &self.shape(number).extent
    }

    /// Around which point the area lies: `None` for one that follows a client that is nowhere.
    #[must_use]
    pub fn centre(&self, number: u32, client: Option<&Position>) -> Option<[f64; 3]> {
        self.area(number).centre(client)
    }

    fn shape(&self, number: u32) -> &Shape<E> {
        self.held[number].as_ref().expect("an entry's shape is held")
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.held.bytes() + self.following_by_radius.bytes()
    }
}

/// Whether an area moves with its client.
#[inline]
#[must_use]
pub fn following(area: &Area) -> bool {
    matches!(area, Area::Following(_))
}

fn following_hash(area: &Area) -> Option<u64> {
    match area {
        Area::Following(radius) => {
            let product = u128::from(radius.metres().to_bits() ^ process_key()) * 0x9e37_79b9_7f4a_7c15;
            #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
            Some((product >> 64) as u64 ^ product as u64)
        }
        Area::Everywhere | Area::Circle { .. } | Area::Polygon(_) | Area::Corridor(_) => None,
    }
}
