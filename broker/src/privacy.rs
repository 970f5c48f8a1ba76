//! The rounding of a client's position, which is all that others than the client itself are shown of it.

use std::f64::consts::{PI, TAU};

use matcher::geo::{EARTH_RADIUS_M, PLANAR_LIMIT_M, Position, World};

use crate::config::Config;

/// Rounds positions to the middles of the cells of a fixed grid, so that all places of a cell look the same, however often
/// somebody looks.
///
/// Geodetic cells lie in bands of latitude. They are `privacy.round_m` high and wide at least, also at the side of a band that
/// is nearer to a pole, and about twice as wide at most; around each pole lies a round one, whose middle is the pole. The
/// antimeridian is a border of cells like others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    world: World,
    step_m: f64,
}

/// Parts of a degree that are shown, and of a metre: a centimetre.
const GEODETIC_PARTS: f64 = 1e7;
const PLANAR_PARTS: f64 = 1e2;

impl Rounding {
    /// The rounding as set; `None` where nothing is shown at all.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let world = World::from(config.server.world);
        let shown_m = config.shown_m();
        (shown_m > 0).then(|| Self { world, step_m: f64::from(shown_m) })
    }

    /// The middle of a position's cell.
    pub(crate) fn round(self, position: &Position) -> Position {
        let [x, y] = match self.world {
            World::Geodetic => {
                let middle = self.geodetic(position.x(), position.y());
                middle.map(|degrees| (degrees * GEODETIC_PARTS).round() / GEODETIC_PARTS)
            }
            World::Planar => [position.x(), position.y()].map(|metres| {
                let middle = ((metres / self.step_m).floor() + 0.5) * self.step_m;
                // Cells at the edge reach beyond it.
                ((middle * PLANAR_PARTS).round() / PLANAR_PARTS).clamp(-PLANAR_LIMIT_M, PLANAR_LIMIT_M)
            }),
        };
        self.world.position(&[x, y]).expect("the middle of a cell of the world is in the world")
    }

    /// The coordinates that others are shown of a client at these.
    pub(crate) fn place(self, place: [f64; 2]) -> [f64; 2] {
        let position = self.world.position(&place).expect("a client was there");
        let shown = self.round(&position);
        [shown.x(), shown.y()]
    }

    fn geodetic(self, lon: f64, lat: f64) -> [f64; 2] {
        let bands = (PI * EARTH_RADIUS_M / self.step_m).floor();
        let height = 180.0 / bands;
        let band = ((lat + 90.0) / height).floor().min(bands - 1.0);
        if band == 0.0 {
            return [0.0, -90.0];
        }
        if band == bands - 1.0 {
            return [0.0, 90.0];
        }
        let south = band * height - 90.0;
        let nearest_to_pole = south.abs().max((south + height).abs()).to_radians();
        let columns = (TAU * EARTH_RADIUS_M * nearest_to_pole.cos() / self.step_m).floor();
        let width = 360.0 / columns;
        // Both names of the antimeridian are one place.
        let column = if lon == 180.0 { 0.0 } else { ((lon + 180.0) / width).floor().min(columns - 1.0) };
        [(column + 0.5) * width - 180.0, south + height / 2.0]
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    const STEPS: [u32; 5] = [1, 25, 1_000, 77_777, 1_000_000];

    fn rounding(world: World, step_m: u32) -> Rounding {
        Rounding { world, step_m: step_m.into() }
    }

    /// Anywhere, and as often near to where it is hard: poles, antimeridian, borders of the plane.
    fn somewhere(world: World, step_m: f64, random: &mut StdRng) -> [f64; 2] {
        let (x_max, y_max, step) = match world {
            World::Geodetic => (180.0, 90.0, (step_m / EARTH_RADIUS_M).to_degrees()),
            World::Planar => (PLANAR_LIMIT_M, PLANAR_LIMIT_M, step_m),
        };
        let mut along = |max: f64| match random.random_range(0..4) {
            0 => max - step * random.random_range(0.0..3.0),
            1 => -max + step * random.random_range(0.0..3.0),
            2 => [max, -max, 0.0][random.random_range(0..3)],
            _ => random.random_range(-max..=max),
        };
        [along(x_max), along(y_max)].map(|number| number.clamp(-x_max, x_max))
    }

    /// A place that is a few cells away at most.
    fn near(world: World, [x, y]: [f64; 2], step_m: f64, random: &mut StdRng) -> [f64; 2] {
        let mut off = || random.random_range(-2.5..2.5) * step_m;
        match world {
            World::Geodetic => {
                let lat = (y + (off() / EARTH_RADIUS_M).to_degrees()).clamp(-90.0, 90.0);
                let round = lat.to_radians().cos().max(1e-9);
                let lon = x + (off() / EARTH_RADIUS_M / round).to_degrees();
                [(lon + 180.0).rem_euclid(360.0) - 180.0, lat]
            }
            World::Planar => {
                [x + off(), y + off()].map(|metres| metres.clamp(-PLANAR_LIMIT_M, PLANAR_LIMIT_M))
            }
        }
    }

    #[test]
    fn what_is_shown_is_never_finer_than_the_grid_and_never_far_off() {
        let mut random = StdRng::seed_from_u64(7);
        for world in [World::Geodetic, World::Planar] {
            for step in STEPS {
                let rounding = rounding(world, step);
                let step_m = f64::from(step);
                for _ in 0..20_000 {
                    let place = somewhere(world, step_m, &mut random);
                    let other = near(world, place, step_m, &mut random);
                    let [at, beside] = [place, other].map(|place| world.position(&place).unwrap());
                    let [shown, shown_beside] = [at, beside].map(|position| rounding.round(&position));
                    let apart = world.distance_m(&shown, &shown_beside);
                    // But for the edge of a plane, where cells are cut off.
                    let is_edge = [shown.x(), shown.y(), shown_beside.x(), shown_beside.y()]
                        .iter()
                        .any(|metres| metres.abs() == PLANAR_LIMIT_M);
                    assert!(
                        shown == shown_beside || apart > step_m - 0.05 || is_edge,
                        "{step}: {place:?} and {other:?} are shown {apart} m from each other"
                    );
                    let off = world.distance_m(&at, &shown);
                    assert!(off < step_m * 1.3 + 0.05, "{step}: {place:?} is shown {off} m away");
                    assert_eq!(rounding.round(&shown), shown, "{step}: {place:?}");
                }
            }
        }
    }

    #[test]
    fn poles_and_the_antimeridian_are_places_like_others() {
        let world = World::Geodetic;
        for step in STEPS {
            let show = |x: f64, y: f64| {
                let shown = rounding(world, step).round(&world.position(&[x, y]).unwrap());
                (shown.x(), shown.y())
            };
            for lon in [-180.0, -77.0, 0.0, 12.3, 180.0] {
                assert_eq!((show(lon, 90.0), show(lon, -90.0)), ((0.0, 90.0), (0.0, -90.0)), "{step}");
            }
            for lat in [-89.0, -45.0, 0.0, 0.1, 60.0, 89.9] {
                assert_eq!(show(180.0, lat), show(-180.0, lat), "{step}: {lat}");
            }
        }
    }
}
