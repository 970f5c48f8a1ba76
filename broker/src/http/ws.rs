//! WebSockets: one task each, which reads requests and, unless others did it in its place, writes what waits.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use futures_util::future::Abortable;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use super::attachment::Attachment;
use super::commands::WsSession;
use super::frames::{self, CONTROL_BYTES_MAX, HEADER_BYTES_MAX};
use super::handshake::Handshake;
use super::path::{ClientPath, Permitted};
use super::poll_when_woken::PollWhenWoken;
use super::replies::Replies;
use super::slice::CoopBudget;
use super::{App, LingeringClose, encode, sse};
use crate::admission::{ClientLimiter, Publisher};
use crate::auth::{Principal, Renewable};
use crate::metrics::Raised;
use crate::model::delivery::Entry;
use crate::model::error::ApiError;
use crate::outbox::{Close, OwnWriter};
use crate::sessions::Resume;
use crate::telemetry::Writing;

/// How long the other side may take to answer a close.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// The code of the close when a token's time is over.
const TOKEN_EXPIRED: u16 = 4401;

/// Capacity of the batch that an idle connection keeps.
const IDLE_BATCH: usize = 8;

/// Opens a WebSocket for a client.
#[utoipa::path(
    get, path = "/v1/clients/{client}/ws", tag = "delivery",
    params(
        ("client" = String, Path, description = "The client"),
        ("resume" = Option<String>, Query, description = "`<epoch>:<offset>`: the session goes on after that offset, and what is kept of it comes again"),
    ),
    responses(
        (status = 101, description = "Frames follow: the client sends `ClientFrame`, the broker `ServerFrame`, each a text frame"),
        (status = "4XX", description = "Not opened", body = wire::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn upgrade(
    State(app): State<Arc<App>>,
    Extension(flow): Extension<Arc<ClientLimiter>>,
    Extension(linger): Extension<LingeringClose>,
    Permitted(principal): Permitted,
    ClientPath(client): ClientPath,
    RawQuery(query): RawQuery,
    handshake: Result<Handshake, ApiError>,
) -> Result<Response, ApiError> {
    app.refuse_when_stopping()?;
    let Handshake { accepted, upgraded } = handshake?;
    let resume = resume(query.as_deref().unwrap_or_default())?;
    let quota = app.reading.acquire(principal.behalf().tenant_name(), 1)?;
    let publisher = app.admission.publisher(&principal, &flow);
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        // Where the answer could not be written nobody is there.
        if let Ok(upgraded) = upgraded.await {
            serve(upgraded, app, client, principal, publisher, linger, resume).await;
        }
        drop(quota);
    });
    Ok(accepted)
}

type Reader = frames::FrameReader<TokioIo<Upgraded>>;
type Writer = frames::FrameWriter<TokioIo<Upgraded>>;

/// The two sides of a connection that is a WebSocket from now on.
async fn begin(upgraded: Upgraded, app: &App) -> (Reader, Writer) {
    let frame_bytes = app.config.limits.frame_bytes;
    let config = WebSocketConfig::default()
        .read_buffer_size(app.config.connection.read_buffer_bytes)
        .max_message_size(Some(frame_bytes))
        .max_frame_size(Some(frame_bytes));
    // As many pongs as answers may wait, and as many on their way.
    let replies_bytes_max = app.config.outbox.answers.saturating_mul(2 * CONTROL_BYTES_MAX);
    frames::split(TokioIo::new(upgraded), config, replies_bytes_max).await
}

/// Reads `resume=<epoch>:<offset>`; other parameters mean nothing.
pub(super) fn resume(query: &str) -> Result<Resume, ApiError> {
    let mut told = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "resume");
    let Some((_, value)) = told.next() else { return Ok(Resume::Ready) };
    match (sse::epoch_and_offset(&value), told.next()) {
        (Some((epoch, offset)), None) => Ok(Resume::ReadyAfter { epoch, offset }),
        _ => Err(ApiError::BadRequest("resume must be <epoch>:<offset>, once".to_owned())),
    }
}

/// Serves a WebSocket from its first frame to its last.
async fn serve(
    upgraded: Upgraded,
    app: Arc<App>,
    client: Arc<str>,
    principal: Arc<Principal>,
    publisher: Publisher,
    linger: LingeringClose,
    resume: Resume,
) {
    let _counted = Raised::new(&app.metrics, |metrics| &metrics.websockets);
    let outbox = app.outbox(&client);
    let connection = outbox.connection;
    let (handle, registration) = futures_util::future::AbortHandle::new_pair();
    app.sockets.insert(connection, handle);
    let asker = Arc::new(WsSession {
        app: Arc::clone(&app),
        client: Arc::clone(&client),
        place: OnceLock::new(),
        outbox,
        principal: Renewable::new(principal),
        publisher,
        runs_inline: false.into(),
    });
    let mut attachment = Attachment::new(&app, &client, connection);
    // Cut off, it has nothing more to say.
    let _ = Abortable::new(converse(upgraded, asker, &mut attachment, &linger, resume), registration).await;
    app.sockets.remove(connection);
    attachment.end().await;
}

async fn converse(
    upgraded: Upgraded,
    asker: Arc<WsSession>,
    attachment: &mut Attachment,
    linger: &LingeringClose,
    resume: Resume,
) {
    let (mut reader, writer) = begin(upgraded, &asker.app).await;
    let outbox = Arc::clone(&asker.outbox);
    let confinement = asker.principal.behalf().confinement.cloned();
    match attachment.attach(&outbox, resume, confinement).await {
        Ok(attached) => {
            // The client hears of it once.
            let _ = asker.place.set(asker.app.shards.place_of(&asker.client, &attached));
        }
        Err(refusal) => {
            outbox.push_answer(refusal.frame(None));
            if matches!(refusal, ApiError::Forbidden { .. }) {
                outbox.close(1008, "the token does not permit this");
            }
            // The first reason stands.
            outbox.close(1013, "the client cannot be served now");
        }
    }
    let writing = OwnWriter::new({
        let asker = Arc::clone(&asker);
        async move { write(writer, &asker).await.is_err() }
    });
    outbox.write_with(writing.share());
    // Each is polled when it was woken itself: a look at a socket on which nothing has come is not free.
    let mut writing = PollWhenWoken::new(writing);
    let ended = tokio::select! {
        biased;
        is_broken = &mut writing => Ended::of_writer(is_broken),
        read = async {
            let mut reading = std::pin::pin!(read(&mut reader, &asker));
            PollWhenWoken::new(poll_fn(|ctx| {
                let read = reading.as_mut().poll(ctx);
                asker.see_to_the_rest();
                read
            }))
            .await
        } => match read {
            Read::Gone => Ended::Gone,
            // What waits is written first.
            Read::Refused => Ended::of_writer((&mut writing).await),
        },
        never = expire(&asker) => match never {},
    };
    match ended {
        Ended::Broken => {}
        Ended::Gone => {
            outbox.abandon(Close::new(1000, ""));
            let _ = tokio::time::timeout(CLOSE_WAIT, writing).await;
        }
        Ended::Written => {
            drop(writing);
            // Closing the connection while something is still coming could destroy what was written last.
            let answered = async { while let Some(Ok(_)) = reader.next().await {} };
            let _ = tokio::time::timeout(CLOSE_WAIT, answered).await;
            // Behind what could not be read the library reads no more.
            linger.ask();
        }
    }
}

/// Ends a connection when its principal expires, unless that is renewed.
async fn expire(asker: &WsSession) -> Infallible {
    asker.principal.ended().await;
    asker.app.metrics.problems.add(1);
    asker.outbox.push_answer(ApiError::TokenExpired.frame(None));
    asker.outbox.close(TOKEN_EXPIRED, "token expired");
    std::future::pending().await
}

/// How a conversation ended.
enum Ended {
    /// Everything is written, a close at last.
    Written,
    /// The other side says no more. It is answered a close, behind what is being written.
    Gone,
    /// The other side cannot be told anything.
    Broken,
}

impl Ended {
    fn of_writer(is_broken: bool) -> Self {
        if is_broken { Self::Broken } else { Self::Written }
    }
}

/// How reading ended.
enum Read {
    /// The other side closed, or the connection broke.
    Gone,
    /// The broker wants no more of it.
    Refused,
}

/// Why the broker wants no more, as a close tells it.
type Refused = (u16, &'static str);

async fn read(reader: &mut Reader, asker: &WsSession) -> Read {
    let mut answers = Replies::new(&asker.app, &asker.outbox);
    let ended = read_requests(reader, asker, &mut answers).await;
    asker.publish_taken(&mut answers).await;
    match ended {
        None => Read::Gone,
        Some((code, reason)) => {
            // Who asked something in order before is answered that.
            answers.all().await;
            asker.outbox.close(code, reason);
            Read::Refused
        }
    }
}

/// Carries requests out until there are no more.
async fn read_requests(reader: &mut Reader, asker: &WsSession, answers: &mut Replies) -> Option<Refused> {
    let WsSession { app, outbox, .. } = asker;
    let mut slice = CoopBudget::default();
    let mut problems_in_a_row = 0;
    loop {
        answers.give();
        if answers.are_due() {
            asker.publish_taken(answers).await;
            answers.room().await;
        }
        let message = match at_hand(reader).await {
            Some(message) => message,
            None => {
                asker.publish_the_rest(answers).await;
                answers.rest();
                next(reader, answers).await
            }
        };
        let message = match message? {
            Ok(message) => message,
            Err(error) => return refused_for(&error),
        };
        outbox.hear();
        if outbox.is_closing() {
            // What comes after the end was decided has no effect. The first reason stands.
            return Some((1000, "the connection is closing"));
        }
        match message {
            Message::Text(text) => {
                if slice.spend(text.len()) {
                    asker.publish_taken(answers).await;
                    tokio::task::yield_now().await;
                }
                let token = app.requests.token();
                let in_order = asker.frame(text.as_str(), answers).await;
                drop(token);
                problems_in_a_row = if in_order { 0 } else { problems_in_a_row + 1 };
                if problems_in_a_row >= app.config.limits.problems_in_a_row {
                    return Some((1008, "too many problems in a row"));
                }
            }
            Message::Binary(_) => return Some((1003, "frames are text")),
            Message::Ping(payload) => {
                // The library has its answer ready, which counts as any other until it is written.
                outbox.note_pong();
                if slice.spend(payload.len()) {
                    asker.publish_taken(answers).await;
                    tokio::task::yield_now().await;
                }
            }
            Message::Pong(payload) => {
                if slice.spend(payload.len()) {
                    asker.publish_taken(answers).await;
                    tokio::task::yield_now().await;
                }
            }
            // A frame as such is none that the library reads.
            Message::Close(_) | Message::Frame(_) => return None,
        }
    }
}

/// The next message, or a fault; `None` where the connection has ended.
type Incoming = Option<Result<Message, tungstenite::Error>>;

/// The next message, if it is there already.
async fn at_hand(reader: &mut Reader) -> Option<Incoming> {
    let mut next = std::pin::pin!(reader.next());
    poll_fn(|ctx| match next.as_mut().poll(ctx) {
        Poll::Ready(message) => Poll::Ready(Some(message)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// The next message. Until it comes, answers that wait are given.
async fn next(reader: &mut Reader, answers: &mut Replies) -> Incoming {
    while !answers.is_empty() {
        tokio::select! {
            biased;
            () = answers.next() => {}
            message = reader.next() => return message,
        }
    }
    reader.next().await
}

/// Code and reason of the close after a frame that cannot be read; `None` where nobody is there to be told.
fn refused_for(error: &tungstenite::Error) -> Option<Refused> {
    use tungstenite::error::{Error, ProtocolError};
    let broken = matches!(error, Error::Protocol(ProtocolError::ResetWithoutClosingHandshake));
    if matches!(error, Error::Utf8(_)) {
        Some((1007, "not UTF-8"))
    } else if matches!(error, Error::Capacity(_)) {
        Some((1009, "a message is too large (limits.frame_bytes)"))
    } else if matches!(error, Error::Protocol(_)) && !broken {
        Some((1002, "not the WebSocket protocol"))
    } else {
        None
    }
}

/// Writes what waits, all that there is before each flush, and pings. Ends with a close frame; an error says that
/// the connection is broken.
async fn write(mut writer: Writer, asker: &WsSession) -> io::Result<()> {
    let WsSession { app, outbox, .. } = asker;
    let settings = &app.config.connection;
    let interval = Duration::from_millis(settings.ping_interval_ms);
    let silence = Duration::from_millis(settings.silence_timeout_ms);
    let mut ping = std::pin::pin!(tokio::time::sleep(interval));
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            close = outbox.next_batch(&mut batch, settings.write_buffer_bytes) => match close {
                None => write_batch(&mut writer, asker, &mut batch).await?,
                Some(close) => return write_close(&mut writer, &close).await,
            },
            () = &mut ping => {
                if outbox.silence() > silence {
                    app.metrics.silent.add(1);
                    outbox.close(1001, "nothing was heard for too long");
                    continue;
                }
                writer.ping().await?;
                ping.as_mut().reset(tokio::time::Instant::now() + interval);
            }
        }
    }
}

/// Writes the close, behind what says when to come back.
async fn write_close(writer: &mut Writer, close: &Close) -> io::Result<()> {
    if let Some(retry_ms) = close.retry_ms {
        let text = format!(r#"{{"op":"retry","retry_ms":{retry_ms}}}"#);
        let mut frames = Vec::new();
        frames::push_text_header(&mut frames, text.len());
        frames.extend_from_slice(text.as_bytes());
        writer.write(&frames).await?;
    }
    writer.close(close.code, close.reason).await
}

async fn write_batch(
    writer: &mut Writer,
    WsSession { app, client, outbox, .. }: &WsSession,
    batch: &mut Vec<Entry>,
) -> io::Result<()> {
    let started = Instant::now();
    let writing = Writing::of(app.telemetry.as_ref(), batch);
    let count = batch.iter().filter(|entry| !entry.is_pong()).count() as u64;
    let oldest = batch.iter().find_map(|entry| match entry {
        Entry::Delivery(delivery) => delivery.fresh_since(),
        Entry::Answer(_) | Entry::Gap(_) => None,
    });
    app.admission.has_its_turn(outbox.waited_for_turn(), oldest);
    // Made anew for each batch: an idle connection keeps none, and one that was just freed is in the cache still.
    let bytes_max = batch.iter().map(|entry| HEADER_BYTES_MAX + encode::payload_bytes(entry)).sum();
    let mut frames = Vec::with_capacity(bytes_max);
    for entry in batch.drain(..).filter(|entry| !entry.is_pong()) {
        frames::push_text_header(&mut frames, encode::payload_bytes(&entry));
        encode::push_payload(&mut frames, &entry);
    }
    writer.write(&frames).await?;
    writing.done(|| app.shards.index_of(client), "websocket");
    batch.shrink_to(IDLE_BATCH);
    app.metrics.frames_sent.add(count);
    app.metrics.write.record(started.elapsed());
    if let Some(received) = oldest {
        app.metrics.publish_to_write.record(received.elapsed());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_go_on_is_epoch_and_offset() {
        let after = |epoch: &str, offset| Ok(Resume::ReadyAfter { epoch: epoch.to_owned(), offset });
        for query in ["", "a=1&b", "resumed=a:1"] {
            assert_eq!(resume(query), Ok(Resume::Ready), "{query}");
        }
        assert_eq!(resume("resume=a1:17"), after("a1", 17));
        assert_eq!(resume("token=x&%72esume=a1%3A17&b=%zz"), after("a1", 17));
        for query in [
            "resume",
            "resume=",
            "resume=17",
            "resume=:17",
            "resume=a1:",
            "resume=a1:-1",
            "resume=a1:%2B1",
            "resume=a1%2517",
            "resume=%ff:1",
            "resume=a1%C3:1",
            "resume=a+1:1",
            "resume=%00:1",
        ] {
            assert!(matches!(resume(query), Err(ApiError::BadRequest(_))), "{query}");
        }
        assert!(matches!(resume("resume=a1:17&resume=a1:17"), Err(ApiError::BadRequest(_))));
    }
}
