//! What leaves say of one event alone, as numbers.

use std::collections::HashMap;

use checks::VARIABLES_MAX;
use kernels::checks::{self as k, Cell};
use matcher::condition::expression::Truth;
use matcher::event::{Event, Scalar, Value};
use matcher::predicate::{Operand, Predicate, Subject, Term};

/// A part of a leaf over one variable.
#[derive(Debug, PartialEq)]
pub(crate) enum Column {
    Truth(Predicate),
    Value(Term),
}

/// All columns of a check, and the numbers of texts.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    /// Texts that stand in the formula.
    constants: HashMap<Box<str>, u32>,
    /// Texts of events. One that no event has any more stays until [`Columns::forget`].
    texts: HashMap<Box<str>, u32>,
}

impl Columns {
    /// The number of a column, an old one where there is the same.
    pub(crate) fn add(&mut self, column: Column) -> usize {
        let known = self.columns.iter().position(|other| *other == column);
        known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        })
    }

    pub(crate) fn number_of_constant(&mut self, text: &str) -> f64 {
        let next = crate::compile::u32_of(self.constants.len());
        f64::from(*self.constants.entry(text.into()).or_insert(next))
    }

    pub(crate) fn count(&self) -> usize {
        self.columns.len()
    }

    /// Whether most texts are of events that are gone: then it is time to forget, and to make all cells anew.
    pub(crate) fn is_stale(&self, events: usize) -> bool {
        self.texts.len() > 2 * events * self.columns.len() + 1_024
    }

    pub(crate) fn forget(&mut self) {
        self.texts.clear();
    }

    /// Adds the cells of an event, one a column.
    pub(crate) fn fill(&mut self, subject: Subject<'_>, cells: &mut Vec<Cell>) {
        // Each column speaks of one variable, whichever.
        let frame = [Some(subject); VARIABLES_MAX];
        for column in &self.columns {
            let (kind, value) = match column {
                Column::Truth(predicate) => (mask(predicate.truth(&frame)), 0.0),
                Column::Value(term) if is_array(term.tree(), subject.event) => (k::ARRAY, 0.0),
                Column::Value(term) => match term.value(&frame) {
                    None => (k::NOTHING, 0.0),
                    Some(Scalar::Number(number)) => (k::NUMBER, number),
                    Some(Scalar::Bool(truth)) => (k::BOOL, truth.into()),
                    Some(Scalar::Text(text)) => {
                        let text = text.as_str();
                        let number = self.constants.get(text).copied().unwrap_or_else(|| {
                            let next = crate::compile::u32_of(self.constants.len() + self.texts.len());
                            match self.texts.get(text) {
                                Some(number) => *number,
                                None => *self.texts.entry(text.into()).or_insert(next),
                            }
                        });
                        (k::TEXT, f64::from(number))
                    }
                },
            };
            cells.push(Cell { value, kind, unused: 0 });
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.capacity() * size_of::<(Box<str>, u32)>()
            + self.texts.keys().map(|text| text.len()).sum::<usize>()
    }
}

/// A truth as the only one that something may have.
pub(crate) fn mask(truth: Truth) -> u32 {
    match truth {
        Truth::True => k::MAY_HOLD,
        Truth::False => k::MAY_FAIL,
        Truth::Unknown => k::MAY_BE_UNKNOWN,
    }
}

/// Whether an attribute, folded or not, is an array, which has no value as a term.
fn is_array(operand: &Operand, event: &Event) -> bool {
    match operand {
        Operand::Attribute(attribute) => matches!(event.value(&attribute.name), Some(Value::Array(_))),
        Operand::Folded(_, inner) => is_array(inner, event),
        Operand::Value(_)
        | Operand::Negated(_)
        | Operand::Arithmetic(..)
        | Operand::Absolute(_)
        | Operand::Distance(_)
        | Operand::Elapsed(..)
        | Operand::Speed(..)
        | Operand::Longitude(_)
        | Operand::Latitude(_)
        | Operand::Interval(_)
        | Operand::Array(_) => false,
    }
}
