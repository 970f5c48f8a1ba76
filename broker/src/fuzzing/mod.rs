//! Doors for fuzzing: each reader of what comes from outside, as a function of bytes that panics where the reader breaks a promise.
//!
//! `fuzz/` feeds them with what it makes up; the tests feed them with `fuzz/corpus`, so that what was found once stays mended.

mod checks;
mod conditions;
mod documents;
mod framing;
mod instances;
mod rules;
mod settings;

use serde_json::Value;

pub use crate::auth::fuzzing::{jwks, token};
pub use crate::http::fuzzing::{frames, resume};
use crate::model::error::ApiError;
pub use crate::server::fuzzing::connection;
pub use crate::store::fuzzing::{store_file, store_log, store_record, store_tail};
pub use checks::check;
pub use conditions::{condition_json, condition_text};
pub use documents::{feature, position, question, subscription};
pub use framing::framing;
pub use instances::instance;
pub use rules::rule_set;
pub use settings::settings;

/// Panics where a promise is broken.
pub type Target = fn(&[u8]);

/// All targets by their names, which are those of the folders of `fuzz/corpus`.
pub const TARGETS: [(&str, Target); 20] = [
    ("feature", feature),
    ("framing", framing),
    ("subscription", subscription),
    ("condition_text", condition_text),
    ("condition_json", condition_json),
    ("check", check),
    ("rule_set", rule_set),
    ("instance", instance),
    ("position", position),
    ("question", question),
    ("connection", connection),
    ("frames", frames),
    ("resume", resume),
    ("token", token),
    ("jwks", jwks),
    ("settings", settings),
    ("store_record", store_record),
    ("store_log", store_log),
    ("store_tail", store_tail),
    ("store_file", store_file),
];

/// Checks that a refusal leads the sender to the fault: by a place in the text, or by pointers into the document.
pub(crate) fn check_refusal(text: &str, refusal: &ApiError) {
    let problem = refusal.problem();
    assert!((400..=501).contains(&problem.status) && problem.status != 500, "{refusal:?}");
    assert!(problem.detail.as_ref().is_some_and(|detail| !detail.is_empty()), "{refusal:?}");
    if let ApiError::Malformed { line, column, .. } = refusal {
        let found = text.split('\n').nth(line.saturating_sub(1));
        assert!(found.is_some_and(|found| *column <= found.len() + 1), "{refusal:?}");
    }
    if let ApiError::Invalid(faults) = refusal {
        assert!(!faults.is_empty());
        let Ok(document) = serde_json::from_str::<Value>(text) else { return };
        // Where a member is there twice, a pointer into one of the two says nothing of the other; behind too many attributes that
        // is not looked for any more.
        let is_vague = |fault: &wire::Fault| {
            ["twice", "an event has at most"].iter().any(|what| fault.detail.contains(what))
        };
        let is_clear = faults.len() < 32 && !faults.iter().any(is_vague);
        for fault in faults {
            let parent = fault.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
            assert!(fault.pointer.is_empty() || fault.pointer.starts_with('/'), "{refusal:?}");
            assert!(!is_clear || document.pointer(parent).is_some(), "{refusal:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_found_once_stays_mended() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
        // `ledger_record` is tested where its reader is, in `cluster`.
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len() + 1);
        for (name, target) in TARGETS {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            let mut seeds: Vec<_> = fs::read_dir(fuzz.join("corpus").join(name))
                .unwrap()
                .map(|seed| seed.unwrap().path())
                .collect();
            seeds.sort();
            assert!(!seeds.is_empty(), "{name}");
            for seed in seeds {
                eprintln!("{}", seed.display());
                target(&fs::read(seed).unwrap());
            }
        }
    }
}
