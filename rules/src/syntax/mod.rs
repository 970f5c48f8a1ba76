//! Reading and writing of terms.

mod lexer;
mod operators;
mod parser;
mod writer;

pub(crate) use operators::Operators;
pub(crate) use parser::{Clause, Kind, Node, Parser};
pub(crate) use writer::{Writer, float, quoted};

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Bytes before it.
    pub(crate) at: usize,
    pub(crate) what: String,
}
