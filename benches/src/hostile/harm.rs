//! Clients that mean harm, as fast as one thread can be: that thread is theirs, so that whoever measures reads on undisturbed.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::ensure;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// What they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Heads of requests that come a byte at a time.
    SlowHeads,
    /// Bodies that do.
    SlowBodies,
    /// Connections on which nothing ever comes.
    Silent,
    /// WebSockets that want every event and read none.
    Deaf,
    /// Subscriptions that come and go.
    Subscriptions,
    /// Moves, and tracks among them.
    Moves,
    /// Subscriptions as large as they may be, replaced again and again.
    HugeConditions,
    /// Bodies that would be a thousand times as large if anybody unpacked them.
    Compressed,
    /// WebSockets on which nothing happens.
    Idle,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::SlowHeads,
        Self::SlowBodies,
        Self::Silent,
        Self::Deaf,
        Self::Subscriptions,
        Self::Moves,
        Self::HugeConditions,
        Self::Compressed,
        Self::Idle,
    ];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowHeads => "heads, a byte at a time",
            Self::SlowBodies => "bodies, a byte at a time",
            Self::Silent => "connections that say nothing",
            Self::Deaf => "WebSockets that want everything and read nothing",
            Self::Subscriptions => "floods of subscribe and unsubscribe",
            Self::Moves => "floods of moves",
            Self::HugeConditions => "floods of huge conditions",
            Self::Compressed => "compressed bodies",
            Self::Idle => "idle WebSockets",
        }
    }

    /// How many clients there are.
    #[must_use]
    pub const fn clients(self, quick: bool) -> usize {
        match (self, quick) {
            (Self::Subscriptions | Self::Moves | Self::HugeConditions | Self::Compressed, _) => 4,
            (Self::Idle, false) => 10_000,
            (Self::SlowHeads | Self::SlowBodies | Self::Silent, false) => 1_000,
            (Self::Deaf, false) => 100,
            _ => 20,
        }
    }

    /// What the broker may hold for each of them by its settings, as they are by default.
    #[must_use]
    pub const fn bound_bytes(self) -> u64 {
        // The task, the connection and its buffers, the client and its empty outbox.
        const CONNECTION: u64 = 24 << 10;
        // `outbox.answers` of 1 KiB at most, a buffer that is written and one that is read.
        const FLOOD: u64 = (1 << 20) + (1 << 20);
        match self {
            Self::SlowHeads | Self::SlowBodies | Self::Silent | Self::Idle => CONNECTION,
            // `outbox.bytes`, and a batch on its way.
            Self::Deaf => (8 << 20) + FLOOD,
            Self::Subscriptions | Self::Moves => FLOOD,
            // Some 300 bytes a constraint, of the one in force and of the one that takes its place, and the texts of both.
            Self::HugeConditions => 2 * (64 * 64 * 6 * 300 + (1 << 20)),
            Self::Compressed => 2 << 20,
        }
    }
}

/// Clients at work; they end when this is dropped.
pub struct Harm {
    runtime: Option<Runtime>,
    requests: Arc<AtomicU64>,
}

/// Between one byte and the next.
const TRICKLE: Duration = Duration::from_millis(20);
/// Connections that are opened at once.
const OPENING_MAX: usize = 64;
/// Requests that are sent again and again.
const STRIDE: usize = 100;

impl Harm {
    /// Lets so many clients loose. Blocks until all are connected.
    ///
    /// # Errors
    /// When one of them is not let in.
    pub fn begin(kind: Kind, broker: SocketAddr, clients: usize) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let requests = Arc::new(AtomicU64::new(0));
        let begun = stream::iter(0..clients)
            .map(|number| begin_one(kind, broker, number, Arc::clone(&requests)))
            .buffer_unordered(OPENING_MAX)
            .try_collect::<Vec<()>>();
        runtime.block_on(begun)?;
        Ok(Self { runtime: Some(runtime), requests })
    }

    /// Requests, or bytes of those that trickle, that were sent until now.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }
}

impl Drop for Harm {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What a client is called.
#[must_use]
pub fn client_name(number: usize) -> String {
    format!("harm-{number}")
}

/// Connects a client, and leaves it at work.
async fn begin_one(
    kind: Kind,
    broker: SocketAddr,
    number: usize,
    requests: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    match kind {
        Kind::SlowHeads => {
            let connection = connect(broker).await?;
            tokio::spawn(trickle(connection, broker, "GET /v1/stats HTTP/1.1\r\nhost: x\r\nx: ", requests));
        }
        Kind::SlowBodies => {
            let head = "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n\
                        content-length: 100000000\r\n\r\n{";
            tokio::spawn(trickle(connect(broker).await?, broker, head, requests));
        }
        Kind::Silent => keep(connect(broker).await?),
        Kind::Idle => keep(open(broker, number).await?),
        Kind::Deaf => {
            let mut socket = open(broker, number).await?;
            let wish = json!({"op": "subscribe", "id": "all", "filters": [{}], "overflow": "drop-oldest"});
            socket.write_all(&frame(&wish)).await?;
            keep(socket);
        }
        Kind::Subscriptions => {
            let filters =
                json!([{"area": {"radius_m": 1000}, "where": "speed > 50 AND kind IN ('bus', 'tram')"}]);
            let frames = (0..STRIDE).map(|index| {
                let id = format!("s{}", index / 2 % 10);
                if index % 2 == 0 {
                    json!({"op": "subscribe", "ref": index, "id": id, "filters": filters})
                } else {
                    json!({"op": "unsubscribe", "ref": index, "id": id})
                }
            });
            flood(open(broker, number).await?, frames.flat_map(|one| frame(&one)).collect(), requests);
        }
        Kind::Moves => {
            let frames = (0..STRIDE).map(|index| {
                let lon = 9.0 + index as f64 / 1_000.0;
                match index % 3 {
                    0 => json!({"op": "move", "coordinates": [lon, 45.0]}),
                    1 => json!({"op": "move", "ref": index, "coordinates": [lon, 45.0], "accuracy_m": 10}),
                    _ => json!({"op": "move", "track": [[lon, 45.0, 1], [lon + 0.01, 45.0, 2]]}),
                }
            });
            flood(open(broker, number).await?, frames.flat_map(|one| frame(&one)).collect(), requests);
        }
        Kind::HugeConditions => {
            let url = format!("http://{broker}/v1/clients/{}/subscriptions/s", client_name(number));
            let bodies = [0, 1].map(|salt| huge_subscription(salt).to_string());
            let client = reqwest::Client::new();
            let put = move |body: &str| client.put(&url).body(body.to_owned()).send();
            ensure!(put(&bodies[0]).await?.status().is_success(), "a huge subscription was refused");
            tokio::spawn(async move {
                for body in bodies.iter().cycle() {
                    // One that is refused does no harm, and is asked for again.
                    let _ = put(body).await;
                    requests.fetch_add(1, Relaxed);
                }
            });
        }
        Kind::Compressed => {
            let client = reqwest::Client::new();
            let url = format!("http://{broker}/v1/events");
            tokio::spawn(async move {
                loop {
                    let post = client.post(&url).header("content-encoding", "gzip").body(BOMB.as_slice());
                    let _ = post.send().await;
                    requests.fetch_add(1, Relaxed);
                }
            });
        }
    }
    Ok(())
}

/// 256 MiB of zeros, packed.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; 1 << 20];
    (0..256).for_each(|_| encoder.write_all(&zeros).expect("a vector takes everything"));
    encoder.finish().expect("a vector takes everything")
});

/// A connection that is reset when it is closed: thousands that linger would take up the ports.
async fn connect(broker: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(broker).await?;
    stream.set_nodelay(true)?;
    stream.set_zero_linger()?;
    Ok(stream)
}

/// A connection that has become a WebSocket of a client's.
async fn open(broker: SocketAddr, number: usize) -> anyhow::Result<TcpStream> {
    let mut stream = connect(broker).await?;
    let request = format!(
        "GET /v1/clients/{}/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        client_name(number)
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    Ok(stream)
}

/// A text frame as a client sends it; a mask of zeros is one.
fn frame(document: &Value) -> Vec<u8> {
    let text = document.to_string().into_bytes();
    let length = u16::try_from(text.len()).expect("floods are of small frames").to_be_bytes();
    [&[0x81, 0xfe, length[0], length[1], 0, 0, 0, 0], text.as_slice()].concat()
}

/// Holds a connection and does nothing with it.
fn keep(stream: TcpStream) {
    tokio::spawn(async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    });
}

/// Begins something and goes on a byte at a time, again and again.
async fn trickle(mut stream: TcpStream, broker: SocketAddr, head: &'static str, bytes: Arc<AtomicU64>) {
    loop {
        let mut next = head.as_bytes();
        while stream.write_all(next).await.is_ok() {
            bytes.fetch_add(next.len() as u64, Relaxed);
            next = b" ";
            tokio::time::sleep(TRICKLE).await;
        }
        // Cut off: here it is again.
        tokio::time::sleep(TRICKLE).await;
        if let Ok(again) = connect(broker).await {
            stream = again;
        }
    }
}

/// Sends the same requests for ever, and reads the answers, so that nothing holds it up but the broker.
fn flood(stream: TcpStream, frames: Vec<u8>, requests: Arc<AtomicU64>) {
    let (mut read, mut write) = stream.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await });
    tokio::spawn(async move {
        let (mut sent, mut counted) = (0, 0);
        while let Ok(count) = write.write(&frames[sent % frames.len()..]).await {
            sent += count;
            let requests_sent = sent * STRIDE / frames.len();
            requests.fetch_add((requests_sent - counted) as u64, Relaxed);
            counted = requests_sent;
        }
    });
}

/// A subscription of nearly as many bytes as it may have, all of them conditions.
fn huge_subscription(salt: usize) -> Value {
    let alternative = |row: usize| {
        let tests = (0..6).map(|column| format!("name_{salt}_{row}_{column} > {row}"));
        tests.collect::<Vec<_>>().join(" AND ")
    };
    let condition = (0..64).map(alternative).collect::<Vec<_>>().join(" OR ");
    json!({"filters": vec![json!({"where": condition}); 64]})
}
