//! Rules on a device against the processor's engine: on the processor as a device, and with `NEARCAST_GPU_TESTS=1` on a real one.

mod cases;
mod compiled;
mod distance;
mod letter;
mod random;

use device::Device;
use rules_gpu::Kernels;

/// Memory of the processor as a device.
const HOST_BYTES: u64 = 1 << 30;

/// Whether a real device is to be there.
fn is_on_device() -> bool {
    std::env::var_os("NEARCAST_GPU_TESTS").is_some_and(|value| value == "1")
}

/// The kernels of the tests' device.
fn kernels() -> Kernels {
    let device = if is_on_device() {
        Device::all().expect("NEARCAST_GPU_TESTS=1 demands a device").swap_remove(0)
    } else {
        Device::host(HOST_BYTES)
    };
    Kernels::load(&device).expect("the device takes them")
}
