//! Facts that come and go one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rules::{BadSnapshot, Bounds, Error, Kind, ORIGINS_MAX, Program, Session, Setting, Taken, Value};

/// Three slow taxis near one another are a jam.
const JAMS: &str = "
    slow(T,_,_,A) \\ slow(T,_,_,B) <=> A >= B | true.
    slow(T1,X1,Y1,_), slow(T2,X2,Y2,_), slow(T3,X3,Y3,_) ==>
        T1 @< T2, T2 @< T3, distance(X1,Y1,X2,Y2) < 80, distance(X1,Y1,X3,Y3) < 80 | jam(X1,Y1).";

/// A session of a program in which these are constraints although no head has them.
fn session(program: &str, names: &[&str], bounds: Bounds) -> Session {
    let names: Vec<_> = names.iter().map(|name| (*name, None)).collect();
    Session::new(
        &Program::with_constraints(program, &names).unwrap(),
        Setting { bounds, ..Setting::default() },
    )
}

fn arguments(session: &mut Session, kind: Kind) -> Vec<Vec<Value>> {
    session.take(kind).into_iter().map(|taken| taken.arguments).collect()
}

fn slow(taxi: &str, x: f64, y: f64, time: i64) -> [Value; 4] {
    [Value::Text(taxi.into()), Value::Float(x), Value::Float(y), Value::Int(time)]
}

#[test]
fn facts_become_what_rules_say() {
    let mut session = session(JAMS, &["jam"], Bounds::default());
    let (of_slow, of_jam) = (session.kind("slow", 4).unwrap(), session.kind("jam", 2).unwrap());
    assert_eq!(session.kind("slow", 3), None);
    for (taxi, x) in [("a", 0.0), ("b", 50.0), ("far", 500.0)] {
        session.add(of_slow, &slow(taxi, x, 0.0, 1), 1).unwrap().unwrap();
    }
    assert_eq!(arguments(&mut session, of_jam), Vec::<Vec<Value>>::new());
    let last = session.add(of_slow, &slow("c", 0.0, 70.0, 2), 1).unwrap().unwrap();
    assert_eq!(arguments(&mut session, of_jam), [[Value::Float(0.0), Value::Float(0.0)]]);
    assert_eq!(arguments(&mut session, of_jam), Vec::<Vec<Value>>::new());
    assert!(session.remove(last) && !session.remove(last));
    assert_eq!(session.count(), 3);
}

#[test]
fn what_fails_and_what_ends_with_an_error_leaves_nothing() {
    let program = "a(X), b(X) <=> c(X), fail.\n a(X) \\ n(Y) <=> Z is X + Y, c(Z).\n e(X) <=> loop(X).\n loop(X) <=> loop(X).\n u(X) ==> m(X, _), Y is X + _, c(Y).";
    let mut session = session(program, &["c", "m"], Bounds { steps: 1_000, ..Bounds::default() });
    let kind = |session: &Session, name| session.kind(name, 1).unwrap();
    let [a, b, c, n, e, u] = ["a", "b", "c", "n", "e", "u"].map(|name| kind(&session, name));
    session.add(a, &[Value::Int(1)], 1).unwrap().unwrap();
    assert_eq!(session.add(b, &[Value::Int(1)], 1), Ok(None));
    assert_eq!(session.add(e, &[Value::Int(1)], 1), Err(Error::Steps(1_000)));
    assert_eq!(session.add(u, &[Value::Int(1)], 1), Err(Error::Unbound("arithmetic")));
    assert_eq!(session.count(), 1);
    assert_eq!(arguments(&mut session, c), Vec::<Vec<Value>>::new());
    session.add(n, &[Value::Int(2)], 1).unwrap().unwrap();
    assert_eq!(arguments(&mut session, c), [[Value::Int(3)]]);
    assert_eq!(arguments(&mut session, a), [[Value::Int(1)]]);
}

/// Terms and atoms of facts that are gone are forgotten, and those that stay are found as before.
#[test]
fn a_session_does_not_grow_with_the_facts_that_were() {
    let program = "seen(T, Old) \\ at(T, New) <=> member(New, Old) | true.\n seen(T, Old), at(T, New) <=> seen(T, [New, New | Old]), hit(T).\n\
                   at(T, New) <=> seen(T, [New]).\n seen(T, [_, _, _, _, _, _, _ | _]) <=> true.";
    let mut session =
        session(program, &["hit"], Bounds { words: 200_000, constraints: 1_000, ..Bounds::default() });
    let (at, hit) = (session.kind("at", 2).unwrap(), session.kind("hit", 1).unwrap());
    let mut hits = 0;
    for number in 0..40_000_i64 {
        let name: Arc<str> = format!("object {}", number / 7).into();
        session.add(at, &[Value::Text(name), Value::Int(number % 7 / 2)], number.cast_unsigned()).unwrap();
        hits += session.take(hit).len();
        assert!(session.count() < 10);
    }
    // Of seven reports of an object every other one is new, and the last of these empties its list.
    assert_eq!(hits, 17_142);
}

#[test]
fn a_stop_from_outside_ends_a_step() {
    let stop = Arc::new(AtomicBool::new(false));
    let setting = Setting { stop: Arc::clone(&stop), ..Setting::default() };
    let mut session = Session::new(&Program::new("a(X) <=> a(X).").unwrap(), setting);
    let a = session.kind("a", 1).unwrap();
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(session.add(a, &[Value::Int(1)], 1), Err(Error::Stopped));
    late.join().unwrap();
    assert_eq!(session.count(), 0);
}

#[test]
fn a_bound_on_looks_ends_a_search_that_applies_no_rule() {
    let bounds = Bounds { looks: 50_000, ..Bounds::default() };
    let mut session = session("n(X), n(Y), n(Z) ==> X + Y + Z < 0 | true.", &[], bounds);
    let n = session.kind("n", 1).unwrap();
    let ended = (0..1_000).map(|number| session.add(n, &[Value::Int(number)], 1));
    let failed = ended.filter_map(Result::err).collect::<Vec<_>>();
    assert!(failed.len() > 700 && failed.iter().all(|error| *error == Error::Looks(50_000)), "{failed:?}");
    assert_eq!(session.count(), 1_000 - failed.len());
}

#[test]
fn constraints_know_the_facts_and_the_rule_that_they_come_from() {
    let program = "pair @ a(X), b(X) ==> ab(X).\n ab(X) \\ c(X) <=> told(X).\n told(X) ==> later(X).\n\
                   n(_), sum(S) <=> T is S + 1, sum(T).\n w(X) ==> waits(X, _).\n waits(X, Y), b(X) ==> Y = X.\n waits(X, X) ==> got(X).\n\
                   p(X) ==> clause(X).\n clause(X) :- fail ; added(X).";
    let names = ["ab", "c", "told", "later", "sum", "waits", "got", "p", "added", "w"];
    let mut session = session(program, &names, Bounds::default());
    let kind = |session: &Session, name: &str| session.kind(name, 1).unwrap();
    let add = |session: &mut Session, name: &str, origin: u64| {
        let kind = kind(session, name);
        session.add(kind, &[Value::Int(0)], origin).unwrap();
    };
    let origins = |session: &mut Session, name: &str| {
        let kind = kind(session, name);
        let told = |Taken { origins, rule, .. }: Taken| (origins, rule.as_deref().map(str::to_owned));
        session.take(kind).into_iter().map(told).collect::<Vec<_>>()
    };
    for (name, origin) in [("a", 1), ("w", 2), ("b", 3), ("c", 4), ("p", 5), ("sum", 6)] {
        add(&mut session, name, origin);
    }
    let by = |rule: &str| Some(rule.to_owned());
    assert_eq!(origins(&mut session, "later"), [(vec![1, 3, 4], by("rule 3"))]);
    assert_eq!(origins(&mut session, "ab"), [(vec![1, 3], by("pair"))]);
    // What wakes it is the fact at hand.
    assert_eq!(origins(&mut session, "got"), [(vec![2, 3], by("rule 7"))]);
    assert_eq!(origins(&mut session, "added"), [(vec![5], by("rule 8"))]);
    for origin in 7..100 {
        add(&mut session, "n", origin);
    }
    let newest: Vec<u64> = (100 - ORIGINS_MAX as u64..100).collect();
    assert!(session.origins().any(|origin| origin == 99) && session.origins().all(|origin| origin != 50));
    assert_eq!(origins(&mut session, "sum"), [(newest, by("rule 4"))]);
}

/// Rules with a history, variables that wait, terms, lists, clauses and choices.
const MIXED: &str = "
    a(X), b(Y) ==> X =< Y | pair(X, Y).
    a(X) \\ a(X) <=> true.
    pair(X, Y), c(X) <=> open(X, V, [Y, V | _]), told(X).
    pair(X, _) \\ pair(X, _) <=> X > 2 | true.
    open(X, V, L), d(X) ==> V = f(X, _), member(Z, L), nonvar(Z) | bound(Z).
    open(_, f(X, Y), _) ==> var(Y) | told(X).
    open(X, V, _) \\ open(X, W, _) <=> V = W.
    old @ open(X, _, _), a(Y), b(Y) <=> Y > X | told(Y).
    bound(f(X, _)), d(Y) <=> X =\\= Y | (Y > 3, fail ; told(Y)).
    c(X), c(X) <=> s(X, name).
    s(X, N) \\ d(X) <=> told(N).";

#[test]
fn a_session_goes_on_from_a_snapshot_as_the_one_that_it_is_of() {
    let names = ["told", "pair", "open", "bound", "s"];
    let program = {
        let names: Vec<_> = names.iter().map(|name| (*name, None)).collect();
        Program::with_constraints(MIXED, &names).unwrap()
    };
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut session = Session::new(&program, Setting::default());
        let kinds = ["a", "b", "c", "d"].map(|name| session.kind(name, 1).unwrap());
        let told = session.kind("told", 1).unwrap();
        let (mut others, mut facts) = (Vec::<Session>::new(), Vec::new());
        for origin in 0..random.random_range(5..60) {
            if random.random_bool(0.15) {
                let bytes = session.snapshot();
                let mut other = Session::restore(&program, Setting::default(), &bytes).unwrap();
                // Neither has to know of the other.
                assert_eq!(other.snapshot(), bytes, "seed {seed}");
                others = vec![other, Session::restore(&program, Setting::default(), &bytes).unwrap()];
            }
            let (kind, value) = (*kinds.choose(&mut random).unwrap(), random.random_range(0..6));
            let removed = facts.choose(&mut random).copied().filter(|_| random.random_bool(0.2));
            let act = |session: &mut Session| {
                let was_there = removed.map(|fact| (session.has(fact), session.remove(fact)));
                let added = session.add(kind, &[Value::Int(value)], origin);
                (was_there, added, session.take(told), session.count(), session.applications())
            };
            let expected = act(&mut session);
            facts.extend(expected.1.clone().ok().flatten());
            for other in &mut others {
                assert_eq!(act(other), expected, "seed {seed}");
            }
        }
        for other in &mut others {
            assert_eq!(other.snapshot(), session.snapshot(), "seed {seed}");
        }
    }
}

#[test]
fn bytes_that_are_no_snapshot_are_refused() {
    let program =
        Program::with_constraints(MIXED, &["told", "pair", "open", "bound", "s"].map(|name| (name, None)))
            .unwrap();
    let mut session = Session::new(&program, Setting::default());
    for (number, name) in ["a", "b", "c", "d", "b", "a", "c", "c"].iter().enumerate() {
        let kind = session.kind(name, 1).unwrap();
        session.add(kind, &[Value::Int(number as i64 / 3)], number as u64).unwrap();
    }
    let bytes = session.snapshot();
    let restore = |bytes: &[u8]| Session::restore(&program, Setting::default(), bytes);
    assert!(restore(&bytes).is_ok());
    for length in 0..bytes.len() {
        assert!(restore(&bytes[..length]).is_err(), "{length}");
    }
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..20_000 {
        let mut wrong = bytes.clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..wrong.len());
            wrong[at] ^= 1 << random.random_range(0..8);
        }
        // What is read is a session that works, whatever it knows.
        if let Ok(mut other) = restore(&wrong) {
            let kind = other.kind("d", 1).unwrap();
            let _ = other.add(kind, &[Value::Int(1)], 100);
            let again = other.snapshot();
            assert!(restore(&again).is_ok());
        }
    }
    let smaller = Program::new("a(X) <=> true.").unwrap();
    assert!(matches!(Session::restore(&smaller, Setting::default(), &bytes), Err(BadSnapshot::Part(_))));
}
