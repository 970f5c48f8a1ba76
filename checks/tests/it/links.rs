//! Links by the table of GAIN's Figure 5, told once until they are gone.

use std::num::NonZeroUsize;
use std::sync::Arc;

use checks::{Bounds, Check, CheckError, Checker, Clock, Context, Document, Formula, Kind, Overflow};
use matcher::World;

use crate::documents;
use crate::world::arrival;

/// Sets `all` and `short`, which hold events for ten seconds and for one, and the formula of a JSON text.
fn document(formula: &str) -> Document {
    let contexts = vec![Context::of_all("all", 10.0), Context::of_all("short", 1.0)];
    Document { contexts, formula: documents::formula_of(formula), clock: Clock::Event }
}

fn kinds() -> [Kind; 3] {
    [Kind::Sequential, Kind::Concurrent(NonZeroUsize::MIN), Kind::Incremental]
}

/// What each event tells: events are seconds and `x`, and stand in links by their number.
#[track_caller]
fn check(formula: &str, events: &[(f64, f64)], expected: &[&[&str]]) {
    let check = Check::new(World::Planar, &document(formula)).expect("the formula is sound");
    let check = Arc::new(check);
    for kind in kinds() {
        let mut checker = Checker::new(check.clone(), kind, Bounds::default());
        let mut told = Vec::new();
        for (number, &(time_s, x)) in events.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, reason = "small and whole")]
            let arrival = arrival([x, 0.0], (time_s * 1_000.0) as i64, &[("x", x.into())]);
            let outcome = checker.take(number, &arrival).expect("few links").expect("all events are taken");
            let mut links: Vec<String> = Vec::new();
            for link in &outcome.told {
                let binding = |binding: &checks::Binding| {
                    let name = check.variables().nth(binding.variable).expect("a variable");
                    format!("{name}={}", checker.event(binding).expect("it is there").1)
                };
                links.push(link.bindings().iter().map(binding).collect::<Vec<_>>().join(" "));
            }
            links.sort_unstable();
            told.push(links);
        }
        assert_eq!(told, expected, "{kind:?}");
    }
}

/// Three events of one second: `x` is 1, 2 and 3.
const THREE: [(f64, f64); 3] = [(0.0, 1.0), (0.0, 2.0), (0.0, 3.0)];

#[test]
fn a_forall_blames_each_event_that_makes_it_false() {
    check(r#"{"forall": "a", "in": "all", "that": "a.x > 2"}"#, &THREE, &[&["a=0"], &["a=1"], &[]]);
    check(
        r#"{"forall": "a", "in": "all", "that": {"forall": "b", "in": "all", "that": "a.x + b.x <> 4"}}"#,
        &THREE,
        &[&[], &["a=1 b=1"], &["a=0 b=2", "a=2 b=0"]],
    );
}

#[test]
fn an_exists_that_is_false_blames_nobody() {
    check(r#"{"exists": "a", "in": "all", "that": "a.x > 5"}"#, &THREE, &[&[""], &[], &[]]);
    // The outer one is to blame alone, and is so no more when a witness came.
    let formula =
        r#"{"forall": "a", "in": "all", "that": {"exists": "b", "in": "all", "that": "b.x = a.x + 1"}}"#;
    check(formula, &[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (11.5, 2.0)], &[&["a=0"], &["a=1"], &["a=2"], &[]]);
    // After 10 s the witness of the event 1 is gone, while it stays itself.
    let formula =
        r#"{"forall": "a", "in": "all", "that": {"exists": "b", "in": "short", "that": "b.x = a.x + 1"}}"#;
    check(formula, &[(0.0, 1.0), (1.0, 2.0), (3.0, 9.0)], &[&["a=0"], &["a=1"], &["a=0", "a=2"]]);
}

#[test]
fn what_is_not_there_is_blamed_by_those_who_are() {
    let formula = r#"{"forall": "a", "in": "all", "that": {"not": {"exists": "b", "in": "all", "that": "b.x = a.x + 1"}}}"#;
    check(formula, &THREE, &[&[], &["a=0 b=1"], &["a=1 b=2"]]);
    let formula = r#"{"not": {"forall": "a", "in": "all", "that": "a.x > 0"}}"#;
    check(formula, &THREE, &[&[""], &[], &[]]);
}

#[test]
fn parts_join_or_add_up() {
    let [p, q] = [
        r#"{"forall": "a", "in": "all", "that": "a.x > 1"}"#,
        r#"{"forall": "b", "in": "all", "that": "b.x < 3"}"#,
    ];
    // An `and` is false by either part, an `or` by both together.
    check(&format!(r#"{{"and": [{p}, {q}]}}"#), &THREE, &[&["a=0"], &[], &["b=2"]]);
    check(&format!(r#"{{"or": [{p}, {q}]}}"#), &THREE, &[&[], &[], &["a=0 b=2"]]);
    check(&format!(r#"{{"implies": [{{"not": {p}}}, {q}]}}"#), &THREE, &[&[], &[], &["a=0 b=2"]]);
    // A part without links is neutral: the other's stand alone.
    check(&format!(r#"{{"or": [{q}, "1 = 2"]}}"#), &THREE, &[&[], &[], &["b=2"]]);
    check(&format!(r#"{{"or": ["1 = 2", {p}]}}"#), &[(0.0, 1.0), (0.0, 0.0)], &[&["a=0"], &["a=1"]]);
    check(r#"{"and": []}"#, &THREE, &[&[], &[], &[]]);
    check(r#"{"or": []}"#, &THREE, &[&[""], &[], &[]]);
}

#[test]
fn an_event_that_adds_to_both_parts_is_joined_with_itself_and_the_others() {
    let [p, q] =
        ["a", "b"].map(|name| format!(r#"{{"forall": "{name}", "in": "all", "that": "{name}.x > 1"}}"#));
    let events = [(0.0, 1.0), (1.0, 1.0), (10.5, 1.0)];
    check(
        &format!(r#"{{"or": [{p}, {q}]}}"#),
        &events,
        &[&["a=0 b=0"], &["a=0 b=1", "a=1 b=0", "a=1 b=1"], &["a=1 b=2", "a=2 b=1", "a=2 b=2"]],
    );
}

#[test]
fn parts_join_inside_a_branch_and_outside() {
    let below = |name: &str| format!(r#"{{"forall": "{name}", "in": "all", "that": "{name}.x <> a.x + 1"}}"#);
    let inner = format!(r#"{{"or": [{}, {}]}}"#, below("b"), below("c"));
    let with = |d: &str| {
        let a = format!(r#"{{"forall": "a", "in": "all", "that": {inner}}}"#);
        format!(r#"{{"or": [{a}, {{"forall": "d", "in": "all", "that": "{d}"}}]}}"#)
    };
    // The violation begins with several branches inside at once.
    check(
        &with("d.x > 0"),
        &[(0.0, 1.0), (0.0, 2.0), (0.0, 2.0), (0.0, 0.0)],
        &[
            &[],
            &[],
            &[],
            &["a=0 b=1 c=1 d=3", "a=0 b=1 c=2 d=3", "a=0 b=2 c=1 d=3", "a=0 b=2 c=2 d=3", "a=3 b=0 c=0 d=3"],
        ],
    );
    check(
        &with("d.x > 1"),
        &[(0.0, 1.0), (0.0, 1.0), (0.0, 2.0), (0.0, 2.0)],
        &[
            &[],
            &[],
            &["a=0 b=2 c=2 d=0", "a=0 b=2 c=2 d=1", "a=1 b=2 c=2 d=0", "a=1 b=2 c=2 d=1"],
            &[
                "a=0 b=2 c=3 d=0",
                "a=0 b=2 c=3 d=1",
                "a=0 b=3 c=2 d=0",
                "a=0 b=3 c=2 d=1",
                "a=0 b=3 c=3 d=0",
                "a=0 b=3 c=3 d=1",
                "a=1 b=2 c=3 d=0",
                "a=1 b=2 c=3 d=1",
                "a=1 b=3 c=2 d=0",
                "a=1 b=3 c=2 d=1",
                "a=1 b=3 c=3 d=0",
                "a=1 b=3 c=3 d=1",
            ],
        ],
    );
}

#[test]
fn links_change_their_variables_as_parts_come_and_go() {
    // While no event is above 2, the first part has no links, and those of the second stand alone.
    let formula = r#"{"not": {"and": [
        {"or": ["1 = 1", {"exists": "a", "in": "short", "that": "a.x > 2"}]},
        {"exists": "b", "in": "all", "that": "b.x = 1"}]}}"#;
    let events = [(0.0, 1.0), (0.0, 3.0), (0.5, 1.0), (3.0, 0.0), (3.0, 4.0)];
    check(
        formula,
        &events,
        &[&["b=0"], &["a=1 b=0"], &["a=1 b=2"], &["b=0", "b=2"], &["a=4 b=0", "a=4 b=2"]],
    );
}

#[test]
fn a_violation_is_told_once_until_it_is_gone() {
    // The event 0 is alone again when the event 1 has left, and its violation is told anew.
    let formula =
        r#"{"forall": "a", "in": "all", "that": {"exists": "b", "in": "short", "that": "b.x > 5"}}"#;
    let events = [(0.0, 1.0), (1.0, 6.0), (1.5, 1.0), (3.0, 1.0)];
    check(formula, &events, &[&["a=0"], &[], &[], &["a=0", "a=1", "a=2", "a=3"]]);
    let formula = r#"{"exists": "b", "in": "short", "that": "b.x > 5"}"#;
    check(formula, &events, &[&[""], &[], &[], &[""]]);
}

#[test]
fn variables_that_no_leaf_speaks_of_bind_all_the_same() {
    check(r#"{"forall": "a", "in": "all", "that": "1 = 2"}"#, &THREE, &[&["a=0"], &["a=1"], &["a=2"]]);
    let formula =
        r#"{"forall": "a", "in": "all", "that": {"forall": "b", "in": "short", "that": "b.x < 3"}}"#;
    check(formula, &THREE, &[&[], &[], &["a=0 b=2", "a=1 b=2", "a=2 b=2"]]);
}

#[test]
fn what_passes_a_bound_empties_the_check() {
    let formula =
        r#"{"forall": "a", "in": "all", "that": {"forall": "b", "in": "all", "that": "a.x <> a.x"}}"#;
    let check = Arc::new(Check::new(World::Planar, &document(formula)).expect("the formula is sound"));
    for kind in kinds() {
        let mut checker = Checker::new(check.clone(), kind, Bounds { links_max: 3, results_max: 1_000 });
        let mut take = |time_ms| checker.take((), &arrival([0.0, 0.0], time_ms, &[("x", 1.0.into())]));
        assert_eq!(take(0).expect("one link").expect("taken").told.len(), 1);
        assert_eq!(take(1), Err(Overflow::Links { max: 3 }), "{kind:?}");
        assert_eq!(take(2).expect("one link again").expect("taken").told.len(), 1, "{kind:?}");
    }
    let mut checker = Checker::new(check, Kind::Incremental, Bounds { links_max: 1_000, results_max: 8 });
    let mut take = |time_ms| checker.take((), &arrival([0.0, 0.0], time_ms, &[("x", 1.0.into())]));
    assert!(take(0).is_ok() && take(1).is_ok());
    assert_eq!(take(2), Err(Overflow::Results { max: 8 }));
}

/// The pointer and the text of what is wrong with a document.
fn fault(document: &Document) -> String {
    let error: CheckError = Check::new(World::Planar, document).expect_err("something is wrong");
    error.to_string()
}

#[test]
fn faults_say_where_they_are() {
    let faults = [
        (r#"{"forall": "a", "in": "none", "that": "1 = 1"}"#, "/formula/in: there is no context `none`"),
        (
            r#"{"and": ["1 = 1", {"forall": "a", "in": "all", "that": {"exists": "a", "in": "all", "that": "1 = 1"}}]}"#,
            "/formula/and/1/that/exists: the variable `a` is bound twice",
        ),
        (
            r#"{"and": [{"exists": "a", "in": "all", "that": "1 = 1"}, {"exists": "a", "in": "all", "that": "1 = 1"}]}"#,
            "/formula/and/1/exists: the variable `a` is bound twice",
        ),
        (
            r#"{"forall": "a b", "in": "all", "that": "1 = 1"}"#,
            "/formula/forall: `a b` is no name of a variable: a letter or `_`, then letters, digits and `_`",
        ),
    ];
    for (formula, expected) in faults {
        assert_eq!(fault(&document(formula)), expected);
    }
    let unbound = r#"{"implies": [{"exists": "a", "in": "all", "that": "1 = 1"}, {"not": "a.x = 1"}]}"#;
    assert!(
        fault(&document(unbound)).starts_with("/formula/implies/1/not: "),
        "{}",
        fault(&document(unbound))
    );

    let mut deep = Formula::leaf("1 = 1");
    for _ in 0..40 {
        deep = Formula::negated(deep);
    }
    assert!(
        fault(&Document { formula: deep, ..document("\"1 = 1\"") }).ends_with("at most 32 levels of nesting")
    );
    let wide = Formula::And(vec![Formula::leaf("1 = 1"); 300]);
    assert!(
        fault(&Document { formula: wide, ..document("\"1 = 1\"") })
            .ends_with("at most 256 parts of a formula")
    );

    let with = |context: Context| Document { contexts: vec![context], ..document("\"1 = 1\"") };
    assert_eq!(
        fault(&with(Context::of_all("a/b", -1.0))),
        "/contexts/a~1b/for_s: a set holds events for 0 to 8640000 seconds, found -1"
    );
    assert!(fault(&with(Context::of_all("x", f64::NAN))).starts_with("/contexts/x/for_s: "));
    assert!(fault(&with(Context::of_all("x", 1.0).when("x >"))).starts_with("/contexts/x/where: "));
}
