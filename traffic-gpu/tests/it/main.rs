//! Traffic on a device against the processor's: on the processor as a device, and with `NEARCAST_GPU_TESTS=1` on a real one.

mod equality;
mod failures;
mod model;
mod rules;

use std::sync::Arc;

use device::Device;
use streets::{Country, Network};
use traffic_gpu::{Gpu, Kernels, Processor, Roads, Settings};

/// Memory of the processor as a device.
const HOST_BYTES: u64 = 1 << 30;

/// Whether a real device is to be there.
fn is_on_device() -> bool {
    std::env::var_os("NEARCAST_GPU_TESTS").is_some_and(|value| value == "1")
}

/// Whether the long form of tests is asked for.
fn is_soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1")
}

/// The tests' device.
fn device() -> Device {
    if is_on_device() {
        Device::all().expect("NEARCAST_GPU_TESTS=1 demands a device").swap_remove(0)
    } else {
        Device::host(HOST_BYTES)
    }
}

fn country(nodes: u32, seed: u64) -> Arc<Roads> {
    Arc::new(Roads::of_country(&Country::new(nodes, seed), seed).expect("not too large"))
}

fn network(network: &Network, seed: u64) -> Arc<Roads> {
    Arc::new(Roads::of_network(network, seed).expect("not too large"))
}

fn processor(roads: &Arc<Roads>, settings: Settings) -> Processor {
    Processor::new(roads, settings).expect("there is room")
}

fn gpu(device: &Device, roads: &Arc<Roads>, settings: Settings) -> Gpu {
    Gpu::new(&Kernels::load(device).expect("the device takes them"), roads, settings).expect("there is room")
}
