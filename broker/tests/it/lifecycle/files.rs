//! How many files, sockets among them, the program may have open.

use crate::harness::{Raw, Serve};

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
async fn it_warns_when_files_run_out_and_not_at_the_start() {
    // Of so few files 128 are its own, so that 32 connections have room.
    let files = "-n 160";
    for (connections, is_told) in [(10_000, true), (30, false)] {
        let config = format!("[limits]\nconnections = {connections}\n");
        let program = Serve::new().config(&config).files(files).start().await;
        assert_eq!(program.files_max(), [160, 160]);
        program.says("nearcast listens on ").await;
        assert!(!program.log().contains("WARN"), "{}", program.log());
        assert!(!program.log().contains("limits.connections"), "{}", program.log());
        let mut open = Vec::new();
        for _ in 0..29 {
            let mut connection = Raw::connect(program.address()).await;
            connection.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
            connection.head().await;
            open.push(connection);
        }
        if is_told {
            program.says("open files run out before limits.connections").await;
        } else {
            assert!(!program.log().contains("open files run out"), "{}", program.log());
        }
        drop(open);
        program.finish().await;
    }
}
