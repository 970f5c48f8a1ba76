//! Lengths, reserved bits and opcodes, masks, and what is too large (cases 1, 3, 4, 9 and 10).

use std::slice;

use serde_json::json;

use super::Back::{Answer, Close, Echo, Malformed};
use super::peer::{BINARY, CLOSE, CONTINUATION, Frame, Got, PING, PONG, Peer, TEXT};
use super::{BOTH, Manner, QUIET, REQUEST, check, said, start};
use crate::harness::{Program, Serve, feature};

/// The default of `limits.frame_bytes`.
const LARGEST: usize = 1 << 20;

/// A request of so many bytes.
fn ping_of(length: usize) -> String {
    format!("{REQUEST}{}", " ".repeat(length - REQUEST.len()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_all_lengths_are_read() {
    let program = start().await;
    check(&program, "no bytes", &BOTH, &[Frame::text("")], &[Malformed]).await;
    for length in [13, 124, 125, 126, 127, 128, 255, 256] {
        check(&program, &format!("{length} bytes"), &BOTH, &[Frame::text(ping_of(length))], &[Answer]).await;
    }
    for length in [65_534, 65_535, 65_536, 65_537, LARGEST - 1, LARGEST] {
        let name = format!("{length} bytes");
        let manners = [Manner::Together, Manner::Pieces(997)];
        check(&program, &name, &manners, &[Frame::text(ping_of(length))], &[Answer]).await;
    }
    let many = vec![Frame::text(ping_of(125)); 500];
    check(&program, "one after the other", &[Manner::Together], &many, &vec![Answer; 500]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_all_lengths_are_written() {
    let config = format!("{QUIET}[limits]\nevent_bytes = 100000\ntext_bytes = 100000\n");
    let program = Serve::new().config(&config).start().await;
    let mut peer = Peer::open(program.address(), "lengths").await;
    for length in [125, 126, 127, 128] {
        let reference = "r".repeat(length - r#"{"op":"ok","ref":""}"#.len());
        let frame = json!({"op": "move", "ref": reference, "coordinates": [9, 45]}).to_string();
        peer.send(&Frame::text(frame).bytes(), Manner::Together).await;
        let text = peer.text().await;
        assert_eq!(text.len(), length, "{text}");
        assert!(text.contains(&reference), "{text}");
    }

    // A delivery is as much longer than its event each time.
    let http = program.http();
    http.put("/v1/clients/peer/subscriptions/s", &json!({"filters": [{}]})).await.expect(201);
    let mut around = 0;
    for length in [1_000, 65_534, 65_535, 65_536, 65_537] {
        let ballast = "x".repeat(length - around);
        let event = feature("e", [9.0, 45.0], json!({"ballast": ballast}));
        http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
        let text = peer.text().await;
        assert!(around == 0 || text.len() == length, "{} for {length} bytes", text.len());
        assert!(text.contains(&ballast), "{length} bytes: something else has come back");
        around = text.len() - ballast.len();
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn binary_messages_are_refused() {
    let program = start().await;
    for length in [0, 1, 125, 126, 127, 128, 65_535, 65_536] {
        let frame = Frame::new(BINARY, vec![0xfe; length]);
        let name = format!("{length} binary bytes");
        check(&program, &name, &[Manner::Together], &[frame], &[Close(1003)]).await;
    }
    let parts = [Frame::new(BINARY, [1, 2]).unfinished(), Frame::new(CONTINUATION, [3])];
    check(&program, "binary in parts", &BOTH, &parts, &[Close(1003)]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reserved_bits_are_refused() {
    let program = start().await;
    for bits in 1..=7 {
        for opcode in [TEXT, BINARY, PING, PONG, CLOSE] {
            let frame = Frame::new(opcode, "").reserved(bits);
            let name = format!("opcode {opcode} with reserved bits {bits:03b}");
            check(&program, &name, &BOTH, &[frame], &[Close(1002)]).await;
        }
        let parts = [Frame::text("{").unfinished(), Frame::new(CONTINUATION, "}").reserved(bits)];
        check(&program, &format!("a part with {bits:03b}"), &BOTH, &parts, &[Close(1002)]).await;
        after_a_request(&program, Frame::text(REQUEST).reserved(bits)).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reserved_opcodes_are_refused() {
    let program = start().await;
    for opcode in (3..=7).chain(11..=15) {
        for payload in ["", "reserved"] {
            let frame = Frame::new(opcode, payload);
            let name = format!("opcode {opcode} with {payload:?}");
            check(&program, &name, &BOTH, slice::from_ref(&frame), &[Close(1002)]).await;
            after_a_request(&program, frame).await;
        }
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_without_a_mask_are_refused() {
    let program = start().await;
    for (name, frame) in [
        ("a text", Frame::text(REQUEST)),
        ("an empty text", Frame::text("")),
        ("a ping", Frame::new(PING, "")),
        ("a pong", Frame::new(PONG, "pong")),
        ("a close", Frame::close(1000, "")),
    ] {
        let name = format!("{name} without a mask");
        check(&program, &name, &BOTH, &[frame.without_mask()], &[Close(1002)]).await;
    }
    program.finish().await;
}

/// What comes before a frame that ends the connection is carried out, and answered.
async fn after_a_request(program: &Program, frame: Frame) {
    let request = Frame::text(said("before"));
    let frames = [request, frame, Frame::text(REQUEST)];
    check(
        program,
        "after a request",
        &[Manner::Together],
        &frames,
        &[Echo("before".to_owned()), Close(1002)],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_may_be_as_large_as_the_setting_says() {
    let program = start().await;
    let largest = ping_of(LARGEST);
    for size in [64, 256, 1_300, 4_096, 65_536] {
        let parts = Frame::parts(largest.as_bytes(), (size..LARGEST).step_by(size));
        check(&program, &format!("in parts of {size} bytes"), &[Manner::Together], &parts, &[Answer]).await;
    }

    let too_large = ping_of(LARGEST + 1);
    let whole = [Frame::text(too_large.as_str())];
    check(&program, "too large", &[Manner::Together], &whole, &[Close(1009)]).await;
    let parts = Frame::parts(too_large.as_bytes(), [LARGEST / 2, LARGEST]);
    check(&program, "too large in parts", &[Manner::Together], &parts, &[Close(1009)]).await;
    program.finish().await;
}

/// The head of a frame is enough to refuse it: nobody waits for what is too large.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_length_alone_is_refused() {
    let program = start().await;
    for length in [LARGEST as u64 + 1, 1 << 32, 1 << 62, 1 << 63, u64::MAX] {
        let mut peer = Peer::open(program.address(), "a head").await;
        let head = [&[0x81, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat();
        peer.send(&head, Manner::Together).await;
        let got = peer.next().await;
        assert!(matches!(got, Got::Close(Some(1009))), "{length}: {got:?}");
        peer.assert_ended().await;
    }
    program.finish().await;
}
