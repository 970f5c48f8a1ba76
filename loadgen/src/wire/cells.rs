//! A world in cells: the most that topics can say of where something is.
//!
//! In the plane cells are squares. On the sphere they lie in rows of one height between parallels, each row cut into as many as
//! have that width where the row is widest, so that a cell is nowhere larger than it is meant to be, nor much smaller but at the
//! poles.

use std::collections::BTreeSet;
use std::f64::consts::{FRAC_PI_2, TAU};

use matcher::geo::{EARTH_RADIUS_M, Position, World};

/// Cells that stand for one circle at most; a wider one has all that there are.
pub const CELLS_MAX: usize = 1_000;

/// What a circle is wider than it says, so that no rounding loses a point on its border.
const MARGIN_M: f64 = 1e-3;

/// A world with the size of its cells.
#[derive(Clone, Copy, Debug)]
pub struct Cells {
    world: World,
    cell_m: f64,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// From south to north.
    pub row: i64,
    /// From west to east.
    pub column: i64,
}

impl Cells {
    /// Cells with a side of this many metres, more than 0.
    #[must_use]
    pub fn new(world: World, cell_m: f64) -> Self {
        Self { world, cell_m }
    }

    /// The cell that a position lies in.
    #[must_use]
    pub fn at(&self, position: &Position) -> Cell {
        match self.world {
            World::Geodetic => {
                let row = self.row(position.y());
                let columns = self.columns(row);
                Cell { row, column: column(position.x(), columns).rem_euclid(columns) }
            }
            World::Planar => {
                Cell { row: whole(position.y() / self.cell_m), column: whole(position.x() / self.cell_m) }
            }
        }
    }

    /// The cells that a circle has a part of; none where they are more than [`CELLS_MAX`], which stands for all.
    #[must_use]
    pub fn cover(&self, centre: &Position, radius_m: f64) -> Option<BTreeSet<Cell>> {
        let radius_m = radius_m + MARGIN_M;
        let mut cells = BTreeSet::new();
        match self.world {
            World::Geodetic if radius_m / EARTH_RADIUS_M >= FRAC_PI_2 => return None,
            World::Geodetic => {
                let reach_deg = (radius_m / EARTH_RADIUS_M).to_degrees();
                for row in self.row(centre.y() - reach_deg)..=self.row(centre.y() + reach_deg) {
                    let columns = self.columns(row);
                    let half_deg = self.half_width_deg(centre, radius_m, row);
                    let (first, last) =
                        (column(centre.x() - half_deg, columns), column(centre.x() + half_deg, columns));
                    let last = last.min(first + columns - 1);
                    extend(&mut cells, row, (first..=last).map(|column| column.rem_euclid(columns)))?;
                }
            }
            World::Planar => {
                let at = |metres: f64| whole(metres / self.cell_m);
                for row in at(centre.y() - radius_m)..=at(centre.y() + radius_m) {
                    let south = row as f64 * self.cell_m;
                    let nearest = centre.y().max(south).min(south + self.cell_m);
                    let half_m = (radius_m.powi(2) - (nearest - centre.y()).powi(2)).max(0.0).sqrt();
                    extend(&mut cells, row, at(centre.x() - half_m)..=at(centre.x() + half_m))?;
                }
            }
        }
        Some(cells)
    }

    /// The height of a row in degrees.
    fn height_deg(&self) -> f64 {
        (self.cell_m / EARTH_RADIUS_M).to_degrees().min(180.0)
    }

    fn row(&self, lat_deg: f64) -> i64 {
        let rows = whole((180.0 / self.height_deg()).ceil());
        whole((lat_deg + 90.0) / self.height_deg()).clamp(0, rows - 1)
    }

    /// How many cells a row has.
    fn columns(&self, row: i64) -> i64 {
        let (south, north) = self.band(row);
        let widest = if south <= 0.0 && north >= 0.0 { 0.0 } else { south.abs().min(north.abs()) };
        whole(TAU * EARTH_RADIUS_M * widest.cos() / self.cell_m).max(1)
    }

    /// Between which parallels a row lies, in radians.
    fn band(&self, row: i64) -> (f64, f64) {
        let south = row as f64 * self.height_deg() - 90.0;
        (south.to_radians(), (south + self.height_deg()).min(90.0).to_radians())
    }

    /// How far a circle reaches to either side within a row, in degrees of longitude; 180 for all around.
    ///
    /// On a parallel a circle reaches as far as the haversine says. Of all parallels it reaches furthest where a meridian touches
    /// it, and to either side of that less and less.
    fn half_width_deg(&self, centre: &Position, radius_m: f64, row: i64) -> f64 {
        let (lat, angle) = (centre.y().to_radians(), radius_m / EARTH_RADIUS_M);
        let (south, north) = self.band(row);
        let touched = (lat.sin() / angle.cos()).clamp(-1.0, 1.0).asin();
        let parallel = touched.max(south).min(north).clamp(lat - angle, lat + angle);
        let left = (angle / 2.0).sin().powi(2) - ((parallel - lat) / 2.0).sin().powi(2);
        let square = left.max(0.0) / (lat.cos() * parallel.cos());
        // Not a number where the circle ends in a pole.
        if square < 1.0 { (2.0 * square.sqrt().asin()).to_degrees() } else { 180.0 }
    }
}

/// The cell of a row in which a longitude lies, counted on past the antimeridian.
fn column(lon_deg: f64, columns: i64) -> i64 {
    whole((lon_deg + 180.0) / 360.0 * columns as f64)
}

/// Adds cells of a row, unless they become too many.
fn extend(cells: &mut BTreeSet<Cell>, row: i64, columns: impl Iterator<Item = i64>) -> Option<()> {
    for column in columns {
        cells.insert(Cell { row, column });
        if cells.len() > CELLS_MAX {
            return None;
        }
    }
    Some(())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a world has fewer cells, and a float that is too large becomes the largest"
)]
fn whole(number: f64) -> i64 {
    number.floor() as i64
}

#[cfg(test)]
mod tests {
    use matcher::geo::Radius;
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    /// Points of a circle, also on its border, and how many cells it takes.
    fn check(
        world: World,
        cell_m: f64,
        centre: [f64; 2],
        radius_m: f64,
        rng: &mut SmallRng,
    ) -> Option<usize> {
        let cells = Cells::new(world, cell_m);
        let (centre, radius) = (world.position(&centre).unwrap(), Radius::new(world, radius_m).unwrap());
        let cover = cells.cover(&centre, radius_m)?;
        let mut seen = 0;
        for nth in 0..200 {
            let distance_m = if nth % 2 == 0 { radius_m } else { radius_m * rng.random::<f64>().sqrt() };
            let point = beside(world, &centre, distance_m, rng.random_range(0.0..TAU));
            if radius.holds(world, &centre, &point) {
                seen += 1;
                assert!(
                    cover.contains(&cells.at(&point)),
                    "{point:?} is within {radius_m} m of {centre:?} and not in its cells of {cell_m} m"
                );
            }
        }
        assert!(seen >= 90 || radius_m == 0.0, "of 200 points of the circle {seen} lie in it");
        Some(cover.len())
    }

    /// So far from a position, in a direction.
    fn beside(world: World, from: &Position, distance_m: f64, bearing: f64) -> Position {
        if world == World::Planar {
            return world
                .position(&[from.x() + distance_m * bearing.sin(), from.y() + distance_m * bearing.cos()])
                .unwrap();
        }
        let (lat, angle) = (from.y().to_radians(), distance_m / EARTH_RADIUS_M);
        let sine = lat.sin() * angle.cos() + lat.cos() * angle.sin() * bearing.cos();
        let north = sine.clamp(-1.0, 1.0).asin();
        let east = (bearing.sin() * angle.sin() * lat.cos()).atan2(angle.cos() - lat.sin() * sine);
        let lon = (from.x() + east.to_degrees() + 540.0).rem_euclid(360.0) - 180.0;
        world.position(&[lon, north.to_degrees().clamp(-90.0, 90.0)]).unwrap()
    }

    #[test]
    fn every_point_of_a_circle_lies_in_its_cells() {
        for seed in 0..600_usize {
            let mut rng = SmallRng::seed_from_u64(seed as u64);
            let cell_m = 10_f64.powf(rng.random_range(1.0..6.0));
            let radius_m = cell_m * rng.random_range(0.0..8.0);
            let lat = match seed % 4 {
                0 => rng.random_range(-90.0..=90.0),
                1 => 90.0 - rng.random_range(0.0..1.5) * (radius_m / EARTH_RADIUS_M).to_degrees().min(100.0),
                2 => -90.0,
                _ => rng.random_range(-60.0..=60.0),
            };
            let lon = [rng.random_range(-180.0..=180.0), 180.0, -180.0, 179.999_99][seed / 4 % 4];
            check(World::Geodetic, cell_m, [lon, lat], radius_m, &mut rng);
            let plane = [rng.random_range(-1e5..1e5), rng.random_range(-1e5..1e5)];
            check(World::Planar, cell_m, plane, radius_m, &mut rng);
        }
    }

    #[test]
    fn circles_take_no_more_cells_than_they_touch() {
        let mut rng = SmallRng::seed_from_u64(1);
        for (world, centre) in [(World::Planar, [50.0, 50.0]), (World::Geodetic, [9.5, 45.5])] {
            // What of squares a circle of their size touches, wherever it lies: 5 at least, 12 at most.
            let taken = check(world, 100.0, centre, 100.0, &mut rng).unwrap();
            assert!((5..=12).contains(&taken), "{taken} in {world:?}");
        }
        assert_eq!(check(World::Planar, 100.0, [50.0, 50.0], 100.0, &mut rng), Some(9));
        assert_eq!(check(World::Planar, 100.0, [50.0, 50.0], 40.0, &mut rng), Some(1));
        assert_eq!(check(World::Planar, 100.0, [100.0, 100.0], 0.0, &mut rng), Some(4));
        // The corners of a large square are left out.
        let taken = check(World::Planar, 100.0, [50.0, 50.0], 1_000.0, &mut rng).unwrap();
        assert!((320..=21 * 21 - 40).contains(&taken), "{taken}");
    }

    #[test]
    fn a_pole_has_one_cell_for_all_longitudes_that_see_it() {
        let cells = Cells::new(World::Geodetic, 1_000.0);
        let cover = cells.cover(&World::Geodetic.position(&[20.0, 90.0]).unwrap(), 10.0).unwrap();
        for lon in [-180.0, -90.0, 0.0, 90.0, 180.0] {
            let pole = World::Geodetic.position(&[lon, 90.0]).unwrap();
            assert!(cover.contains(&cells.at(&pole)), "under {lon}");
        }
    }

    #[test]
    fn both_names_of_the_antimeridian_are_one_cell() {
        let cells = Cells::new(World::Geodetic, 1_000.0);
        let at = |lon| cells.at(&World::Geodetic.position(&[lon, 12.0]).unwrap());
        assert_eq!(at(180.0), at(-180.0));
    }

    #[test]
    fn a_circle_of_too_many_cells_takes_all() {
        let centre = World::Geodetic.position(&[9.5, 45.5]).unwrap();
        assert_eq!(Cells::new(World::Geodetic, 100.0).cover(&centre, 20_000.0), None);
        assert_eq!(Cells::new(World::Geodetic, 100.0).cover(&centre, 1.1e7), None);
        assert_eq!(Cells::new(World::Geodetic, 1e9).cover(&centre, 5.0).map(|cells| cells.len()), Some(1));
    }
}
