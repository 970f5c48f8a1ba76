//! Sessions that are written down and go on, beside those that were never stopped.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{Rng as _, SeedableRng as _};
use rules::{BadSnapshot, Bounds, Error, Kind, ORIGINS_MAX, Program, Session, Setting, Taken, Value};

/// Names of constraints, and their arities.
type Names = &'static [(&'static str, usize)];

/// Programs, with the facts that they take and the names that are taken out.
const PROGRAMS: [(&str, Names, Names); 5] = [
    // A history, variables that are shared, compound terms and a guard that tells variables by their ages.
    (
        "link(A, B) ==> pair(A, B, X, f(X, [A | _])).
         pair(A, B, X, T) \\ pair(A, B, Y, S) <=> X @< Y | X = Y, T = S.
         pair(A, _, X, _), pair(A, _, Y, _), close(A) ==> X = Y.
         pair(A, B, X, T), pair(B, C, Y, _) ==> X @< Y | out(A, C, T, Y).
         know(A, V), pair(A, _, X, _) ==> X = V.
         pair(_, _, X, _) \\ drop(X) <=> true.",
        &[("link", 2), ("close", 1), ("know", 2), ("drop", 1)],
        &[("out", 4)],
    ),
    (
        "edge(X, Y) \\ edge(X, Y) <=> true.\n near @ edge(X, Y) ==> path(X, Y).
         far @ edge(X, Y), path(Y, Z) ==> X \\== Z | path(X, Z).\n path(X, Y) \\ path(X, Y) <=> true.
         cut(X) \\ edge(X, _) <=> true.\n once @ cut(X) <=> gone(X).\n bad(X), path(X, _) <=> fail.",
        &[("edge", 2), ("cut", 1), ("bad", 1)],
        &[("gone", 1)],
    ),
    // Lists and clauses with choices.
    (
        "seen(T, Old) \\ at(T, New) <=> member(New, Old) | true.
         seen(T, Old), at(T, New) <=> keep(New, Old, All), seen(T, All), hit(T, New).
         at(T, New) <=> seen(T, [New]).\n ask(T, X), seen(T, All) # Id <=> pick(X, All, Y), said(T, Y) pragma passive(Id).
         keep(X, Old, [X | Old]) :- length(Old, N), N < 3, !.\n keep(X, _, [X]).
         pick(X, [Y | _], Y) :- Y > X.\n pick(X, [_ | Rest], Y) :- pick(X, Rest, Y).",
        &[("at", 2), ("ask", 2)],
        &[("hit", 2), ("said", 2)],
    ),
    // Variables that wait in several constraints are joined, and wake them.
    (
        "leq(X, X) <=> true.\n leq(X, Y), leq(Y, X) <=> X = Y.\n leq(X, Y) \\ leq(X, Y) <=> true.
         leq(X, Y), leq(Y, Z) ==> leq(X, Z).\n name(N, X) \\ name(N, Y) <=> X = Y.
         le(A, B) <=> name(A, X), name(B, Y), leq(X, Y).\n val(A, V) <=> name(A, V).
         name(N, X), tell(N) <=> told(N, X).",
        &[("le", 2), ("val", 2), ("tell", 1)],
        &[("told", 2)],
    ),
    // Errors and bounds in the midst of what was begun.
    (
        "up(N), count(M) # Id <=> K is N + M, count(K), box(K, X), box(K, Y), X = Y pragma passive(Id).
         up(N) ==> count(N).\n box(K, X), box(J, Y) ==> K < J | more(X, Y, g(X, Y)).
         more(X, Y, _), spin(X1) ==> X \\== Y | more(Y, X, X1), spin(X1).\n div(N), count(M) ==> K is M // N, quot(K, _).",
        &[("up", 1), ("spin", 1), ("div", 1)],
        &[("quot", 2)],
    ),
];

fn bounds() -> Setting {
    Setting {
        bounds: Bounds { steps: 300, looks: 20_000, words: 30_000, constraints: 400 },
        ..Setting::default()
    }
}

fn program(number: usize) -> Arc<Program> {
    let (text, facts, taken) = PROGRAMS[number];
    let names: Vec<_> = facts.iter().chain(taken).map(|(name, arity)| (*name, Some(*arity))).collect();
    Program::with_constraints(text, &names).unwrap()
}

/// What a caller sees of a step: how a fact ended, by its number, and what was taken out.
type Seen = (Result<Option<rules::Fact>, Error>, Vec<Taken>, usize, u64, usize);

fn step(session: &mut Session, fact: (Kind, &[Value]), taken: &[Kind], origin: u64) -> Seen {
    let added = session.add(fact.0, fact.1, origin);
    let taken = taken.iter().flat_map(|kind| session.take(*kind)).collect();
    (added, taken, session.count(), session.applications(), session.bytes())
}

fn random_fact(random: &mut StdRng, kinds: &[(Kind, usize)]) -> (Kind, Vec<Value>) {
    let (kind, arity) = *kinds.choose(random).unwrap();
    let value = |_| match random.random_range(0..8) {
        0 => Value::Float(f64::from(random.random_range(0..3))),
        1 => Value::Text(format!("t{}", random.random_range(0..3)).into()),
        _ => Value::Int(random.random_range(0..5)),
    };
    (kind, (0..arity).map(value).collect())
}

/// One session is never stopped, another is written down now and then, and a third goes on from each of its snapshots.
fn run(number: usize, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let (_, facts, taken) = PROGRAMS[number];
    let program = program(number);
    let mut sessions: Vec<_> = (0..3).map(|_| Session::new(&program, bounds())).collect();
    let kind = |(name, arity): &(&str, usize)| (sessions[0].kind(name, *arity).unwrap(), *arity);
    let (facts, taken): (Vec<_>, Vec<_>) =
        (facts.iter().map(kind).collect(), taken.iter().map(|of| kind(of).0).collect());
    let mut known = Vec::new();
    for origin in 0..300 {
        if random.random_bool(0.1) {
            let bytes = sessions[1].snapshot();
            sessions[2] = Session::restore(&program, bounds(), &bytes).unwrap();
            assert_eq!(sessions[2].snapshot(), bytes, "program {number} seed {seed}");
        }
        let fact = random_fact(&mut random, &facts);
        let seen: Vec<_> =
            sessions.iter_mut().map(|session| step(session, (fact.0, &fact.1), &taken, origin)).collect();
        assert_eq!(seen[0], seen[1], "program {number} seed {seed} origin {origin}: written down");
        assert_eq!(seen[0], seen[2], "program {number} seed {seed} origin {origin}: restored");
        known.extend(seen[0].0.clone().ok().flatten());
        if random.random_bool(0.3) && !known.is_empty() {
            known.shuffle(&mut random);
            let fact = known.pop().unwrap();
            let was_there: Vec<_> =
                sessions.iter_mut().map(|session| (session.has(fact), session.remove(fact))).collect();
            assert!(was_there.iter().all(|was| *was == was_there[0]), "program {number} seed {seed}");
        }
    }
}

#[test]
fn a_restored_session_goes_on_as_one_that_was_never_stopped() {
    let count = if std::env::var_os("NEARCAST_SOAK").is_some() { 1_000 } else { 20 };
    for number in 0..PROGRAMS.len() {
        (0..count).for_each(|seed| run(number, seed));
    }
}

/// A session that was given facts which failed, or ended at a bound or with an error, is as one that never had them.
#[test]
fn a_fact_that_ends_with_an_error_leaves_the_session_as_it_was() {
    let mut ends = [0; 3];
    for (number, (_, facts, taken)) in PROGRAMS.iter().enumerate() {
        let program = program(number);
        for seed in 0..10 {
            let mut random = StdRng::seed_from_u64(seed);
            let (mut session, mut other) =
                (Session::new(&program, bounds()), Session::new(&program, bounds()));
            let kind = |(name, arity): &(&str, usize)| (session.kind(name, *arity).unwrap(), *arity);
            let (facts, taken): (Vec<_>, Vec<_>) =
                (facts.iter().map(kind).collect(), taken.iter().map(kind).collect());
            for origin in 0..200 {
                let (kind, arguments) = random_fact(&mut random, &facts);
                let added = session.add(kind, &arguments, origin);
                ends[added.as_ref().map_or(2, |fact| usize::from(fact.is_none()))] += 1;
                if matches!(added, Ok(Some(_))) {
                    other.add(kind, &arguments, origin).unwrap().unwrap();
                }
                for (kind, _) in &taken {
                    assert_eq!(session.take(*kind), other.take(*kind), "program {number} seed {seed}");
                }
                assert_eq!(session.count(), other.count(), "program {number} seed {seed}");
            }
        }
    }
    assert!(ends.iter().all(|count| *count > 100), "{ends:?}");
}

/// Bytes that are cut off or changed are refused, or are another session that works.
#[test]
fn no_bytes_bring_a_session_down() {
    let mut random = StdRng::seed_from_u64(1);
    for (number, (_, facts, _)) in PROGRAMS.iter().enumerate() {
        let program = program(number);
        let mut session = Session::new(&program, bounds());
        let facts: Vec<_> =
            facts.iter().map(|(name, arity)| (session.kind(name, *arity).unwrap(), *arity)).collect();
        for origin in 0..60 {
            let (kind, arguments) = random_fact(&mut random, &facts);
            _ = session.add(kind, &arguments, origin);
        }
        let bytes = session.snapshot();
        for length in 0..bytes.len() {
            assert_eq!(
                Session::restore(&program, bounds(), &bytes[..length]).err(),
                Some(BadSnapshot::Format)
            );
        }
        for _ in 0..20_000 {
            let mut bytes = bytes.clone();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..bytes.len());
                bytes[at] = if random.random_bool(0.5) {
                    bytes[at] ^ (1 << random.random_range(0..8))
                } else {
                    random.random()
                };
            }
            let Ok(mut session) = Session::restore(&program, bounds(), &bytes) else { continue };
            let (kind, arguments) = random_fact(&mut random, &facts);
            _ = session.add(kind, &arguments, 60);
            session.snapshot();
        }
    }
}

#[test]
fn a_snapshot_is_of_one_program() {
    let bytes = Session::new(&program(0), bounds()).snapshot();
    assert_eq!(Session::restore(&program(1), bounds(), &bytes).err(), Some(BadSnapshot::Program));
}

/// What a rule adds has the origins of its heads and of the fact that caused it, through clauses, wake-ups and ways back.
#[test]
fn constraints_know_the_facts_that_they_follow_from() {
    let text = "
        both @ a(X), b(X) ==> add(X).
        add(X) :- X > 5, !, fail.\n add(X) :- ( c(X, 0) ; c(X, 1) ).
        c(_, 0) <=> fail.
        p(N) ==> q(N, X), r(X).\n woken @ r(X), s(Y) ==> nonvar(X) | w(X, Y).\n q(N, X) \\ set(N, V) <=> X = V.
        sum(L, N), x(M) <=> K is N + M, sum(L, K).\n sum(L, N) \\ end(L) <=> total(N).";
    let names = ["a", "b", "p", "s", "x", "end", "total"];
    let declared: Vec<_> = names.iter().map(|name| (*name, Some(1))).chain([("w", Some(2))]).collect();
    let program = Program::with_constraints(text, &declared).unwrap();
    let mut session = Session::new(&program, Setting::default());
    let kind = |name: &str, arity| session.kind(name, arity).unwrap();
    let [a, b, p, s, x, end, total] = names.map(|name| kind(name, 1));
    let [c, w, set, sum] =
        [("c", 2), ("w", 2), ("set", 2), ("sum", 2)].map(|(name, arity)| kind(name, arity));
    let one = [Value::Int(1)];
    session.add(a, &one, 10).unwrap();
    session.add(b, &one, 11).unwrap();
    let taken = session.take(c);
    assert_eq!((&taken[0].origins[..], taken[0].rule.as_deref()), (&[10, 11][..], Some("both")));
    session.add(s, &[Value::Int(7)], 12).unwrap();
    session.add(p, &one, 13).unwrap();
    session.add(set, &[Value::Int(1), Value::Int(5)], 14).unwrap();
    let taken = session.take(w);
    assert_eq!((&taken[0].origins[..], taken[0].rule.as_deref()), (&[12, 13, 14][..], Some("woken")));
    session.add(sum, &[Value::Int(1), Value::Int(0)], 20).unwrap();
    for origin in 21..61 {
        session.add(x, &one, origin).unwrap();
    }
    session.add(end, &one, 61).unwrap();
    let taken = session.take(total);
    assert_eq!(taken[0].arguments, [Value::Int(40)]);
    assert_eq!(taken[0].origins, (62 - ORIGINS_MAX as u64..62).collect::<Vec<_>>());
    assert_eq!(taken[0].rule.as_deref(), Some("rule 7"));
    let taken = session.take(a);
    assert_eq!((&taken[0].origins[..], taken[0].rule.as_deref()), (&[10][..], None));
    assert!(session.origins().any(|origin| origin == 11) && session.origins().all(|origin| origin != 10));
}

/// The store of a restored session is indexed anew.
#[test]
fn a_restored_session_finds_constraints_by_terms_that_share_parts() {
    let program = "grow(0, T, T) :- !.\n grow(N, T, R) :- M is N - 1, grow(M, f(T, T), R).\n\
        put(X) <=> grow(10, X, T), keep(T, X).\n ask(X) <=> grow(10, X, T), want([T]).\n\
        want([T]) \\ keep(T, X) <=> hit(X).\n want(_) <=> true.";
    let program = Program::with_constraints(program, &[("hit", None)]).unwrap();
    let mut session = Session::new(&program, Setting::default());
    let [put, ask, hit] = ["put", "ask", "hit"].map(|name| session.kind(name, 1).unwrap());
    for number in 0..100 {
        session.add(put, &[Value::Int(number)], 1).unwrap();
    }
    let bytes = session.snapshot();
    let mut restored = Session::restore(&program, Setting::default(), &bytes).unwrap();
    for session in [&mut session, &mut restored] {
        session.add(ask, &[Value::Int(42)], 1).unwrap();
        let hits: Vec<_> = session.take(hit).into_iter().map(|taken| taken.arguments).collect();
        assert_eq!((hits, session.count()), (vec![vec![Value::Int(42)]], 99));
    }
}
