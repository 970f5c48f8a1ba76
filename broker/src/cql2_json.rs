//! CQL2-JSON to conditions. The matcher knows no JSON; here is where it becomes an expression.

use std::fmt::Write;

use matcher::condition::Condition;
use matcher::condition::expression::{
    Comparand, Comparison, Constraint, Date, Expression, Test, Timestamp, fold_case,
};
use matcher::condition::like::Pattern;
use matcher::condition::text::NESTING_MAX;
use matcher::event::{Scalar, Symbol};
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

/// Reads a condition: a JSON string is CQL2 text, everything else is CQL2-JSON.
///
/// # Errors
/// [`JsonConditionError`]; the caller puts the pointer of the condition before its own.
pub(crate) fn condition(document: &Value) -> Result<Condition, JsonConditionError> {
    let whole = |detail: String| JsonConditionError { pointer: String::new(), detail };
    match document {
        Value::String(text) => Condition::parse(text).map_err(|error| whole(error.to_string())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Condition::new(expression(document)?).map_err(|error| whole(error.to_string()))
        }
    }
}

/// Reads CQL2-JSON. Recursion is bounded by [`NESTING_MAX`], as in a text.
///
/// # Errors
/// [`JsonConditionError`], with the pointer to the part that is wrong.
pub(crate) fn expression(document: &Value) -> Result<Expression, JsonConditionError> {
    boolean(Node { value: document, path: &Path::Root }, 0)
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
struct Node<'a> {
    value: &'a Value,
    path: &'a Path<'a>,
}

/// One side of a comparison.
enum Operand {
    Attribute { name: Symbol, casei: bool },
    Value(Comparand),
}

impl<'a> Node<'a> {
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

fn operation(node: Node<'_>) -> Result<Operation<'_>, JsonConditionError> {
    let op = match node.value.get("op") {
        Some(Value::String(op)) => op.as_str(),
        Some(op) => return Err(Node { value: op, path: &Path::Key(node.path, "op") }.expected("a text")),
        None => return Err(node.expected("{\"op\": .., \"args\": [..]}")),
    };
    match node.value.get("args") {
        Some(args) => Ok(Operation { op, args }),
        None => Err(node.wrong(format!("the operation {op:?} has no \"args\""))),
    }
}

fn boolean(node: Node<'_>, depth: usize) -> Result<Expression, JsonConditionError> {
    if let Value::Bool(truth) = node.value {
        return Ok(Expression::Constant(*truth));
    }
    let Operation { op, args } = operation(node)?;
    let path = Path::Key(node.path, "args");
    let args = Node { value: args, path: &path };
    let connective = matches!(op, "and" | "or" | "not");
    if connective && depth >= NESTING_MAX {
        return Err(node.wrong(format!("operations nest deeper than {NESTING_MAX} levels")));
    }
    match op {
        "and" => Ok(Expression::And(operands(args, depth)?)),
        "or" => Ok(Expression::Or(operands(args, depth)?)),
        "not" => {
            let [inner] = fixed(args)?;
            let inner = boolean(Node { value: inner, path: &Path::Index(&path, 0) }, depth + 1)?;
            Ok(Expression::Not(Box::new(inner)))
        }
        _ => match comparison(op) {
            Some(comparison) => compare(args, comparison),
            None => predicate(op, node, args),
        },
    }
}

fn operands(args: Node<'_>, depth: usize) -> Result<Vec<Expression>, JsonConditionError> {
    let elements = args.elements("an array of conditions")?.iter().enumerate();
    elements
        .map(|(index, value)| boolean(Node { value, path: &Path::Index(args.path, index) }, depth + 1))
        .collect()
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

/// An attribute and a value in either order.
fn compare(args: Node<'_>, comparison: Comparison) -> Result<Expression, JsonConditionError> {
    let [left, right] = fixed(args)?;
    let (left_path, right_path) = (Path::Index(args.path, 0), Path::Index(args.path, 1));
    let left = operand(Node { value: left, path: &left_path })?;
    let right = operand(Node { value: right, path: &right_path })?;
    let (name, casei, test) = match (left, right) {
        (Operand::Attribute { name, casei }, Operand::Value(value)) => {
            (name, casei, Test::Compare(comparison, value))
        }
        (Operand::Value(value), Operand::Attribute { name, casei }) => {
            (name, casei, Test::Compare(comparison.flipped(), value))
        }
        (Operand::Attribute { .. }, Operand::Attribute { .. }) => {
            return Err(args.wrong("comparing two attributes is not supported"));
        }
        (Operand::Value(_), Operand::Value(_)) => {
            return Err(args.wrong("comparing two values is not supported"));
        }
    };
    Ok(Expression::Constraint(Constraint { name, casei, test }))
}

/// The operators that take an attribute first.
fn predicate(op: &str, node: Node<'_>, args: Node<'_>) -> Result<Expression, JsonConditionError> {
    let at = |index| Path::Index(args.path, index);
    let (first, test) = match op {
        "between" => {
            let [first, low, high] = fixed(args)?;
            let low = comparand(Node { value: low, path: &at(1) })?;
            (first, Test::Between(low, comparand(Node { value: high, path: &at(2) })?))
        }
        "in" => {
            let [first, list] = fixed(args)?;
            (first, Test::In(comparands(Node { value: list, path: &at(1) })?))
        }
        "like" => {
            let [first, pattern] = fixed(args)?;
            (first, Test::Like(like_pattern(Node { value: pattern, path: &at(1) })?))
        }
        "isNull" => {
            let [first] = fixed(args)?;
            (first, Test::IsNull)
        }
        _ => {
            return Err(Node { path: &Path::Key(node.path, "op"), ..node }
                .wrong(format!("{} is not supported", describe_op(op))));
        }
    };
    let first = Node { value: first, path: &at(0) };
    match operand(first)? {
        // Presence has no case.
        Operand::Attribute { name, casei } => {
            Ok(Expression::Constraint(Constraint { name, casei: casei && test != Test::IsNull, test }))
        }
        Operand::Value(_) => Err(first.expected("an attribute, {\"property\": ..}")),
    }
}

fn like_pattern(node: Node<'_>) -> Result<Pattern, JsonConditionError> {
    match operand(node)? {
        Operand::Value(Comparand::Scalar(Scalar::Text(text))) => {
            Pattern::new(text.as_str()).map_err(|error| node.wrong(error.to_string()))
        }
        Operand::Value(_) | Operand::Attribute { .. } => Err(node.expected("a text")),
    }
}

fn comparands(node: Node<'_>) -> Result<Vec<Comparand>, JsonConditionError> {
    let elements = node.elements("an array of values")?.iter().enumerate();
    elements.map(|(index, value)| comparand(Node { value, path: &Path::Index(node.path, index) })).collect()
}

fn comparand(node: Node<'_>) -> Result<Comparand, JsonConditionError> {
    match operand(node)? {
        Operand::Value(value) => Ok(value),
        Operand::Attribute { .. } => Err(node.wrong("comparing two attributes is not supported")),
    }
}

/// An attribute or a value, either under `casei`.
fn operand(node: Node<'_>) -> Result<Operand, JsonConditionError> {
    const EXPECTED: &str = "a number, a text, true, false, {\"property\": ..} or a casei of these";
    let value = |scalar| Operand::Value(Comparand::Scalar(scalar));
    match node.value {
        Value::Bool(truth) => Ok(value(Scalar::Bool(*truth))),
        Value::String(text) => Ok(value(Scalar::Text(Symbol::from(text.as_str())))),
        Value::Number(number) => match number.as_f64().filter(|number| number.is_finite()) {
            Some(number) => Ok(value(Scalar::Number(number))),
            None => Err(node.wrong(format!("the number {number} is too large"))),
        },
        Value::Null => Err(node.wrong("whether an attribute is absent is asked with isNull")),
        Value::Array(_) => Err(node.expected(EXPECTED)),
        Value::Object(members) => match members.get("property") {
            Some(Value::String(name)) => {
                Ok(Operand::Attribute { name: Symbol::from(name.as_str()), casei: false })
            }
            Some(name) => {
                Err(Node { value: name, path: &Path::Key(node.path, "property") }.expected("a text"))
            }
            None if members.contains_key("op") => casei(node),
            None => match (members.get("date"), members.get("timestamp")) {
                (Some(text), _) => moment(node, "date", text, |text| Date::parse(text).map(Comparand::Date)),
                (None, Some(text)) => {
                    moment(node, "timestamp", text, |text| Timestamp::parse(text).map(Comparand::Timestamp))
                }
                (None, None) if members.contains_key("interval") => {
                    Err(node.wrong("a value of type interval is not supported"))
                }
                (None, None) => Err(node.expected(EXPECTED)),
            },
        },
    }
}

/// `{"date": ".."}` or `{"timestamp": ".."}`.
fn moment(
    node: Node<'_>,
    kind: &'static str,
    value: &Value,
    read: impl FnOnce(&str) -> Option<Comparand>,
) -> Result<Operand, JsonConditionError> {
    let node = Node { value, path: &Path::Key(node.path, kind) };
    let text = value.as_str().ok_or_else(|| node.expected("a text"))?;
    let form = if kind == "date" { "2026-01-31" } else { "2026-01-31T08:30:00Z, in UTC" };
    read(text).map(Operand::Value).ok_or_else(|| node.wrong(format!("must be a {kind} such as {form}")))
}

fn casei(node: Node<'_>) -> Result<Operand, JsonConditionError> {
    let Operation { op, args } = operation(node)?;
    if op != "casei" {
        let path = Path::Key(node.path, "op");
        return Err(Node { path: &path, ..node }.wrong(format!("{} is not supported here", describe_op(op))));
    }
    let path = Path::Key(node.path, "args");
    let [inner] = fixed(Node { value: args, path: &path })?;
    let inner = Node { value: inner, path: &Path::Index(&path, 0) };
    // Looked at before it is read, so that casei within casei does not recurse.
    match inner.value {
        Value::String(text) => Ok(Operand::Value(Scalar::Text(Symbol::new(fold_case(text))).into())),
        Value::Object(members) if members.contains_key("property") => match operand(inner)? {
            Operand::Attribute { name, .. } => Ok(Operand::Attribute { name, casei: true }),
            value @ Operand::Value(_) => Ok(value),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(inner.expected("a text or {\"property\": ..}"))
        }
    }
}

/// Exactly as many arguments as the operator takes.
fn fixed<const COUNT: usize>(args: Node<'_>) -> Result<&[Value; COUNT], JsonConditionError> {
    let elements = args.value.as_array().ok_or_else(|| args.expected("an array of arguments"))?;
    let wrong = || args.wrong(format!("expected {COUNT} arguments, found {}", elements.len()));
    elements.as_slice().try_into().map_err(|_| wrong())
}

/// How much of a document's own words a message repeats, in characters.
const SHOWN_CHARS_MAX: usize = 40;

fn describe_op(op: &str) -> String {
    match op {
        "+" | "-" | "*" | "/" | "^" | "%" | "div" => "arithmetic".to_owned(),
        "casei" => "\"casei\" as a condition".to_owned(),
        _ => {
            let shown: String = op.chars().take(SHOWN_CHARS_MAX).collect();
            format!("the operation {shown:?}")
        }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The document means what the text means.
    #[track_caller]
    fn check(document: &Value, text: &str) {
        let condition = condition(document).unwrap_or_else(|error| panic!("{document}: {error}"));
        assert_eq!(condition.normal().to_string(), text, "{document}");
        assert_eq!(Some(condition.normal()), Condition::parse(text).ok().as_ref().map(Condition::normal));
    }

    #[track_caller]
    fn check_refused(document: &Value, pointer: &str, detail: &str) {
        match condition(document) {
            Ok(condition) => panic!("{document} is accepted as {}", condition.normal()),
            Err(error) => {
                assert_eq!((error.pointer.as_str(), error.detail.as_str()), (pointer, detail), "{document}");
            }
        }
    }

    #[test]
    fn operators() {
        let a = json!({"property": "a"});
        for op in ["=", "<>", "<", "<=", ">", ">="] {
            check(&json!({"op": op, "args": [a, 5]}), &format!("a {op} 5"));
        }
        check(&json!({"op": "<", "args": [5, a]}), "a > 5");
        check(&json!({"op": "between", "args": [a, 1, 2.5]}), "a BETWEEN 1 AND 2.5");
        check(&json!({"op": "in", "args": [a, [1, "x", true]]}), "a IN (1, 'x', TRUE)");
        check(&json!({"op": "like", "args": [a, "x%"]}), "a LIKE 'x%'");
        check(&json!({"op": "isNull", "args": [{"property": "road.name"}]}), "road.name IS NULL");
        check(&json!({"op": "not", "args": [{"op": "isNull", "args": [a]}]}), "a IS NOT NULL");
        check(&json!(true), "TRUE");
        check(&json!(false), "FALSE");
        check(&json!("a = 1 and b = 2"), "a = 1 AND b = 2");
    }

    #[test]
    fn connectives() {
        let is = |name: &str| json!({"op": "=", "args": [{"property": name}, "x"]});
        check(
            &json!({"op": "and", "args": [{"op": "or", "args": [is("a"), is("b")]}, is("c")]}),
            "a = 'x' AND c = 'x' OR b = 'x' AND c = 'x'",
        );
        check(&json!({"op": "not", "args": [{"op": "or", "args": [is("a"), is("b"), true]}]}), "FALSE");
        check(&json!({"op": "or", "args": [is("AND")]}), "\"AND\" = 'x'");
    }

    #[test]
    fn dates_and_timestamps() {
        let a = json!({"property": "a"});
        let (date, timestamp) =
            (json!({"date": "2026-03-01"}), json!({"timestamp": "2026-03-01T07:30:00.5Z"}));
        check(&json!({"op": "<", "args": [a, date]}), "a < DATE('2026-03-01')");
        check(&json!({"op": "<", "args": [timestamp, a]}), "a > TIMESTAMP('2026-03-01T07:30:00.5Z')");
        check(&json!({"op": "in", "args": [a, [date, 5]]}), "a IN (DATE('2026-03-01'), 5)");
        check(
            &json!({"op": "between", "args": [a, timestamp, timestamp]}),
            "a BETWEEN TIMESTAMP('2026-03-01T07:30:00.5Z') AND TIMESTAMP('2026-03-01T07:30:00.5Z')",
        );
    }

    #[test]
    fn texts_keep_their_backslashes() {
        let is = |text: &str| json!({"op": "=", "args": [{"property": "a"}, text]});
        check(&is("\\"), "a = U&'\\\\'");
        check(&is("it\\'s"), "a = U&'it\\\\''s'");
        check(&is("C:\\x"), "a = 'C:\\x'");
    }

    #[test]
    fn casei_on_either_side() {
        let folded = |inner: Value| json!({"op": "casei", "args": [inner]});
        let a = folded(json!({"property": "a"}));
        check(&json!({"op": "=", "args": [a, folded(json!("Straße"))]}), "CASEI(a) = 'strasse'");
        check(&json!({"op": "like", "args": [a, folded(json!("FOO%"))]}), "CASEI(a) LIKE 'foo%'");
        check(&json!({"op": "in", "args": [a, [folded(json!("X")), "Y"]]}), "CASEI(a) IN ('x', 'Y')");
        check(&json!({"op": "isNull", "args": [a]}), "a IS NULL");
    }

    #[test]
    fn refusals_point_at_the_fault() {
        let a = json!({"property": "a"});
        let array = "an array of conditions";
        for (document, pointer, detail) in [
            (json!(null), "", "expected {\"op\": .., \"args\": [..]}, found null".to_owned()),
            (json!(5), "", "expected {\"op\": .., \"args\": [..]}, found a number".to_owned()),
            (a.clone(), "", "expected {\"op\": .., \"args\": [..]}, found another object".to_owned()),
            (json!({"op": 5}), "/op", "expected a text, found a number".to_owned()),
            (json!({"op": "and"}), "", "the operation \"and\" has no \"args\"".to_owned()),
            (json!({"op": "and", "args": []}), "/args", format!("expected {array}, found an empty array")),
            (json!({"op": "or", "args": {}}), "/args", format!("expected {array}, found another object")),
            (
                json!({"op": "and", "args": [true, "a = 1"]}),
                "/args/1",
                "expected {\"op\": .., \"args\": [..]}, found a text".to_owned(),
            ),
            (json!({"op": "not", "args": []}), "/args", "expected 1 arguments, found 0".to_owned()),
            (json!({"op": "=", "args": [a]}), "/args", "expected 2 arguments, found 1".to_owned()),
            (
                json!({"op": "=", "args": "x"}),
                "/args",
                "expected an array of arguments, found a text".to_owned(),
            ),
            (
                json!({"op": "=", "args": [a, a]}),
                "/args",
                "comparing two attributes is not supported".to_owned(),
            ),
            (json!({"op": "=", "args": [1, 2]}), "/args", "comparing two values is not supported".to_owned()),
            (
                json!({"op": "=", "args": [a, null]}),
                "/args/1",
                "whether an attribute is absent is asked with isNull".to_owned(),
            ),
            (
                json!({"op": "=", "args": [{"property": 5}, 1]}),
                "/args/0/property",
                "expected a text, found a number".to_owned(),
            ),
            (
                json!({"op": "<", "args": [a, {"date": "2026-02-30"}]}),
                "/args/1/date",
                "must be a date such as 2026-01-31".to_owned(),
            ),
            (
                json!({"op": "<", "args": [a, {"timestamp": "2026-03-01T00:00:00+01:00"}]}),
                "/args/1/timestamp",
                "must be a timestamp such as 2026-01-31T08:30:00Z, in UTC".to_owned(),
            ),
            (
                json!({"op": "<", "args": [a, {"timestamp": 5}]}),
                "/args/1/timestamp",
                "expected a text, found a number".to_owned(),
            ),
            (
                json!({"op": "<", "args": [a, {"interval": ["2026-03-01", ".."]}]}),
                "/args/1",
                "a value of type interval is not supported".to_owned(),
            ),
            (
                json!({"op": "=", "args": [{"op": "+", "args": [a, 1]}, 2]}),
                "/args/0/op",
                "arithmetic is not supported here".to_owned(),
            ),
            (
                json!({"op": "s_intersects", "args": [a, {"type": "Point"}]}),
                "/op",
                "the operation \"s_intersects\" is not supported".to_owned(),
            ),
            (
                json!({"op": "in", "args": [a, 5]}),
                "/args/1",
                "expected an array of values, found a number".to_owned(),
            ),
            (
                json!({"op": "in", "args": [a, []]}),
                "/args/1",
                "expected an array of values, found an empty array".to_owned(),
            ),
            (
                json!({"op": "in", "args": [a, [1, a]]}),
                "/args/1/1",
                "comparing two attributes is not supported".to_owned(),
            ),
            (json!({"op": "between", "args": [a, 1]}), "/args", "expected 3 arguments, found 2".to_owned()),
            (
                json!({"op": "isNull", "args": [5]}),
                "/args/0",
                "expected an attribute, {\"property\": ..}, found a number".to_owned(),
            ),
            (json!({"op": "like", "args": [a, 5]}), "/args/1", "expected a text, found a number".to_owned()),
            (
                json!({"op": "and", "args": [{"op": "not", "args": [{"op": "like", "args": [a, "x\\"]}]}]}),
                "/args/0/args/0/args/1",
                "the LIKE pattern ends in a single '\\', which takes the next character literally".to_owned(),
            ),
            (
                json!({"op": "=", "args": [{"op": "casei", "args": [{"op": "casei", "args": [a]}]}, "x"]}),
                "/args/0/args/0",
                "expected a text or {\"property\": ..}, found another object".to_owned(),
            ),
            (json!("a = "), "", "expected a value after '=', found end of text, at column 5".to_owned()),
        ] {
            check_refused(&document, pointer, &detail);
        }
    }

    #[test]
    fn caps_and_depth_are_those_of_texts() {
        let is = json!({"op": "=", "args": [{"property": "a"}, 1]});
        check_refused(
            &json!({"op": "or", "args": vec![is.clone(); 65]}),
            "",
            "the disjunctive form of the condition has 65 conjunctions, at most 64 are allowed",
        );
        check_refused(
            &json!({"op": "and", "args": vec![is.clone(); 33]}),
            "",
            "the disjunctive form of the condition has a conjunction of 33 constraints, at most 32 are allowed",
        );
        let nested =
            |levels: usize| (0..levels).fold(is.clone(), |inner, _| json!({"op": "not", "args": [inner]}));
        check(&nested(NESTING_MAX), "a = 1");
        let pointer = "/args/0".repeat(NESTING_MAX);
        check_refused(&nested(NESTING_MAX + 1), &pointer, "operations nest deeper than 64 levels");
        check_refused(&nested(1_000), &pointer, "operations nest deeper than 64 levels");
    }
}
