//! Programs that are large.

use rules::Program;

fn first_fault(text: &str) -> String {
    Program::new(text).unwrap_err()[0].what.clone()
}

#[test]
fn heads_and_arguments_are_bounded() {
    let heads = |count: usize| vec!["n(_)"; count].join(", ") + " ==> true.";
    assert!(Program::new(&heads(32)).is_ok());
    assert_eq!(first_fault(&heads(33)), "a rule has 32 heads at most");
    let arguments = |count: usize| format!("n({}) <=> true.", vec!["_"; count].join(", "));
    assert!(Program::new(&arguments(63)).is_ok());
    assert_eq!(first_fault(&arguments(64)), "a constraint has 63 arguments at most");
}

/// None of these takes a time that grows with the square of the text, which would be minutes.
#[test]
fn large_programs_are_read_at_once() {
    assert_eq!(Program::new(&"a( .\n".repeat(80_000)).unwrap_err().len(), 100);
    let numbered = |part: &dyn Fn(usize) -> String| (0..40_000).map(part).collect::<String>();
    let unknown = numbered(&|number| format!(", u{number}"));
    assert_eq!(Program::new(&format!("n(X) <=> true{unknown}.")).unwrap().unknown().len(), 100);
    for text in [
        numbered(&|number| format!("a{number} ==> b.\n")),
        numbered(&|number| format!("p{number}(b).\n")),
        format!("n([x{}]) <=> true.", numbered(&|number| format!(", X{number}"))),
        format!(":- chr_constraint a{}.", numbered(&|number| format!(", a{number}/1"))),
    ] {
        Program::new(&text).unwrap();
    }
}
