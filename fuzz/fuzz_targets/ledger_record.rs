#![no_main]

#[path = "../../cluster/tests/fuzzing/mod.rs"]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::ledger_record(data));
