//! The texts of XCSP3's elements: values, tuples, names of variables.

use super::super::VALUES_MAX;

/// Most tuples of a table; a file has as many as it has bytes for, this is for ranges.
const LIST_MAX: usize = VALUES_MAX;

/// A domain, or the values of a table over one variable: numbers and ranges with blanks between.
pub(super) fn values(text: &str) -> Result<Vec<i64>, String> {
    let mut values = Vec::new();
    for token in text.split_ascii_whitespace() {
        match token.split_once("..") {
            None => values.push(integer(token)?),
            Some((first, last)) => {
                let (first, last) = (integer(first)?, integer(last)?);
                if first > last {
                    return Err(format!("the range {} ends before it begins", quoted(token)));
                }
                let is_long = last.checked_sub(first).is_none_or(|count| count >= LIST_MAX as i64);
                if is_long || values.len() > LIST_MAX {
                    return Err(format!("more than {LIST_MAX} values"));
                }
                values.extend(first..=last);
            }
        }
    }
    Ok(values)
}

/// A table over two variables: `(1,2)(3,4)`.
pub(super) fn pairs(text: &str) -> Result<Vec<[i64; 2]>, String> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let inner =
            rest.strip_prefix('(').ok_or_else(|| format!("{} where a tuple was to begin", quoted(rest)))?;
        let (tuple, after) = inner.split_once(')').ok_or_else(|| format!("{} has no end", quoted(rest)))?;
        let mut members = tuple.split(',').map(|member| integer(member.trim_ascii()));
        match (members.next(), members.next(), members.next()) {
            (Some(first), Some(second), None) => pairs.push([first?, second?]),
            _ => return Err(format!("the tuple {} has not two values", quoted(&format!("({tuple})")))),
        }
        rest = after.trim_ascii_start();
    }
    Ok(pairs)
}

fn integer(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| match text {
        "*" => "`*` in a table: short tables are not taken".to_owned(),
        _ if text.starts_with('%') => {
            format!("{} in a table: only variables may be parameters", quoted(text))
        }
        _ => format!("{} is no whole number of 64 bits", quoted(text)),
    })
}

/// A token of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `%0`
    Parameter(usize),
    /// `x`
    Name(&'a str),
    /// `x[3]`
    Cell(&'a str, usize),
    /// `x[2..4]`, both ends included; `x[]` ends with the array.
    Cells(&'a str, usize, Option<usize>),
}

pub(super) fn token(text: &str) -> Result<Token<'_>, String> {
    let wrong = || format!("{} is no variable", quoted(text));
    if let Some(parameter) = text.strip_prefix('%') {
        return match parameter {
            "..." => Err("`%...`: only `%0` and `%1` are taken".to_owned()),
            _ => parameter.parse().map(Token::Parameter).map_err(|_| wrong()),
        };
    }
    let Some((name, rest)) = text.split_once('[') else { return Ok(Token::Name(text)) };
    let inside = rest.strip_suffix(']').ok_or_else(wrong)?;
    if inside.contains(['[', ']']) {
        return Err(format!("{}: arrays of several dimensions are not taken", quoted(text)));
    }
    let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
    match inside.split_once("..") {
        _ if inside.is_empty() => Ok(Token::Cells(name, 0, None)),
        None => Ok(Token::Cell(name, number(inside)?)),
        Some((first, last)) => Ok(Token::Cells(name, number(first)?, Some(number(last)?))),
    }
}

/// The size of an array: `[33]`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let inside = text.trim_ascii().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inside = inside.ok_or_else(|| format!("{} is no size of an array", quoted(text)))?;
    if inside.contains(['[', ']']) {
        return Err(format!("{}: arrays of several dimensions are not taken", quoted(text)));
    }
    inside.parse().map_err(|_| format!("{} is no size of an array", quoted(text)))
}

/// A text for a message, of which no more than a line is shown.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}..", &text[..end]),
        None => format!("{text:?}"),
    }
}
