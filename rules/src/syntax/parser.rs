//! Tokens become terms, by the priorities of operators.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::lexer::{BEYOND, Kind as Token, Lexer, Token as Place};
use super::{Fault, Operators, float};
use crate::term::{Atom, Atoms};

/// How deep terms may be nested in a text.
const NESTING_MAX: u32 = 300;

/// A term as it stands in a text.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) at: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A variable, by its number in the clause.
    Variable(usize),
    Int(i64),
    Float(f64),
    Atom(Atom),
    Compound(Atom, Vec<Node>),
    /// The elements of a list, and what is behind them.
    List(Vec<Node>, Option<Box<Node>>),
    /// Terms with commas between them: at least two.
    Conjunction(Vec<Node>),
}

impl Node {
    /// Name and arguments of an atom or a compound.
    pub(crate) fn callable(&self) -> Option<(Atom, &[Self])> {
        match &self.kind {
            Kind::Atom(name) => Some((*name, &[])),
            Kind::Compound(name, arguments) => Some((*name, arguments)),
            Kind::Conjunction(parts) => Some((Atom::COMMA, parts)),
            _ => None,
        }
    }

    /// The operands, where this is that operator.
    pub(crate) fn binary(&self, name: Atom) -> Option<[&Self; 2]> {
        match self.callable()? {
            (found, [left, right]) if found == name => Some([left, right]),
            _ => None,
        }
    }

    /// The parts between commas: one where there is none.
    pub(crate) fn conjuncts(&self) -> Vec<&Self> {
        match &self.kind {
            Kind::Conjunction(parts) => parts.iter().flat_map(Self::conjuncts).collect(),
            _ => vec![self],
        }
    }
}

/// A term up to its full stop, and the names of its variables.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) term: Node,
    pub(crate) variables: Vec<String>,
}

pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Place,
    pub(crate) atoms: &'a mut Atoms,
    variables: Vec<String>,
    /// Places of variables that have names.
    numbers: HashMap<String, usize, RandomState>,
    depth: u32,
    /// Whether commas and bars are between arguments or elements here, and no operators.
    is_argument: bool,
    end: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, atoms: &'a mut Atoms) -> Self {
        let token = Place { kind: Token::End, at: 0, is_apart: false };
        Self {
            lexer: Lexer::new(text),
            token,
            atoms,
            variables: Vec::new(),
            numbers: HashMap::default(),
            depth: 0,
            is_argument: false,
            end: text.len(),
        }
    }

    /// The next clause; none at the end. Behind a fault it goes on with the clause after it.
    pub(crate) fn clause(&mut self, operators: &Operators) -> Result<Option<Clause>, Fault> {
        let read = self.read(operators);
        if read.is_err() && self.token.kind != Token::End {
            self.lexer.recover();
        }
        read
    }

    /// The goal that the whole text is; the full stop may be absent.
    pub(crate) fn goal(&mut self, operators: &Operators) -> Result<Clause, Fault> {
        self.advance()?;
        let term = self.term(operators, 1200)?;
        if self.token.kind == Token::End {
            self.advance()?;
        }
        if self.token.kind != Token::Nothing {
            return Err(self.unexpected("the end of the goal"));
        }
        Ok(Clause { term, variables: std::mem::take(&mut self.variables) })
    }

    fn read(&mut self, operators: &Operators) -> Result<Option<Clause>, Fault> {
        self.variables.clear();
        self.numbers.clear();
        (self.depth, self.is_argument) = (0, false);
        self.advance()?;
        if self.token.kind == Token::Nothing {
            return Ok(None);
        }
        let term = self.term(operators, 1200)?;
        if self.token.kind != Token::End {
            return Err(self.unexpected("an operator or a full stop"));
        }
        Ok(Some(Clause { term, variables: std::mem::take(&mut self.variables) }))
    }

    fn advance(&mut self) -> Result<(), Fault> {
        // Should the next token be none, what follows it is looked for from there.
        self.token.kind = Token::Nothing;
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = match &self.token.kind {
            Token::Name(name) | Token::Quoted(name) | Token::Variable(name) => format!("`{name}`"),
            Token::Int(number) => format!("`{number}`"),
            Token::Float(number) => format!("`{}`", float(*number)),
            Token::Punctuation(sign) => format!("`{sign}`"),
            Token::End => "a full stop".to_owned(),
            Token::Nothing => {
                return Fault { at: self.end, what: format!("the text ends where {wanted} should be") };
            }
        };
        Fault { at: self.token.at, what: format!("{found} stands where {wanted} should be") }
    }

    fn is(&self, sign: char) -> bool {
        self.token.kind == Token::Punctuation(sign)
    }

    fn expect(&mut self, sign: char) -> Result<(), Fault> {
        if !self.is(sign) {
            return Err(self.unexpected(&format!("`{sign}`")));
        }
        self.advance()
    }

    /// A term of that priority or a lower one.
    fn term(&mut self, operators: &Operators, most: u16) -> Result<Node, Fault> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(Fault {
                at: self.token.at,
                what: format!("terms are nested deeper than {NESTING_MAX}"),
            });
        }
        let (left, priority) = self.primary(operators, most)?;
        let term = self.operators_behind(operators, left, priority, most)?;
        self.depth -= 1;
        Ok(term)
    }

    /// A term between commas.
    fn argument(&mut self, operators: &Operators) -> Result<Node, Fault> {
        self.within(operators, true)
    }

    fn within(&mut self, operators: &Operators, is_argument: bool) -> Result<Node, Fault> {
        let outer = std::mem::replace(&mut self.is_argument, is_argument);
        let term = self.term(operators, 1200)?;
        self.is_argument = outer;
        Ok(term)
    }

    /// The name of an infix or postfix operator that is next.
    fn operator(&self) -> Option<&str> {
        match &self.token.kind {
            Token::Name(name) | Token::Quoted(name) => Some(name),
            Token::Punctuation(',') if !self.is_argument => Some(","),
            Token::Punctuation('|') if !self.is_argument => Some("|"),
            _ => None,
        }
    }

    fn operators_behind(
        &mut self,
        operators: &Operators,
        mut left: Node,
        mut priority: u16,
        most: u16,
    ) -> Result<Node, Fault> {
        for nesting in self.depth.. {
            let Some(name) = self.operator().map(str::to_owned) else { break };
            let at = left.at;
            if nesting > NESTING_MAX {
                return Err(Fault { at, what: format!("terms are nested deeper than {NESTING_MAX}") });
            }
            if let Some(operator) = operators.infix(&name)
                && operator.priority <= most
                && priority <= operator.left
            {
                let name = self.atoms.intern(&name);
                self.advance()?;
                if name == Atom::COMMA {
                    let mut parts = vec![left, self.term(operators, 999)?];
                    while self.is(',') {
                        self.advance()?;
                        parts.push(self.term(operators, 999)?);
                    }
                    left = Node { kind: Kind::Conjunction(parts), at };
                } else {
                    let right = self.term(operators, operator.right)?;
                    left = Node { kind: Kind::Compound(name, vec![left, right]), at };
                }
                priority = operator.priority;
            } else if let Some(operator) = operators.postfix(&name)
                && operator.priority <= most
                && priority <= operator.left
            {
                let name = self.atoms.intern(&name);
                self.advance()?;
                left = Node { kind: Kind::Compound(name, vec![left]), at };
                priority = operator.priority;
            } else {
                break;
            }
        }
        Ok(left)
    }

    /// A term without infix operators, and its priority.
    fn primary(&mut self, operators: &Operators, most: u16) -> Result<(Node, u16), Fault> {
        let at = self.token.at;
        let kind = match self.token.kind.clone() {
            Token::Int(number) => {
                let number = i64::try_from(number);
                Kind::Int(number.map_err(|_| Fault { at, what: BEYOND.to_owned() })?)
            }
            Token::Float(number) => Kind::Float(number),
            Token::Variable(name) => self.variable(name),
            Token::Punctuation('(') => {
                self.advance()?;
                let inner = self.within(operators, false)?;
                self.expect(')')?;
                return Ok((inner, 0));
            }
            Token::Punctuation('[') => return Ok((self.list(operators)?, 0)),
            Token::Punctuation('{') => {
                self.advance()?;
                if self.is('}') {
                    self.advance()?;
                    return Ok((self.named(operators, Atom::CURLY, at)?, 0));
                }
                let inner = self.within(operators, false)?;
                self.expect('}')?;
                return Ok((Node { kind: Kind::Compound(Atom::CURLY, vec![inner]), at }, 0));
            }
            Token::Name(name) => return self.name(operators, &name, most),
            Token::Quoted(name) => {
                let name = self.atoms.intern(&name);
                self.advance()?;
                return Ok((self.named(operators, name, at)?, 0));
            }
            _ => return Err(self.unexpected("a term")),
        };
        self.advance()?;
        Ok((Node { kind, at }, 0))
    }

    fn variable(&mut self, name: String) -> Kind {
        let next = self.variables.len();
        let number = if name == "_" { next } else { *self.numbers.entry_ref(&name).or_insert(next) };
        if number == next {
            self.variables.push(name);
        }
        Kind::Variable(number)
    }

    /// A name whose token was read: with arguments, or alone.
    fn named(&mut self, operators: &Operators, name: Atom, at: usize) -> Result<Node, Fault> {
        if !self.is('(') || self.token.is_apart {
            return Ok(Node { kind: Kind::Atom(name), at });
        }
        self.advance()?;
        let mut arguments = vec![self.argument(operators)?];
        while self.is(',') {
            self.advance()?;
            arguments.push(self.argument(operators)?);
        }
        self.expect(')')?;
        Ok(Node { kind: Kind::Compound(name, arguments), at })
    }

    fn list(&mut self, operators: &Operators) -> Result<Node, Fault> {
        let at = self.token.at;
        self.advance()?;
        if self.is(']') {
            self.advance()?;
            return self.named(operators, Atom::NIL, at);
        }
        let mut elements = vec![self.argument(operators)?];
        while self.is(',') {
            self.advance()?;
            elements.push(self.argument(operators)?);
        }
        let mut tail = None;
        if self.is('|') {
            self.advance()?;
            tail = Some(Box::new(self.argument(operators)?));
        }
        self.expect(']')?;
        Ok(Node { kind: Kind::List(elements, tail), at })
    }

    /// A name without quotes, which may be a prefix operator.
    fn name(&mut self, operators: &Operators, name: &str, most: u16) -> Result<(Node, u16), Fault> {
        let at = self.token.at;
        let atom = self.atoms.intern(name);
        self.advance()?;
        if self.is('(') && !self.token.is_apart {
            return Ok((self.named(operators, atom, at)?, 0));
        }
        if atom == Atom::MINUS && !self.token.is_apart {
            let number = match self.token.kind {
                Token::Int(number) => Some(Kind::Int(0_i64.wrapping_sub_unsigned(number))),
                Token::Float(number) => Some(Kind::Float(-number)),
                _ => None,
            };
            if let Some(kind) = number {
                self.advance()?;
                return Ok((Node { kind, at }, 0));
            }
        }
        // An operator that stands alone is an atom.
        let Some(operator) = operators.prefix(name) else {
            return Ok((Node { kind: Kind::Atom(atom), at }, 0));
        };
        if self.begins_operand(operators) {
            if operator.priority > most {
                return Err(Fault { at, what: format!("`{name}` needs parentheses around it here") });
            }
            let operand = self.term(operators, operator.right)?;
            return Ok((Node { kind: Kind::Compound(atom, vec![operand]), at }, operator.priority));
        }
        Ok((Node { kind: Kind::Atom(atom), at }, 0))
    }

    /// Whether the next token begins the operand of a prefix operator, for which an infix operator would make it an atom.
    fn begins_operand(&self, operators: &Operators) -> bool {
        match &self.token.kind {
            Token::Int(_) | Token::Float(_) | Token::Variable(_) | Token::Quoted(_) => true,
            Token::Punctuation(sign) => matches!(sign, '(' | '[' | '{'),
            Token::Name(name) => operators.infix(name).is_none() || operators.prefix(name).is_some(),
            Token::End | Token::Nothing => false,
        }
    }
}
