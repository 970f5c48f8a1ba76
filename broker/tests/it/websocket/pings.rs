//! Pings and pongs (case 2).

use std::slice;

use super::Back::{Answer, Close, Pong};
use super::peer::{Frame, PING, PONG};
use super::{BOTH, REQUEST, check, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ping_is_answered_by_what_it_says() {
    let program = start().await;
    for (name, payload) in [
        ("nothing", vec![]),
        ("a text", b"Hello, world!".to_vec()),
        ("no text", vec![0x00, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0x00, 0xff]),
        ("124 bytes", vec![0xfe; 124]),
        ("125 bytes", vec![0xfe; 125]),
    ] {
        let ping = Frame::new(PING, payload.as_slice());
        check(&program, name, &BOTH, &[ping], &[Pong(payload)]).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ping_or_pong_that_is_too_long_is_refused() {
    let program = start().await;
    for opcode in [PING, PONG] {
        for length in [126, 127, 65_536] {
            let frame = Frame::new(opcode, vec![0xfe; length]);
            let name = format!("opcode {opcode} of {length} bytes");
            check(&program, &name, &BOTH[..1], &[frame], &[Close(1002)]).await;
        }
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pongs_that_nobody_asked_for_are_nothing() {
    let program = start().await;
    let pong = |payload| Frame::new(PONG, payload);
    let ping = Frame::new(PING, "asked");
    let asked = Pong(b"asked".to_vec());
    check(&program, "an empty pong", &BOTH, &[pong("")], &[]).await;
    check(&program, "a pong", &BOTH, &[pong("unasked")], &[]).await;
    check(&program, "a pong and a ping", &BOTH, &[pong("unasked"), ping.clone()], slice::from_ref(&asked))
        .await;
    let frames = [pong("unasked"), ping, Frame::text(REQUEST)];
    check(&program, "a pong, a ping and a request", &BOTH, &frames, &[asked, Answer]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_pings_are_answered_one_by_one() {
    let program = start().await;
    let payloads = (0..10).map(|idx| format!("payload {idx}").into_bytes()).collect::<Vec<_>>();
    let pings = payloads.iter().map(|payload| Frame::new(PING, payload.as_slice())).collect::<Vec<_>>();
    let pongs = payloads.into_iter().map(Pong).collect::<Vec<_>>();
    check(&program, "ten pings", &BOTH, &pings, &pongs).await;
    program.finish().await;
}
