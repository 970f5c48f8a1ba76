//! Settings that cannot be driven, and devices that fail.

use device::{DriverError, Fault};
use traffic_gpu::{Engine, Error, Gpu, Kernels, Processor, Settings};

use crate::{HOST_BYTES, country, device, gpu};

#[test]
fn too_many_vehicles_are_refused() {
    let roads = country(100, 1);
    let settings = Settings { vehicles: 1_000_000, routed: 0, seed: 1 };
    let error = Processor::new(&roads, settings).expect_err("there is no room");
    assert!(matches!(error, Error::TooMany { vehicles: 1_000_000, .. }), "{error}");
    assert!(error.to_string().contains("do not fit onto"), "{error}");
    let settings = Settings { vehicles: 10, routed: 11, seed: 1 };
    assert_eq!(
        Processor::new(&roads, settings).expect_err("too many"),
        Error::TooManyRouted { routed: 11, vehicles: 10 }
    );
}

#[test]
fn a_device_without_memory_says_so() {
    let device = device::Device::host(HOST_BYTES);
    let kernels = Kernels::load(&device).unwrap();
    device.inject(Fault::OutOfMemory, 5);
    let settings = Settings { vehicles: 10, routed: 2, seed: 1 };
    let error = Gpu::new(&kernels, &country(100, 1), settings).expect_err("no memory");
    assert!(matches!(error, Error::Device(DriverError::OutOfMemory { .. })), "{error}");
}

#[test]
fn a_device_that_is_lost_says_so() {
    for after in [1, 3, 5, 8] {
        let device = device();
        let roads = country(100, 1);
        let mut engine = gpu(&device, &roads, Settings { vehicles: 10, routed: 2, seed: 1 });
        engine.advance(1).unwrap();
        device.inject(Fault::LaunchFailed, after);
        let error = engine.advance(20).expect_err("it fails");
        assert!(matches!(error, Error::Device(_)), "{error}");
        assert!(engine.state().is_err(), "it stays lost");
    }
}
