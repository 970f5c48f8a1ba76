//! How a connection is closed (case 7).

use serde_json::json;

use super::Back::Close;
use super::peer::{CLOSE, Frame, Got, PING, Peer};
use super::{BOTH, Manner, REQUEST, check, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_is_answered_with_its_code() {
    let program = start().await;
    for code in (1000..=1003).chain(1007..=1013).chain([3000, 3999, 4000, 4999]) {
        check(&program, &format!("close {code}"), &BOTH, &[Frame::close(code, "enough")], &[Close(code)])
            .await;
    }
    for (name, reason) in [("no reason", ""), ("a long reason", &"*".repeat(123)), ("UTF-8", "κόσμε")] {
        check(&program, name, &BOTH, &[Frame::close(1000, reason)], &[Close(1000)]).await;
    }
    // 1005 is how "no code" is told.
    check(&program, "no code", &BOTH, &[Frame::new(CLOSE, "")], &[Close(1005)]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_with_a_code_that_nobody_may_send_is_refused() {
    let program = start().await;
    for code in [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        for reason in ["", "enough"] {
            let name = format!("close {code} {reason:?}");
            check(&program, &name, &BOTH, &[Frame::close(code, reason)], &[Close(1002)]).await;
        }
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_that_is_malformed_is_refused() {
    let program = start().await;
    for (name, payload, code) in [
        ("half a code", b"\x03".to_vec(), 1002),
        ("124 bytes of reason", [b"\x03\xe8".to_vec(), vec![b'*'; 124]].concat(), 1002),
        ("a reason that is not UTF-8", b"\x03\xe8\xce\xba\xed\xa0\x80".to_vec(), 1007),
        ("a reason that stops half-way", b"\x03\xe8\xce\xba\xe1".to_vec(), 1007),
    ] {
        check(&program, name, &BOTH, &[Frame::new(CLOSE, payload)], &[Close(code)]).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_answered_after_a_close() {
    let program = start().await;
    for (name, after) in [
        ("another close", Frame::close(3000, "again")),
        ("a ping", Frame::new(PING, "late")),
        ("a request", Frame::text(REQUEST)),
        ("a beginning", Frame::text("{").unfinished()),
        ("nonsense", Frame::new(3, "").reserved(7)),
    ] {
        let frames = [Frame::close(1000, ""), after];
        check(&program, &format!("{name} after a close"), &BOTH, &frames, &[Close(1000)]).await;
    }
    program.finish().await;
}

/// A close that comes while the other side still writes: what it writes is taken, and it finds out why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_on_after_a_fault_still_reads_why_it_was_closed() {
    let program = start().await;
    let faults = [
        ("reserved bits", Frame::text(REQUEST).reserved(7), 1002),
        ("not UTF-8", Frame::text(b"\xff".to_vec()), 1007),
        ("too large", Frame::text(vec![b' '; 2 << 20]), 1009),
    ];
    for (name, fault, code) in faults {
        let mut peer = Peer::open(program.address(), name).await;
        // Of what is too large the beginning says so.
        peer.send(&fault.bytes()[..fault.bytes().len().min(32)], Manner::Together).await;
        for _ in 0..5 {
            assert!(peer.goes_on().await, "{name}: the connection was reset");
        }
        let got = peer.next().await;
        assert!(matches!(got, Got::Close(Some(found)) if found == code), "{name}: {got:?}");
    }
    program.finish().await;
}

/// The broker closes, the client answers, and the broker ends the connection; without an answer it does so, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_broker_waits_for_the_answer_to_its_close_but_not_for_ever() {
    let program = start().await;
    let http = program.http();
    for answers in [true, false] {
        let mut peer = Peer::open(program.address(), "closed").await;
        http.put("/v1/clients/peer/position", &json!({"coordinates": [9, 45]})).await.expect(204);
        http.delete("/v1/clients/peer").await.expect(204);
        let got = peer.next().await;
        assert!(matches!(got, Got::Close(Some(1000))), "{got:?}");
        if answers {
            // What was under way may come before the answer.
            peer.send(&Frame::text(REQUEST).bytes(), Manner::Together).await;
            peer.assert_ended().await;
        } else {
            let got = peer.next().await;
            assert!(matches!(got, Got::Cut), "{got:?}");
        }
    }
    program.finish().await;
}
