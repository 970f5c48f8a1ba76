//! Terms become texts, as `writeq` writes them.

use super::Operators;
use super::lexer::{is_symbol, is_word};
use crate::machine::Heap;
use crate::term::{Atom, Atoms, Term};

/// Writes terms into a text.
pub(crate) struct Writer<'a> {
    pub(crate) heap: &'a Heap,
    pub(crate) atoms: &'a Atoms,
    pub(crate) operators: &'a Operators,
    /// Names of variables, by their cells.
    pub(crate) variables: &'a dyn Fn(u32) -> String,
    pub(crate) text: String,
    pub(crate) depth: u32,
}

/// Most levels and bytes of a text; what is beyond them is three dots.
const DEPTH_MAX: u32 = 1_000;
const BYTES_MAX: usize = 1 << 20;

impl Writer<'_> {
    /// Adds a token, with a blank before it where it would grow together with what is there.
    fn token(&mut self, token: &str) {
        let (Some(last), Some(first)) = (self.text.chars().next_back(), token.chars().next()) else {
            self.text.push_str(token);
            return;
        };
        let grows = (is_word(last) && is_word(first))
            || (is_symbol(last) && is_symbol(first))
            || (last == ',' && first == ',');
        if grows {
            self.text.push(' ');
        }
        self.text.push_str(token);
    }

    fn atom(&mut self, name: Atom) {
        let name = quoted(self.atoms.name(name));
        self.token(&name);
    }

    /// Writes a term that may have that priority without parentheses.
    pub(crate) fn term(&mut self, term: Term, most: u16) {
        if self.depth == DEPTH_MAX || self.text.len() > BYTES_MAX {
            return self.token("...");
        }
        self.depth += 1;
        self.term_within(term, most);
        self.depth -= 1;
    }

    fn term_within(&mut self, term: Term, most: u16) {
        match self.heap.resolve(term) {
            Term::Var(cell) => {
                let name = (self.variables)(cell);
                self.token(&name);
            }
            Term::Int(number) => self.token(&number.to_string()),
            Term::Float(number) => self.token(&float(number)),
            Term::Atom(name) => {
                let is_operator = self.operators.is_one(self.atoms.name(name));
                self.enclosed(is_operator && most < 999, |writer| writer.atom(name));
            }
            Term::Compound(at) => self.compound(at, most),
            Term::Watched(_)
            | Term::Functor(..)
            | Term::Frame(..)
            | Term::Suspension(..)
            | Term::Next(..)
            | Term::Waiting(..) => {}
        }
    }

    fn enclosed(&mut self, is_enclosed: bool, write: impl FnOnce(&mut Self)) {
        if is_enclosed {
            self.text.push('(');
        }
        write(self);
        if is_enclosed {
            self.text.push(')');
        }
    }

    fn compound(&mut self, at: u32, most: u16) {
        let (name, arity) = self.heap.functor(at);
        match arity {
            2 if name == Atom::DOT => return self.list(at),
            1 if name == Atom::CURLY => {
                self.token("{");
                self.term(self.heap.argument(at, 0), 1200);
                return self.text.push('}');
            }
            1 => {
                let operand = self.heap.argument(at, 0);
                if let Some(operator) = self.operators.prefix(self.atoms.name(name)) {
                    let is_number = matches!(operand, Term::Int(_) | Term::Float(_));
                    return self.enclosed(operator.priority > most, |writer| {
                        writer.atom(name);
                        let end = writer.text.len();
                        writer.term(operand, operator.right);
                        // Without a blank these would be read as arguments, and as the number's own sign.
                        if writer.text[end..].starts_with('(')
                            || (is_number && name == Atom::MINUS && !writer.text[end..].starts_with(' '))
                        {
                            writer.text.insert(end, ' ');
                        }
                    });
                }
                if let Some(operator) = self.operators.postfix(self.atoms.name(name)) {
                    return self.enclosed(operator.priority > most, |writer| {
                        writer.term(operand, operator.left);
                        writer.atom(name);
                    });
                }
            }
            2 => {
                if let Some(operator) = self.operators.infix(self.atoms.name(name)) {
                    let [left, right] = [0, 1].map(|idx| self.heap.argument(at, idx));
                    return self.enclosed(operator.priority > most, |writer| {
                        writer.term(left, operator.left);
                        if name == Atom::COMMA {
                            writer.text.push(',');
                        } else {
                            let text = quoted(writer.atoms.name(name));
                            let is_apart = text.chars().all(is_word);
                            if is_apart {
                                writer.text.push(' ');
                            }
                            writer.token(&text);
                            if is_apart {
                                writer.text.push(' ');
                            }
                        }
                        writer.term(right, operator.right);
                    });
                }
            }
            _ => {}
        }
        self.atom(name);
        self.text.push('(');
        for idx in 0..arity {
            if idx > 0 {
                self.text.push(',');
            }
            self.term(self.heap.argument(at, idx), 999);
        }
        self.text.push(')');
    }

    fn list(&mut self, at: u32) {
        self.text.push('[');
        let (mut head, mut tail) = (self.heap.argument(at, 0), self.heap.argument(at, 1));
        loop {
            self.term(head, 999);
            match self.heap.head_and_tail(tail) {
                Some(_) if self.text.len() > BYTES_MAX => {
                    self.text.push_str("|...");
                    break;
                }
                Some(next) => {
                    (head, tail) = next;
                    self.text.push(',');
                }
                None if tail == Term::Atom(Atom::NIL) => break,
                None => {
                    self.text.push('|');
                    self.term(tail, 999);
                    break;
                }
            }
        }
        self.text.push(']');
    }
}

/// A name, in quotes where it is none without.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = match name.chars().next() {
        None => false,
        Some(first) if first.is_lowercase() => name.chars().all(is_word),
        Some(first) if is_symbol(first) => name.chars().all(is_symbol) && name != ".",
        Some(_) => matches!(name, "[]" | "!" | ";" | "{}" | ","),
    };
    if is_plain && name != "," {
        return name.to_owned();
    }
    let mut text = String::from("'");
    for sign in name.chars() {
        match sign {
            '\'' => text.push_str("\\'"),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            _ => text.push(sign),
        }
    }
    text.push('\'');
    text
}

/// A float with the fewest digits that read as itself.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "1.5NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "1.0Inf" } else { "-1.0Inf" }.to_owned();
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..15).contains(&exponent) {
        return format!("{number:?}");
    }
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}e{exponent:+}")
}
