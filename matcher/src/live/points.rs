//! Points in space that come, go, and are found by where they are.

use std::ops::ControlFlow;

use crate::area::Ball;

/// Points under small numbers.
#[derive(Debug, Default)]
pub struct Points {
    held: Vec<(u32, [f64; 3])>,
}

impl Points {
    /// No points.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a point in under a number that is not in use.
    pub fn insert(&mut self, id: u32, point: [f64; 3]) {
        self.held.push((id, point));
    }

    /// Takes a point out that is where it was put in; says whether it was there.
    pub fn remove(&mut self, id: u32, point: &[f64; 3]) -> bool {
        let found = self.held.iter().position(|held| held.0 == id && held.1 == *point);
        found.map(|index| self.held.swap_remove(index)).is_some()
    }

    /// Calls `found` for every point in a ball, in any order.
    pub fn within(&self, ball: &Ball, mut found: impl FnMut(u32)) {
        for (id, point) in &self.held {
            if ball.holds(point) {
                found(*id);
            }
        }
    }

    /// Calls `visit` with the number and the squared distance of each point, the nearest first, until it breaks.
    pub fn by_distance(&self, centre: &[f64; 3], mut visit: impl FnMut(u32, f64) -> ControlFlow<()>) {
        let mut all: Vec<_> =
            self.held.iter().map(|(id, point)| (crate::geo::squared_chord(centre, point), *id)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (distance, id) in all {
            if visit(id, distance).is_break() {
                return;
            }
        }
    }
}
