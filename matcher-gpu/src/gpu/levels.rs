//! How space is cut into cells: by how far the areas reach.

use kernels::gpu::{LEVELS, Levels};
use matcher::geo::{EARTH_RADIUS_M, World};

use crate::rounding::to_f32;

/// Cells are at least so wide: below that, what rounding hides would spread each event over many of them.
const SIDE_MIN_M: f64 = 4.0;
/// Powers of two that reaches may have, from 2^-64 on.
const OCTAVES: usize = 128;

/// Largest reach that has cells. An area that reaches further holds everything that its world has, or nearly: it needs
/// no cells, and squares of more would be too large for single precision.
const REACH_MAX: f64 = 1e10;

/// How many areas reach how far, in powers of two.
#[derive(Debug)]
pub(super) struct Reaches {
    octaves: [Octave; OCTAVES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Octave {
    count: u64,
    /// The furthest; forgotten when there is none.
    max: f64,
}

fn octave(reach: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the array")]
    let index = (reach.max(f64::MIN_POSITIVE).log2() + 64.0).clamp(0.0, (OCTAVES - 1) as f64) as usize;
    index
}

impl Reaches {
    pub(super) fn new() -> Self {
        Self { octaves: [Octave::default(); OCTAVES] }
    }

    /// One more area.
    pub(super) fn add(&mut self, reach: f64) {
        if reach > REACH_MAX {
            return;
        }
        let octave = &mut self.octaves[octave(reach)];
        octave.count += 1;
        octave.max = octave.max.max(reach);
    }

    /// One less.
    pub(super) fn remove(&mut self, reach: f64) {
        if reach > REACH_MAX {
            return;
        }
        let octave = &mut self.octaves[octave(reach)];
        octave.count -= 1;
        if octave.count == 0 {
            octave.max = 0.0;
        }
    }

    /// Sides that are powers of two apart and fit the most frequent reach exactly.
    pub(super) fn levels(&self, world: World) -> Levels {
        let (least, dimensions) = match world {
            World::Planar => (SIDE_MIN_M, 2),
            World::Geodetic => (SIDE_MIN_M * 4.0 / EARTH_RADIUS_M, 3),
        };
        let there = || self.octaves.iter().filter(|octave| octave.count > 0);
        let typical = there().max_by_key(|octave| octave.count).map_or(least, |octave| octave.max);
        let furthest = there().map(|octave| octave.max).fold(0.0, f64::max);
        let nearest = there().map(|octave| octave.max).fold(f64::INFINITY, f64::min);
        // Devices put an area with a little to spare into a level.
        let mut side = typical.max(least) * 1.001;
        while side / 2.0 >= least && side / 2.0 >= nearest {
            side /= 2.0;
        }
        let mut levels = Levels { side: [0.0; LEVELS], inverse: [0.0; LEVELS], count: 0, dimensions };
        for level in 0..LEVELS - 1 {
            levels.side[level] = to_f32(side);
            levels.inverse[level] = 1.0 / levels.side[level];
            levels.count += 1;
            if side > furthest * 1.001 {
                break;
            }
            side *= 2.0;
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_reach_fills_its_cells_and_all_have_a_level() {
        let mut reaches = Reaches::new();
        for _ in 0..100 {
            reaches.add(150.0);
        }
        reaches.add(10.0);
        reaches.add(70_000.0);
        let levels = reaches.levels(World::Planar);
        let sides = &levels.side[..levels.count as usize];
        assert!(sides.is_sorted() && sides[0] >= 4.0 && sides[0] < 20.0, "{sides:?}");
        assert!(sides.iter().any(|side| (150.1..150.5).contains(side)), "{sides:?}");
        assert!(sides[sides.len() - 1] > 70_007.0, "{sides:?}");
        reaches.remove(70_000.0);
        let fewer = reaches.levels(World::Planar);
        assert!(fewer.count < levels.count);
    }

    #[test]
    fn nothing_at_all_and_extremes_have_levels() {
        for world in [World::Planar, World::Geodetic] {
            let mut reaches = Reaches::new();
            assert_eq!(reaches.levels(world).count, 1);
            for reach in [1e10, 1e18, 1e39, 1e300, f64::INFINITY, 0.0] {
                reaches.add(reach);
                let levels = reaches.levels(world);
                let sides = &levels.side[..levels.count as usize];
                assert!(sides.iter().all(|side| *side > 0.0 && side * side < f32::INFINITY), "{reach}");
            }
            [1e300, f64::INFINITY].into_iter().for_each(|reach| reaches.remove(reach));
            let levels = reaches.levels(world);
            assert!(levels.side[..levels.count as usize].iter().all(|side| *side > 0.0 && side.is_finite()));
        }
    }
}
