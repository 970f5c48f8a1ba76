//! What a program that uses the crate sees. That it starts at all on a machine without CUDA is part of the test.

use device::{Device, DriverError};

#[test]
fn devices_are_found_or_a_reason_is_given() {
    match Device::all() {
        Ok(devices) => assert!(devices.iter().all(|device| !device.is_host() && !device.name().is_empty())),
        Err(DriverError::NoDriver { reason }) => assert!(reason.contains("libcuda.so.1"), "{reason}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
