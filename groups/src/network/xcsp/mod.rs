//! Reads networks of XCSP3: `var` and arrays of one dimension, `extension` over one or two variables, and groups of it.
//!
//! Source: Boussemart, Lecoutre, Audemard and Piette, "XCSP3: an integrated format for benchmarking combinatorial constrained problems",
//! <https://xcsp.org>. A tuple with a value outside a variable's domain says nothing. Everything else of XCSP3 is refused by its name, and
//! so is a document type. A document may be written by anybody: how much is read, and how much work it is, is bounded.

mod source;
mod text;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use source::{Element, Source};
use text::{Token, quoted};

use super::{Builder, Domain, Network, Relation, Table, TooLarge, Variable};

/// The longest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// Most tuples that are looked up in domains: those of a group once for each pair of domains.
const TUPLES_MAX: usize = 1 << 26;

/// A fault of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Fault {
    /// The line of the element that is wrong, from 1.
    pub line: usize,
    /// Why it is not taken.
    pub problem: String,
}

/// Reads a document.
///
/// # Errors
/// The first [`Fault`]: XML that is not well-formed, a breach of XCSP3, a part of XCSP3 that is not taken here, or too large a network.
pub fn read(text: &str) -> Result<Network, Fault> {
    let mut source = Source::new(text);
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(source.fault(0, format!("more than {DOCUMENT_BYTES_MAX} bytes")));
    }
    let root = source.child()?.ok_or_else(|| source.fault(0, "the document has no element"))?;
    if root.name() != "instance" {
        return Err(source.fault(root.at, format!("<{}> where <instance> was to begin", root.name())));
    }
    let [format, kind] = source.attributes(&root, ["format", "type"])?;
    if format.as_deref().is_some_and(|format| format != "XCSP3") {
        return Err(
            source.fault(root.at, format!("the format {} is not taken", quoted(&format.unwrap_or_default())))
        );
    }
    if kind.as_deref().is_some_and(|kind| kind != "CSP") {
        return Err(
            source.fault(root.at, format!("the type {} is not taken", quoted(&kind.unwrap_or_default())))
        );
    }
    let mut reader =
        Reader { source, builder: Builder::default(), named: HashMap::new(), tuples_left: TUPLES_MAX };
    let mut has_variables = false;
    while let Some(element) = reader.source.child()? {
        reader.source.attributes(&element, [])?;
        match &*element.name() {
            "variables" if !has_variables => {
                has_variables = true;
                reader.variables()?;
            }
            "constraints" if has_variables => reader.constraints()?,
            _ => return reader.source.refuse(&element, "instance"),
        }
    }
    reader.source.end()?;
    Ok(reader.builder.build())
}

struct Reader<'a> {
    source: Source<'a>,
    builder: Builder,
    named: HashMap<String, Named>,
    tuples_left: usize,
}

/// The variable or the array of an `id`.
enum Named {
    Variable(Variable),
    Array(Vec<Variable>),
}

/// An extension; its list may have parameters.
struct Extension {
    list: String,
    table: Table,
    tuples: String,
    read: Option<Tuples>,
    /// The relation of the tuples between two domains.
    relations: HashMap<[Domain; 2], Relation>,
}

/// The tuples of an extension, by how many variables it is over.
enum Tuples {
    One(Vec<i64>),
    Two(Vec<[i64; 2]>),
}

impl Reader<'_> {
    fn variables(&mut self) -> Result<(), Fault> {
        while let Some(element) = self.source.child()? {
            let [id, kind, size] = self.source.attributes(&element, ["id", "type", "size"])?;
            let size = match (&*element.name(), size) {
                ("var", None) => Ok(None),
                ("var", Some(_)) => Err("the attribute size of <var> is not taken".to_owned()),
                ("array", None) => Err("<array> has no size".to_owned()),
                ("array", Some(size)) => text::size(&size).map(Some),
                _ => return self.source.refuse(&element, "variables"),
            };
            let size = size.map_err(|problem| self.source.fault(element.at, problem))?;
            self.declare(&element, id.unwrap_or_default(), kind, size)?;
        }
        Ok(())
    }

    /// Adds a variable, or the cells of an array.
    fn declare(
        &mut self,
        element: &Element<'_>,
        id: String,
        kind: Option<String>,
        size: Option<usize>,
    ) -> Result<(), Fault> {
        let is_letter = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
        if id.is_empty() || !id.chars().all(is_letter) {
            return Err(self.source.fault(element.at, format!("the id {} is not taken", quoted(&id))));
        }
        if self.named.contains_key(&id) {
            return Err(self.source.fault(element.at, format!("the id {id} comes again")));
        }
        if let Some(kind) = kind.filter(|kind| kind != "integer") {
            let problem = format!("{id}: the type {} is not taken", quoted(&kind));
            return Err(self.source.fault(element.at, problem));
        }
        let content = self.source.content(element)?;
        let wrong = |problem: String| self.source.fault(element.at, format!("{id}: {problem}"));
        let values = text::values(&content).map_err(wrong)?;
        if values.is_empty() {
            return Err(wrong("the domain is empty".to_owned()));
        }
        let too_large = |error: TooLarge| wrong(error.to_string());
        let domain = self.builder.domain(&values).map_err(too_large)?;
        let named = match size {
            None => Named::Variable(self.builder.variable(&id, domain).map_err(too_large)?),
            Some(size) => {
                let cell = |idx| self.builder.variable(&format!("{id}[{idx}]"), domain);
                Named::Array((0..size).map(cell).collect::<Result<_, _>>().map_err(too_large)?)
            }
        };
        self.named.insert(id, named);
        Ok(())
    }

    fn constraints(&mut self) -> Result<(), Fault> {
        while let Some(element) = self.source.child()? {
            self.source.attributes(&element, [])?;
            match &*element.name() {
                "extension" => {
                    let mut extension = self.extension(&element)?;
                    self.constrain(&mut extension, &[], element.at)?;
                }
                "group" => self.group(&element)?,
                _ => return self.source.refuse(&element, "constraints"),
            }
        }
        Ok(())
    }

    fn group(&mut self, group: &Element<'_>) -> Result<(), Fault> {
        let mut template = None;
        while let Some(element) = self.source.child()? {
            self.source.attributes(&element, [])?;
            match (&*element.name(), &mut template) {
                ("extension", None) => template = Some(self.extension(&element)?),
                ("args", Some(template)) => {
                    let content = self.source.content(&element)?;
                    let wrong = |problem| self.source.fault(element.at, problem);
                    let arguments = self.scope(&content, &[]).map_err(wrong)?;
                    self.constrain(template, &arguments, element.at)?;
                }
                _ => return self.source.refuse(&element, "group"),
            }
        }
        if template.is_none() {
            return Err(self.source.fault(group.at, "<group> has no constraint"));
        }
        Ok(())
    }

    fn extension(&mut self, extension: &Element<'_>) -> Result<Extension, Fault> {
        let (mut list, mut table) = (None, None);
        while let Some(element) = self.source.child()? {
            self.source.attributes(&element, [])?;
            match &*element.name() {
                "list" if list.is_none() => list = Some(self.source.content(&element)?),
                "supports" if table.is_none() => {
                    table = Some((Table::Supports, self.source.content(&element)?));
                }
                "conflicts" if table.is_none() => {
                    table = Some((Table::Conflicts, self.source.content(&element)?));
                }
                _ => return self.source.refuse(&element, "extension"),
            }
        }
        let missing = |part: &str| self.source.fault(extension.at, format!("<extension> has no {part}"));
        let list = list.ok_or_else(|| missing("<list>"))?;
        let (table, tuples) = table.ok_or_else(|| missing("<supports> or <conflicts>"))?;
        Ok(Extension { list, table, tuples, read: None, relations: HashMap::new() })
    }

    /// The variables of a list. More than are taken end it, so that a short text does not become a long list.
    fn scope(&self, list: &str, arguments: &[Variable]) -> Result<Vec<Variable>, String> {
        let mut scope = Vec::new();
        let mut parameters_count = 0;
        for word in list.split_ascii_whitespace() {
            let token = text::token(word)?;
            let name = match token {
                Token::Parameter(_) => "",
                Token::Name(name) | Token::Cell(name, _) | Token::Cells(name, ..) => name,
            };
            let outside = || format!("{} is outside the array", quoted(word));
            match (token, self.named.get(name)) {
                (Token::Parameter(idx), _) => {
                    parameters_count = parameters_count.max(idx.saturating_add(1));
                    scope
                        .push(*arguments.get(idx).ok_or_else(|| format!("there is no argument for %{idx}"))?);
                }
                (Token::Name(_), Some(Named::Variable(variable))) => scope.push(*variable),
                (Token::Cell(_, idx), Some(Named::Array(cells))) => {
                    scope.push(*cells.get(idx).ok_or_else(outside)?);
                }
                (Token::Cells(_, first, last), Some(Named::Array(cells))) => {
                    let end = last.map_or(cells.len(), |last| last.saturating_add(1));
                    scope.extend(cells.get(first..end).ok_or_else(outside)?);
                }
                _ => return Err(format!("there is no variable {}", quoted(word))),
            }
            if scope.len() > 2 {
                return Err("a constraint over more than two variables is not taken".to_owned());
            }
        }
        if parameters_count < arguments.len() {
            return Err(format!("{} arguments for {parameters_count} parameters", arguments.len()));
        }
        Ok(scope)
    }

    /// Adds a constraint.
    fn constrain(
        &mut self,
        extension: &mut Extension,
        arguments: &[Variable],
        at: usize,
    ) -> Result<(), Fault> {
        self.add(extension, arguments).map_err(|problem| self.source.fault(at, problem))
    }

    fn add(&mut self, extension: &mut Extension, arguments: &[Variable]) -> Result<(), String> {
        let scope = self.scope(&extension.list, arguments)?;
        let Extension { table, tuples, read, relations, .. } = extension;
        let text = std::mem::take(tuples);
        match (&*scope, read.take()) {
            ([variable], tuples) => {
                let values = match tuples {
                    Some(Tuples::One(values)) => values,
                    Some(Tuples::Two(_)) => return Err("pairs for one variable".to_owned()),
                    None => text::values(&text)?,
                };
                self.spend(values.len())?;
                let domain = self.builder.domain_of(*variable);
                let places: Vec<_> =
                    values.iter().filter_map(|value| self.builder.place(domain, *value)).collect();
                self.builder.unary(*variable, *table, &places).map_err(|error| error.to_string())?;
                *read = Some(Tuples::One(values));
            }
            ([first, second], tuples) => {
                let pairs = match tuples {
                    Some(Tuples::Two(pairs)) => pairs,
                    Some(Tuples::One(_)) => return Err("values for two variables".to_owned()),
                    None => text::pairs(&text)?,
                };
                let domains = [*first, *second].map(|variable| self.builder.domain_of(variable));
                let relation = match relations.entry(domains) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(place) => *place.insert(self.relation(domains, *table, &pairs)?),
                };
                self.builder.constraint([*first, *second], relation).map_err(|error| error.to_string())?;
                *read = Some(Tuples::Two(pairs));
            }
            _ => return Err("a constraint over no variable".to_owned()),
        }
        Ok(())
    }

    fn relation(
        &mut self,
        domains: [Domain; 2],
        table: Table,
        pairs: &[[i64; 2]],
    ) -> Result<Relation, String> {
        self.spend(pairs.len())?;
        let place = |side: usize, value| self.builder.place(domains[side], value);
        let places = pairs.iter().filter_map(|[a, b]| Some([place(0, *a)?, place(1, *b)?]));
        let places: Vec<_> = places.collect();
        self.builder.relation(domains, table, &places).map_err(|error| error.to_string())
    }

    /// Counts tuples as looked up.
    fn spend(&mut self, tuples_count: usize) -> Result<(), String> {
        self.tuples_left = self.tuples_left.checked_sub(tuples_count).ok_or_else(|| {
            format!("more than {TUPLES_MAX} tuples, those of a group once for each pair of domains")
        })?;
        Ok(())
    }
}
