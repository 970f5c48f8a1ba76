//! From characters to tokens, each with its place.

use std::borrow::Cow;
use std::ops::Range;

use winnow::ascii::{digit0, digit1};
use winnow::combinator::{alt, delimited, opt, preceded, repeat};
use winnow::error::EmptyError;
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location};
use winnow::token::{one_of, take_till, take_while};

use super::misses;
use crate::condition::error::{ConditionError, Place};
use crate::condition::expression::Comparison;
use crate::predicate::node::Operator;

/// How much of a token a message repeats, in characters.
const SHOWN_CHARS_MAX: usize = 40;

/// A token and the bytes that it takes.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

/// Kind of a token, with its content.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Name {
        name: String,
        quoted: bool,
    },
    Text(String),
    Number(f64),
    Keyword(Keyword),
    Compare(Comparison),
    /// `+ - * / % ^`. A sign before a number is one of these, too.
    Arithmetic(Operator),
    Open,
    Close,
    Comma,
}

/// A word that is no name unless it is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Between,
    In,
    Like,
    Is,
    Null,
    True,
    False,
}

const KEYWORDS: [(&str, Keyword); 10] = [
    ("and", Keyword::And),
    ("or", Keyword::Or),
    ("not", Keyword::Not),
    ("between", Keyword::Between),
    ("in", Keyword::In),
    ("like", Keyword::Like),
    ("is", Keyword::Is),
    ("null", Keyword::Null),
    ("true", Keyword::True),
    ("false", Keyword::False),
];

type Input<'a> = LocatingSlice<&'a str>;
type Lexed<T> = winnow::Result<T, EmptyError>;

/// Cuts a text into tokens, in one pass.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ConditionError> {
    let mut input = LocatingSlice::new(text);
    let mut tokens = Vec::new();
    loop {
        skip_space(&mut input);
        let start = input.current_token_start();
        if start == text.len() {
            return Ok(tokens);
        }
        let (kind, span) = token.with_span().parse_next(&mut input).map_err(|_| stray(text, start))?;
        if let Kind::Number(number) = kind
            && !number.is_finite()
        {
            let found = shorten(&text[span]).into_owned();
            return Err(ConditionError::NumberTooLarge { found, place: Place::of(text, start) });
        }
        tokens.push(Token { kind, span });
    }
}

/// Whether a text is written as a name without quotes.
pub(in crate::condition) fn is_plain_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(is_name_start)
        && characters.all(is_name_part)
        && keyword(text).is_none()
        && !text.eq_ignore_ascii_case("casei")
}

/// The part of a token that a message repeats.
pub(super) fn shorten(token: &str) -> Cow<'_, str> {
    match token.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &token[..end])),
        None => Cow::Borrowed(token),
    }
}

fn skip_space(input: &mut Input<'_>) {
    let space: Lexed<&str> = take_while(0.., char::is_whitespace).parse_next(input);
    debug_assert!(space.is_ok(), "zero characters are enough");
}

fn token(input: &mut Input<'_>) -> Lexed<Kind> {
    alt((escaped_text, word, number, text, quoted_name, sign)).parse_next(input)
}

fn word(input: &mut Input<'_>) -> Lexed<Kind> {
    let word = (one_of(is_name_start), take_while(0.., is_name_part)).take().parse_next(input)?;
    Ok(match keyword(word) {
        Some(keyword) => Kind::Keyword(keyword),
        None => Kind::Name { name: word.to_owned(), quoted: false },
    })
}

fn number(input: &mut Input<'_>) -> Lexed<Kind> {
    let plus_minus = || opt(one_of(['+', '-']));
    (
        alt(((digit1, opt(('.', digit0))).void(), ('.', digit1).void())),
        opt((one_of(['e', 'E']), plus_minus(), digit1)),
    )
        .take()
        .parse_to()
        .map(Kind::Number)
        .parse_next(input)
}

/// `'..'`: a quote that belongs to the text is doubled or has a backslash before it. All other backslashes are characters.
fn text(input: &mut Input<'_>) -> Lexed<Kind> {
    let part = alt((take_till(1.., ['\'', '\\']), "''".value("'"), "\\'".value("'"), "\\"));
    quoted('\'', part).map(Kind::Text).parse_next(input)
}

/// `U&'..'`, as SQL has it: quotes and backslashes that belong to the text are doubled.
fn escaped_text(input: &mut Input<'_>) -> Lexed<Kind> {
    let part = alt((take_till(1.., ['\'', '\\']), "''".value("'"), "\\\\".value("\\")));
    preceded((one_of(['U', 'u']), '&'), quoted('\'', part)).map(Kind::Text).parse_next(input)
}

fn quoted_name(input: &mut Input<'_>) -> Lexed<Kind> {
    let part = alt((take_till(1.., '"'), "\"\"".value("\"")));
    quoted('"', part).map(|name| Kind::Name { name, quoted: true }).parse_next(input)
}

/// Parses a text between two quotes, part by part.
fn quoted<'a>(
    quote: char,
    part: impl Parser<Input<'a>, &'a str, EmptyError>,
) -> impl Parser<Input<'a>, String, EmptyError> {
    let parts = repeat(0.., part).fold(String::new, |mut text: String, part: &str| {
        text.push_str(part);
        text
    });
    delimited(quote, parts, quote)
}

fn sign(input: &mut Input<'_>) -> Lexed<Kind> {
    let single = one_of(['=', '<', '>', '(', ')', ',', '+', '-', '*', '/', '%', '^']).take();
    let sign = alt(("<>", "<=", ">=", single)).parse_next(input)?;
    Ok(match sign {
        "=" => Kind::Compare(Comparison::Equal),
        "<>" => Kind::Compare(Comparison::NotEqual),
        "<" => Kind::Compare(Comparison::Less),
        "<=" => Kind::Compare(Comparison::LessOrEqual),
        ">" => Kind::Compare(Comparison::Greater),
        ">=" => Kind::Compare(Comparison::GreaterOrEqual),
        "(" => Kind::Open,
        ")" => Kind::Close,
        "," => Kind::Comma,
        "+" => Kind::Arithmetic(Operator::Add),
        "-" => Kind::Arithmetic(Operator::Subtract),
        "*" => Kind::Arithmetic(Operator::Multiply),
        "/" => Kind::Arithmetic(Operator::Divide),
        "%" => Kind::Arithmetic(Operator::Remainder),
        _ => Kind::Arithmetic(Operator::Power),
    })
}

fn keyword(word: &str) -> Option<Keyword> {
    KEYWORDS.iter().find(|(spelling, _)| word.eq_ignore_ascii_case(spelling)).map(|(_, keyword)| *keyword)
}

/// `identifierStart` of CQL2's grammar.
fn is_name_start(character: char) -> bool {
    matches!(character,
        ':' | '_' | 'A'..='Z' | 'a'..='z'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFE}' | '\u{200C}'..='\u{200D}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
        // U+1680 is a space and U+FEFF the byte order mark: letters to the grammar only by its wide ranges.
        && !matches!(character, '\u{1680}' | '\u{FEFF}')
}

/// `identifierPart` of CQL2's grammar.
fn is_name_part(character: char) -> bool {
    is_name_start(character)
        || matches!(character, '.' | '0'..='9' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// Says why no token begins at `start`.
fn stray(text: &str, start: usize) -> ConditionError {
    let open = Place::of(text, start);
    let unclosed = |what: &str, quote: &str, advice| ConditionError::Syntax {
        expected: format!("a closing {quote} for the {what} that begins at {open}"),
        found: "end of text".to_owned(),
        place: Place::of(text, text.len()),
        advice: Some(advice),
    };
    match text[start..].chars().next() {
        Some('\'') if text[start..].contains("\\'") => unclosed(
            "text",
            "'",
            "\\' is a quote inside a text; one that ends in a backslash is written U&'..\\\\'",
        ),
        Some('\'') => unclosed("text", "'", "a ' inside a text is doubled: 'it''s'"),
        Some('"') => unclosed("name", "\"", "a \" inside a name is doubled"),
        Some('&') if text[start..].starts_with("&'") => ConditionError::Syntax {
            expected: "a text after U&, with its quotes and backslashes doubled".to_owned(),
            found: "the character '&'".to_owned(),
            place: open,
            advice: None,
        },
        Some(character) => ConditionError::Syntax {
            expected: "a name, a value or an operator".to_owned(),
            found: format!("the character {character:?}"),
            place: open,
            advice: misses::of_character(character, &text[start + character.len_utf8()..]),
        },
        None => ConditionError::Syntax {
            expected: "a name, a value or an operator".to_owned(),
            found: "end of text".to_owned(),
            place: open,
            advice: None,
        },
    }
}
