//! A data directory that somebody takes away, or takes something from.

use std::fs;

use tempfile::TempDir;

use super::{durable, expect_events, publish, subscribe};
use crate::harness::{Program, Serve, eventually};

fn serve(folder: &TempDir) -> Serve {
    let data = folder.path().join("data");
    Serve::new().args(&["--data", data.to_str().expect("UTF-8")])
}

async fn readyz(program: &Program, status: u16) {
    let http = program.http();
    eventually(&format!("/readyz says {status}"), async || {
        (http.get("/readyz").await.status == status).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_acknowledged_while_the_directory_is_gone() {
    let folder = TempDir::new().expect("a folder");
    let program = serve(&folder).start().await;
    let http = program.http();
    subscribe(&http, "car", "s", &durable()).await;
    publish(&http, 1, 3).await;
    let (data, away) = (folder.path().join("data"), folder.path().join("away"));
    fs::rename(&data, &away).expect("it is moved");
    let refused = http.put("/v1/clients/bus/subscriptions/s", &durable()).await;
    assert_eq!(refused.problem(503)["type"], "urn:nearcast:problem:storage");
    readyz(&program, 503).await;
    program.says("it was taken away while the broker runs").await;
    fs::rename(&away, &data).expect("it is moved");
    readyz(&program, 200).await;
    publish(&http, 4, 2).await;
    program.kill();
    let program = serve(&folder).start().await;
    expect_events(&mut program.ws("car").await, 1..=5).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_lost_is_not_served_as_if_it_had_never_been() {
    let folder = TempDir::new().expect("a folder");
    let program = serve(&folder).start().await;
    subscribe(&program.http(), "car", "s", &durable()).await;
    program.kill();
    let file = folder.path().join("data").join("store.redb");
    let refused = async || match serve(&folder).try_start().await {
        Ok(_) => panic!("it is served"),
        Err((status, log)) => {
            assert!(!status.success() && !log.contains("panicked"), "{status}\n{log}");
            log
        }
    };
    fs::write(&file, "").expect("it is written");
    let told = refused().await;
    assert!(told.contains("store.redb is damaged: it is empty"), "{told}");
    fs::remove_file(&file).expect("it is there");
    let told = refused().await;
    assert!(
        told.contains("there is no store.redb in") && told.contains("put the file or a backup"),
        "{told}"
    );
}
