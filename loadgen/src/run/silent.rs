//! Clients without a connection: their subscriptions are made over HTTP, requests in a row.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::endpoint::{Endpoint, Patience, Stream};
use crate::interrupt;
use crate::plan::Plan;
use crate::wire::documents::{push_coordinates, push_subscription};

/// Requests that are under way at once.
const PIPELINE: u64 = 64;

/// And their bytes.
const PIPELINE_BYTES: usize = 64 * 1024;

/// How long the broker may take to answer.
const WAIT: Duration = Duration::from_secs(60);

/// Makes the subscriptions of all clients of a plan that have no connection; `watch` hears how many are done.
///
/// # Errors
/// When the broker refuses one, with its words.
pub(super) fn install(
    plan: &dyn Plan,
    endpoint: &Endpoint,
    token: Option<&str>,
    prefix: &str,
    mut watch: impl FnMut(u64),
) -> anyhow::Result<()> {
    let mut stream = endpoint
        .dial(Patience::Each(WAIT))
        .with_context(|| format!("connecting to the broker at {}", endpoint.url()))?;
    let host = &endpoint.authority;
    let authorization = token.map_or(String::new(), |token| format!("authorization: Bearer {token}\r\n"));
    let (mut out, mut body, mut came) = (Vec::new(), Vec::new(), Vec::new());
    let (mut asked, count) = (0, plan.silent_count());
    let request = |path: &str, body: &[u8], out: &mut Vec<u8>| {
        write!(
            out,
            "PUT {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{authorization}content-length: {}\r\n\r\n",
            body.len()
        )
        .expect("memory grows");
        out.extend_from_slice(body);
    };
    for index in 0..count {
        interrupt::check()?;
        let client = plan.silent(index);
        if let Some(home) = &client.home {
            body.clear();
            body.extend_from_slice(br#"{"coordinates":"#);
            push_coordinates(home, &mut body);
            body.push(b'}');
            request(&format!("/v1/clients/{prefix}{}/position", client.name), &body, &mut out);
            asked += 1;
        }
        for wish in &client.wishes {
            body.clear();
            body.push(b'{');
            push_subscription(wish, &mut body);
            body.push(b'}');
            request(
                &format!("/v1/clients/{prefix}{}/subscriptions/{}", client.name, wish.id),
                &body,
                &mut out,
            );
            asked += 1;
            // Both sides could wait for each other behind more than sockets hold.
            if asked >= PIPELINE || out.len() > PIPELINE_BYTES {
                stream.write_all(&out)?;
                stream.flush()?;
                out.clear();
                answers(&mut *stream, std::mem::take(&mut asked), &mut came)?;
                watch(index);
            }
        }
    }
    stream.write_all(&out)?;
    stream.flush()?;
    answers(&mut *stream, asked, &mut came)?;
    watch(count);
    Ok(())
}

/// Reads a number of answers, all of which have to be good.
fn answers(stream: &mut dyn Stream, mut count: u64, came: &mut Vec<u8>) -> anyhow::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    while count > 0 {
        let read = stream.read(&mut buffer).context("the broker does not answer subscriptions")?;
        ensure!(read > 0, "the broker closed the connection that subscriptions are made over");
        came.extend_from_slice(&buffer[..read]);
        let mut at = 0;
        while let Some((status, body, length)) = crate::wire::http::first(&came[at..])? {
            ensure!(
                (200..300).contains(&status),
                "a subscription was answered {status}: {}",
                String::from_utf8_lossy(body)
            );
            at += length;
            count = count.saturating_sub(1);
        }
        came.drain(..at);
    }
    Ok(())
}
