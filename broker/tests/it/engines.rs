//! Engines on GPUs, seen from outside: where there is a GPU, where there is none, and where one fails.

use broker::Config;
use broker::config::EngineName;
use device::{Device, DriverError, Fault};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Http, Inside, Serve, eventually, feature, run_to_end};

/// Memory of a device that is the processor itself.
const HOST_BYTES: u64 = 1 << 30;

/// `/v1/stats`.
async fn stats(http: &Http) -> Value {
    http.get("/v1/stats").await.expect(200).json()
}

/// The sample of a metric without labels.
async fn sample(http: &Http, name: &str) -> f64 {
    let text = http.get("/metrics").await.expect(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gpu_that_is_asked_for_is_used_or_its_absence_told() {
    for engine in ["gpu", "clcb"] {
        let Err(error) = Device::all() else {
            let program = Serve::new().args(&["--engine", engine]).start().await;
            let stats = stats(&program.http()).await;
            assert_eq!((&stats["engine"], &stats["shards"]), (&json!(engine), &json!(1)), "{stats}");
            program.finish().await;
            continue;
        };
        let folder = TempDir::new().expect("a folder");
        let output =
            run_to_end(&["serve", "--listen", "127.0.0.1:0", "--engine", engine], &[], folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert_eq!(output.stdout, b"", "it did not listen");
        assert_eq!(told.lines().count(), 1, "one sentence: {told}");
        for part in [&format!("engine {engine} "), &error.to_string(), "--engine auto", "--engine cells"] {
            assert!(told.contains(part), "{part:?} is not in {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auto_starts_anywhere_and_says_what_it_took() {
    let program = Serve::new().args(&["--engine", "auto"]).start().await;
    let http = program.http();
    let stats = stats(&http).await;
    let why = stats["engine_why"].as_str().expect("a sentence");
    let (engine, part, in_use) = match Device::all() {
        Ok(devices) => ("auto", devices[0].name().to_owned(), 1.0),
        // No words that the loader has for a library that is not there.
        Err(DriverError::NoDriver { .. }) => {
            ("cells", "cells on the CPU, for there is no NVIDIA driver here".to_owned(), 0.0)
        }
        Err(error) => ("cells", error.to_string(), 0.0),
    };
    assert_eq!(stats["engine"], engine, "{stats}");
    assert!(why.contains(&part), "{part:?} is not in {why}");
    program.says("took an engine").await;
    let log = program.log();
    assert!(log.lines().any(|line| line.contains("took an engine") && line.contains(&part)), "{log}");
    assert_eq!(sample(&http, "nearcast_gpu_in_use").await, in_use);
    assert_eq!(sample(&http, "nearcast_gpu_failures_total").await, 0.0);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_on_the_cpu_says_that_it_was_asked_for() {
    for engine in ["cells", "scan"] {
        let program = Serve::new().args(&["--engine", engine]).start().await;
        let stats = stats(&program.http()).await;
        assert_eq!(stats["engine"], engine);
        let why = format!("{engine} on the CPU, for it was asked for");
        assert_eq!(stats["engine_why"], why);
        program.finish().await;
    }
}

fn config(engine: EngineName) -> Config {
    let mut config = Config::default();
    config.server.engine = engine;
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_takes_one_shard_unless_more_are_asked_for() {
    for (engine, name) in [(EngineName::Auto, "auto"), (EngineName::Gpu, "gpu"), (EngineName::Clcb, "clcb")] {
        for (asked, shards) in [(0, 1), (2, 2)] {
            let mut config = config(engine);
            config.server.shards = asked;
            let devices = [Device::host(HOST_BYTES), Device::host(HOST_BYTES)];
            let broker = Inside::start(config, &devices).await;
            let http = broker.http();
            let stats = stats(&http).await;
            assert_eq!((&stats["engine"], &stats["shards"]), (&json!(name), &json!(shards)), "{stats}");
            assert_eq!(sample(&http, "nearcast_gpu_in_use").await, f64::from(shards));
            broker.finish().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gpu_that_fails_costs_no_event_and_no_subscription() {
    for (engine, fault) in [
        (EngineName::Gpu, Fault::DeviceLost),
        (EngineName::Gpu, Fault::LaunchFailed),
        (EngineName::Clcb, Fault::DeviceLost),
    ] {
        let device = Device::host(HOST_BYTES);
        let broker = Inside::start(config(engine), std::slice::from_ref(&device)).await;
        let http = broker.http();
        let mut client = broker.ws("car").await;
        client.place([9.0, 45.0]).await;
        client.subscribe("near", json!({"filters": [{"area": {"radius_m": 100}}]})).await;
        let event = |id: &str| feature(id, [9.0, 45.0], json!({}));
        client.publish(&event("before")).await;
        assert_eq!(client.event().await["event"]["id"], "before");
        assert_eq!(http.get("/readyz").await.expect(200).text(), "ready\n");
        assert_eq!(sample(&http, "nearcast_gpu_events_total").await, 1.0);

        device.inject(fault, 1);
        client.publish(&event("meanwhile")).await;
        client.publish(&event("after")).await;
        for id in ["meanwhile", "after"] {
            let frame = client.event().await;
            assert_eq!((&frame["event"]["id"], &frame["subscriptions"]), (&json!(id), &json!(["near"])));
        }
        // The event is delivered before the figures are looked at again.
        let stats = eventually("the failure is told", async || {
            let stats = stats(&http).await;
            (stats["engine"] == "cells").then_some(stats)
        })
        .await;
        let why = stats["engine_why"].as_str().expect("a sentence");
        assert!(why.contains("host failed") && why.contains("restart"), "{why}");
        let ready = http.get("/readyz").await.expect(200).text();
        assert!(ready.starts_with("ready, without the GPU"), "{ready}");
        assert_eq!(sample(&http, "nearcast_gpu_in_use").await, 0.0);
        assert_eq!(sample(&http, "nearcast_gpu_failures_total").await, 1.0);
        assert_eq!(sample(&http, "nearcast_gpu_events_total").await, 1.0);
        broker.finish().await;
    }
}

#[test]
fn a_device_without_room_is_told() {
    let found = [Device::host(1_000)];
    for engine in [EngineName::Gpu, EngineName::Clcb] {
        let refused = broker::Engines::with_devices(&config(engine), Ok(&found)).err();
        let told = refused.expect("there is no room").to_string();
        assert!(told.contains("bytes of device memory") && told.contains("--engine cells"), "{told}");
    }
    assert!(broker::Engines::with_devices(&config(EngineName::Auto), Ok(&found)).is_ok());
}
