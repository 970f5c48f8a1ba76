//! Rectangles of coordinates.

use crate::geo::{Position, PositionError, World};

/// All positions between two meridians and two parallels, or between two x and two y, their borders included. It may cross the
/// antimeridian: its western border then lies east of its eastern one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    world: World,
    west: f64,
    south: f64,
    east: f64,
    north: f64,
    /// Bounds of its points along the axis of the globe.
    axis: [f64; 2],
    /// Directions in which the western and the eastern border look inside, in the plane of the equator.
    inward: [[f64; 2]; 2],
}

/// Why four numbers are not a rectangle.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RectangleError {
    /// A corner is no position.
    #[error("{error} (numbers {first} and {second} of west,south,east,north)", first = corner + 1, second = corner + 2)]
    Corner {
        /// Index of the corner's first number.
        corner: usize,
        /// Its fault.
        #[source]
        error: PositionError,
    },
    /// The southern border is north of the northern one.
    #[error("south {south} is north of north {north}")]
    UpsideDown {
        /// The southern border.
        south: f64,
        /// The northern border.
        north: f64,
    },
    /// In the plane, the western border is east of the eastern one.
    #[error("the least x {west} is beyond the largest x {east}")]
    Reversed {
        /// The western border.
        west: f64,
        /// The eastern border.
        east: f64,
    },
}

/// Margin above the error of points of the unit sphere and of what is computed from them here.
const MARGIN: f64 = 1e-12;

impl Rectangle {
    /// Checks west, south, east and north.
    ///
    /// # Errors
    /// [`RectangleError`], which says what is wrong.
    pub fn new(world: World, numbers: [f64; 4]) -> Result<Self, RectangleError> {
        let [west, south, east, north] = numbers;
        for corner in [0, 2] {
            let error = world.position(&numbers[corner..corner + 2]).err();
            error.map_or(Ok(()), |error| Err(RectangleError::Corner { corner, error }))?;
        }
        if south > north {
            return Err(RectangleError::UpsideDown { south, north });
        }
        if world == World::Planar && west > east {
            return Err(RectangleError::Reversed { west, east });
        }
        let axis = [south.to_radians().sin() - MARGIN, north.to_radians().sin() + MARGIN];
        let ((west_sin, west_cos), (east_sin, east_cos)) =
            (west.to_radians().sin_cos(), east.to_radians().sin_cos());
        let inward = [[-west_sin, west_cos], [east_sin, -east_cos]];
        Ok(Self { world, west, south, east, north, axis, inward })
    }

    /// West, south, east and north.
    #[must_use]
    pub fn numbers(&self) -> [f64; 4] {
        [self.west, self.south, self.east, self.north]
    }

    /// Whether a position is inside or on the border. A pole is one place whatever its longitude, and so is a position on the
    /// antimeridian under both of its names.
    #[must_use]
    pub fn holds(&self, position: &Position) -> bool {
        let (x, y) = (position.x(), position.y());
        if !(self.south..=self.north).contains(&y) {
            return false;
        }
        match self.world {
            World::Planar => self.spans(x),
            World::Geodetic => y.abs() == 90.0 || self.spans(x) || (x.abs() == 180.0 && self.spans(-x)),
        }
    }

    fn spans(&self, x: f64) -> bool {
        if self.west <= self.east {
            (self.west..=self.east).contains(&x)
        } else {
            x >= self.west || x <= self.east
        }
    }

    /// Whether there may be something of it in a box in space, from the least to the largest coordinates.
    pub(super) fn may_touch(&self, [least, largest]: &[[f64; 3]; 2]) -> bool {
        let meets = |axis: usize, from: f64, to: f64| largest[axis] >= from && least[axis] <= to;
        match self.world {
            World::Planar => meets(0, self.west, self.east) && meets(1, self.south, self.north),
            World::Geodetic => {
                let [from, to] = self.axis;
                // The furthest inside that any corner of the box is.
                let furthest = |[x, y]: [f64; 2]| {
                    (x * least[0]).max(x * largest[0]) + (y * least[1]).max(y * largest[1])
                };
                let [is_east, is_west] = self.inward.map(|inward| furthest(inward) >= -MARGIN);
                let width = self.east - self.west;
                let is_wide = if width < 0.0 { width + 360.0 > 180.0 } else { width > 180.0 };
                meets(2, from, to) && if is_wide { is_east || is_west } else { is_east && is_west }
            }
        }
    }
}
