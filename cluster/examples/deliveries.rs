//! What one or several brokers of a cluster deliver: clients in groups, each at the broker of its partition, and events at
//! rising rates, each for the clients of one group. All that is due is counted at each client.
//!
//! `deliveries BROKERS --clients 10000 --group 10 --rates 1000,2000 --seconds 4`; BROKERS is `127.0.0.1:7070,127.0.0.1:7071`.
//! `--durable` asks for durable subscriptions. `--kill PID --standby ADDRESS` kills the active broker in the middle of each phase, and
//! says how long its clients are without one. A rate is tried a second time if it was not kept, and no higher one after that.

#![expect(clippy::cast_possible_truncation, reason = "numbers of a load are far below 2^32")]

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Deliveries that a durable client takes before it says that it has them.
const ACKNOWLEDGE_EVERY: u64 = 128;
/// Events of a request at most.
const BATCH_MAX: u64 = 1_000;
/// How long what is due is waited for after the last event of a phase.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tries of a rate.
const TRIES: usize = 2;
/// A phase keeps up if this part of its deliveries comes in time.
const SHARE: f64 = 0.99;
const IN_TIME_US: u32 = 1_000_000;

struct Settings {
    brokers: Vec<String>,
    clients: u64,
    group: u64,
    rates: Vec<f64>,
    seconds: f64,
    threads: usize,
    publishers: usize,
    durable: bool,
    kill: Option<String>,
    standby: Option<String>,
}

impl Settings {
    fn groups(&self) -> u64 {
        self.clients / self.group
    }
}

/// What one client has got. Only its reader writes.
#[derive(Default)]
struct Got {
    count: AtomicU64,
    sum: AtomicU64,
}

struct Shared {
    settings: Settings,
    /// The broker of each client.
    homes: Vec<String>,
    got: Vec<Got>,
    came: AtomicU64,
    attached: AtomicUsize,
    wrong: AtomicU64,
    /// Microseconds from when an event was due to its delivery, a list for each reader.
    delays: Vec<Mutex<Vec<u32>>>,
    /// When the phase began, the number of its first event, and its rate.
    phase: Mutex<(Instant, u64, f64)>,
    ended: AtomicBool,
    killed: AtomicBool,
    /// Where clients go after the kill.
    standby_ready: AtomicBool,
}

impl Shared {
    fn phase(&self) -> (Instant, u64, f64) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn main() -> Result<()> {
    let settings = settings()?;
    let homes = homes(&settings)?;
    let count = homes.len();
    let shared = Arc::new(Shared {
        delays: (0..settings.threads).map(|_| Mutex::default()).collect(),
        got: (0..count).map(|_| Got::default()).collect(),
        homes,
        settings,
        came: AtomicU64::new(0),
        attached: AtomicUsize::new(0),
        wrong: AtomicU64::new(0),
        phase: Mutex::new((Instant::now(), 0, 1.0)),
        ended: AtomicBool::new(false),
        killed: AtomicBool::new(false),
        standby_ready: AtomicBool::new(false),
    });
    let begun = Instant::now();
    for number in 0..shared.settings.threads {
        let shared = Arc::clone(&shared);
        thread::spawn(move || reader(number, &shared));
    }
    while shared.attached.load(Relaxed) < count {
        if begun.elapsed() > Duration::from_secs(120) {
            return Err(format!("{} of {count} clients came in", shared.attached.load(Relaxed)).into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    eprintln!("{count} clients attached after {:.1} s", begun.elapsed().as_secs_f64());
    let mut per_broker: HashMap<&str, u64> = HashMap::new();
    shared.homes.iter().for_each(|home| *per_broker.entry(home).or_default() += 1);
    let (least, most) = (per_broker.values().min(), per_broker.values().max());
    eprintln!("clients of a broker: {} to {}", least.unwrap_or(&0), most.unwrap_or(&0));
    let mut first = 1;
    for rate in shared.settings.rates.clone() {
        let mut kept_up = false;
        // One that fails may have met a moment in which the machine did something else.
        for attempt in 0..TRIES {
            if !kept_up && (attempt == 0 || shared.settings.kill.is_none()) {
                (first, kept_up) = phase(&shared, first, rate)?;
            }
        }
        if !kept_up || shared.settings.kill.is_some() {
            break;
        }
    }
    shared.ended.store(true, Relaxed);
    Ok(())
}

fn settings() -> Result<Settings> {
    let mut arguments = std::env::args().skip(1);
    let brokers = arguments.next().ok_or("which brokers?")?.split(',').map(str::to_owned).collect();
    let mut settings = Settings {
        brokers,
        clients: 10_000,
        group: 10,
        rates: vec![1_000.0],
        seconds: 4.0,
        threads: 2,
        publishers: 10,
        durable: false,
        kill: None,
        standby: None,
    };
    while let Some(name) = arguments.next() {
        if name == "--durable" {
            settings.durable = true;
            continue;
        }
        let value = arguments.next().ok_or("a value?")?;
        match name.as_str() {
            "--clients" => settings.clients = value.parse()?,
            "--group" => settings.group = value.parse()?,
            "--rates" => {
                settings.rates = value.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?
            }
            "--seconds" => settings.seconds = value.parse()?,
            "--threads" => settings.threads = value.parse()?,
            "--publishers" => settings.publishers = value.parse()?,
            "--kill" => settings.kill = Some(value),
            "--standby" => settings.standby = Some(value),
            _ => return Err(format!("{name}?").into()),
        }
    }
    Ok(settings)
}

/// The centre of a group's circles: 0.02 degrees apart.
fn place(group: u64) -> (f64, f64) {
    ((group % 100) as f64 * 0.02, (group / 100) as f64 * 0.02)
}

/// Asks a broker where each client is served.
fn homes(settings: &Settings) -> Result<Vec<String>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stream = BufReader::new(TcpStream::connect(&settings.brokers[0]).await?);
        let mut homes = Vec::new();
        for client in 0..settings.clients {
            if settings.brokers.len() == 1 {
                homes.push(settings.brokers[0].clone());
                continue;
            }
            let request =
                format!("GET /v1/cluster?client=client-{client} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
            stream.get_mut().write_all(request.as_bytes()).await?;
            let (status, body) = answer(&mut stream).await?;
            let url = body.split_once(r#""client_url":"http://"#).and_then(|(_, rest)| rest.split_once('"'));
            let (url, _) = url.ok_or_else(|| format!("{status}: {body}"))?;
            homes.push(url.to_owned());
        }
        Ok(homes)
    })
}

/// The status and the body of an answer over HTTP 1.1.
async fn answer(stream: &mut BufReader<TcpStream>) -> Result<(u16, String)> {
    let (mut status, mut length, mut line) = (0, 0, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Err("the broker closed the connection".into());
        }
        let text = line.trim_end().to_ascii_lowercase();
        if let Some(rest) = text.strip_prefix("http/1.1 ") {
            status = rest.get(..3).unwrap_or_default().parse()?;
        } else if let Some(rest) = text.strip_prefix("content-length:") {
            length = rest.trim().parse()?;
        } else if text.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((status, String::from_utf8(body)?))
}

/// Carries a rate out; says what came. Answers the next number, and whether all came in time.
fn phase(shared: &Arc<Shared>, first: u64, rate: f64) -> Result<(u64, bool)> {
    let settings = &shared.settings;
    shared.delays.iter().for_each(|delays| delays.lock().unwrap_or_else(PoisonError::into_inner).clear());
    shared.got.iter().for_each(|got| {
        got.count.store(0, Relaxed);
        got.sum.store(0, Relaxed);
    });
    let came_before = shared.came.load(Relaxed);
    let begin = Instant::now() + Duration::from_millis(50);
    *shared.phase.lock().unwrap_or_else(PoisonError::into_inner) = (begin, first, rate);
    let events = (rate * settings.seconds) as u64;
    let publishing: Vec<_> = (0..settings.publishers)
        .map(|number| {
            let shared = Arc::clone(shared);
            thread::spawn(move || publish(&shared, number, first, events).map_err(|error| error.to_string()))
        })
        .collect();
    let mut told = String::new();
    let mut killed = None;
    if let (Some(pid), Some(standby)) = (&settings.kill, &settings.standby) {
        thread::sleep(Duration::from_secs_f64(settings.seconds / 2.0));
        shared.attached.store(0, Relaxed);
        shared.killed.store(true, Relaxed);
        std::process::Command::new("kill").args(["-9", pid]).status()?;
        let at = Instant::now();
        while !is_ready(standby) {
            if at.elapsed() > Duration::from_secs(120) {
                return Err("the standby is not ready".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        let ready_s = at.elapsed().as_secs_f64();
        shared.standby_ready.store(true, Relaxed);
        while shared.attached.load(Relaxed) < shared.homes.len() {
            if at.elapsed() > Duration::from_secs(120) {
                return Err("not all clients came back".into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        told = format!(" ready_s={ready_s:.2} attached_s={:.2}", at.elapsed().as_secs_f64());
        killed = Some(at);
    }
    let (mut accepted, mut refused, mut doubtful) = (Vec::new(), 0, Vec::new());
    for publisher in publishing {
        let Published { numbers, refused: more, doubtful: doubts } =
            publisher.join().map_err(|_| "a publisher panicked")??;
        accepted.extend(numbers);
        refused += more;
        doubtful.extend(doubts);
    }
    let published_s = begin.elapsed().as_secs_f64();
    let due = accepted.len() as u64 * settings.group;
    let waited = Instant::now();
    while shared.came.load(Relaxed) - came_before < due && waited.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    if let Some(at) = killed {
        told += &format!(" all_came_s={:.2}", at.elapsed().as_secs_f64());
    }
    let last_s = begin.elapsed().as_secs_f64();
    // What comes that is not due would come about now.
    thread::sleep(Duration::from_millis(300));
    let came = shared.came.load(Relaxed) - came_before;
    let mut expected = vec![(0, 0_u64); settings.groups() as usize];
    for number in &accepted {
        let group = &mut expected[(number % settings.groups()) as usize];
        *group = (group.0 + 1, group.1 + number);
    }
    let doubts =
        |group: u64| doubtful.iter().filter(|number| *number % settings.groups() == group).count() as u64;
    let mut not_exact = 0;
    for (client, got) in (0..).zip(&shared.got) {
        let group = client % settings.groups();
        let (count, sum) = expected[group as usize];
        let (got_count, got_sum) = (got.count.load(Relaxed), got.sum.load(Relaxed));
        let is_exact = (got_count, got_sum) == (count, sum);
        let is_doubt = got_count > count && got_count <= count + doubts(group);
        not_exact += u64::from(!is_exact && !is_doubt);
    }
    let mut delays: Vec<u32> = shared
        .delays
        .iter()
        .flat_map(|delays| std::mem::take(&mut *delays.lock().unwrap_or_else(PoisonError::into_inner)))
        .collect();
    delays.sort_unstable();
    let quantile = |share: f64| {
        delays
            .get(((delays.len() as f64 * share) as usize).min(delays.len().saturating_sub(1)))
            .map_or(f64::NAN, |us| f64::from(*us) / 1e3)
    };
    let in_time = delays.partition_point(|us| *us < IN_TIME_US) as f64 / due.max(1) as f64;
    let wrong = shared.wrong.load(Relaxed);
    let kept_up = came == due
        && not_exact == 0
        && wrong == 0
        && refused == 0
        && in_time >= SHARE
        && accepted.len() as u64 == events;
    println!(
        "rate={rate} events={events} accepted={} refused={refused} doubtful={} due={due} came={came} clients_not_exact={not_exact} offsets_wrong={wrong} p50_ms={:.1} p99_ms={:.1} in_time={in_time:.4} published_s={published_s:.2} last_s={last_s:.2} deliveries_s={:.0} kept_up={kept_up}{told}",
        accepted.len(),
        doubtful.len(),
        quantile(0.5),
        quantile(0.99),
        came as f64 / last_s,
    );
    Ok((first + events, kept_up))
}

#[derive(Default)]
struct Published {
    numbers: Vec<u64>,
    refused: u64,
    doubtful: Vec<u64>,
}

/// Sends its share of the events when they are due, all that are in one request.
fn publish(shared: &Shared, number: usize, first: u64, events: u64) -> Result<Published> {
    let settings = &shared.settings;
    let (begin, _, rate) = shared.phase();
    let mut address = settings.brokers[number % settings.brokers.len()].clone();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stream = BufReader::new(TcpStream::connect(&address).await?);
        stream.get_ref().set_nodelay(true)?;
        let (mut published, mut body) = (Published::default(), String::new());
        // Event number first + k is that of publisher k modulo their count.
        let mut next = number as u64;
        while next < events {
            let due_count = (begin.elapsed().as_secs_f64() * rate) as u64;
            if due_count.min(events) <= next {
                let due = begin + Duration::from_secs_f64((next + 1) as f64 / rate);
                tokio::time::sleep_until((due + Duration::from_micros(500)).into()).await;
                continue;
            }
            body.clear();
            let mut numbers = Vec::new();
            while next < due_count.min(events) && (numbers.len() as u64) < BATCH_MAX {
                let event = first + next;
                let (lon, lat) = place(event % settings.groups());
                body += &format!(
                    r#"{{"type":"Feature","id":{event},"geometry":{{"type":"Point","coordinates":[{lon:.4},{lat:.4}]}},"properties":{{"severity":{},"kind":"breakdown","vehicle":"truck-{:06}","note":"both lanes closed"}}}}"#,
                    event % 5 + 1,
                    event % 100_000,
                );
                body.push('\n');
                numbers.push(event);
                next += settings.publishers as u64;
            }
            let request = format!(
                "POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let sent = async {
                stream.get_mut().write_all(request.as_bytes()).await?;
                answer(&mut stream).await
            };
            match sent.await {
                Ok((202, text)) => {
                    let count = text.split_once(r#""accepted":"#).and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
                    if count == Some(numbers.len()) {
                        published.numbers.extend(numbers);
                    } else {
                        if published.refused == 0 {
                            eprintln!("refused: {}", text.get(..400).unwrap_or(&text));
                        }
                        published.refused += (numbers.len() - count.unwrap_or(0)) as u64;
                        // Which ones were taken is not looked at: the phase fails anyway.
                        published.doubtful.extend(numbers);
                    }
                }
                Ok((status, text)) => {
                    if published.refused == 0 {
                        eprintln!("{status}: {}", text.get(..400).unwrap_or(&text));
                    }
                    published.refused += numbers.len() as u64;
                    published.doubtful.extend(numbers);
                }
                Err(error) => {
                    published.doubtful.extend(numbers);
                    let Some(standby) = &settings.standby else { return Err(error) };
                    while !shared.standby_ready.load(Relaxed) {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    address.clone_from(standby);
                    stream = BufReader::new(TcpStream::connect(&address).await?);
                    stream.get_ref().set_nodelay(true)?;
                }
            }
        }
        Ok(published)
    })
}

fn is_ready(address: &str) -> bool {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return false };
    runtime.block_on(async {
        let Ok(stream) = TcpStream::connect(address).await else { return false };
        let mut stream = BufReader::new(stream);
        if stream.get_mut().write_all(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await.is_err() {
            return false;
        }
        matches!(tokio::time::timeout(Duration::from_secs(1), answer(&mut stream)).await, Ok(Ok((200, _))))
    })
}

/// Reads for a share of the clients on one thread.
fn reader(number: usize, shared: &Arc<Shared>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let opening = Arc::new(Semaphore::new(64));
        let clients: Vec<_> = (number..shared.homes.len())
            .step_by(shared.settings.threads)
            .map(|client| {
                let (shared, opening) = (Arc::clone(shared), Arc::clone(&opening));
                tokio::task::spawn_local(async move {
                    let mut session = None;
                    loop {
                        let served = serve(&shared, number, client, &opening, &mut session).await;
                        if shared.ended.load(Relaxed) {
                            return;
                        }
                        if !shared.killed.load(Relaxed) {
                            eprintln!("client {client}: {:?}", served.err());
                            shared.wrong.fetch_add(1, Relaxed);
                            return;
                        }
                        while !shared.standby_ready.load(Relaxed) {
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                    }
                })
            })
            .collect();
        for client in clients {
            let _ = client.await;
        }
    });
}

/// One connection of a client, until it ends.
async fn serve(
    shared: &Shared,
    reader: usize,
    client: usize,
    opening: &Semaphore,
    session: &mut Option<(String, u64)>,
) -> Result<()> {
    let settings = &shared.settings;
    let permit = opening.acquire().await?;
    let address = match &settings.standby {
        Some(standby) if shared.standby_ready.load(Relaxed) => standby,
        _ => &shared.homes[client],
    };
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let resume =
        session.as_ref().map_or(String::new(), |(epoch, offset)| format!("?resume={epoch}:{offset}"));
    let request = format!(
        "GET /v1/clients/client-{client}/ws{resume} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::with_capacity(4_096);
    let end = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err("closed while it was opened".into());
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    if !bytes.starts_with(b"HTTP/1.1 101") {
        return Err(String::from_utf8_lossy(&bytes).into_owned().into());
    }
    bytes.drain(..end);
    if session.is_none() {
        let (lon, lat) = place(client as u64 % settings.groups());
        let subscribe = format!(
            r#"{{"op":"subscribe","ref":"hello","id":"near","filters":[{{"area":{{"center":[{lon:.4},{lat:.4}],"radius_m":50}},"where":"severity >= 1"}}],"durable":{}}}"#,
            settings.durable
        );
        send(&mut stream, 1, subscribe.as_bytes()).await?;
    }
    let (mut permit, mut acknowledged) = (Some(permit), 0);
    let (begin, first, rate) = shared.phase();
    let mut phase = (begin, first, rate);
    loop {
        let (mut at, mut fresh) = (0, 0_u64);
        let mut reply: Option<Vec<u8>> = None;
        let mut delays: Vec<u32> = Vec::new();
        while let Some((opcode, from, to)) = frame(&bytes[at..]) {
            let payload = &bytes[at + from..at + to];
            at += to;
            match opcode {
                1 => {
                    let text = std::str::from_utf8(payload)?;
                    if let Some(rest) = text.strip_prefix(r#"{"op":"event","offset":"#) {
                        let offset = leading(rest);
                        let id = rest.find(r#""id":"#).map(|id| leading(&rest[id + 5..])).unwrap_or_default();
                        let Some((_, last)) = session else {
                            return Err("an event before it was ready".into());
                        };
                        if offset != *last + 1 {
                            shared.wrong.fetch_add(1, Relaxed);
                        }
                        *last = offset;
                        if id < phase.1 || fresh == 0 {
                            phase = shared.phase();
                        }
                        let due = phase.0
                            + Duration::from_secs_f64((id.saturating_sub(phase.1) + 1) as f64 / phase.2);
                        delays.push(
                            u32::try_from(Instant::now().saturating_duration_since(due).as_micros())
                                .unwrap_or(u32::MAX),
                        );
                        let got = &shared.got[client];
                        got.count.store(got.count.load(Relaxed) + 1, Relaxed);
                        got.sum.store(got.sum.load(Relaxed) + id, Relaxed);
                        fresh += 1;
                        if settings.durable && offset >= acknowledged + ACKNOWLEDGE_EVERY {
                            acknowledged = offset;
                            reply = Some(format!(r#"{{"op":"ack","offset":{offset}}}"#).into_bytes());
                        }
                    } else if text.starts_with(r#"{"op":"ready""#) {
                        let epoch = text
                            .split_once(r#""epoch":""#)
                            .and_then(|(_, rest)| rest.split('"').next())
                            .unwrap_or_default();
                        let offset = text
                            .split_once(r#""offset":"#)
                            .map(|(_, rest)| leading(rest))
                            .unwrap_or_default();
                        match session {
                            Some((known, _)) if known != epoch => return Err("another epoch".into()),
                            Some(_) => {
                                shared.attached.fetch_add(1, Relaxed);
                                permit = None;
                            }
                            None => *session = Some((epoch.to_owned(), offset)),
                        }
                    } else if text.starts_with(r#"{"op":"ok""#) {
                        if permit.take().is_some() {
                            shared.attached.fetch_add(1, Relaxed);
                        }
                    } else {
                        eprintln!("client {client}: {text}");
                        shared.wrong.fetch_add(1, Relaxed);
                    }
                }
                8 => return Err(format!("closed: {}", String::from_utf8_lossy(payload)).into()),
                9 => {
                    let payload = payload.to_vec();
                    send(&mut stream, 10, &payload).await?;
                }
                _ => {}
            }
        }
        bytes.drain(..at);
        if fresh > 0 {
            shared.came.fetch_add(fresh, Relaxed);
            shared.delays[reader].lock().unwrap_or_else(PoisonError::into_inner).extend(delays);
        }
        if let Some(reply) = reply {
            send(&mut stream, 1, &reply).await?;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err("the broker closed the connection".into());
        }
    }
}

/// Sends a frame, masked by zeros.
async fn send(stream: &mut TcpStream, opcode: u8, payload: &[u8]) -> Result<()> {
    let mut frame = vec![0x80 | opcode];
    match u16::try_from(payload.len())? {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    Ok(stream.write_all(&frame).await?)
}

/// The opcode of the first frame, and where its payload begins and ends; none while it is not whole.
fn frame(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let (from, length) = match *bytes.get(1)? {
        126 => (4, u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?) as usize),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?) as usize),
        length => (2, length as usize),
    };
    (bytes.len() >= from + length).then_some((bytes[0] & 15, from, from + length))
}

/// The number at the beginning of a text.
fn leading(text: &str) -> u64 {
    text.bytes().take_while(u8::is_ascii_digit).fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
