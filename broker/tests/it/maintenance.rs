//! `nearcast verify` and `nearcast backup` from outside, where there is nothing good to be found.

use std::fs;

use tempfile::TempDir;

use crate::harness::{Serve, run_to_end};

#[test]
fn a_check_ends_with_what_it_found() {
    let folder = TempDir::new().expect("a folder");
    let check = |name: &str| {
        let output = run_to_end(&["verify", name], &[], folder.path());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, _, told) = check("nowhere");
    assert_eq!(code, Some(2));
    assert!(told.contains("nowhere"), "{told}");
    fs::create_dir(folder.path().join("data")).expect("a folder");
    fs::write(folder.path().join("data/store.redb"), [7; 10_000]).expect("a file");
    let (code, told, _) = check("data");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("damaged") && told.contains("store.redb"), "{told}");
    assert_eq!(fs::read_dir(folder.path().join("data")).expect("a folder").count(), 1, "it was changed");
}

#[test]
fn a_backup_of_nothing_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let output = run_to_end(&["backup", "--data", "nowhere", "--to", "copy"], &[], folder.path());
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("nowhere"), "{told}");
    assert!(!folder.path().join("copy").exists());
}

/// The address of a socket has room for less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_broker_is_backed_up_however_long_the_path_of_its_data() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("d".repeat(150));
    let data = data.to_str().expect("UTF-8");
    let program = Serve::new().args(&["--data", data]).start().await;
    let back_up = || run_to_end(&["backup", "--data", data, "--to", "copy"], &[], folder.path());
    let output = back_up();
    assert!(output.status.success(), "{output:?}\n{}", program.log());
    let output = run_to_end(&["verify", "copy"], &[], folder.path());
    assert!(output.status.success(), "{output:?}");
    // It ends as fast as ever, and takes the socket along.
    program.finish().await;
    assert!(!folder.path().join(data).join("control/socket").exists());
}
