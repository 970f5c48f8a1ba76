//! Areas as entries refer to them: following circles are shared by radius, others stand for themselves.

use super::grid::{Extent, Grid};
use super::paged::Slab;
use super::table::NumberTable;
use crate::area::{Area, Ball};
use crate::geo::{Position, World};

/// Areas by number.
#[derive(Debug)]
pub(super) struct Shapes {
    world: World,
    held: Slab<Option<Shape>>,
    following_by_radius: NumberTable,
}

#[derive(Debug)]
struct Shape {
    area: Area,
    extent: Extent,
    uses: u32,
}

impl Shapes {
    pub(super) fn new(world: World) -> Self {
        Self { world, held: Slab::new(), following_by_radius: NumberTable::new() }
    }

    /// The number of an area, with one more use.
    pub(super) fn acquire(&mut self, area: &Area, grid: &Grid) -> Option<u32> {
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
        let extent = grid.extent(reach(self.world, area));
        let number = self.held.insert(Some(Shape { area: area.clone(), extent, uses: 1 }))?;
        if let Some(hash) = hash {
            let held = &self.held;
            self.following_by_radius.insert(hash, number, |other| {
                held[*other].as_ref().and_then(|shape| following_hash(&shape.area)).unwrap_or(0)
            });
        }
        Some(number)
    }

    pub(super) fn release(&mut self, number: u32) {
        let Some(shape) = &mut self.held[number] else { return };
        shape.uses -= 1;
        if shape.uses == 0 {
            if let Some(hash) = following_hash(&shape.area) {
                self.following_by_radius.remove(hash, number);
            }
            self.held.remove(number);
        }
    }

    #[inline]
    pub(super) fn area(&self, number: u32) -> &Area {
        &self.shape(number).area
    }

    #[inline]
    pub(super) fn extent(&self, number: u32) -> &Extent {
        &self.shape(number).extent
    }

    /// Whether the grid's circle is all there is to the area; with no bound, the grid says "inside" of everything.
    #[inline]
    pub(super) fn is_circle(&self, number: u32) -> bool {
        match self.area(number) {
            Area::Everywhere => true,
            Area::Following(_) | Area::Circle { .. } => self.extent(number).is_bounded(),
            Area::Polygon(_) | Area::Corridor(_) => false,
        }
    }

    /// Around which point the area lies: `None` for one that follows a client that is nowhere.
    pub(super) fn centre(&self, number: u32, client: Option<&Position>) -> Option<[f64; 3]> {
        match self.area(number) {
            Area::Everywhere => Some([0.0; 3]),
            Area::Following(_) => client.map(|client| *client.point()),
            Area::Circle { centre, .. } => Some(*centre.point()),
            Area::Polygon(polygon) => Some(polygon.bounds().centre),
            Area::Corridor(corridor) => Some(corridor.bounds().centre),
        }
    }

    fn shape(&self, number: u32) -> &Shape {
        self.held[number].as_ref().expect("an entry's shape is held")
    }

    pub(super) fn bytes(&self) -> usize {
        self.held.bytes() + self.following_by_radius.bytes()
    }
}

/// Whether an area moves with its client.
#[inline]
pub(super) fn following(area: &Area) -> bool {
    matches!(area, Area::Following(_))
}

fn following_hash(area: &Area) -> Option<u64> {
    match area {
        Area::Following(radius) => Some(radius.metres().to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        Area::Everywhere | Area::Circle { .. } | Area::Polygon(_) | Area::Corridor(_) => None,
    }
}

/// How far an area reaches from its centre, in the units of points; infinite without a bound.
fn reach(world: World, area: &Area) -> f64 {
    let ball = |ball: Ball| ball.reach;
    match area {
        Area::Everywhere => f64::INFINITY,
        // A chord does not bound circles of nearly half the globe.
        Area::Following(radius) | Area::Circle { radius, .. } => match world {
            World::Geodetic if radius.chord() >= 2.0 => f64::INFINITY,
            World::Geodetic | World::Planar => radius.chord(),
        },
        Area::Polygon(polygon) => ball(polygon.bounds()),
        Area::Corridor(corridor) => ball(corridor.bounds()),
    }
}
