//! Mistakes of the command line, and what is said of them.

use super::{output, typed};
use crate::harness::Serve;

#[test]
fn a_negative_number_of_metres_is_none() {
    for args in [["sub", "--around", "-500"], ["sub", "--hysteresis", "-5"], ["pub", "--reach", "-1"]] {
        let (code, said) = output(&args);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("it has to be a number of metres, 0 or more"), "{said}");
    }
}

#[test]
fn where_nobody_listens_the_broker_may_not_run() {
    // The port of a listener that is gone.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let (code, said) = output(&["pub", "--at", "9,45", "--url", &url]);
    assert!(code == Some(1) && said.contains(&format!("is `nearcast serve` running at {url}?")), "{said}");
}

#[test]
fn a_port_goes_with_its_address() {
    let (code, said) = output(&["serve", "--port", "8080"]);
    assert!(code == Some(2) && said.contains("--listen 127.0.0.1:8080"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_without_tls_is_told_apart_from_one_that_is_away() {
    let program = Serve::new().start().await;
    let url = format!("https://{}", program.address());
    for args in
        [&["sub", "--everywhere"][..], &["pub", "--at", "9,45"], &["move", "--client", "ann", "--at", "9,45"]]
    {
        let ended = typed(&program, &[args, &["--url", &url]].concat(), "").await.with(1);
        let told = format!("(the broker speaks no TLS there: http://{}?)", program.address());
        assert!(ended.err.contains(&told), "{ended:?}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_is_taken_is_told_with_a_way_round() {
    let program = Serve::new().start().await;
    let address = program.address().to_string();
    let (code, said) = output(&["serve", "--listen", &address]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("cannot listen on {address}: ")), "{said}");
    assert!(said.contains("; --listen 127.0.0.1:0 takes a free port"), "{said}");
    program.finish().await;
}
