//! The GPU engines from outside: against the conformance suite and, in random worlds, against the oracle. In an ordinary
//! run their kernels are plain C++ on the processor; with `NEARCAST_GPU_TESTS=1` everything runs on every CUDA device as
//! well, and a missing one is a failure.

mod auto;
mod devices;
mod engines;
mod limits;
mod steps;
mod workloads;

use device::Device;
use matcher::engine::Engine;
use matcher::geo::World;
use matcher_gpu::{Clcb, Gpu};

/// Memory of a device that is the processor itself.
const HOST_BYTES: u64 = 2 << 30;

/// Whether CUDA devices are to be tested.
fn gpu_tests() -> bool {
    std::env::var("NEARCAST_GPU_TESTS").as_deref() == Ok("1")
}

/// CUDA devices where they are to be tested.
fn cuda_devices() -> Vec<Device> {
    if gpu_tests() { Device::all().expect("GPU tests are asked for") } else { Vec::new() }
}

fn host_device() -> Device {
    Device::host(HOST_BYTES)
}

fn clcb(world: World, device: &Device) -> Box<dyn Engine> {
    Box::new(Clcb::new(world, device).expect("a device has room for an empty engine"))
}

fn gpu(world: World, devices: &[Device]) -> Box<dyn Engine> {
    Box::new(Gpu::new(world, devices).expect("a device has room for an empty engine"))
}
