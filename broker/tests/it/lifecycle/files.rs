//! How many files, sockets among them, the program may have open.

use crate::harness::{Serve, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_takes_as_many_files_as_it_may_have() {
    let program = Serve::new().files("-S -n 256").start().await;
    let [soft, hard] = program.files_max();
    assert_eq!(soft, hard);
    assert!(hard > 256, "the tests themselves need more");
    // What it logs and where it says that it listens come by two pipes.
    let told = format!("files={soft}");
    program.says(&told).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_when_it_may_not_have_enough_for_its_connections() {
    for (connections, is_told) in [(10_000, true), (200, false)] {
        let config = format!("[limits]\nconnections = {connections}\n");
        let program = Serve::new().config(&config).files("-n 512").start().await;
        assert_eq!(program.files_max(), [512, 512]);
        let line =
            || program.log().lines().find(|line| line.contains("limits.connections")).map(str::to_owned);
        if is_told {
            let line = eventually("the log says so", async || line()).await;
            assert!(line.contains("WARN") && line.contains("512"), "{line}");
        } else {
            assert_eq!(line(), None);
        }
        program.finish().await;
    }
}
