//! The same with a broker whose engine is on a device: the processor itself, running the kernels as plain C++.

use broker::Config;
use broker::config::EngineName;
use device::{Device, Fault};

use super::{Scale, replay};
use crate::harness::Inside;

const DEVICE_BYTES: u64 = 1 << 30;
const SCALE: Scale = Scale { clients: 300, subscriptions: 800, events: 4_000 };

fn config() -> Config {
    let mut config = Config::default();
    config.server.engine = EngineName::Gpu;
    // A machine that is busy with other tests is not to make it refuse events.
    config.admission.delay_ms = 60_000;
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_of_a_gpu_engine_are_exactly_those_of_a_brute_force() {
    let broker = Inside::start(config(), &[Device::host(DEVICE_BYTES)]).await;
    replay(&broker, SCALE, 1.0).await;
    broker.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_are_exact_although_a_gpu_fails() {
    let device = Device::host(DEVICE_BYTES);
    let broker = Inside::start(config(), std::slice::from_ref(&device)).await;
    // Soon enough also where many events come together in a batch, and calls are few.
    device.inject(Fault::DeviceLost, 500);
    replay(&broker, SCALE, 1.0).await;
    let stats = broker.http().get("/v1/stats").await.expect(200).json();
    assert_eq!(stats["engine"], "cells", "the GPU has failed: {stats}");
    broker.finish().await;
}
