#![no_main]

use libfuzzer_sys::fuzz_target;

// The library may panic over a file that somebody altered, and the store bears it; what it does not bear ends the process all the same.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |data: &[u8]| broker::fuzzing::store_file(data));
