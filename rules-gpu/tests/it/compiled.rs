//! Kernels that are compiled with a program: the same answers as those that interpret it.

use device::{Device, Fault};
use rules::Setting;
use rules_gpu::{Form, Kernels, Letter, Outcome, Program, letter, run_facts};

/// Rules that remove, replace, add, and do nothing but propagate; keys of one and of two parts, whole numbers, floats and atoms; guards with
/// jumps; bodies that add several.
const PROGRAMS: [(&str, &str); 6] = [
    (
        "edge(I, K, D1), edge(K, J, D2) \\ edge(I, J, D3) <=> D3 > D1 + D2 | D4 is D1 + D2, edge(I, J, D4).",
        "edge(1,2,1), edge(2,3,1), edge(1,3,9), edge(3,1,2), edge(2,1,7), edge(3,2,5)",
    ),
    (
        "d(A, B, X) \\ d(A, B, Y) <=> X =< Y | true.
         e(A, B, X) ==> d(A, B, X).
         d(A, B, X), e(B, C, Y) ==> A \\== C | Z is X + Y, d(A, C, Z).",
        "e(1,2,1.5), e(2,3,2.5), e(3,4,0.5), e(4,1,1.0), e(2,4,9.0), e(1,1,0.0)",
    ),
    (
        "gcd(0) <=> true. gcd(N) \\ gcd(M) <=> 0 < N, N =< M | L is M mod N, gcd(L).",
        "gcd(357), gcd(273), gcd(1267), gcd(959)",
    ),
    (
        "s(A), s(B) <=> C is A + B, s(C). t(N) <=> N > 0 | M is N - 1, t(M), t(M), s(N). t(0) <=> s(1).",
        "t(5), s(7)",
    ),
    (
        "p(X, red) \\ p(X, K) <=> ( K == blue ; \\+ X > 2, K == green ) | true. p(X, blue), q(X) ==> Y is max(X, 1.5) * 2, p(Y, 'a b').",
        "p(1, red), p(1, blue), p(2, blue), q(2), p(3, green), p(3, red), p(2, green), q(1)",
    ),
    ("never @ p(X), q(X) <=> fail.", "p(1), q(2), q(1)"),
];

fn facts_of(text: &str, goal: &str) -> (Program, Vec<rules_gpu::Fact>) {
    let mut program = Program::new(text).expect("devices take it");
    let facts = program.goal(goal).expect("devices take it");
    (program, facts)
}

fn check(program: &Program, facts: &[rules_gpu::Fact], kernels: &Kernels) {
    let interpreting = kernels.clone().compiling_from(usize::MAX);
    let [compiled, interpreted] = [kernels, &interpreting]
        .map(|kernels| run_facts(program, facts, kernels, &Setting::default()).expect("an answer"));
    assert_eq!(compiled.form, Form::Compiled, "{program:?}");
    // All but the form and the time: the rounds are the same, too.
    let (form, rounds_took) = (interpreted.form.clone(), interpreted.rounds_took);
    assert_eq!(Outcome { form, rounds_took, ..compiled }, interpreted, "{program:?}");
}

#[test]
fn compiled_programs_have_the_interpreters_rounds_and_answers() {
    let kernels = crate::kernels().compiling_from(0);
    for (text, goal) in PROGRAMS {
        let (program, facts) = facts_of(text, goal);
        check(&program, &facts, &kernels);
    }
}

#[test]
fn the_papers_scheme_is_compiled_too() {
    let kernels = crate::kernels().compiling_from(0);
    for (text, goal) in [PROGRAMS[0], PROGRAMS[2]] {
        let (program, facts) = facts_of(text, goal);
        let [compiled, interpreted] =
            [kernels.clone(), kernels.clone().compiling_from(usize::MAX)].map(|kernels| {
                letter(&program, &facts, &kernels, Letter::default(), &Setting::default()).expect("an answer")
            });
        assert_eq!(compiled.form, Form::Compiled);
        assert_eq!(program.answer(compiled).store, program.answer(interpreted).store);
    }
}

#[test]
fn errors_of_compiled_programs_are_told_as_by_the_interpreter() {
    let kernels = crate::kernels().compiling_from(0);
    let text = "wide @ w(X) <=> Y is X * X, w(Y). zero @ z(X), z(Y) <=> X < Y, 1 // X > 0 | true.";
    for goal in ["w(3)", "z(0), z(1)", "w(a)"] {
        let (program, facts) = facts_of(text, goal);
        let errors = [kernels.clone(), kernels.clone().compiling_from(usize::MAX)].map(|kernels| {
            run_facts(&program, &facts, &kernels, &Setting::default()).expect_err("no answer").to_string()
        });
        assert_eq!(errors[0], errors[1]);
    }
}

/// The processor as a device, so that a fault harms no other test.
fn host_kernels() -> (Device, Kernels) {
    let device = Device::host(1 << 24);
    let kernels = Kernels::load(&device).expect("the device takes them").compiling_from(0);
    (device, kernels)
}

#[test]
fn without_a_compiler_the_program_is_interpreted_and_the_reason_is_told() {
    let (device, kernels) = host_kernels();
    let (program, facts) = facts_of(PROGRAMS[0].0, PROGRAMS[0].1);
    device.inject(Fault::NoCompiler, 1);
    for _ in 0..2 {
        // That there is none is remembered.
        let outcome = run_facts(&program, &facts, &kernels, &Setting::default()).expect("an answer");
        let Form::Interpreted { reason } = &outcome.form else { panic!("{outcome:?}") };
        assert!(reason.starts_with("no CUDA compiler on this machine: "), "{reason}");
        assert_eq!(outcome.store.len(), 6);
    }
}

#[test]
fn a_program_is_compiled_once() {
    let (device, kernels) = host_kernels();
    let (program, facts) = facts_of(PROGRAMS[2].0, PROGRAMS[2].1);
    let run = || run_facts(&program, &facts, &kernels, &Setting::default()).expect("an answer").form;
    assert_eq!(run(), Form::Compiled);
    device.inject(Fault::NoCompiler, 1);
    assert_eq!(run(), Form::Compiled);
    // Another is compiled, and meets the fault.
    let (other, facts) = facts_of(PROGRAMS[3].0, PROGRAMS[3].1);
    let outcome = run_facts(&other, &facts, &kernels, &Setting::default()).expect("an answer");
    assert!(matches!(outcome.form, Form::Interpreted { .. }), "{outcome:?}");
}

#[test]
fn small_goals_and_large_programs_are_interpreted() {
    let (_, kernels) = host_kernels();
    let (program, facts) = facts_of(PROGRAMS[2].0, PROGRAMS[2].1);
    let small = kernels.clone().compiling_from(facts.len() + 1);
    let outcome = run_facts(&program, &facts, &small, &Setting::default()).expect("an answer");
    assert_eq!(outcome.form, Form::Interpreted { reason: "the goal is small".into() });
    let text: String = (0..70).map(|number| format!("p({number}) <=> q({number}).\n")).collect();
    let (program, facts) = facts_of(&(text + "q(X) \\ q(X) <=> true."), "p(1), p(2)");
    let outcome = run_facts(&program, &facts, &kernels, &Setting::default()).expect("an answer");
    assert_eq!(outcome.form, Form::Interpreted { reason: "the program is large".into() });
    assert_eq!(outcome.store.len(), 2);
}
