//! Tests of the sessions of one shard, command by command.

use matcher::engine::scan::Scan;
use matcher::geo::World;
use matcher::subscription::SubscriptionId;

use super::*;
use crate::config::Config;
use crate::ingest::Behalf;
use crate::ingest::feature::FeatureReader;
use crate::ingest::subscription::{Prepared, SubscriptionReader};
use crate::model::delivery::{Delivery, Entry, SubscriptionIds};
use crate::outbox::Bounds;

/// Sessions with what it takes to talk to them.
pub(super) struct Bench {
    pub(super) sessions: Sessions,
    features: FeatureReader,
    subscriptions: SubscriptionReader,
    pub(super) bounds: Bounds,
}

impl Bench {
    fn new() -> Self {
        Self::with(None, |_| {})
    }

    pub(super) fn with(disk: Option<Box<dyn Disk>>, set: impl Fn(&mut Config)) -> Self {
        let mut config = Config::default();
        config.server.world = config::WorldName::Planar;
        config.limits.subscriptions_per_client = 2;
        config.limits.clients = 3;
        config.limits.readers_per_client = 1;
        set(&mut config);
        let limits = config.limits.clone();
        let engine = Box::new(Scan::new(World::Planar));
        let shared = Shared::new(&config, 1);
        Self {
            sessions: Sessions::new(engine, &config, &shared, disk, 0, 1),
            features: FeatureReader::new(World::Planar, &limits, 1).within(
                &shared.quotas.live_events,
                &shared.budget,
                1,
            ),
            subscriptions: SubscriptionReader::new(World::Planar, limits, config.outbox.overflow)
                .with_store(true),
            bounds: Bounds::new(&config.outbox),
        }
    }

    pub(super) fn install(
        &mut self,
        client: &str,
        id: &str,
        owner: Option<u64>,
    ) -> Result<Installed, ApiError> {
        let prepared = self.subscriptions.parse(id, r#"{"filters":[{"area":{"radius_m":5}}]}"#).unwrap();
        let prepared = Prepared { source: prepared.source.filter(|_| owner.is_none()), ..prepared };
        self.sessions.install(&client.into(), prepared, owner)
    }

    pub(super) fn install_document(
        &mut self,
        client: &str,
        id: &str,
        document: &str,
        owner: Option<u64>,
    ) -> Result<Installed, ApiError> {
        let prepared = self.subscriptions.parse(id, document).unwrap();
        self.sessions.install(&client.into(), prepared, owner)
    }

    pub(super) fn attach(&mut self, client: &str, connection: u64, resume: Resume) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox::new(connection, self.bounds));
        self.sessions.attach(&client.into(), Arc::clone(&outbox), resume, None).unwrap();
        outbox
    }

    pub(super) fn move_to(&mut self, client: &str, x: f64) {
        self.try_move(client, x).unwrap();
    }

    fn try_move(&mut self, client: &str, x: f64) -> Result<(), ApiError> {
        self.sessions.move_client(&client.into(), Mover::Named(None), fix(x), None)
    }

    pub(super) fn publish(&mut self) {
        self.publish_with("");
    }

    pub(super) fn publish_with(&mut self, members: &str) {
        self.publish_there(0.0, members);
    }

    pub(super) fn publish_at(&mut self, x: f64) {
        self.publish_there(x, "");
    }

    fn publish_there(&mut self, x: f64, members: &str) {
        self.try_publish(x, members).unwrap();
    }

    pub(super) fn try_publish(&mut self, x: f64, members: &str) -> Result<(), ApiError> {
        let text =
            format!(r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{x},0]}}{members}}}"#);
        let published = self.features.parse(Behalf::default(), &text)?;
        self.sessions.match_batch(&[&published.event]).unwrap();
        self.sessions.deliver(0, &Arc::new(published));
        self.sessions.wake_readers();
        Ok(())
    }
}

fn fix(x: f64) -> Fix {
    Fix { position: World::Planar.position(&[x, 0.0]).unwrap(), accuracy_m: 0.0 }
}

/// The entries that wait in an outbox, in short.
pub(super) async fn waiting(outbox: &Outbox) -> Vec<String> {
    // Something always waits once this has been put in.
    outbox.push_answer("end");
    let mut batch = Vec::new();
    outbox.next_batch(&mut batch, usize::MAX).await;
    let shown = batch.into_iter().map(|entry| match entry {
        Entry::Answer(text) => text.split(',').next().unwrap_or_default().to_owned(),
        Entry::Gap(gap) => format!("gap {}-{} {}", gap.from, gap.to, gap.reason.text()),
        Entry::Delivery(Delivery { offset, is_ahead: true, .. }) => format!("{offset} ahead"),
        Entry::Delivery(Delivery { offset, subscriptions: SubscriptionIds::One(name), .. }) => {
            format!("{offset} {name}")
        }
        Entry::Delivery(Delivery { offset, subscriptions: SubscriptionIds::Many(names), .. }) => {
            format!("{offset} {}", names.join(" "))
        }
    });
    shown.filter(|text| text != "end").collect()
}

#[tokio::test]
async fn an_event_comes_once_with_all_subscriptions_and_offsets_have_no_holes() {
    let mut bench = Bench::new();
    let outbox = bench.attach("a", 1, Resume::Ready);
    bench.install("a", "s1", None).unwrap();
    bench.publish();
    bench.move_to("a", 1.0);
    bench.publish();
    bench.install("a", "s2", None).unwrap();
    bench.publish();
    bench.move_to("a", 100.0);
    bench.publish();
    assert_eq!(waiting(&outbox).await, ["{\"op\":\"ready\"", "1 \"s1\"", "2 \"s1\" \"s2\""]);
}

#[tokio::test]
async fn a_stream_that_goes_on_is_told_what_it_missed() {
    let mut bench = Bench::new();
    bench.install("a", "s1", None).unwrap();
    bench.move_to("a", 0.0);
    let outbox = bench.attach("a", 1, Resume::Fresh);
    bench.publish();
    assert_eq!(waiting(&outbox).await, ["1 \"s1\""]);
    bench.sessions.detach("a", 1);
    bench.publish();
    bench.publish();
    assert_eq!(bench.sessions.metrics.unread.get(), 2);
    let client = bench.sessions.clients.get(0).unwrap();
    let epoch = client.epoch.to_string();
    let after = |offset| Resume::After { epoch: epoch.clone(), offset };
    for (resume, told) in [
        (after(1), vec!["gap 2-3 not-durable"]),
        (after(3), vec![]),
        (after(4), vec!["gap 1-3 epoch"]),
        (Resume::After { epoch: "other".to_owned(), offset: 1 }, vec!["gap 1-3 epoch"]),
    ] {
        let outbox = bench.attach("a", 2, resume);
        assert_eq!(waiting(&outbox).await, told);
        bench.sessions.detach("a", 2);
    }
}

#[test]
fn subscriptions_end_with_the_connection_that_made_them_last() {
    let mut bench = Bench::new();
    bench.attach("a", 1, Resume::Ready);
    assert!(!bench.install("a", "s1", Some(1)).unwrap().replaced);
    assert!(bench.install("a", "s1", None).unwrap().replaced);
    bench.install("a", "s2", Some(1)).unwrap();
    bench.sessions.detach("a", 1);
    assert_eq!(bench.sessions.documents("a").len(), 1);
    assert!(bench.sessions.document("a", "s1").is_some());
    assert!(bench.sessions.remove("a", "s1"));
    assert!(!bench.sessions.remove("a", "s1"));
    // Nothing is known of the client any more.
    assert_eq!(bench.sessions.metrics.clients.get(), 0);
    assert_eq!(bench.sessions.metrics.subscriptions.get(), 0);
}

#[test]
fn limits_are_held() {
    let mut bench = Bench::new();
    bench.install("a", "s1", None).unwrap();
    bench.install("a", "s2", None).unwrap();
    assert!(matches!(bench.install("a", "s3", None), Err(ApiError::Limit { limit: 2, .. })));
    assert!(bench.install("a", "s2", None).unwrap().replaced);
    bench.move_to("b", 0.0);
    bench.move_to("c", 0.0);
    assert!(matches!(bench.try_move("d", 0.0), Err(ApiError::Limit { limit: 3, .. })));
    assert!(matches!(bench.install("e", "s1", None), Err(ApiError::Limit { limit: 3, .. })));
    bench.attach("a", 1, Resume::Fresh);
    let second = Arc::new(Outbox::new(2, bench.bounds));
    assert!(bench.sessions.attach(&"a".into(), second, Resume::Fresh, None).is_err());
    // A place that was promised is there; whoever is known needs none; one that goes leaves its own.
    bench.sessions.forget("b");
    let place = bench.sessions.client_limit.acquire("d").ok();
    assert!(bench.try_move("d", 0.0).is_err());
    bench.move_to("c", 1.0);
    bench.sessions.move_client(&"d".into(), Mover::Named(place), fix(0.0), None).unwrap();
    bench.sessions.forget("c");
    bench.move_to("e", 0.0);
}

#[tokio::test]
async fn nothing_is_left_of_a_forgotten_client() {
    let mut bench = Bench::new();
    let outbox = bench.attach("a", 1, Resume::Fresh);
    bench.install("a", "s1", Some(1)).unwrap();
    bench.move_to("a", 0.0);
    assert!(bench.sessions.forget("a"));
    assert!(!bench.sessions.forget("a"));
    assert_eq!(outbox.next_batch(&mut Vec::new(), 1).await.unwrap().code, 1000);
    // Another client gets the number and not the position.
    let outbox = bench.attach("b", 2, Resume::Fresh);
    bench.install("b", "s1", None).unwrap();
    bench.publish();
    assert_eq!(waiting(&outbox).await, Vec::<String>::new());
    assert_eq!(bench.sessions.metrics.clients.get(), 1);
}

#[test]
fn constraints_are_counted_for_each_client_and_given_back() {
    let mut bench = Bench::with(None, |config| {
        config.limits.subscriptions_per_client = 5;
        config.limits.constraints_per_client = 10;
        config.quotas.tenant_constraints = 12;
    });
    let full = |limit: u64, setting: &str, outcome: Result<Installed, ApiError>| match outcome {
        Err(ApiError::Limit { limit: found, setting: named, .. }) => (found, named) == (limit, setting),
        other => panic!("{other:?}"),
    };
    let (client, tenant) = ("limits.constraints_per_client", "quotas.tenant_constraints");
    let install = |bench: &mut Bench, client: &str, id: &str, count: usize, owner: Option<u64>| {
        let condition = vec!["a = 1"; count].join(" AND ");
        let document = format!(r#"{{"filters":[{{"where":"{condition}"}}]}}"#);
        bench.install_document(client, id, &document, owner)
    };
    install(&mut bench, "a", "s", 6, None).unwrap();
    install(&mut bench, "a", "t", 4, None).unwrap();
    assert!(full(10, client, install(&mut bench, "a", "u", 1, None)));
    // One that is replaced gives back its own, and is still there where the other one is refused.
    assert!(full(10, client, install(&mut bench, "a", "s", 7, None)));
    install(&mut bench, "a", "s", 5, None).unwrap();
    install(&mut bench, "a", "u", 1, Some(7)).unwrap();
    install(&mut bench, "a", "s", 5, None).unwrap();
    assert!(full(10, client, install(&mut bench, "a", "v", 1, None)));
    // One that ends with its connection.
    bench.sessions.detach("a", 7);
    install(&mut bench, "a", "v", 1, None).unwrap();
    // Others have their own, as far as their tenant's goes.
    assert!(full(12, tenant, install(&mut bench, "b", "s", 3, None)));
    install(&mut bench, "b", "s", 2, None).unwrap();
    assert!(full(12, tenant, install(&mut bench, "b", "s", 3, None)));
    install(&mut bench, "\u{1}acme\u{1}b", "s", 10, None).unwrap();
    assert!(bench.sessions.remove("a", "t"));
    install(&mut bench, "b", "s", 6, None).unwrap();
    assert!(full(12, tenant, install(&mut bench, "a", "t", 1, None)));
    bench.sessions.forget("a");
    install(&mut bench, "b", "t", 4, None).unwrap();
    assert!(full(10, client, install(&mut bench, "b", "u", 1, None)));
    install(&mut bench, "a", "s", 2, None).unwrap();
    assert!(full(12, tenant, install(&mut bench, "a", "t", 1, None)));
}

#[tokio::test]
async fn what_costs_too_much_by_the_events_of_others_is_suspended_until_it_is_made_anew() {
    let mut bench = Bench::with(None, |config| config.admission.engine_ms_per_second = 10);
    let (costly, other) = (bench.attach("a", 1, Resume::Ready), bench.attach("b", 2, Resume::Ready));
    let nearest = r#"{"filters":[{"area":{"center":[0,0],"radius_m":5,"nearest":3}}]}"#;
    bench.install_document("a", "nearest", nearest, None).unwrap();
    bench.install_document("a", "plain", r#"{"filters":[{}]}"#, None).unwrap();
    bench.install_document("b", "plain", r#"{"filters":[{}]}"#, None).unwrap();
    let event =
        |bench: &mut Bench, id: &str| bench.publish_with(&format!(r#","id":"{id}","key":"k","ttl_s":60"#));
    event(&mut bench, "e1");
    let ms = Duration::from_millis;
    // Of what many take a little of, nobody's share is charged, and nobody is charged for another's.
    assert!(bench.sessions.tracker.demanding().0.is_empty());
    bench.sessions.charge_event(ms(10_000));
    bench.sessions.charge_shares(ms(10_000), &[(SubscriptionId(0), 10)], 1_000);
    assert!(!bench.sessions.document("a", "nearest").unwrap().contains("suspended"));
    // Within what it may use, and then beyond.
    let demanding = [(SubscriptionId(0), 900), (SubscriptionId(2), 1), (SubscriptionId(0), 99)];
    bench.sessions.charge_shares(ms(150), &demanding, 1_000);
    assert!(!bench.sessions.document("a", "nearest").unwrap().contains("suspended"));
    bench.sessions.charge_shares(ms(200), &demanding, 1_000);
    assert!(bench.sessions.document("a", "nearest").unwrap().contains("\"suspended\":true"));
    for (client, id) in [("a", "plain"), ("b", "plain")] {
        assert!(!bench.sessions.document(client, id).unwrap().contains("suspended"), "{client} {id}");
    }
    assert_eq!(bench.sessions.metrics.suspended.get(), 1);
    let told = waiting(&costly).await;
    assert_eq!(&told[told.len() - 2..], ["{\"op\":\"problem\"", "gap 2-2 overflow"]);
    event(&mut bench, "e2");
    assert_eq!(waiting(&costly).await, ["3 \"plain\""]);
    assert_eq!(waiting(&other).await, ["{\"op\":\"ready\"", "1 \"plain\"", "2 \"plain\""]);
    assert!(bench.install_document("a", "nearest", nearest, None).unwrap().replaced);
    bench.sessions.tell_changes();
    assert_eq!(waiting(&costly).await, ["4 \"nearest\""]);
    assert!(!bench.sessions.document("a", "nearest").unwrap().contains("suspended"));
}

#[tokio::test]
async fn what_is_suspended_gets_nothing_more_of_the_batch_at_hand() {
    let mut bench = Bench::with(None, |config| config.admission.engine_ms_per_second = 10);
    let reader = bench.attach("a", 1, Resume::Ready);
    bench.install_document("a", "s", r#"{"filters":[{}]}"#, None).unwrap();
    let event = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[0,0]}}"#;
    let [first, second] = [(); 2].map(|()| Arc::new(bench.features.parse(Behalf::default(), event).unwrap()));
    bench.sessions.match_batch(&[&first.event, &second.event]).unwrap();
    bench.sessions.deliver(0, &first);
    bench.sessions.charge_shares(Duration::from_secs(1), &[(SubscriptionId(0), 1)], 1);
    bench.sessions.deliver(1, &second);
    bench.sessions.wake_readers();
    let told = waiting(&reader).await;
    assert_eq!(&told[1..], ["1 \"s\"", "{\"op\":\"problem\"", "gap 2-2 overflow"]);
}

#[test]
fn what_a_thread_waits_is_not_charged() {
    let mut bench = Bench::new();
    bench.sessions.begin_work();
    let (short, long) = (Duration::from_micros(10), Duration::from_secs(3_600));
    assert_eq!(bench.sessions.worked(short), short);
    assert!(bench.sessions.worked(long) < long / 2, "the thread has hardly worked");
}

/// The clients of a listing, and how many slices it took.
pub(super) fn listed(
    bench: &mut Bench,
    after: Option<Rank<String>>,
    limit: usize,
) -> (usize, Vec<wire::ClientFigures>) {
    let (reply, mut answer) = tokio::sync::oneshot::channel();
    bench.sessions.list_clients(after, limit, "".into(), reply);
    let mut slices = 0;
    while bench.sessions.is_listing() {
        bench.sessions.list_some();
        slices += 1;
    }
    (slices, answer.try_recv().unwrap())
}

#[test]
fn clients_are_listed_in_slices() {
    let mut bench = Bench::with(None, |config| config.limits.clients = 10_000);
    for index in 0..5_000_u32 {
        // Not in the order of their numbers.
        bench.move_to(&format!("{:05}", index.wrapping_mul(7_919) % 5_000), 0.0);
    }
    for (after, expected) in
        [(None, 0..3), (Some("0:0:00997"), 998..1_001), (Some("0:0:04998"), 4_999..5_000)]
    {
        let (slices, clients) = listed(&mut bench, after.and_then(Rank::read), 3);
        let names: Vec<_> = expected.map(|index| format!("{index:05}")).collect();
        assert_eq!(
            clients.iter().map(|one| &one.client).collect::<Vec<_>>(),
            names.iter().collect::<Vec<_>>()
        );
        assert_eq!(slices, 4, "three for the clients, and one that finds no more");
    }
    // Nobody waits for it any more.
    bench.sessions.list_clients(None, 3, "".into(), tokio::sync::oneshot::channel().0);
    bench.sessions.list_some();
    assert!(!bench.sessions.is_listing());
}

#[test]
fn listings_take_turns_and_none_is_hurried() {
    let mut bench = Bench::with(None, |config| config.limits.clients = 10_000);
    (0..5_000).for_each(|index| bench.move_to(&index.to_string(), 0.0));
    let mut answers = Vec::new();
    for _ in 0..20 {
        let (reply, answer) = tokio::sync::oneshot::channel();
        bench.sessions.list_clients(None, 3, "".into(), reply);
        answers.push(answer);
        assert!(answers.iter_mut().all(|answer| answer.try_recv().is_err()), "one was done at once");
    }
    let mut order = Vec::new();
    while bench.sessions.is_listing() {
        bench.sessions.list_some();
        let done = |(index, answer): (usize, &mut tokio::sync::oneshot::Receiver<_>)| {
            answer.try_recv().is_ok().then_some(index)
        };
        order.extend(answers.iter_mut().enumerate().filter_map(done));
    }
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

/// States of the deliveries of an event, in order.
fn states(bench: &Bench, id: &str) -> Option<Vec<wire::DeliveryState>> {
    let asked = Asked::among(vec![bench.sessions.remembered(id)], id, None);
    let told = Told::joined(id, vec![bench.sessions.deliveries(id, &asked)])?;
    Some(told.deliveries.iter().map(|one| one.state).collect())
}

#[tokio::test]
async fn it_is_known_what_became_of_a_delivery_when_its_reader_is_gone() {
    use wire::DeliveryState::{Dropped, Unread, Waiting, Written};
    let mut bench = Bench::new();
    bench.install("a", "s1", None).unwrap();
    bench.move_to("a", 0.0);
    let publish = |bench: &mut Bench, id: u32| bench.publish_with(&format!(",\"id\":{id}"));
    publish(&mut bench, 1);
    let outbox = bench.attach("a", 1, Resume::Fresh);
    publish(&mut bench, 2);
    assert_eq!((states(&bench, "1"), states(&bench, "2")), (Some(vec![Unread]), Some(vec![Waiting])));
    assert_eq!(waiting(&outbox).await, ["2 \"s1\""]);
    publish(&mut bench, 3);
    assert_eq!((states(&bench, "2"), states(&bench, "3")), (Some(vec![Written]), Some(vec![Waiting])));
    bench.sessions.detach("a", 1);
    assert_eq!((states(&bench, "2"), states(&bench, "3")), (Some(vec![Written]), Some(vec![Dropped])));
    // One that comes later takes nothing of what was lost before, and another session of the name is another's.
    let outbox = bench.attach("a", 2, Resume::Fresh);
    publish(&mut bench, 4);
    assert_eq!(waiting(&outbox).await, ["4 \"s1\""]);
    bench.sessions.forget("a");
    let outbox = bench.attach("a", 3, Resume::Fresh);
    bench.install("a", "s1", None).unwrap();
    bench.move_to("a", 0.0);
    for _ in 0..4 {
        publish(&mut bench, 5);
    }
    assert_eq!(waiting(&outbox).await.len(), 4);
    publish(&mut bench, 5);
    let found = ["1", "2", "3", "4"].map(|id| states(&bench, id));
    assert_eq!(found, [Unread, Written, Dropped, Written].map(|state| Some(vec![state])));
    assert_eq!(states(&bench, "5"), Some(vec![Written, Written, Written, Written, Waiting]));
    assert_eq!(states(&bench, "6"), None);
}

#[tokio::test]
async fn of_two_readers_one_that_takes_it_is_enough() {
    use wire::DeliveryState::{Dropped, Waiting, Written};
    let mut bench = Bench::new();
    bench.sessions.limits.readers_per_client = 2;
    bench.install("a", "s1", None).unwrap();
    bench.move_to("a", 0.0);
    let slow = bench.attach("a", 1, Resume::Fresh);
    bench.publish_with(",\"id\":1");
    let quick = bench.attach("a", 2, Resume::Fresh);
    bench.publish_with(",\"id\":2");
    waiting(&quick).await;
    bench.sessions.detach("a", 2);
    // The other one may still take it a second time.
    assert_eq!(states(&bench, "2"), Some(vec![Waiting]));
    slow.close(1000, "it went away");
    bench.sessions.detach("a", 1);
    assert_eq!((states(&bench, "1"), states(&bench, "2")), (Some(vec![Dropped]), Some(vec![Written])));
}
