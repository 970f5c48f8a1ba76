//! Messages in parts (case 5).

use super::Back::{Answer, Close, Echo, Invalid, Malformed, Pong};
use super::peer::{BINARY, CLOSE, CONTINUATION, Frame, PING, PONG, TEXT};
use super::{BOTH, REQUEST, check, said, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_may_come_in_parts() {
    let program = start().await;
    let text = said("in parts");
    let echo = [Echo("in parts".to_owned())];
    for ends in [vec![1], vec![text.len() / 2], vec![0], vec![text.len()], vec![0, 0, 5, 5, text.len()]] {
        let name = format!("in parts that end at {ends:?}");
        check(&program, &name, &BOTH, &Frame::parts(text.as_bytes(), ends), &echo).await;
    }
    let parts = Frame::parts(text.as_bytes(), 1..text.len());
    check(&program, "a byte a part", &BOTH, &parts, &echo).await;
    let parts = Frame::parts(b"", [0, 0]);
    check(&program, "three parts of nothing", &BOTH, &parts, &[Malformed]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_frames_may_stand_between_parts() {
    let program = start().await;
    let text = said("in parts");
    let mut frames = Vec::new();
    let mut expected = vec![Echo("in parts".to_owned())];
    for (idx, part) in Frame::parts(text.as_bytes(), [5, 9, 14, 20]).into_iter().enumerate() {
        if idx > 0 {
            let payload = format!("between {idx}").into_bytes();
            frames.push(Frame::new(PING, payload.as_slice()));
            frames.push(Frame::new(PONG, "unasked"));
            expected.push(Pong(payload));
        }
        frames.push(part);
    }
    check(&program, "pings and pongs between parts", &BOTH, &frames, &expected).await;

    let parts = Frame::parts(text.as_bytes(), [5]);
    let frames = [parts[0].clone(), Frame::close(1000, "enough"), parts[1].clone()];
    check(&program, "a close between parts", &BOTH, &frames, &[Close(1000)]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_frames_do_not_come_in_parts() {
    let program = start().await;
    for opcode in [PING, PONG, CLOSE] {
        let parts = [Frame::new(opcode, "").unfinished(), Frame::new(CONTINUATION, "")];
        check(&program, &format!("opcode {opcode} in parts"), &BOTH, &parts, &[Close(1002)]).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_belong_together() {
    let program = start().await;
    let request = || Frame::text(REQUEST);
    let part = |opcode| Frame::new(opcode, "{").unfinished();
    let end = |opcode| Frame::new(opcode, "}");
    let refused = vec![Close(1002)];
    let answered_and_refused = vec![Answer, Close(1002)];
    for (name, frames, expected) in [
        ("an end of nothing", vec![end(CONTINUATION), request()], &refused),
        ("an end of nothing, empty", vec![Frame::new(CONTINUATION, ""), request()], &refused),
        ("a part of nothing", vec![part(CONTINUATION), request()], &refused),
        ("an end after a message", vec![request(), end(CONTINUATION)], &answered_and_refused),
        ("a part after a message", vec![request(), part(CONTINUATION), request()], &answered_and_refused),
        ("a beginning after a beginning", vec![part(TEXT), part(TEXT), end(CONTINUATION)], &refused),
        ("a whole text after a beginning", vec![part(TEXT), request()], &refused),
        ("a binary message after a beginning", vec![part(TEXT), end(BINARY)], &refused),
        (
            "an end after an end",
            vec![part(TEXT), end(CONTINUATION), end(CONTINUATION)],
            &vec![Invalid, Close(1002)],
        ),
    ] {
        check(&program, name, &BOTH, &frames, expected).await;
    }
    program.finish().await;
}
