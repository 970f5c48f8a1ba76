//! The engine `gpu` against its oracle: on the processor as a device, and with `NEARCAST_GPU_TESTS=1` on a real one.

mod batches;
#[path = "../../../checks/tests/it/documents.rs"]
mod documents;
mod failures;
mod random;
#[path = "../../../checks/tests/it/reports.rs"]
mod reports;
#[path = "../../../checks/tests/it/shapes.rs"]
mod shapes;
mod taxis;
#[path = "../../../checks/tests/it/world.rs"]
mod world;

use std::num::NonZeroU32;

use checks_gpu::{Granularity, Kernels, Settings, Transmission};
use device::Device;

/// Memory of the processor as a device.
const HOST_BYTES: u64 = 256 << 20;

/// Whether a real device is to be there.
fn is_on_device() -> bool {
    std::env::var_os("NEARCAST_GPU_TESTS").is_some_and(|value| value == "1")
}

/// The device of the tests.
fn device() -> Device {
    if is_on_device() {
        Device::all().expect("NEARCAST_GPU_TESTS=1 demands a device").swap_remove(0)
    } else {
        Device::host(HOST_BYTES)
    }
}

/// The paper's variants, which take changes one by one, and ours.
fn variants() -> Vec<Settings> {
    let standard = Settings { batches: false, ..Settings::default() };
    let block = |threads| NonZeroU32::new(threads).expect("not zero");
    vec![
        standard,
        Settings { batches: true, block: block(256), ..standard },
        Settings { granularity: Granularity::Node, ..standard },
        Settings { transmission: Transmission::Synchronous, block: block(32), ..standard },
        Settings { buffering: false, warps: false, block: block(512), ..standard },
    ]
}

fn kernels(device: &Device) -> Kernels {
    Kernels::load(device).expect("the device takes them")
}
