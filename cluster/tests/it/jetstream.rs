//! The log over three NATS servers.

mod events;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cluster::jetstream::demands::{DemandError, check};
use cluster::jetstream::{JetStream, Member, Members, Options};
use cluster::ledger::{Answer, End, Request, Standby, State, Status, Timing, Writer};
use cluster::log::{Append, AppendError, Appended, Bounds, Log as _, ReadError, Stored};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::is_soak;
use crate::nats::Servers;

/// How long anything is waited for.
const DEADLINE: Duration = Duration::from_secs(90);

/// All rows.
#[derive(Debug, Default)]
struct Rows(Vec<Vec<u8>>);

impl State for Rows {
    fn apply(&mut self, _number: u64, row: &[u8]) -> Result<(), String> {
        self.0.push(row.to_owned());
        Ok(())
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn restore(&mut self, chunk: &[u8]) -> Result<(), String> {
        self.0.push(chunk.to_owned());
        Ok(())
    }
}

/// Carries out what a standby or a writer asks for. Dropping it is the end of its process; not running it, a stop.
struct Driver {
    log: Arc<JetStream>,
    begun: Instant,
    calls: JoinSet<Answer>,
}

impl Driver {
    fn new(log: JetStream) -> Self {
        Self { log: Arc::new(log), begun: Instant::now(), calls: JoinSet::new() }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn make(&mut self, request: Request) {
        let log = Arc::clone(&self.log);
        self.calls.spawn(async move { request.make(&*log).await });
    }

    /// The next answer, or none where it is time to ask again what is due.
    async fn answer(&mut self) -> Option<Answer> {
        let next = async {
            match self.calls.join_next().await {
                Some(answer) => answer.expect("a request does not panic"),
                None => std::future::pending().await,
            }
        };
        tokio::time::timeout(Duration::from_millis(5), next).await.ok()
    }

    async fn follow(&mut self, standby: &mut Standby<Rows>, is_done: impl Fn(&Standby<Rows>) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !is_done(standby) {
            assert!(Instant::now() < deadline, "{standby:?}");
            while let Some(request) = standby.poll(self.now()) {
                self.make(request);
            }
            if let Some(answer) = self.answer().await {
                standby.answer(self.now(), answer);
            }
        }
    }

    /// Makes what is due, and takes an answer if there is one.
    async fn step(&mut self, writer: &mut Writer) {
        while let Some(request) = writer.poll(self.now()) {
            self.make(request);
        }
        if let Some(answer) = self.answer().await {
            writer.answer(self.now(), answer);
        }
    }

    async fn write(&mut self, writer: &mut Writer, is_done: impl Fn(&Writer) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !is_done(writer) {
            assert!(Instant::now() < deadline, "{writer:?}");
            self.step(writer).await;
        }
    }

    async fn take_over(&mut self, member: &str, nonce: u64) -> (Writer, Vec<Vec<u8>>) {
        // Nothing is given up before the test is.
        let timing = Timing { give_up: 2 * DEADLINE, ..Timing::default() };
        let mut standby = Standby::new(member.to_owned(), nonce, timing, Rows::default());
        self.follow(&mut standby, |standby| standby.applied() > 0 || standby.status() == Status::Owner).await;
        let mut at = self.now();
        while standby.status() != Status::Owner {
            // The owner is not there: as if it had been looked for it for as long as it takes.
            at += Duration::from_secs(1);
            standby.look(at, &[]);
            if standby.status() == Status::Sealing {
                self.follow(&mut standby, |standby| standby.status() == Status::Owner).await;
            }
        }
        let (writer, state) = standby.into_writer().expect("it is the owner");
        (writer, state.0)
    }
}

fn options(stream: &str) -> Options {
    let (subject, stream) = (format!("nc.test.{stream}"), stream.to_owned());
    Options { stream, subject, replicas: 3, is_to_be_made: true }
}

/// A stream on servers that have just begun.
async fn open(servers: &Servers, options: &Options) -> JetStream {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match JetStream::open(servers.client().await, options).await {
            Ok(log) => return log,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The server that leads a stream.
async fn leader(servers: &Servers, options: &Options) -> String {
    let context = async_nats::jetstream::new(servers.client().await);
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Ok(stream) = context.get_stream(&options.stream).await
            && let Some(leader) =
                stream.cached_info().cluster.as_ref().and_then(|cluster| cluster.leader.clone())
        {
            return leader;
        }
        assert!(Instant::now() < deadline, "no leader");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    Runtime::new().expect("a runtime").block_on(test)
}

async fn append(log: &JetStream, expected: Option<u64>, id: &str) -> Result<Appended, AppendError> {
    let record = Bytes::from(id.to_owned());
    log.append(Append { expected, id: id.to_owned(), record }).await
}

/// Reads until the record `to` has come.
async fn read(log: &JetStream, from: u64, to: u64) -> Vec<Stored> {
    let (mut found, deadline) = (Vec::<Stored>::new(), Instant::now() + DEADLINE);
    loop {
        let next = found.last().map_or(from, |stored| stored.sequence + 1);
        if next > to {
            return found;
        }
        assert!(Instant::now() < deadline, "{} of {from} to {to}", found.len());
        if let Ok(records) = log.read(next, 1 << 20).await {
            found.extend(records);
        }
    }
}

#[test]
fn a_stream_is_a_log() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 3, "always");
    run(async {
        let log = open(&servers, &options("log")).await;
        assert_eq!(log.bounds().await, Ok(Bounds { first: 1, last: 0 }));
        assert_eq!(log.read(1, 1).await, Ok(Vec::new()));
        // Two writers, of which one comes first.
        let other = open(&servers, &options("log")).await;
        assert_eq!(append(&log, Some(0), "a").await.map(|appended| appended.sequence), Ok(1));
        assert_eq!(append(&other, Some(0), "b").await, Err(AppendError::WrongLast { last: None }));
        // A record that was appended before.
        assert_eq!(append(&log, Some(0), "a").await, Ok(Appended { sequence: 1, is_duplicate: true }));
        // A marker, and all that is appended behind it.
        let marker = append(&other, None, "marker").await.unwrap().sequence;
        for number in 0..20 {
            append(&log, Some(marker + number), &number.to_string()).await.unwrap();
        }
        let records = read(&other, marker, marker + 20).await;
        let sequences: Vec<_> = records.iter().map(|stored| stored.sequence).collect();
        assert_eq!(sequences, (marker..=marker + 20).collect::<Vec<_>>());
        assert_eq!(records[0].record, "marker");
        assert_eq!(records[20].record, "19");
        assert!(records.is_sorted_by_key(|stored| stored.time_us));
        // Once more, from a consumer that is not there yet: they are the same.
        assert_eq!(read(&log, marker, marker + 20).await, records);
        log.truncate(marker + 5).await.unwrap();
        assert_eq!(log.bounds().await, Ok(Bounds { first: marker + 5, last: marker + 20 }));
        assert_eq!(other.read(marker, 1).await, Err(ReadError::TooOld { first: marker + 5 }));
        log.truncate(marker + 21).await.unwrap();
        let gone = marker + 21;
        assert_eq!(log.bounds().await, Ok(Bounds { first: gone, last: gone - 1 }));
        assert_eq!(other.read(1, 1).await, Err(ReadError::TooOld { first: gone }));
        assert_eq!(other.read(gone, 1).await, Ok(Vec::new()));
        let large = Append { expected: None, id: "large".to_owned(), record: vec![0; 2 << 20].into() };
        assert!(matches!(log.append(large).await, Err(AppendError::TooLarge { .. })));
    });
}

#[test]
fn a_writer_goes_on_while_a_leader_of_the_log_is_killed_and_nothing_is_lost() {
    let folder = TempDir::new().unwrap();
    let mut servers = Servers::start(folder.path(), 3, "always");
    run(async {
        let options = options("killed");
        let mut driver = Driver::new(open(&servers, &options).await);
        let (mut writer, _) = driver.take_over("a", 1).await;
        let mut pushed = BTreeMap::new();
        let mut row = 0_u32;
        // Each costs an election.
        for _ in 0..if is_soak() { 100 } else { 1 } {
            let leader = leader(&servers, &options).await;
            let killed = servers.kill(&leader);
            let (enough, deadline) = (writer.committed() + 20, Instant::now() + DEADLINE);
            while writer.committed() < enough {
                assert!(Instant::now() < deadline, "{writer:?}");
                row += 1;
                let text = format!("row {row}").into_bytes();
                if let Ok(number) = writer.push(driver.now(), text.clone()) {
                    pushed.insert(number, text);
                }
                driver.step(&mut writer).await;
            }
            servers.restart(&[killed]);
        }
        let committed = writer.committed();
        assert_eq!(writer.end(), None);
        // Who takes over has them all.
        let mut other = Driver::new(open(&servers, &options).await);
        let (next, rows) = other.take_over("b", 2).await;
        assert!(next.committed() >= committed);
        for (number, row) in rows.iter().enumerate() {
            assert_eq!(pushed.get(&(number as u64 + 1)), Some(row));
        }
    });
}

/// A writer that is stopped, with a request under way, while another takes over, and goes on later.
#[test]
fn a_writer_that_was_stopped_commits_nothing_after_its_seal() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 3, "always");
    run(async {
        let options = options("stopped");
        let mut stopped = Driver::new(open(&servers, &options).await);
        let (mut writer, _) = stopped.take_over("a", 1).await;
        writer.push(stopped.now(), b"1".to_vec()).unwrap();
        stopped.write(&mut writer, |writer| writer.committed() == 1).await;
        // Its request is made and not yet sent.
        writer.push(stopped.now(), b"2".to_vec()).unwrap();
        let request = writer.poll(stopped.now()).unwrap();

        let mut driver = Driver::new(open(&servers, &options).await);
        let (mut next, rows) = driver.take_over("b", 2).await;
        assert_eq!(rows, [b"1"]);
        next.push(driver.now(), b"3".to_vec()).unwrap();
        driver.write(&mut next, |next| next.committed() == 2).await;

        stopped.make(request);
        writer.push(stopped.now(), b"4".to_vec()).unwrap();
        stopped.write(&mut writer, |writer| writer.end().is_some()).await;
        assert_eq!(writer.end(), Some(&End::Fenced { sequence: 3 }));
        assert_eq!(writer.committed(), 1);

        let mut reader = Standby::new("c".to_owned(), 3, Timing::default(), Rows::default());
        driver.follow(&mut reader, |reader| reader.applied() == 2).await;
        assert_eq!(reader.state().0, [b"1", b"3"]);
        assert_eq!(driver.log.bounds().await.map(|bounds| bounds.last), Ok(4));
    });
}

#[test]
fn members_are_seen_until_their_time_is_over() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 1, "always");
    run(async {
        let client = servers.client().await;
        let ttl = Duration::from_millis(1_000);
        let members = Members::open(client, "members", 1, ttl).await.unwrap();
        assert_eq!(members.look().await.unwrap(), []);
        let member = |name: &str, nonce| {
            let (name, url) = (name.to_owned(), "http://a:7070".to_owned());
            Member { name, nonce, url, is_leaving: false, partition: 1, partitions: 1, is_owner: false }
        };
        let (a, b) = (member("a", u64::MAX), member("b", 8));
        for member in [&a, &b, &a] {
            members.beat(member).await.unwrap();
        }
        let mut seen = members.look().await.unwrap();
        seen.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        assert_eq!(seen, [(a, 3), (b, 2)]);
        let deadline = Instant::now() + DEADLINE;
        while !members.look().await.unwrap().is_empty() {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

#[test]
fn what_is_to_be_set_is_told() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 1, "\"2m\"");
    run(async {
        let error = check(&servers.system().await, 1).await.unwrap_err();
        let wanted = DemandError::SyncInterval { server: "n0".to_owned(), found: Duration::from_secs(120) };
        assert_eq!(error, wanted);
        assert!(
            error.to_string().ends_with("set `sync_interval: always` in its block `jetstream`"),
            "{error}"
        );
        // A user who may not ask.
        let error = check(&servers.client().await, 1).await.unwrap_err();
        assert!(matches!(error, DemandError::SystemAccount { .. }), "{error}");
        // A stream that forgets.
        let client = servers.client().await;
        let config = async_nats::jetstream::stream::Config {
            name: "short".to_owned(),
            subjects: vec!["nc.test.short".to_owned()],
            discard: async_nats::jetstream::stream::DiscardPolicy::New,
            max_age: Duration::from_secs(60),
            ..Default::default()
        };
        async_nats::jetstream::new(client.clone()).create_stream(config).await.unwrap();
        let options = Options { replicas: 1, ..options("short") };
        let error = JetStream::open(client.clone(), &options).await.unwrap_err();
        assert!(error.to_string().starts_with("stream short has `max_age: 60s`: set it to 0ns"), "{error}");
        // A stream that was there.
        let options = Options { is_to_be_made: false, replicas: 1, ..self::options("gone") };
        let error = JetStream::open(client.clone(), &options).await.unwrap_err();
        assert_eq!(error, DemandError::Gone { stream: "gone".to_owned() });
        let made = Options { is_to_be_made: true, ..options.clone() };
        JetStream::open(client.clone(), &made).await.unwrap();
        JetStream::open(client.clone(), &options).await.unwrap();
        // More replicas than there are servers.
        let options = Options { replicas: 3, ..self::options("many") };
        let error = JetStream::open(client, &options).await.unwrap_err();
        assert!(matches!(error, DemandError::NotOpened { .. }), "{error}");
    });
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 3, "always");
    run(async {
        open(&servers, &options("fit")).await;
        check(&servers.system().await, 3).await.unwrap();
        let few = DemandError::Servers { found: 3, wanted: 5 };
        assert_eq!(check(&servers.system().await, 5).await, Err(few));
    });
}
