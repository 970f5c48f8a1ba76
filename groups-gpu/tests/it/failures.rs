//! What the world can do to a device is an error; nothing else is lost by it.

use device::{Device, DriverError, Fault};
use groups::network::{Algorithm, Domains, Network, Table};
use groups_gpu::{Bits, Error, Kernels, Letter, Method};

use crate::oracle::Described;

fn network() -> Network {
    let apart = (0..40).map(|a| (0..40).map(|b| a != b).collect()).collect::<Vec<Vec<bool>>>();
    let pairs = (0..9).flat_map(|x| (0..x).map(move |y| [x, y]));
    let described = Described {
        sizes: vec![40; 9],
        constraints: pairs.map(|scope| (scope, apart.clone())).collect(),
        unary: Vec::new(),
    };
    described.build(|| Table::Supports)
}

#[test]
fn a_device_with_too_little_memory_says_so() {
    let network = network();
    let device = Device::host(1 << 14);
    let kernels = Kernels::load(&device).expect("the host takes them");
    let is_too_little = |result: Result<(), Error>| {
        let error = result.expect_err("36 constraints of 1,600 pairs are more");
        assert!(matches!(error, Error::Device(DriverError::OutOfMemory { .. })), "{error}");
        assert!(error.to_string().contains("bytes of device memory"), "{error}");
    };
    let mut letter = Letter::new(&kernels).expect("nothing yet");
    is_too_little(letter.load(&network));
    let mut bits = Bits::new(&kernels).expect("nothing yet");
    is_too_little(bits.load(&network));
}

/// Refuses memory, and then a smaller amount of it.
fn refuse(device: &Device, after: u32) {
    device.inject(Fault::OutOfMemory, after);
    device.inject(Fault::OutOfMemory, after);
}

#[test]
fn a_later_load_succeeds() {
    let network = network();
    let mut start = Domains::new(&network);
    start.assign(&network, 0, 3);
    let expected = Algorithm::Ac3Bit.enforce(&network, &start).domains;
    for after in 1..12 {
        let device = Device::host(1 << 24);
        let kernels = Kernels::load(&device).expect("the host takes them");
        let mut letter = Letter::new(&kernels).expect("nothing yet");
        let mut bits = Bits::new(&kernels).expect("nothing yet");
        refuse(&device, after);
        let first = letter.enforce(&network, &start, Method::Ac4Gpu);
        assert!(matches!(first, Err(Error::Device(DriverError::OutOfMemory { .. }))), "{after}: {first:?}");
        assert_eq!(letter.enforce(&network, &start, Method::Ac4Gpu).map(|o| o.domains), Ok(expected.clone()));
        refuse(&device, after % 6 + 1);
        bits.load(&network).expect_err("a fault on order");
        bits.load(&network).expect("no fault any longer");
        assert_eq!(bits.enforce(&network, &start).map(|outcome| outcome.domains), Ok(expected.clone()));
    }
}

#[test]
fn a_lost_device_is_told() {
    let network = network();
    let all = Domains::new(&network);
    for after in [1, 5, 14] {
        let device = Device::host(1 << 24);
        let kernels = Kernels::load(&device).expect("the host takes them");
        let mut letter = Letter::new(&kernels).expect("nothing yet");
        let mut bits = Bits::new(&kernels).expect("nothing yet");
        bits.load(&network).expect("memory");
        device.inject(Fault::LaunchFailed, after);
        let told = letter.enforce(&network, &all, Method::Ac4GpuPlus);
        assert!(matches!(told, Err(Error::Device(DriverError::LaunchFailed { .. }))), "{after}: {told:?}");
        let told = bits.enforce(&network, &all);
        assert!(matches!(told, Err(Error::Device(DriverError::DeviceLost { .. }))), "{after}: {told:?}");
    }
}
