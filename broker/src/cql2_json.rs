//! CQL2-JSON to conditions. The matcher knows no JSON; here is where it becomes a tree.

mod operand;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use matcher::condition::Condition;
use matcher::condition::expression::{Comparand, Comparison};
use matcher::condition::like::Pattern;
use matcher::condition::text::NESTING_MAX;
use matcher::event::Scalar;
use matcher::geo::World;
use matcher::predicate::Node;
use matcher::predicate::node::{Operand, Sets, Temporal};
use serde_json::Value;

/// The fault of a condition, and its place in the document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail} (at {pointer:?})")]
pub(crate) struct JsonConditionError {
    /// JSON pointer (RFC 6901), empty for the document as a whole.
    pub(crate) pointer: String,
    /// Description of the fault.
    pub(crate) detail: String,
}

/// Reads a condition: a JSON string is CQL2 text, everything else is CQL2-JSON. Places and distances are of the world.
///
/// # Errors
/// [`JsonConditionError`]; the caller puts the pointer of the condition before its own.
pub(crate) fn condition(world: World, document: &Value) -> Result<Condition, JsonConditionError> {
    let whole = |detail: String| JsonConditionError { pointer: String::new(), detail };
    match document {
        Value::String(text) => Condition::parse_in(world, text).map_err(|error| whole(error.to_string())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            let tree = Reader { world }.boolean(Part { value: document, path: &Path::Root }, 0)?;
            Condition::of_node(world, tree).map_err(|error| whole(error.to_string()))
        }
    }
}

/// The way to a part of the document; written out only for an error.
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'static str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn write(&self, pointer: &mut String) {
        // Keys are this module's own and need no escapes; writing to a string cannot fail.
        let _ = match self {
            Self::Root => Ok(()),
            Self::Key(parent, key) => {
                parent.write(pointer);
                write!(pointer, "/{key}")
            }
            Self::Index(parent, index) => {
                parent.write(pointer);
                write!(pointer, "/{index}")
            }
        };
    }
}

/// A part of the document and the way to it.
#[derive(Clone, Copy)]
struct Part<'a> {
    value: &'a Value,
    path: &'a Path<'a>,
}

impl<'a> Part<'a> {
    fn wrong(self, detail: impl Into<String>) -> JsonConditionError {
        let mut pointer = String::new();
        self.path.write(&mut pointer);
        JsonConditionError { pointer, detail: detail.into() }
    }

    fn expected(self, what: &str) -> JsonConditionError {
        self.wrong(format!("expected {what}, found {}", describe(self.value)))
    }

    /// The elements of an array of at least one.
    fn elements(self, what: &str) -> Result<&'a [Value], JsonConditionError> {
        let elements = self.value.as_array().filter(|elements| !elements.is_empty());
        elements.map(Vec::as_slice).ok_or_else(|| self.expected(what))
    }
}

/// `{"op", "args"}` as an operator and its arguments.
struct Operation<'a> {
    op: &'a str,
    args: &'a Value,
}

fn operation(part: Part<'_>) -> Result<Operation<'_>, JsonConditionError> {
    let op = match part.value.get("op") {
        Some(Value::String(op)) => op.as_str(),
        Some(op) => return Err(Part { value: op, path: &Path::Key(part.path, "op") }.expected("a text")),
        None => return Err(part.expected("{\"op\": .., \"args\": [..]}")),
    };
    match part.value.get("args") {
        Some(args) => Ok(Operation { op, args }),
        None => Err(part.wrong(format!("the operation {op:?} has no \"args\""))),
    }
}

/// The operation is not one that could stand here.
fn unknown_op(part: Part<'_>, op: &str, place: &str) -> JsonConditionError {
    Part { path: &Path::Key(part.path, "op"), ..part }
        .wrong(format!("{} is not supported{place}", describe_op(op)))
}

/// Reads the parts of a document. Recursion is bounded by [`NESTING_MAX`], as in a text: each function has the number of operations
/// around it.
#[derive(Clone, Copy)]
struct Reader {
    world: World,
}

impl Reader {
    fn boolean(self, part: Part<'_>, depth: usize) -> Result<Node, JsonConditionError> {
        if let Value::Bool(truth) = part.value {
            return Ok(Node::Constant(*truth));
        }
        let Operation { op, args } = operation(part)?;
        if matches!(op, "and" | "or" | "not") {
            check_depth(part, depth)?;
        }
        let path = Path::Key(part.path, "args");
        let args = Part { value: args, path: &path };
        match op {
            "and" => Ok(Node::And(self.operands(args, depth)?)),
            "or" => Ok(Node::Or(self.operands(args, depth)?)),
            "not" => {
                let [inner] = fixed(args)?;
                let inner = self.boolean(Part { value: inner, path: &Path::Index(&path, 0) }, depth + 1)?;
                Ok(Node::Not(Box::new(inner)))
            }
            _ => match comparison(op) {
                Some(comparison) => Ok(Node::Compare(comparison, Box::new(self.pair(args, depth)?))),
                None => self.predicate(op, part, args, depth),
            },
        }
    }

    fn operands(self, args: Part<'_>, depth: usize) -> Result<Vec<Node>, JsonConditionError> {
        let elements = args.elements("an array of conditions")?.iter().enumerate();
        elements
            .map(|(index, value)| {
                self.boolean(Part { value, path: &Path::Index(args.path, index) }, depth + 1)
            })
            .collect()
    }

    /// Two values.
    fn pair(self, args: Part<'_>, depth: usize) -> Result<[Operand; 2], JsonConditionError> {
        let [left, right] = fixed(args)?;
        let left = self.operand(Part { value: left, path: &Path::Index(args.path, 0) }, depth)?;
        Ok([left, self.operand(Part { value: right, path: &Path::Index(args.path, 1) }, depth)?])
    }

    /// All that is neither a connective nor a comparison.
    fn predicate(
        self,
        op: &str,
        part: Part<'_>,
        args: Part<'_>,
        depth: usize,
    ) -> Result<Node, JsonConditionError> {
        let at = |index| Path::Index(args.path, index);
        if let Some(relation) = Temporal::of(op) {
            let [left, right] = fixed(args)?;
            let left = self.temporal(Part { value: left, path: &at(0) }, relation, depth)?;
            let right = self.temporal(Part { value: right, path: &at(1) }, relation, depth)?;
            return Ok(Node::Temporal(relation, Box::new([left, right])));
        }
        if let Some(relation) = Sets::of(op) {
            let [left, right] = fixed(args)?;
            let left = self.array(Part { value: left, path: &at(0) }, depth)?;
            let right = self.array(Part { value: right, path: &at(1) }, depth)?;
            return Ok(Node::Sets(relation, Box::new([left, right])));
        }
        match op {
            "between" => {
                let [value, low, high] = fixed(args)?;
                let value = self.operand(Part { value, path: &at(0) }, depth)?;
                let low = self.operand(Part { value: low, path: &at(1) }, depth)?;
                let high = self.operand(Part { value: high, path: &at(2) }, depth)?;
                Ok(Node::Between(Box::new([value, low, high])))
            }
            "in" => {
                let [value, list] = fixed(args)?;
                let value = self.operand(Part { value, path: &at(0) }, depth)?;
                let (list, path) = (Part { value: list, path: &at(1) }, at(1));
                let elements = list.elements("an array of values")?.iter().enumerate();
                let list = elements.map(|(index, value)| {
                    self.operand(Part { value, path: &Path::Index(&path, index) }, depth)
                });
                Ok(Node::In(value, list.collect::<Result<_, _>>()?))
            }
            "like" => {
                let [value, pattern] = fixed(args)?;
                let value = self.operand(Part { value, path: &at(0) }, depth)?;
                Ok(Node::Like(value, self.pattern(Part { value: pattern, path: &at(1) }, depth)?))
            }
            "isNull" => {
                let [value] = fixed(args)?;
                Ok(Node::IsNull(self.operand(Part { value, path: &at(0) }, depth)?))
            }
            "s_within" => {
                let [of, polygon] = fixed(args)?;
                let variable = variable(Part { value: of, path: &at(0) })?;
                let polygon = self.polygon(Part { value: polygon, path: &at(1) })?;
                Ok(Node::Within(variable, Box::new(polygon)))
            }
            "same" => {
                let [a, b] = fixed(args)?;
                let a = event_variable(Part { value: a, path: &at(0) })?;
                Ok(Node::Same(a, event_variable(Part { value: b, path: &at(1) })?))
            }
            _ => Err(unknown_op(part, op, "")),
        }
    }

    fn pattern(self, part: Part<'_>, depth: usize) -> Result<Pattern, JsonConditionError> {
        let Operand::Value(Comparand::Scalar(Scalar::Text(text))) = self.operand(part, depth)? else {
            return Err(part.expected("a text"));
        };
        Pattern::new(text.as_str()).map_err(|error| part.wrong(error.to_string()))
    }
}

fn check_depth(part: Part<'_>, depth: usize) -> Result<(), JsonConditionError> {
    if depth < NESTING_MAX {
        return Ok(());
    }
    Err(part.wrong(format!("operations nest deeper than {NESTING_MAX} levels")))
}

fn comparison(op: &str) -> Option<Comparison> {
    Some(match op {
        "=" => Comparison::Equal,
        "<>" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The event or the client as an argument of a function of places: variables 0 and 1.
fn variable(part: Part<'_>) -> Result<usize, JsonConditionError> {
    match part.value.get("property").and_then(Value::as_str) {
        Some("event") => Ok(0),
        Some("me") => Ok(1),
        _ => Err(part.expected("{\"property\": \"event\"} or {\"property\": \"me\"}")),
    }
}

/// The event as an argument of any other function.
fn event_variable(part: Part<'_>) -> Result<usize, JsonConditionError> {
    match part.value.get("property").and_then(Value::as_str) {
        Some("event") => Ok(0),
        Some("me") => Err(part.wrong(
            "'me' in this function is not supported: a client has a place, for distance, lon, lat and s_within, and no time",
        )),
        _ => Err(part.expected("{\"property\": \"event\"}")),
    }
}

/// Exactly as many arguments as the operator takes.
fn fixed<const COUNT: usize>(args: Part<'_>) -> Result<&[Value; COUNT], JsonConditionError> {
    let elements = args.value.as_array().ok_or_else(|| args.expected("an array of arguments"))?;
    let wrong = || args.wrong(format!("expected {COUNT} arguments, found {}", elements.len()));
    elements.as_slice().try_into().map_err(|_| wrong())
}

/// How much of a document's own words a message repeats, in characters.
const SHOWN_CHARS_MAX: usize = 40;

fn describe_op(op: &str) -> String {
    let shown: String = op.chars().take(SHOWN_CHARS_MAX).collect();
    format!("the operation {shown:?}")
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(elements) if elements.is_empty() => "an empty array",
        Value::Array(_) => "an array",
        Value::Object(_) => "another object",
    }
}
