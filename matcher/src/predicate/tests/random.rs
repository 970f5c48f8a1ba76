//! Random predicates against an evaluator that knows nothing of trees, sets or short cuts.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{VARIABLES, at};
use crate::condition::expression::Truth;
use crate::event::{Event, Scalar, Value as EventValue};
use crate::geo::World;
use crate::predicate::{Join, Predicate, Subject};

/// A value by itself.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum One {
    Number(f64),
    Text(String),
    Bool(bool),
}

#[derive(Clone, Debug)]
enum Value {
    One(One),
    Many(Vec<One>),
}

#[derive(Clone, Debug)]
enum Term {
    Literal(One),
    Attribute(usize, &'static str),
    Operation(&'static str, Box<Term>, Box<Term>),
    Minus(Box<Term>),
    Abs(Box<Term>),
    Casei(Box<Term>),
    Distance(usize, usize),
    Elapsed(usize, usize),
    Speed(usize, usize),
    Lon(usize),
}

#[derive(Clone, Debug)]
enum Formula {
    Constant(bool),
    Not(Box<Formula>),
    Joined(bool, Vec<Formula>),
    Compare(&'static str, Term, Term),
    Between(Term, Term, Term),
    In(Term, Vec<Term>),
    IsNull(Term),
    Sets(&'static str, Term, Vec<Term>),
    Same(usize, usize),
}

const ATTRIBUTES: [&str; 3] = ["n", "t", "list"];

fn ones() -> impl Strategy<Value = One> {
    prop_oneof![
        3 => (-2..4_i32).prop_map(|number| One::Number(number.into())),
        1 => select(&[0.5, 1e300][..]).prop_map(One::Number),
        2 => select(&["", "a", "A", "b"][..]).prop_map(|text| One::Text(text.to_owned())),
        1 => any::<bool>().prop_map(One::Bool),
    ]
}

fn attributes() -> impl Strategy<Value = Term> {
    (0..3_usize, select(&ATTRIBUTES[..])).prop_map(|(variable, name)| Term::Attribute(variable, name))
}

fn terms() -> impl Strategy<Value = Term> {
    let pair = || (0..3_usize, 0..3_usize);
    let leaves = prop_oneof![
        3 => ones().prop_map(Term::Literal),
        4 => attributes(),
        1 => pair().prop_map(|(a, b)| Term::Distance(a, b)),
        1 => pair().prop_map(|(a, b)| Term::Elapsed(a, b)),
        1 => pair().prop_map(|(a, b)| Term::Speed(a, b)),
        1 => (0..3_usize).prop_map(Term::Lon),
    ];
    leaves.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            4 => (select(&["+", "-", "*", "/", "%", "div", "^"][..]), inner.clone(), inner.clone())
                .prop_map(|(operator, a, b)| Term::Operation(operator, Box::new(a), Box::new(b))),
            1 => inner.clone().prop_map(|inner| Term::Minus(Box::new(inner))),
            1 => inner.prop_map(|inner| Term::Abs(Box::new(inner))),
            1 => attributes().prop_map(|inner| Term::Casei(Box::new(inner))),
        ]
    })
}

fn formulas() -> impl Strategy<Value = Formula> {
    let comparisons = || select(&["=", "<>", "<", "<=", ">", ">="][..]);
    let sets = || select(&["A_EQUALS", "A_CONTAINS", "A_CONTAINEDBY", "A_OVERLAPS"][..]);
    let leaves = prop_oneof![
        1 => any::<bool>().prop_map(Formula::Constant),
        8 => (comparisons(), terms(), terms()).prop_map(|(op, a, b)| Formula::Compare(op, a, b)),
        2 => (terms(), terms(), terms()).prop_map(|(a, b, c)| Formula::Between(a, b, c)),
        2 => (terms(), vec(terms(), 1..4)).prop_map(|(a, list)| Formula::In(a, list)),
        1 => terms().prop_map(Formula::IsNull),
        2 => (sets(), attributes(), vec(ones().prop_map(Term::Literal), 0..4))
            .prop_map(|(op, a, list)| Formula::Sets(op, a, list)),
        1 => (0..3_usize, 0..3_usize).prop_map(|(a, b)| Formula::Same(a, b)),
    ];
    leaves.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Formula::Not(Box::new(inner))),
            (any::<bool>(), vec(inner, 1..4)).prop_map(|(and, inner)| Formula::Joined(and, inner)),
        ]
    })
}

impl Term {
    fn text(&self) -> String {
        let pair = |name: &str, a: &usize, b: &usize| format!("{name}({}, {})", VARIABLES[*a], VARIABLES[*b]);
        match self {
            Self::Literal(One::Number(number)) => number.to_string(),
            Self::Literal(One::Text(text)) => format!("'{text}'"),
            Self::Literal(One::Bool(truth)) => truth.to_string(),
            Self::Attribute(variable, name) => format!("{}.{name}", VARIABLES[*variable]),
            Self::Operation(operator, a, b) => format!("({} {operator} {})", a.text(), b.text()),
            Self::Minus(inner) => format!("-({})", inner.text()),
            Self::Abs(inner) => format!("ABS({})", inner.text()),
            Self::Casei(inner) => format!("CASEI({})", inner.text()),
            Self::Distance(a, b) => pair("DISTANCE", a, b),
            Self::Elapsed(a, b) => pair("ELAPSED", a, b),
            Self::Speed(a, b) => pair("SPEED", a, b),
            Self::Lon(a) => format!("LON({})", VARIABLES[*a]),
        }
    }

    fn reads_missing(&self, world: &Scene) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Attribute(variable, _) | Self::Lon(variable) => world.missing(*variable),
            Self::Operation(_, a, b) => a.reads_missing(world) || b.reads_missing(world),
            Self::Minus(inner) | Self::Abs(inner) | Self::Casei(inner) => inner.reads_missing(world),
            Self::Distance(a, b) | Self::Elapsed(a, b) | Self::Speed(a, b) => {
                world.missing(*a) || world.missing(*b)
            }
        }
    }

    fn number(&self, world: &Scene) -> Option<f64> {
        match self.value(world)? {
            Value::One(One::Number(number)) => Some(number),
            Value::One(_) | Value::Many(_) => None,
        }
    }

    fn value(&self, world: &Scene) -> Option<Value> {
        let of_number = |number: f64| Some(Value::One(One::Number(number)));
        match self {
            Self::Literal(one) => Some(Value::One(one.clone())),
            Self::Attribute(variable, name) => world.attribute(*variable, name),
            Self::Operation(operator, a, b) => {
                let (a, b) = (a.number(world)?, b.number(world)?);
                let result = match *operator {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "/" => a / b,
                    "%" => a % b,
                    "div" => (a / b).trunc(),
                    "^" => a.powf(b),
                    other => panic!("{other}"),
                };
                if result.is_finite() { of_number(result) } else { None }
            }
            Self::Minus(inner) => of_number(-inner.number(world)?),
            Self::Abs(inner) => of_number(inner.number(world)?.abs()),
            Self::Casei(inner) => {
                let lower = |one: One| match one {
                    One::Text(text) => One::Text(text.to_lowercase()),
                    One::Number(_) | One::Bool(_) => one,
                };
                Some(match inner.value(world)? {
                    Value::One(one) => Value::One(lower(one)),
                    Value::Many(many) => Value::Many(many.into_iter().map(lower).collect()),
                })
            }
            Self::Distance(a, b) => of_number(world.distance_m(*a, *b)?),
            Self::Elapsed(a, b) => of_number(world.elapsed_s(*a, *b)?),
            Self::Speed(a, b) => {
                let (metres, seconds) = (world.distance_m(*a, *b)?, world.elapsed_s(*a, *b)?);
                if seconds == 0.0 { None } else { of_number(metres / seconds.abs()) }
            }
            Self::Lon(a) => of_number(world.events[*a].as_ref()?.0.position.x()),
        }
    }
}

/// SQL's three values, `None` for unknown.
type Kleene = Option<bool>;

fn compares(op: &str, a: &One, b: &One) -> Kleene {
    if std::mem::discriminant(a) != std::mem::discriminant(b) {
        return None;
    }
    Some(match op {
        "=" => a == b,
        "<>" => a != b,
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        other => panic!("{other}"),
    })
}

/// Some element of the only array, or the values themselves.
fn some(values: Vec<Option<Value>>, test: &dyn Fn(&[One]) -> Kleene) -> Kleene {
    let values: Vec<Value> = values.into_iter().collect::<Option<_>>()?;
    let arrays = values.iter().filter(|value| matches!(value, Value::Many(_))).count();
    if arrays > 1 {
        return None;
    }
    let mut choices = vec![Vec::new()];
    for value in values {
        let elements = match value {
            Value::One(one) => vec![one],
            Value::Many(many) => many,
        };
        choices = choices
            .iter()
            .flat_map(|begun| {
                elements.iter().map(move |one| [begun.as_slice(), std::slice::from_ref(one)].concat())
            })
            .collect();
    }
    if arrays == 0 {
        return test(&choices[0]);
    }
    Some(choices.iter().any(|choice| test(choice) == Some(true)))
}

impl Formula {
    fn text(&self) -> String {
        let list = |terms: &[Term]| terms.iter().map(Term::text).collect::<Vec<_>>().join(", ");
        match self {
            Self::Constant(truth) => truth.to_string(),
            Self::Not(inner) => format!("NOT ({})", inner.text()),
            Self::Joined(and, inner) => {
                let inner: Vec<String> = inner.iter().map(|inner| format!("({})", inner.text())).collect();
                inner.join(if *and { " AND " } else { " OR " })
            }
            Self::Compare(op, a, b) => format!("{} {op} {}", a.text(), b.text()),
            Self::Between(a, b, c) => format!("{} BETWEEN {} AND {}", a.text(), b.text(), c.text()),
            Self::In(a, terms) => format!("{} IN ({})", a.text(), list(terms)),
            Self::IsNull(a) => format!("{} IS NULL", a.text()),
            Self::Sets(op, a, terms) => format!("{op}({}, ({}))", a.text(), list(terms)),
            Self::Same(a, b) => format!("SAME({}, {})", VARIABLES[*a], VARIABLES[*b]),
        }
    }

    fn truth(&self, world: &Scene) -> Kleene {
        match self {
            Self::Constant(truth) => Some(*truth),
            Self::Not(inner) => inner.truth(world).map(|truth| !truth),
            Self::Joined(and, inner) => {
                let truths: Vec<Kleene> = inner.iter().map(|inner| inner.truth(world)).collect();
                if truths.contains(&Some(!and)) {
                    Some(!and)
                } else if truths.contains(&None) {
                    None
                } else {
                    Some(*and)
                }
            }
            Self::Compare(op, a, b) => {
                some(vec![a.value(world), b.value(world)], &|values| compares(op, &values[0], &values[1]))
            }
            Self::Between(a, b, c) => some(vec![a.value(world), b.value(world), c.value(world)], &|values| {
                Some(compares(">=", &values[0], &values[1])? & compares("<=", &values[0], &values[2])?)
            }),
            Self::In(a, terms) => {
                let value = a.value(world)?;
                let equal = |term: &Term| {
                    some(vec![Some(value.clone()), term.value(world)], &|pair| {
                        compares("=", &pair[0], &pair[1])
                    })
                };
                let truths: Vec<Kleene> = terms.iter().map(equal).collect();
                if truths.contains(&Some(true)) {
                    Some(true)
                } else if truths.contains(&None) {
                    None
                } else {
                    Some(false)
                }
            }
            Self::IsNull(a) => {
                if a.reads_missing(world) {
                    None
                } else {
                    Some(a.value(world).is_none())
                }
            }
            Self::Sets(op, a, terms) => {
                let Value::Many(left) = a.value(world)? else { return None };
                let right: Vec<One> = terms
                    .iter()
                    .filter_map(|term| match term.value(world)? {
                        Value::One(one) => Some(one),
                        Value::Many(_) => None,
                    })
                    .collect();
                let all = |a: &[One], b: &[One]| a.iter().all(|one| b.contains(one));
                Some(match *op {
                    "A_EQUALS" => all(&left, &right) && all(&right, &left),
                    "A_CONTAINS" => all(&right, &left),
                    "A_CONTAINEDBY" => all(&left, &right),
                    _ => left.iter().any(|one| right.contains(one)),
                })
            }
            Self::Same(a, b) => {
                if world.missing(*a) || world.missing(*b) {
                    None
                } else {
                    Some(a == b)
                }
            }
        }
    }
}

/// Up to three events with their times.
#[derive(Debug)]
struct Scene {
    events: Vec<Option<(Event, i64)>>,
}

impl Scene {
    fn missing(&self, variable: usize) -> bool {
        self.events[variable].is_none()
    }

    fn attribute(&self, variable: usize, name: &str) -> Option<Value> {
        let one = |scalar: &Scalar| match scalar {
            Scalar::Number(number) => One::Number(*number),
            Scalar::Text(text) => One::Text(text.as_str().to_owned()),
            Scalar::Bool(truth) => One::Bool(*truth),
        };
        let attributes = &self.events[variable].as_ref()?.0.attributes;
        let attribute = attributes.iter().find(|attribute| attribute.name.as_str() == name)?;
        Some(match &attribute.value {
            EventValue::Scalar(scalar) => Value::One(one(scalar)),
            EventValue::Array(elements) => Value::Many(elements.iter().map(one).collect()),
        })
    }

    fn distance_m(&self, a: usize, b: usize) -> Option<f64> {
        let place = |variable: usize| Some(self.events[variable].as_ref()?.0.position);
        Some(World::Geodetic.distance_m(&place(a)?, &place(b)?))
    }

    #[expect(clippy::cast_precision_loss, reason = "times of tests are small")]
    fn elapsed_s(&self, a: usize, b: usize) -> Option<f64> {
        Some((self.events[b].as_ref()?.1 - self.events[a].as_ref()?.1) as f64 / 1_000.0)
    }

    fn subjects(&self) -> Vec<Option<Subject<'_>>> {
        let subject = |(identity, held)| {
            let (event, time_ms): &(Event, i64) = Option::as_ref(held)?;
            Some(Subject { event, time_ms: *time_ms, identity })
        };
        (0..).zip(&self.events).map(subject).collect()
    }
}

fn scenes() -> impl Strategy<Value = Scene> {
    let scalar = |one: One| match one {
        One::Number(number) => Scalar::Number(number),
        One::Text(text) => Scalar::Text(text.as_str().into()),
        One::Bool(truth) => Scalar::Bool(truth),
    };
    let value = move || {
        prop_oneof![
            3 => ones().prop_map(move |one| EventValue::Scalar(scalar(one))),
            1 => vec(ones().prop_map(scalar), 0..4).prop_map(EventValue::Array),
        ]
    };
    let event = (vec(proptest::option::of(value()), ATTRIBUTES.len()), 0..3_i32, 0..3_i64).prop_map(
        |(values, place, time)| {
            let values = ATTRIBUTES.iter().zip(values).filter_map(|(name, value)| Some((*name, value?)));
            let event = at(f64::from(place), 0.0);
            (values.fold(event, |event, (name, value)| event.with(name, value)), time * 500)
        },
    );
    vec(proptest::option::weighted(0.9, event), 3).prop_map(|events| Scene { events })
}

/// Whether a join holds, by its definition.
fn holds(join: &Join, scene: &Scene) -> bool {
    match join {
        Join::Equal { a, b } => {
            let [a, b] = [a, b].map(|(variable, name)| scene.attribute(*variable, name.as_str()));
            some(vec![a, b], &|pair| compares("=", &pair[0], &pair[1])) == Some(true)
        }
        Join::Within { a, b, metres } => scene.distance_m(*a, *b).is_some_and(|found| found <= *metres),
        Join::Elapsed { a, b, from_s, to_s } => {
            scene.elapsed_s(*a, *b).is_some_and(|found| (*from_s..=*to_s).contains(&found))
        }
        Join::Speed { a, b, most_m_per_s } => match (scene.distance_m(*a, *b), scene.elapsed_s(*a, *b)) {
            (Some(metres), Some(seconds)) => metres / seconds.abs() <= *most_m_per_s,
            _ => false,
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    #[test]
    fn random_predicates_mean_what_the_evaluator_says(formula in formulas(), scenes in vec(scenes(), 4)) {
        let text = formula.text();
        let predicate = match Predicate::parse(World::Geodetic, &text, &VARIABLES) {
            Ok(predicate) => predicate,
            Err(error) => return Err(TestCaseError::fail(format!("{text}: {error}"))),
        };
        for scene in scenes {
            let expected = match formula.truth(&scene) {
                Some(truth) => truth.into(),
                None => Truth::Unknown,
            };
            prop_assert_eq!(predicate.truth(&scene.subjects()), expected, "{} {:?}", text, scene);
            let bound = predicate.variables().all(|variable| !scene.missing(variable));
            let joins = match expected {
                Truth::True => predicate.necessary(),
                Truth::False | Truth::Unknown if bound => predicate.necessary_for_failure(),
                Truth::False | Truth::Unknown => Vec::new(),
            };
            for join in joins {
                prop_assert!(holds(&join, &scene), "{} {:?} {:?}", text, join, scene);
            }
        }
    }
}
