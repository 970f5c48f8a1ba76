//! Texts are UTF-8 (case 6).

use super::Back::{Close, Echo};
use super::peer::{Frame, Got, Peer};
use super::{BOTH, Manner, check, said, start};

/// The text that stands for the bytes in question in a request.
const HERE: &str = "HERE";

/// A request around these bytes.
fn around(bytes: &[u8]) -> Vec<u8> {
    let request = said(HERE);
    let (before, after) = request.split_once(HERE).expect("it is there once");
    [before.as_bytes(), bytes, after.as_bytes()].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_in_utf_8_come_back() {
    let program = start().await;
    for text in [
        "Hello-µ@ßöäüàá-UTF-8!!",
        "κόσμε",
        // The first and the last of each length.
        "\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}",
        // Around the surrogates.
        "\u{d7ff}\u{e000}\u{fffd}",
        // No characters, and yet in order.
        "\u{fffe}\u{fdd0}\u{1fffe}\u{2ffff}\u{8fffe}\u{fffff}\u{10fffe}",
    ] {
        let bytes = around(text.as_bytes());
        let echo = [Echo(text.to_owned())];
        check(&program, text, &BOTH, &[Frame::text(bytes.as_slice())], &echo).await;
        // Cut within characters, too.
        let parts = Frame::parts(&bytes, 1..bytes.len());
        check(&program, &format!("{text} in parts"), &[Manner::Together], &parts, &echo).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_that_are_not_utf_8_are_refused() {
    let program = start().await;
    for bytes in [
        // What no character begins with, or is.
        &b"\x80"[..],
        b"\xbf",
        b"\x80\xbf\x80\xbf",
        b"\xfe",
        b"\xff",
        b"\xfe\xfe\xff\xff",
        // Characters that stop half-way.
        b"\xc2",
        b"\xdf",
        b"\xe0\xa0",
        b"\xef\xbf",
        b"\xf0\x90\x80",
        b"\xf4\x8f\xbf",
        b"\xce\xba\xe1\xbd",
        // Longer than they need to be.
        b"\xc0\x80",
        b"\xc0\xaf",
        b"\xc1\xbf",
        b"\xe0\x80\xaf",
        b"\xe0\x9f\xbf",
        b"\xf0\x80\x80\xaf",
        b"\xf0\x8f\xbf\xbf",
        b"\xf8\x80\x80\x80\xaf",
        b"\xfc\x80\x80\x80\x80\xaf",
        // Five and six bytes, and beyond the last character.
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xf7\xbf\xbf\xbf",
        b"\xf8\x88\x80\x80\x80",
        b"\xfd\xbf\xbf\xbf\xbf\xbf",
        // Surrogates, alone and in pairs.
        b"\xed\xa0\x80",
        b"\xed\xad\xbf",
        b"\xed\xae\x80",
        b"\xed\xbf\xbf",
        b"\xed\xa0\x80\xed\xb0\x80",
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
    ] {
        let name = format!("{bytes:02x?}");
        let text = around(bytes);
        check(&program, &name, &BOTH, &[Frame::text(text.as_slice())], &[Close(1007)]).await;
        let parts = Frame::parts(&text, 1..text.len());
        check(&program, &format!("{name} in parts"), &[Manner::Together], &parts, &[Close(1007)]).await;
    }
    // In the middle of a character the message ends, which goes on afterwards.
    for parts in [Frame::parts(b"\xce\xba\xe1\xbd", []), Frame::parts(b"\xce\xba\xe1\xbd", [3])] {
        check(&program, "half a character at the end", &BOTH, &parts, &[Close(1007)]).await;
    }
    program.finish().await;
}

/// Nobody waits for the end of what cannot be a text any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_is_not_utf_8_is_refused_at_once() {
    let program = start().await;
    for (name, ends) in [("in one part", vec![]), ("over two parts", vec![2])] {
        let mut peer = Peer::open(program.address(), name).await;
        for part in Frame::parts(b"{\xf4\x90\x80\x80", ends) {
            peer.send(&part.unfinished().bytes(), Manner::Together).await;
        }
        let got = peer.next().await;
        assert!(matches!(got, Got::Close(Some(1007))), "{name}: {got:?}");
        peer.assert_ended().await;
    }
    program.finish().await;
}
