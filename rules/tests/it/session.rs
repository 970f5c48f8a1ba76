//! Facts that come and go one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rules::{Bounds, Error, Kind, Program, Session, Setting, Value};

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

/// The arguments of what is taken out.
fn take(session: &mut Session, kind: Kind) -> Vec<Vec<Value>> {
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
    assert_eq!(take(&mut session, of_jam), Vec::<Vec<Value>>::new());
    let last = session.add(of_slow, &slow("c", 0.0, 70.0, 2), 1).unwrap().unwrap();
    assert_eq!(take(&mut session, of_jam), [[Value::Float(0.0), Value::Float(0.0)]]);
    assert_eq!(take(&mut session, of_jam), Vec::<Vec<Value>>::new());
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
    assert_eq!(take(&mut session, c), Vec::<Vec<Value>>::new());
    session.add(n, &[Value::Int(2)], 1).unwrap().unwrap();
    assert_eq!(take(&mut session, c), [[Value::Int(3)]]);
    assert_eq!(take(&mut session, a), [[Value::Int(1)]]);
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
        session.add(at, &[Value::Text(name), Value::Int(number % 7 / 2)], 1).unwrap();
        hits += take(&mut session, hit).len();
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

/// A term that has another one twice, sixty levels deep, takes few words and more than anybody's time to walk through.
#[test]
fn what_walks_through_terms_is_bounded() {
    let program = "grow(0, T, T) :- !.\n grow(N, T, R) :- M is N - 1, grow(M, f(T, T), R).\n\
        bound(_) ==> grow(60, a, T), X = T.\n stored(_) ==> grow(60, a, T), keep(T).\n ground(_) ==> grow(60, a, T), ground(T).\n\
        same(_) ==> g(60, a, T), g(60, a, S), T == S.\n sorted(_) ==> g(60, a, T), g(60, a, S), msort([T, S], _).\n\
        copied(_) ==> g(60, a, T), copy_term(T, _).\n found(_) ==> g(60, a, T), findall(T, true, _).\n\
        g(0, T, R) <=> R = T.\n g(N, T, R) <=> M is N - 1, g(M, f(T, T), R).\n\
        summed(_) ==> plus(60, 1).\n plus(0, T) :- X is T, keep(X).\n plus(N, T) :- M is N - 1, plus(M, T + T).\n\
        parts(_) ==> keep(T), chain(60, T).\n chain(0, T) :- !, T = a.\n chain(N, T) :- M is N - 1, T = f(S, S), chain(M, S).\n\
        keep(T), keep(T) <=> true.\n n(_) ==> true.";
    let bounds = Bounds { looks: 10_000, words: 100_000, ..Bounds::default() };
    let mut session = session(program, &["keep"], bounds);
    for name in ["bound", "stored", "ground", "same", "sorted", "copied", "found", "summed", "parts"] {
        let kind = session.kind(name, 1).unwrap();
        let ended = session.add(kind, &[Value::Int(1)], 1);
        assert!(matches!(ended, Err(Error::Looks(_) | Error::Words(_))), "{name}: {ended:?}");
        assert_eq!(session.count(), 0, "{name}");
    }
    let n = session.kind("n", 1).unwrap();
    session.add(n, &[Value::Int(1)], 1).unwrap().unwrap();
}

#[test]
fn what_builtins_make_is_bounded() {
    let program = "lists(_) ==> length(A, 20000), length(B, 20000), keep(A, B).\n\
        texts(_) ==> double(20, aaaaaaaaaaaaaaaa).\n double(0, _).\n double(N, T) :- M is N - 1, atom_concat(T, T, S), double(M, S).\n\
        many(_) ==> again(100).\n again(0).\n again(N) :- length(L, 2000), L = [N | _], copy_term(L, _), M is N - 1, again(M).\n keep(_, _) ==> true.";
    let mut session = session(program, &[], Bounds { words: 100_000, ..Bounds::default() });
    for name in ["lists", "texts", "many"] {
        let kind = session.kind(name, 1).unwrap();
        assert_eq!(session.add(kind, &[Value::Int(1)], 1), Err(Error::Words(100_000)), "{name}");
    }
}

/// Long texts of facts that are gone are forgotten as soon as many short ones.
#[test]
fn a_session_does_not_grow_with_long_texts() {
    let mut session = session("n(_) <=> true.", &[], Bounds::default());
    let n = session.kind("n", 1).unwrap();
    for number in 0..1_000 {
        let text = format!("{number:060000}");
        session.add(n, &[Value::Text(text.into())], 1).unwrap().unwrap();
        assert!(session.text_bytes() < 4_000_000, "{} bytes after {number}", session.text_bytes());
    }
}
