//! Streams of events over three NATS servers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cluster::events::{
    Action, Attach, Claim, Decision, Outcome, Publisher, PushError, Reader, Stream, Taken, Timing,
};
use cluster::jetstream::demands::DemandError;
use cluster::jetstream::{Attachment, JetStream, Options};
use cluster::log::{
    Append, AppendError, Appended, Attachable as _, Attachment as _, Identity, Log as _, Sent,
};
use cluster::record::{Body, Incarnation};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::{DEADLINE, append, leader, options, run};
use crate::nats::Servers;

const BYTES_MAX: NonZeroU64 = NonZeroU64::new(64 << 20).unwrap();
const ONE: Stream = Stream(1);
const TWO: Stream = Stream(2);

/// What tasks of a broker tell it.
enum Told {
    Answered(Stream, Result<Appended, AppendError>),
    /// What an attachment sent; none where it has ended.
    Sent(Stream, u64, Option<Sent>),
}

/// A broker that takes events in and reads them. Its engine is a list.
struct Broker {
    begun: Instant,
    logs: BTreeMap<Stream, Arc<JetStream>>,
    publisher: Publisher,
    reader: Reader,
    tasks: JoinSet<()>,
    attachments: BTreeMap<Stream, AbortHandle>,
    tell: mpsc::UnboundedSender<Told>,
    told: mpsc::UnboundedReceiver<Told>,
    /// Events by the publishes that they belong to.
    under_way: BTreeMap<u64, Vec<(Stream, String)>>,
    acknowledged: Vec<(Stream, String)>,
    markers: BTreeMap<Stream, Identity>,
    decided: VecDeque<Decision>,
    /// What was handed out, with the sequences of the records.
    read: BTreeMap<Stream, Vec<(u64, String)>>,
    /// How many times each record was appended.
    appends: BTreeMap<String, u64>,
    attached: u64,
}

impl Broker {
    async fn start(servers: &Servers, nonce: u64) -> Self {
        let mut logs = BTreeMap::new();
        for stream in [ONE, TWO] {
            logs.insert(stream, Arc::new(open(servers, &stream_options(stream)).await));
        }
        let (tell, told) = mpsc::unbounded_channel();
        Self {
            begun: Instant::now(),
            logs,
            publisher: Publisher::new(Incarnation { term: 0, nonce }, Timing::default()),
            // A broker that has no leader of a stream waits for one, whatever else this machine has to do.
            reader: Reader::new(Timing { wait: DEADLINE, ..Timing::default() }),
            tasks: JoinSet::new(),
            attachments: BTreeMap::new(),
            tell,
            told,
            under_way: BTreeMap::new(),
            acknowledged: Vec::new(),
            markers: BTreeMap::new(),
            decided: VecDeque::new(),
            read: BTreeMap::new(),
            appends: BTreeMap::new(),
            attached: 0,
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn claim(&mut self, command: u64, streams: &[Stream]) {
        let cover = streams.iter().copied().collect();
        let claim = Claim { command, client: 1, cover, ahead: BTreeSet::new() };
        self.reader.claim(self.now(), claim).expect("nothing waits");
    }

    /// Publishes an event in each stream, all of them at once.
    fn publish(&mut self, streams: &[Stream], text: &str) -> Result<(), PushError> {
        let events = streams.iter().map(|stream| (*stream, Bytes::from(text.to_owned()))).collect();
        let publish = self.publisher.publish(self.now(), events)?;
        let events = streams.iter().map(|stream| (*stream, text.to_owned())).collect();
        self.under_way.insert(publish, events);
        Ok(())
    }

    /// Makes what is due, and takes what there is within a few milliseconds.
    async fn step(&mut self) {
        self.make_requests();
        if let Ok(told) = tokio::time::timeout(Duration::from_millis(5), self.told.recv()).await {
            self.take(told.expect("this broker tells itself"));
        }
        while let Ok(told) = self.told.try_recv() {
            self.take(told);
        }
        while let Some(decision) = self.reader.decide(self.now()) {
            self.decided.push_back(decision);
        }
    }

    fn make_requests(&mut self) {
        while let Some((stream, append)) = self.publisher.poll(self.now()) {
            *self.appends.entry(append.id.clone()).or_default() += 1;
            let (log, tell) = (Arc::clone(&self.logs[&stream]), self.tell.clone());
            self.tasks.spawn(async move {
                let answer = log.append(append).await;
                // The broker may be gone.
                let _ = tell.send(Told::Answered(stream, answer));
            });
        }
        while let Some(action) = self.reader.poll(self.now()) {
            match action {
                Action::Mark(stream) => self.publisher.mark(stream),
                Action::Detach(stream) => {
                    self.attachments.remove(&stream).iter().for_each(AbortHandle::abort)
                }
                Action::Attach(stream, attach) => self.attach(stream, attach),
            }
        }
    }

    fn attach(&mut self, stream: Stream, Attach { attachment: number, from }: Attach) {
        let (log, tell) = (Arc::clone(&self.logs[&stream]), self.tell.clone());
        let handle = self.tasks.spawn(async move {
            if let Ok(mut attachment) = log.attach(from).await {
                while let Some(sent) = attachment.receive().await {
                    let _ = tell.send(Told::Sent(stream, number, Some(sent)));
                }
            }
            let _ = tell.send(Told::Sent(stream, number, None));
        });
        self.attached += 1;
        self.attachments.insert(stream, handle).iter().for_each(AbortHandle::abort);
    }

    fn take(&mut self, told: Told) {
        let now = self.now();
        match told {
            Told::Answered(stream, answer) => {
                self.publisher.answer(now, stream, answer);
                while let Some((publish, outcome)) = self.publisher.take_outcome() {
                    assert_eq!(outcome, Outcome::Acknowledged);
                    self.acknowledged.extend(self.under_way.remove(&publish).expect("a publish of ours"));
                }
                while let Some((stream, marker)) = self.publisher.take_marker() {
                    assert!(!self.reader.marked(now, stream, marker), "nothing is lost");
                    self.markers.insert(stream, marker.expect("no marker is given up"));
                }
            }
            Told::Sent(stream, attachment, None) => self.reader.failed(now, stream, attachment),
            Told::Sent(stream, attachment, Some(sent)) => {
                let taken = self.reader.take(now, stream, attachment, &sent).expect("the log is whole");
                let Taken::Record { sequence, record, dropped } = taken else { return };
                assert_eq!(dropped, None);
                match record.body().expect("a body") {
                    Body::Marker => {}
                    Body::Events(events) => {
                        let text = |event: &[u8]| (sequence, String::from_utf8(event.to_owned()).unwrap());
                        self.read.entry(stream).or_default().extend(events.into_iter().map(text));
                    }
                    body @ (Body::Rows(_) | Body::Seal(_) | Body::Chunk(_)) => panic!("{body:?}"),
                }
            }
        }
    }

    fn texts(&self, stream: Stream) -> Vec<&str> {
        self.read.get(&stream).into_iter().flatten().map(|(_, text)| text.as_str()).collect()
    }

    fn has_read(&self, events: &[(Stream, String)]) -> bool {
        let read: BTreeMap<_, BTreeSet<_>> =
            self.logs.keys().map(|stream| (*stream, self.texts(*stream).into_iter().collect())).collect();
        events.iter().all(|(stream, text)| read[stream].contains(text.as_str()))
    }
}

/// Goes on with brokers until something is so.
async fn go_on<const N: usize>(mut brokers: [&mut Broker; N], is_done: impl Fn(&[&mut Broker; N]) -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_done(&brokers) {
        assert!(Instant::now() < deadline, "{:?}", brokers.map(|broker| (&broker.reader, &broker.publisher)));
        for broker in &mut brokers {
            broker.step().await;
        }
    }
}

fn stream_options(stream: Stream) -> Options {
    options(&format!("events-{}", stream.0))
}

/// A stream of events on servers that may have just begun.
async fn open(servers: &Servers, options: &Options) -> JetStream {
    open_with(servers, options, BYTES_MAX).await
}

async fn open_with(servers: &Servers, options: &Options, bytes_max: NonZeroU64) -> JetStream {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match JetStream::open_events(servers.client().await, options, bytes_max, 3).await {
            Ok(log) => return log,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// An attachment that has sent something.
struct Attached {
    attachment: Attachment,
    first: Option<Sent>,
}

/// Attaches until something is sent: on servers that have just begun, an attachment may end at once.
async fn attach(log: &JetStream, from: u64) -> Attached {
    let deadline = Instant::now() + DEADLINE;
    loop {
        assert!(Instant::now() < deadline, "no attachment");
        let Ok(mut attachment) = log.attach(from).await else { continue };
        let first = tokio::time::timeout(DEADLINE, attachment.receive()).await.expect("it is not silent");
        if first.is_some() {
            return Attached { attachment, first };
        }
    }
}

async fn message(attached: &mut Attached) -> Sent {
    if let Some(first) = attached.first.take() {
        return first;
    }
    let sent = tokio::time::timeout(DEADLINE, attached.attachment.receive()).await;
    sent.expect("it is not silent").expect("it has not ended")
}

/// The records that an attachment sends up to one that ends all, as (number, pending, sequence, bytes).
async fn records(attached: &mut Attached, to: u64) -> Vec<(u64, u64, u64, Bytes)> {
    let mut records = Vec::new();
    while records.last().is_none_or(|(_, _, sequence, _)| *sequence < to) {
        if let Sent::Record { nth, pending, stored } = message(attached).await {
            records.push((nth, pending, stored.sequence, stored.record));
        }
    }
    records
}

/// The next report of an attachment that has nothing to send.
async fn idle(attached: &mut Attached) -> (u64, u64) {
    match message(attached).await {
        Sent::Idle { nth, last } => (nth, last),
        sent @ Sent::Record { .. } => panic!("{sent:?}"),
    }
}

#[test]
fn an_attachment_sends_what_is_appended_and_says_when_there_is_nothing() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 3, "always");
    run(async {
        let options = options("attached");
        let log = open(&servers, &options).await;
        let mut empty = attach(&log, 1).await;
        assert_eq!(idle(&mut empty).await, (0, 0));
        for number in 1..=200 {
            append(&log, None, &number.to_string()).await.unwrap();
        }
        // More than are asked for at a time, and more than once.
        let mut attachment = attach(&log, 11).await;
        let sent = records(&mut attachment, 200).await;
        let wanted =
            |sequence: u64| (sequence - 10, 200 - sequence, sequence, Bytes::from(sequence.to_string()));
        assert_eq!(sent, (11..=200).map(wanted).collect::<Vec<_>>());
        assert_eq!(idle(&mut attachment).await, (190, 200));
        assert_eq!(idle(&mut attachment).await, (190, 200), "again, from time to time");
        let sequences =
            records(&mut empty, 200).await.into_iter().map(|(nth, _, sequence, _)| (nth, sequence));
        assert!(sequences.eq((1..=200).map(|sequence| (sequence, sequence))));
        // What the log has dropped is missing in the sequences, and nothing in the count.
        log.truncate(151).await.unwrap();
        let mut late = attach(&log, 1).await;
        let sent = records(&mut late, 200).await;
        assert_eq!((sent[0].0, sent[0].2, sent.len()), (1, 151, 50));
        // From a place that the log has not come to, a report names that place and not the log's end.
        let mut ahead = attach(&log, 500).await;
        assert_eq!(idle(&mut ahead).await, (0, 499));
        append(&log, None, "201").await.unwrap();
        assert_eq!(records(&mut late, 201).await, [(51, 0, 201, Bytes::from("201"))]);
        assert_eq!(idle(&mut ahead).await, (0, 499));
    });
}

#[test]
fn a_stream_of_events_drops_what_is_old_and_a_ledger_does_not() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 1, "always");
    run(async {
        let options = Options { replicas: 1, ..options("kinds") };
        open(&servers, &options).await;
        open(&servers, &options).await;
        let client = servers.client().await;
        let context = async_nats::jetstream::new(client.clone());
        let config = context.get_stream("kinds").await.unwrap().cached_info().config.clone();
        assert_eq!((config.max_age, config.max_bytes), (Duration::from_secs(900), 64 << 20));
        let error = JetStream::open(client.clone(), &options).await.unwrap_err();
        assert!(matches!(error, DemandError::Stream { setting: "discard", .. }), "{error}");
        let other = NonZeroU64::new(1 << 20).unwrap();
        let error = JetStream::open_events(client.clone(), &options, other, 3).await.unwrap_err();
        let wanted = "stream kinds has `max_bytes: 67108864`: set it to 1048576";
        assert!(error.to_string().starts_with(wanted), "{error}");
        let same = NonZeroU64::new(64 << 20).unwrap();
        let error = JetStream::open_events(client.clone(), &options, same, 2).await.unwrap_err();
        assert!(matches!(error, DemandError::Partitions { .. }), "{error}");
        // One that somebody else made tells nothing until it is opened. Once it has had records it has to tell.
        let plain = async_nats::jetstream::stream::Config { description: None, ..config };
        context.update_stream(plain.clone()).await.unwrap();
        let log = JetStream::open_events(client.clone(), &options, same, 3).await.unwrap();
        let error = JetStream::open_events(client.clone(), &options, same, 2).await.unwrap_err();
        assert!(matches!(error, DemandError::Partitions { .. }), "{error}");
        append(&log, None, "1").await.unwrap();
        context.update_stream(plain).await.unwrap();
        let error = JetStream::open_events(client, &options, same, 3).await.unwrap_err();
        let told = "give the stream the description \"events for 3 partitions\"";
        assert!(error.to_string().ends_with(told), "{error}");
    });
}

#[test]
fn two_readers_see_what_two_writers_publish_in_one_order_while_a_leader_is_killed() {
    let folder = TempDir::new().unwrap();
    let mut servers = Servers::start(folder.path(), 3, "always");
    run(async {
        let (mut a, mut b) = (Broker::start(&servers, 1).await, Broker::start(&servers, 2).await);
        a.claim(1, &[ONE, TWO]);
        b.claim(2, &[ONE, TWO]);
        go_on([&mut a, &mut b], |[a, b]| !a.decided.is_empty() && !b.decided.is_empty()).await;
        assert_eq!(
            (a.decided.pop_back(), b.decided.pop_back()),
            (Some(Decision::Carry(1)), Some(Decision::Carry(2)))
        );

        let (mut published, mut killed, mut enough) = (0, None, usize::MAX);
        let deadline = Instant::now() + DEADLINE;
        while a.acknowledged.len().min(b.acknowledged.len()) < enough {
            assert!(Instant::now() < deadline, "{:?}", (a.publisher, b.publisher));
            published += 1;
            let streams: &[Stream] = [&[ONE][..], &[TWO], &[ONE, TWO]][published % 3];
            for (name, broker) in [("a", &mut a), ("b", &mut b)] {
                // What is refused while the stream has no leader is not in it.
                match broker.publish(streams, &format!("{name} {published:06}")) {
                    Ok(()) | Err(PushError::Busy { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            a.step().await;
            b.step().await;
            if published == 100 {
                killed = Some(servers.kill(&leader(&servers, &stream_options(ONE)).await));
                // What is in the stream without a leader now has to be appended again.
                let is_retried = |broker: &Broker| broker.appends.values().any(|times| *times > 1);
                for broker in [&mut a, &mut b] {
                    broker.publish(&[ONE], &format!("{published}, killed")).unwrap();
                }
                go_on([&mut a, &mut b], |[a, b]| is_retried(a) && is_retried(b)).await;
                enough = a.acknowledged.len().max(b.acknowledged.len()) + 100;
            }
        }
        servers.restart(&[killed.expect("a server was killed")]);
        go_on([&mut a, &mut b], |[a, b]| {
            let is_over = |broker: &Broker| broker.under_way.is_empty();
            is_over(a)
                && is_over(b)
                && [a, b]
                    .iter()
                    .all(|reader| reader.has_read(&a.acknowledged) && reader.has_read(&b.acknowledged))
        })
        .await;
        for stream in [ONE, TWO] {
            assert_eq!(a.read[&stream], b.read[&stream], "the same records, in the same places");
            let read = a.texts(stream);
            let mut wanted: Vec<_> = a
                .acknowledged
                .iter()
                .chain(&b.acknowledged)
                .filter(|(of, _)| *of == stream)
                .map(|(_, text)| text.as_str())
                .collect();
            let mut found = read.clone();
            wanted.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, wanted, "each once, and nothing else");
            for name in ["a ", "b "] {
                assert!(
                    read.iter().filter(|text| text.starts_with(name)).is_sorted(),
                    "a publisher's own order"
                );
            }
        }
    });
}

/// Whatever is published when a command has been answered is behind the marker, and read.
#[test]
fn what_is_published_behind_a_fence_is_read_and_nothing_before_it() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 3, "always");
    run(async {
        let mut a = Broker::start(&servers, 1).await;
        a.claim(1, &[TWO]);
        go_on([&mut a], |[a]| !a.decided.is_empty()).await;
        for round in 1..=10_u64 {
            a.publish(&[TWO], &format!("before {round}")).unwrap();
            go_on([&mut a], |[a]| a.under_way.is_empty()).await;
            let mut b = Broker::start(&servers, 1 + round).await;
            b.claim(round, &[TWO]);
            // It goes on publishing all the while.
            let mut number = 0;
            let deadline = Instant::now() + DEADLINE;
            while b.decided.is_empty() {
                assert!(Instant::now() < deadline, "{:?}", b.reader);
                number += 1;
                a.publish(&[TWO], &format!("meanwhile {round} {number}")).unwrap();
                a.step().await;
                b.step().await;
            }
            assert_eq!(b.decided.pop_front(), Some(Decision::Carry(round)));
            let answered = format!("after {round}");
            a.publish(&[TWO], &answered).unwrap();
            go_on([&mut a, &mut b], |[a, b]| {
                a.under_way.is_empty() && b.has_read(&[(TWO, answered.clone())])
            })
            .await;
            let marker = b.markers[&TWO].sequence;
            go_on([&mut a], |[a]| a.has_read(&[(TWO, answered.clone())])).await;
            let behind: Vec<_> = a.read[&TWO].iter().filter(|(sequence, _)| *sequence > marker).collect();
            assert_eq!(b.read[&TWO].iter().collect::<Vec<_>>(), behind, "all that is behind the marker");
            assert!(!b.texts(TWO).contains(&format!("before {round}").as_str()));
        }
    });
}

#[test]
fn a_consumer_that_is_deleted_is_made_anew() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 3, "always");
    run(async {
        let mut a = Broker::start(&servers, 1).await;
        a.claim(1, &[ONE]);
        go_on([&mut a], |[a]| !a.decided.is_empty()).await;
        let context = async_nats::jetstream::new(servers.client().await);
        let stream = context.get_stream(stream_options(ONE).stream).await.unwrap();
        for round in 1..=3_u64 {
            a.publish(&[ONE], &format!("{round}")).unwrap();
            go_on([&mut a], |[a]| a.under_way.is_empty() && a.has_read(&a.acknowledged)).await;
            let attached = a.attached;
            let names: Vec<String> =
                futures_util::TryStreamExt::try_collect(stream.consumer_names()).await.unwrap();
            assert!(!names.is_empty());
            for name in names {
                // Those of attachments before end by themselves.
                let _ = stream.delete_consumer(&name).await;
            }
            // What is published meanwhile comes as well.
            a.publish(&[ONE], &format!("{round}, and there is no consumer")).unwrap();
            go_on([&mut a], |[a]| {
                a.attached > attached && a.under_way.is_empty() && a.has_read(&a.acknowledged)
            })
            .await;
        }
        assert_eq!(a.texts(ONE).len(), 6, "each once");
    });
}

/// A stream that is filled up drops its oldest records, and takes new ones.
#[test]
fn a_stream_that_is_full_takes_records_and_drops_the_oldest() {
    let folder = TempDir::new().unwrap();
    let servers = Servers::start(folder.path(), 1, "always");
    run(async {
        let options = Options { replicas: 1, ..options("full") };
        let log = open_with(&servers, &options, NonZeroU64::new(64 << 10).unwrap()).await;
        for number in 1..=20 {
            let record = Bytes::from(vec![7; 8 << 10]);
            log.append(Append { expected: None, id: number.to_string(), record }).await.unwrap();
        }
        let first = log.bounds().await.unwrap().first;
        assert!(first > 12, "{first}");
        let sent = records(&mut attach(&log, 1).await, 20).await;
        assert_eq!((sent[0].0, sent[0].2), (1, first));
    });
}
