//! Why a text is not a condition, and where.

use std::fmt;

use super::like::PatternError;
use super::normal::TooLarge;
use super::text::{NESTING_MAX, OPERATIONS_MAX, TEXT_BYTES_MAX};
use crate::area::PolygonError;
use crate::geo::PositionError;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes before it.
    pub offset: usize,
    /// Its column in characters, from 1.
    pub column: usize,
}

/// Why a text is not a condition. The messages are meant for those who write conditions.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConditionError {
    /// The text is longer than [`TEXT_BYTES_MAX`]; nothing of it was read.
    #[error("the condition has {found} bytes, at most {TEXT_BYTES_MAX} are allowed")]
    TooLong {
        /// Bytes found.
        found: usize,
    },
    /// Parentheses, functions and `NOT` nest deeper than [`NESTING_MAX`].
    #[error("parentheses, functions and NOT nest deeper than {NESTING_MAX} levels, at {place}")]
    TooDeep {
        /// Where the first level too many begins.
        place: Place,
    },
    /// The text does not follow the grammar.
    #[error("expected {expected}, found {found}, at {place}{}", Advice(*.advice))]
    Syntax {
        /// Description of what could stand there.
        expected: String,
        /// Description of what stands there.
        found: String,
        /// Place of it in the text.
        place: Place,
        /// How the likely intention is written, when there is one.
        advice: Option<&'static str>,
    },
    /// A part of CQL2 that conditions do not have.
    #[error("{what} is not supported, at {place}{}", Advice(.advice.as_deref()))]
    Unsupported {
        /// The part.
        what: String,
        /// Where it begins.
        place: Place,
        /// The replacement to write instead, when there is one.
        advice: Option<String>,
    },
    /// A number that a 64-bit float cannot hold.
    #[error("the number {found} is too large, at {place}")]
    NumberTooLarge {
        /// The number, as written.
        found: String,
        /// Where it begins.
        place: Place,
    },
    /// A text after `LIKE` that is not a pattern.
    #[error("{source}, at {place}")]
    Pattern {
        /// The fault of the pattern.
        source: PatternError,
        /// Where the pattern begins.
        place: Place,
    },
    /// A variable that is not in scope.
    #[error("there is no variable '{found}', at {place}{}", Meant(.meant.as_deref()))]
    UnknownVariable {
        /// Its name, as written.
        found: String,
        /// Where it stands.
        place: Place,
        /// The variable that is probably meant.
        meant: Option<String>,
    },
    /// Numbers that are no position, or rings that are no polygon.
    #[error("{source}, at {place}")]
    Geometry {
        /// The fault of the geometry.
        source: GeometryError,
        /// Where it begins.
        place: Place,
    },
    /// More operations of arithmetic than [`OPERATIONS_MAX`].
    #[error("more than {OPERATIONS_MAX} operations of arithmetic, at {place}")]
    TooManyOperations {
        /// Where the first too many stands.
        place: Place,
    },
    /// The disjunctive form would be too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// Why numbers are no place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GeometryError {
    /// They are no position.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// Rings of them are no polygon.
    #[error(transparent)]
    Polygon(#[from] PolygonError),
}

impl ConditionError {
    /// Where in the text, unless it is the text as a whole.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::TooLong { .. } | Self::TooLarge(_) => None,
            Self::TooDeep { place }
            | Self::Syntax { place, .. }
            | Self::Unsupported { place, .. }
            | Self::NumberTooLarge { place, .. }
            | Self::UnknownVariable { place, .. }
            | Self::Geometry { place, .. }
            | Self::TooManyOperations { place }
            | Self::Pattern { place, .. } => Some(*place),
        }
    }
}

impl Place {
    /// The place after `offset` bytes of `text`; an offset inside a character counts as that character's.
    #[must_use]
    pub fn of(text: &str, offset: usize) -> Self {
        let column = text.char_indices().take_while(|(start, _)| *start < offset).count() + 1;
        Self { offset, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}", self.column)
    }
}

/// Writes an advice after a message.
struct Advice<'a>(Option<&'a str>);

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

/// Writes the name that is probably meant after a message.
struct Meant<'a>(Option<&'a str>);

impl fmt::Display for Meant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |meant| write!(f, "; did you mean '{meant}'?"))
    }
}
