//! The subscribers: a WebSocket each, all read by one thread.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::bail;
use futures_util::SinkExt as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use super::scenario::Subscriber;
use super::socket::{self, Socket, await_frame};
use super::tally::Tally;

/// Handshakes under way at once; more would only wait in the broker's accept queue.
const HANDSHAKES_MAX: usize = 64;

/// Whether deliveries are kept until they are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Subscriptions end with their socket.
    No,
    /// Subscriptions are durable, and each socket acknowledges every so many deliveries.
    UntilAcknowledged {
        /// At least 1.
        every: u64,
    },
}

/// Opens sockets that say and want nothing yet.
///
/// # Errors
/// When one of them cannot be opened.
pub async fn connect(broker: SocketAddr, count: usize) -> anyhow::Result<Vec<Socket>> {
    let open = |number| async move { socket::open(broker, &format!("subscriber-{number}")).await };
    stream::iter(0..count).map(open).buffered(HANDSHAKES_MAX).try_collect().await
}

/// Tells where each subscriber is and subscribes.
///
/// # Errors
/// When the broker refuses.
pub async fn subscribe(
    sockets: &mut [Socket],
    subscribers: &[Subscriber],
    radius_m: f64,
    kept: Kept,
) -> anyhow::Result<()> {
    let durable = kept != Kept::No;
    for (socket, Subscriber { coordinates: [lon, lat], severity_min }) in sockets.iter_mut().zip(subscribers)
    {
        let here = format!(r#"{{"op":"move","ref":1,"coordinates":[{lon},{lat}]}}"#);
        let wish = format!(
            r#"{{"op":"subscribe","ref":2,"id":"near","durable":{durable},"filters":[{{"area":{{"radius_m":{radius_m}}},"where":"type = 'accident' AND severity >= {severity_min}"}}]}}"#
        );
        for frame in [here, wish] {
            socket.send(Message::text(frame)).await?;
            await_frame(socket, "ok").await?;
        }
    }
    Ok(())
}

/// Reads all sockets from now on; the tasks end when they are dropped or cut off.
pub fn listen(sockets: Vec<Socket>, tally: &Arc<Tally>, kept: Kept) -> JoinSet<anyhow::Result<()>> {
    let mut tasks = JoinSet::new();
    for (subscriber, socket) in sockets.into_iter().enumerate() {
        tasks.spawn(read(socket, subscriber, Arc::clone(tally), kept));
    }
    tasks
}

async fn read(mut socket: Socket, subscriber: usize, tally: Arc<Tally>, kept: Kept) -> anyhow::Result<()> {
    let mut offset = 0;
    while let Some(message) = socket.next().await {
        match message? {
            Message::Text(text) => {
                match event_id(&text) {
                    Some(number) => tally.delivered(number, subscriber),
                    None => tally.stray(),
                }
                // Offsets go up by one; what would break that is no event, and counted.
                offset += 1;
                if let Kept::UntilAcknowledged { every } = kept
                    && offset % every == 0
                {
                    socket.send(Message::text(format!(r#"{{"op":"ack","offset":{offset}}}"#))).await?;
                }
            }
            Message::Binary(_) => tally.stray(),
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {}
        }
    }
    bail!("subscriber {subscriber} was cut off")
}

/// The number that is the id of a delivery's event. The frame is not parsed as a whole, which would cost the
/// bench more than the broker; attributes of these events have no `id`.
#[must_use]
pub fn event_id(frame: &str) -> Option<u64> {
    let (_, after) = frame.strip_prefix(r#"{"op":"event","#)?.split_once(r#""id":"#)?;
    let digits = after.find(|byte: char| !byte.is_ascii_digit())?;
    after[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_delivery_is_found() {
        let frame = r#"{"op":"event","offset":17,"subscriptions":["near"],"cause":"published","event":{"type":"Feature","id":4711,"geometry":{"type":"Point","coordinates":[9,45]},"properties":{}}}"#;
        assert_eq!(event_id(frame), Some(4711));
        assert_eq!(event_id(r#"{"op":"gap","from":1,"to":2,"count":2,"reason":"overflow"}"#), None);
    }
}
