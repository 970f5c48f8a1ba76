//! A door for fuzzing: whatever comes over a connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::accept::Front;
use super::{drain, join};
use crate::http;
use crate::http::fuzzing::{RUNTIME, start};
use crate::shutdown::Ending;

/// How long a client that has said all that it wants listens for more: an event stream goes on as long as anybody is there.
const LISTENING: Duration = Duration::from_millis(500);
/// How long a connection may take whose client is gone.
const PATIENCE: Duration = Duration::from_secs(15);
/// Bytes that wait in each direction: few, so that writes wait as well.
const BUFFER_BYTES: usize = 4_096;

/// All bytes of a connection to a broker of its own: requests, whatever they are, WebSockets included.
pub fn connection(data: &[u8]) {
    let served = RUNTIME.block_on(async { tokio::time::timeout(PATIENCE, converse(data)).await });
    served.expect("a connection ends when its client is gone");
}

async fn converse(data: &[u8]) {
    let ending = Ending::default();
    let (app, threads) = start(&ending);
    let front = Front::new(&app.config, &app.metrics, &ending, None, axum::Router::new());
    front.open(http::router(&app));
    let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
    let talk = async {
        let (mut read, mut write) = tokio::io::split(ours);
        let say = async {
            // It may be closed before that.
            let _ = write.write_all(data).await;
            let _ = write.shutdown().await;
        };
        let mut answers = Vec::new();
        let heard = tokio::time::timeout(LISTENING, read.read_to_end(&mut answers));
        if let ((), Ok(heard)) = tokio::join!(say, heard) {
            heard.expect("there is memory");
        }
        answers
    };
    let ((), answers) = tokio::join!(front.serve(theirs, None), talk);
    let broken = b"HTTP/1.1 500";
    let found = answers.windows(broken.len()).any(|bytes| bytes == broken);
    assert!(!found, "the broker broke: {}", String::from_utf8_lossy(&answers));
    drain(&app).await;
    join(&app, threads).await.expect("no thread panics");
    app.metrics.upkeep();
}
