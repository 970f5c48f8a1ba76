//! Random conditions over random events.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::condition::Condition;
use crate::condition::expression::{
    Comparand, Comparison, Constraint, Date, Expression, Test, Timestamp, Truth,
};
use crate::condition::like::Pattern;
use crate::condition::text::TEXT_BYTES_MAX;
use crate::event::{Attribute, Event, Scalar, Symbol, Value};
use crate::geo::World;

/// Few names and values, so that they meet; some that have to be quoted.
const NAMES: [&str; 6] = ["a", "b", "road.name", "AND", "two words", "q\"q"];
const TEXTS: [&str; 11] = [
    "",
    "a",
    "ab",
    "A",
    "it's",
    "ß",
    "a%_\\",
    "\u{1F697} \n",
    "\\'",
    "2026-03-01",
    "2026-03-01T01:00:00+01:00",
];

fn scalars() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        (-2..3_i32).prop_map(|number| Scalar::Number(number.into())),
        any::<f64>().prop_filter("numbers are finite", |number| number.is_finite()).prop_map(Scalar::Number),
        select(&TEXTS[..]).prop_map(|text| Scalar::Text(text.into())),
        ".*".prop_map(|text| Scalar::Text(Symbol::new(text))),
        "['\\\\ab]{0,6}".prop_map(|text| Scalar::Text(Symbol::new(text))),
        any::<bool>().prop_map(Scalar::Bool),
    ]
}

fn comparands() -> impl Strategy<Value = Comparand> {
    let days = || (0..=9999_u16, 1..=12_u8, 1..=28_u8).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}"));
    let timestamps = (days(), 0..24_u8, 0..60_u8, 0..=60_u8, "(\\.[0-9]{1,12})?").prop_map(
        |(day, hour, minute, second, fraction)| format!("{day}T{hour:02}:{minute:02}:{second:02}{fraction}Z"),
    );
    let date = |text: &str| Comparand::Date(Date::parse(text).expect("it is a day"));
    let timestamp = |text: &str| Comparand::Timestamp(Timestamp::parse(text).expect("it is a timestamp"));
    prop_oneof![
        6 => scalars().prop_map(Comparand::from),
        1 => days().prop_map(move |text| date(&text)),
        1 => timestamps.prop_map(move |text| timestamp(&text)),
        1 => select(&["2026-03-01", "2026-03-02"][..]).prop_map(date),
        1 => select(&["2026-03-01T00:00:00Z", "2026-03-01T00:00:00.5Z"][..]).prop_map(timestamp),
    ]
}

fn patterns() -> impl Strategy<Value = Pattern> {
    vec(select(&["a", "b", "%", "_", "\\%", "\\\\", "ß", "'"][..]), 0..5)
        .prop_map(|parts| Pattern::new(&parts.concat()).expect("escapes are whole"))
}

fn comparisons() -> impl Strategy<Value = Comparison> {
    select(
        &[
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ][..],
    )
}

fn constraints() -> impl Strategy<Value = Constraint> {
    let tests = prop_oneof![
        4 => (comparisons(), comparands()).prop_map(|(comparison, value)| Test::Compare(comparison, value)),
        1 => (comparands(), comparands()).prop_map(|(low, high)| Test::Between(low, high)),
        1 => vec(comparands(), 1..4).prop_map(Test::In),
        1 => patterns().prop_map(Test::Like),
        1 => Just(Test::IsNull),
    ];
    (select(&NAMES[..]), any::<bool>(), tests).prop_map(|(name, casei, test)| Constraint {
        name: name.into(),
        casei: casei && test != Test::IsNull,
        test,
    })
}

fn residuals() -> impl Strategy<Value = Expression> {
    let name = || select(&NAMES[..]).prop_map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
    (name(), name(), comparisons(), 0..8_u8).prop_map(|(a, b, comparison, kind)| {
        let text = match kind {
            0 => format!("{a} {comparison} {b}"),
            1 => format!("{a} - ({b} - 1) {comparison} -{b} / 2"),
            2 => format!("{a} IN ({b}, 1, 'a')"),
            3 => format!("ACCENTI({a}) LIKE '%_a'"),
            4 => format!("A_CONTAINS({a}, (1, 'a', {b}, DATE('2026-03-01')))"),
            5 => format!("T_AFTER({a}, INTERVAL({b}, '..'))"),
            6 => format!("LON(event) {comparison} {a} % 2"),
            _ => format!("{a} + {b} IS NULL"),
        };
        Condition::parse(&text).expect("it is a condition").expression().clone()
    })
}

fn expressions() -> impl Strategy<Value = Expression> {
    let leaves = prop_oneof![
        1 => any::<bool>().prop_map(Expression::Constant),
        9 => constraints().prop_map(Expression::Constraint),
        3 => residuals(),
    ];
    leaves.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Expression::Not(Box::new(inner))),
            vec(inner.clone(), 0..4).prop_map(Expression::And),
            vec(inner, 0..4).prop_map(Expression::Or),
        ]
    })
}

fn events() -> impl Strategy<Value = Event> {
    let values = || {
        prop_oneof![
            3 => scalars().prop_map(Value::Scalar),
            1 => vec(scalars(), 0..4).prop_map(Value::Array),
        ]
    };
    // Each name once, or not at all.
    vec(proptest::option::of(values()), NAMES.len()).prop_map(|values| {
        let position = World::Planar.position(&[0.0, 0.0]).expect("the origin is in the world");
        let attributes = NAMES.iter().zip(values);
        let attributes = attributes
            .filter_map(|(name, value)| Some(Attribute { name: (*name).into(), value: value? }))
            .collect();
        Event { attributes, ..Event::at(position) }
    })
}

/// `LIKE` as one would define it, trying everything.
fn fits(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        (['%', rest @ ..], text) => (0..=text.len()).any(|start| fits(rest, &text[start..])),
        (['_', rest @ ..], [_, others @ ..]) => fits(rest, others),
        (['\\', letter, rest @ ..], [first, others @ ..]) => letter == first && fits(rest, others),
        ([letter, rest @ ..], [first, others @ ..]) => letter == first && fits(rest, others),
        (_, []) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn the_normal_form_is_true_where_the_tree_is(expression in expressions(), events in vec(events(), 8)) {
        let Ok(condition) = Condition::new(expression) else { return Ok(()) };
        for event in &events {
            let conjunctions = condition.normal().conjunctions();
            let holds = conjunctions.iter().any(|conjunction| conjunction.satisfied(event, None));
            prop_assert_eq!(holds, condition.expression().truth(event) == Truth::True, "{:?}", event);
        }
    }

    #[test]
    fn a_normal_form_is_written_as_a_text_that_means_it(expression in expressions()) {
        let Ok(condition) = Condition::new(expression) else { return Ok(()) };
        let text = condition.normal().to_string();
        prop_assume!(text.len() <= TEXT_BYTES_MAX);
        let again = Condition::parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        prop_assert_eq!(again.normal(), condition.normal(), "{}", text);
    }

    #[test]
    fn a_text_is_written_so_that_it_reads_back(text in "['\\\\aU&]{0,8}") {
        let test = Test::Compare(Comparison::Equal, Scalar::Text(Symbol::new(text)).into());
        let constraint = Constraint { name: "a".into(), casei: false, test };
        let condition = Condition::parse(&constraint.to_string());
        prop_assert_eq!(condition.map(|it| it.expression().clone()), Ok(Expression::Constraint(constraint)));
    }

    #[test]
    fn no_text_is_more_than_refused(text in ".*") {
        if let Err(error) = Condition::parse(&text) {
            prop_assert!(error.place().is_none_or(|place| text.is_char_boundary(place.offset)));
        }
    }

    #[test]
    fn no_sequence_of_tokens_is_more_than_refused(
        tokens in vec(select(&[
            "a", "\"b c\"", "'x'", "1", "-1", "=", "<", "(", ")", ",", "AND", "OR", "NOT", "BETWEEN", "IN",
            "LIKE", "IS", "NULL", "TRUE", "CASEI(", "+", "f(", "DATE('2026-03-01')", "TIMESTAMP(", "'2026-03-01T00:00:00Z'",
            "'\\''", "U&'\\\\'",
        ][..]), 0..16)
    ) {
        let text = tokens.join(" ");
        match Condition::parse(&text) {
            Ok(condition) => {
                let normal = condition.normal().to_string();
                let again = Condition::parse(&normal);
                prop_assert_eq!(again.as_ref().map(Condition::normal), Ok(condition.normal()));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn like_agrees_with_trying_everything(
        parts in vec(select(&["a", "b", "ß", "%", "_", "\\a", "\\%", "\\_", "\\\\"][..]), 0..8),
        text in vec(select(&['a', 'b', 'ß', '%', '_', '\\'][..]), 0..10),
    ) {
        let source = parts.concat();
        let pattern = Pattern::new(&source).expect("escapes are whole");
        let expected = fits(&source.chars().collect::<Vec<_>>(), &text);
        prop_assert_eq!(pattern.matches(&text.iter().collect::<String>()), expected, "{} {:?}", source, text);
    }

    #[test]
    fn plain_like_agrees_with_trying_everything(pattern in "[ab%]{0,7}", text in "[ab]{0,10}") {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        let matches = Pattern::new(&pattern).expect("nothing is escaped").matches(&text);
        prop_assert_eq!(matches, fits(&letters(&pattern), &letters(&text)));
    }
}
