//! Texts become tokens.

use super::Fault;

/// A token, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: usize,
    /// Whether a blank is before it.
    pub(super) is_apart: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Name(String),
    /// A name in quotes, which is never an operator's sign of punctuation.
    Quoted(String),
    Variable(String),
    /// A whole number without its sign, 2^63 at most.
    Int(u64),
    Float(f64),
    /// One of `( ) [ ] { } , |`.
    Punctuation(char),
    /// The full stop that ends a clause.
    End,
    /// The end of the text.
    Nothing,
}

/// What is said of a number that is too large.
pub(super) const BEYOND: &str = "the number does not fit into 64 bits";

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// Signs of which names are made.
pub(crate) fn is_symbol(sign: char) -> bool {
    matches!(
        sign,
        '+' | '-' | '*' | '/' | '\\' | '^' | '<' | '>' | '=' | '~' | ':' | '.' | '?' | '@' | '#' | '&' | '$'
    )
}

/// Signs of which words are made.
pub(crate) fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fault(at: usize, what: impl Into<String>) -> Fault {
        Fault { at, what: what.into() }
    }

    /// Goes behind blanks and comments.
    fn skip(&mut self) -> Result<(), Fault> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with('%') {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let Some(end) = trimmed.find("*/") else {
                    let at = std::mem::replace(&mut self.at, self.text.len());
                    return Err(Self::fault(at, "the comment has no end"));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    /// Goes behind the next full stop, so that what follows can be read.
    pub(super) fn recover(&mut self) {
        loop {
            match self.next() {
                Ok(Token { kind: Kind::End | Kind::Nothing, .. }) => return,
                Ok(_) => {}
                Err(_) => self.at += self.peek().map_or(0, char::len_utf8),
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Token, Fault> {
        let before = self.at;
        self.skip()?;
        let (at, is_apart) = (self.at, self.at > before);
        let kind = self.kind()?;
        Ok(Token { kind, at, is_apart })
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|sign| !is_part(sign)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn kind(&mut self) -> Result<Kind, Fault> {
        let at = self.at;
        let Some(sign) = self.peek() else { return Ok(Kind::Nothing) };
        Ok(match sign {
            '0'..='9' => return self.number(),
            '_' => Kind::Variable(self.take(is_word).to_owned()),
            _ if sign.is_uppercase() => Kind::Variable(self.take(is_word).to_owned()),
            _ if sign.is_alphabetic() => Kind::Name(self.take(is_word).to_owned()),
            '(' | ')' | '[' | ']' | '{' | '}' | ',' => {
                self.at += 1;
                Kind::Punctuation(sign)
            }
            '|' => {
                self.at += 1;
                if self.rest().starts_with('|') {
                    return Err(Self::fault(at, "`||` is no operator"));
                }
                Kind::Punctuation('|')
            }
            '!' | ';' => {
                self.at += 1;
                Kind::Name(sign.to_string())
            }
            '\'' => Kind::Quoted(self.quoted()?),
            '"' | '`' => {
                return Err(Self::fault(
                    at,
                    "texts in these quotes are not taken: write an atom in single quotes",
                ));
            }
            '.' if self.rest()[1..].chars().next().is_none_or(|next| next.is_whitespace() || next == '%') => {
                self.at += 1;
                Kind::End
            }
            _ if is_symbol(sign) => Kind::Name(self.take(is_symbol).to_owned()),
            _ => return Err(Self::fault(at, format!("{sign:?} does not belong here"))),
        })
    }

    fn quoted(&mut self) -> Result<String, Fault> {
        let begin = self.at;
        self.at += 1;
        let mut name = String::new();
        loop {
            let at = self.at;
            let Some(sign) = self.peek() else { return Err(Self::fault(begin, "the quote has no end")) };
            self.at += sign.len_utf8();
            match sign {
                '\'' if self.peek() == Some('\'') => {
                    self.at += 1;
                    name.push('\'');
                }
                '\'' => return Ok(name),
                '\\' => {
                    if let Some(sign) = self.escape(at)? {
                        name.push(sign);
                    }
                }
                '\n' => return Err(Self::fault(begin, "the quote has no end on its line")),
                _ => name.push(sign),
            }
        }
    }

    /// What stands behind a backslash; none for the end of a line.
    fn escape(&mut self, at: usize) -> Result<Option<char>, Fault> {
        let sign = self.peek().ok_or_else(|| Self::fault(at, "the quote has no end"))?;
        self.at += sign.len_utf8();
        Ok(Some(match sign {
            '\n' => return Ok(None),
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '0' => {
                // ISO ends the digits with one more backslash.
                if self.peek() == Some('\\') {
                    self.at += 1;
                }
                '\0'
            }
            '\\' | '\'' | '"' | '`' => sign,
            'x' => {
                let digits = self.take(|sign| sign.is_ascii_hexdigit());
                if self.peek() == Some('\\') {
                    self.at += 1;
                }
                let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                code.ok_or_else(|| Self::fault(at, "there is no sign of that number"))?
            }
            _ => return Err(Self::fault(at, format!("\\{sign} is no escape"))),
        }))
    }

    fn number(&mut self) -> Result<Kind, Fault> {
        let at = self.at;
        let rest = self.rest();
        for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
            if rest.starts_with(prefix) && rest[2..].starts_with(|sign: char| sign.is_digit(radix)) {
                self.at += 2;
                let digits = self.take(|sign| sign.is_digit(radix));
                return Self::whole(at, u64::from_str_radix(digits, radix).ok());
            }
        }
        if let Some(sign) = rest.strip_prefix("0'").and_then(|rest| rest.chars().next()) {
            self.at += 2 + sign.len_utf8();
            let sign = match sign {
                '\\' => self.escape(at)?.ok_or_else(|| Self::fault(at, "there is no sign"))?,
                '\'' if self.peek() == Some('\'') => {
                    self.at += 1;
                    sign
                }
                _ => sign,
            };
            return Ok(Kind::Int(u64::from(u32::from(sign))));
        }
        self.take(|sign| sign.is_ascii_digit());
        let is_digit = |text: &str| text.starts_with(|sign: char| sign.is_ascii_digit());
        let mut is_float = false;
        if self.rest().strip_prefix('.').is_some_and(is_digit) {
            is_float = true;
            self.at += 1;
            let fraction = self.take(|sign| sign.is_ascii_digit());
            let word = self.rest().find(|sign| !is_word(sign)).map_or(self.rest(), |end| &self.rest()[..end]);
            let special = match word {
                "Inf" => Some(f64::INFINITY),
                "NaN" if fraction.bytes().any(|digit| digit != b'0') => Some(f64::NAN),
                _ => None,
            };
            if let Some(special) = special {
                self.at += word.len();
                return Ok(Kind::Float(special));
            }
        }
        if let Some(behind) = self.rest().strip_prefix(['e', 'E']) {
            let digits = behind.strip_prefix(['+', '-']).unwrap_or(behind);
            if is_digit(digits) {
                is_float = true;
                self.at = self.text.len() - digits.len();
                self.take(|sign| sign.is_ascii_digit());
            }
        }
        let text = &self.text[at..self.at];
        if is_float {
            let value: f64 = text.parse().map_err(|_| Self::fault(at, "this is no number"))?;
            if value.is_infinite() {
                return Err(Self::fault(at, "the number is too large"));
            }
            return Ok(Kind::Float(value));
        }
        Self::whole(at, text.parse().ok())
    }

    /// A whole number, of which the smallest one has no positive.
    fn whole(at: usize, number: Option<u64>) -> Result<Kind, Fault> {
        let number = number.filter(|number| *number <= i64::MIN.unsigned_abs());
        number.map(Kind::Int).ok_or_else(|| Self::fault(at, BEYOND))
    }
}
