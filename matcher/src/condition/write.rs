//! Normal forms and their parts as CQL2 text, which parses back to the same.

mod tree;

use std::fmt::{Display, Formatter, Result, Write};

use super::expression::{Comparand, Comparison, Constraint, Test};
use super::normal::{Conjunction, Literal, Normal, ResidualLiteral};
use super::text::is_plain_name;
use crate::event::Scalar;

impl Display for Normal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.conjunctions().is_empty() {
            return f.write_str("FALSE");
        }
        // AND binds tighter than OR, so that no parentheses are needed.
        for (index, conjunction) in self.conjunctions().iter().enumerate() {
            if index > 0 {
                f.write_str(" OR ")?;
            }
            conjunction.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Conjunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { literals, residuals } = self;
        if literals.is_empty() && residuals.is_empty() {
            return f.write_str("TRUE");
        }
        separated(f, " AND ", literals)?;
        if !literals.is_empty() && !residuals.is_empty() {
            f.write_str(" AND ")?;
        }
        separated(f, " AND ", residuals)
    }
}

impl Display for ResidualLiteral {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(if self.negated { "NOT " } else { "" })?;
        self.residual.node().fmt(f)
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write_constraint(f, &self.constraint, self.negated)
    }
}

impl Display for Constraint {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write_constraint(f, self, false)
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Display for Comparand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Scalar(scalar) => Written(scalar).fmt(f),
            Self::Date(date) => write!(f, "DATE('{date}')"),
            Self::Timestamp(timestamp) => write!(f, "TIMESTAMP('{}')", timestamp.as_str()),
        }
    }
}

/// A value as CQL2 text.
pub(crate) struct Written<'a>(pub(crate) &'a Scalar);

impl Display for Written<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            Scalar::Text(text) => write_text(f, text.as_str()),
            Scalar::Bool(true) => f.write_str("TRUE"),
            Scalar::Bool(false) => f.write_str("FALSE"),
            // Digits as people write them, and an exponent where there would be many zeros.
            Scalar::Number(number) if *number == 0.0 || (1e-6..1e16).contains(&number.abs()) => {
                write!(f, "{number}")
            }
            Scalar::Number(number) => write!(f, "{number:e}"),
        }
    }
}

/// A name, in quotes where it needs them.
pub(crate) fn write_name(f: &mut Formatter<'_>, name: &str) -> Result {
    if is_plain_name(name) { f.write_str(name) } else { quoted(f, '"', name) }
}

fn write_constraint(f: &mut Formatter<'_>, constraint: &Constraint, negated: bool) -> Result {
    // Everything but a comparison has its NOT inside.
    let not = if negated { "NOT " } else { "" };
    if matches!(constraint.test, Test::Compare(..)) {
        f.write_str(not)?;
    }
    if constraint.casei {
        f.write_str("CASEI(")?;
    }
    let name = constraint.name.as_str();
    write_name(f, name)?;
    f.write_str(if constraint.casei { ") " } else { " " })?;
    match &constraint.test {
        Test::Compare(comparison, value) => write!(f, "{comparison} {value}"),
        Test::Between(low, high) => write!(f, "{not}BETWEEN {low} AND {high}"),
        Test::In(values) => {
            write!(f, "{not}IN (")?;
            separated(f, ", ", values)?;
            f.write_char(')')
        }
        Test::Like(pattern) => {
            write!(f, "{not}LIKE ")?;
            write_text(f, pattern.as_str())
        }
        Test::IsNull => write!(f, "IS {not}NULL"),
    }
}

pub(crate) fn separated(
    f: &mut Formatter<'_>,
    separator: &str,
    items: impl IntoIterator<Item = impl Display>,
) -> Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

/// A text in quotes. Where a backslash would come before a quote, and be taken for its escape, backslashes are doubled as well.
pub(crate) fn write_text(f: &mut Formatter<'_>, text: &str) -> Result {
    if text.ends_with('\\') || text.contains("\\'") {
        f.write_str("U&")?;
        return quoted(f, '\'', &text.replace('\\', "\\\\"));
    }
    quoted(f, '\'', text)
}

/// Writes a text in quotes, with those inside doubled.
fn quoted(f: &mut Formatter<'_>, quote: char, text: &str) -> Result {
    f.write_char(quote)?;
    for character in text.chars() {
        if character == quote {
            f.write_char(quote)?;
        }
        f.write_char(character)?;
    }
    f.write_char(quote)
}
