//! What a program that uses the crate sees. That it starts at all on a machine without CUDA is part of the test.

use matcher_gpu::driver::launchers::Probe;
use matcher_gpu::driver::{Device, DriverError};

#[test]
fn the_host_device_computes() {
    let device = Device::host(1 << 20);
    assert!(device.is_host());
    assert_eq!(Probe::check(&device), Ok(()));
}

#[test]
fn devices_are_found_or_a_reason_is_given() {
    match Device::all() {
        Ok(devices) => assert!(devices.iter().all(|device| !device.is_host() && !device.name().is_empty())),
        Err(DriverError::NoDriver { reason }) => assert!(reason.contains("libcuda.so.1"), "{reason}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
