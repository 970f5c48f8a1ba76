//! The confluent programs of the contract end with the stores given.

use std::path::{Path, PathBuf};

use rules::Setting;
use rules_gpu::{Error, Refusal, run};
use serde_json::Value;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/chr")
}

#[test]
fn confluent_cases_end_with_the_store_given() {
    let kernels = crate::kernels();
    let cases = std::fs::read_to_string(data().join("cases.jsonl")).expect("it is beside the sources");
    let (mut wrong, mut refused, mut right) = (Vec::new(), Vec::new(), 0);
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case a line");
        let text = |member: &str| case[member].as_str().expect("a text");
        let is_confluent = case["tags"].as_array().is_none_or(|tags| tags.is_empty());
        let program =
            std::fs::read_to_string(data().join("programs").join(text("program"))).expect("it is there");
        let began = std::time::Instant::now();
        match run(&program, text("goal"), &kernels, &Setting::default()) {
            Err(Error::Refused(Refusal::Rule { .. } | Refusal::Goal(_))) => {
                refused.push(text("name").to_owned())
            }
            // Their answers may differ.
            _ if !is_confluent => {}
            Ok(answer) if Value::from(answer.store.clone()) == case["store"] => right += 1,
            answer => wrong.push(format!("{}: {answer:?}", text("name"))),
        }
        eprintln!("{} {:?}", text("name"), began.elapsed());
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    let refused: Vec<_> = refused.iter().map(|name| name.split('-').next().expect("one part")).collect();
    assert!(
        refused.iter().all(|name| ["leq", "fib_memo", "tak_memo", "union_find"].contains(name)),
        "{refused:?}"
    );
    assert!(right >= 30, "{right}");
}
