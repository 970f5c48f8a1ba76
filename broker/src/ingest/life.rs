//! Lives of events: how long one stays live, and what it is about.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use wire::Fault;

use super::Behalf;
use super::json::{self, Members};
use crate::budget::{self, Budget, Kind};
use crate::config::Limits;
use crate::limits::{LiveLimit, Quota};
use crate::model::error::ApiError;
use crate::model::event::Live;
use crate::model::{clock, tenant};

/// Members that make an event live: a time to live, a key, or both.
pub(super) struct Life<'a> {
    ttl: Duration,
    pub(super) key: Option<Cow<'a, str>>,
}

/// The life of an event that is not going to be published.
#[derive(Debug)]
pub(crate) struct RehearsedLife {
    pub(crate) ttl: Duration,
    /// Name of the object that the event is about; not known where that would be an id that this broker makes.
    pub(crate) object: Option<String>,
}

/// Bytes of a live event besides its text and its attributes: its place among the live objects, its names, and itself.
const LIVE_BYTES: usize = 768;

/// Bytes of a live event in each engine: its entry, where it is found by place, by object and by id, and its end.
const ENGINE_BYTES: usize = 256;

/// Bytes of a live event in all engines, if its text and attributes take `bytes` bytes. Blocks of memory are up to an eighth
/// larger than their contents.
fn live_bytes(bytes: usize, object: &str, engines: usize) -> u64 {
    (bytes + bytes / 8 + 2 * object.len() + LIVE_BYTES + engines * ENGINE_BYTES) as u64
}

/// Name of the object that an event is about. The events of a confined publisher replace nothing that others published, and
/// such a publisher cannot tell whether there is something.
fn object(behalf: Behalf<'_>, key: Option<&str>, id: &str) -> String {
    let object = match key {
        Some(key) => format!("key:{key}"),
        None => format!("id:{id}"),
    };
    let object = match behalf.confinement {
        Some(confinement) => format!("in:{}:{object}", confinement.fingerprint()),
        None => object,
    };
    let tenant = behalf.tenant_name();
    if tenant.is_empty() { object } else { tenant::inside(tenant, &object).into_owned() }
}

impl Life<'_> {
    /// The life of an event that is not going to be published, and that may have no id.
    pub(super) fn rehearse(self, behalf: Behalf<'_>, id: Option<&str>) -> RehearsedLife {
        let Self { ttl, key } = self;
        let is_known = key.is_some() || id.is_some();
        RehearsedLife {
            ttl,
            object: is_known.then(|| object(behalf, key.as_deref(), id.unwrap_or_default())),
        }
    }
}

/// Longer than any setting allows a life to be, and short enough for every sum of times.
const TTL_ANY: Duration = Duration::from_secs(1 << 40);

/// Reads lives.
pub(super) struct LifeReader {
    /// The longest, and that of an event with a key that says nothing of it.
    ttl_max: Duration,
    name_bytes: usize,
    live_limit: Arc<LiveLimit>,
    /// Where it counts what live events take, and in how many engines they are; nowhere for those that are not going to be published.
    budget: Option<(Budget, usize)>,
    next_sequence: AtomicU64,
}

impl LifeReader {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            ttl_max: Duration::from_secs(limits.ttl_s),
            name_bytes: limits.name_bytes,
            live_limit: LiveLimit::new(limits.live_events, Quota::none()),
            budget: None,
            next_sequence: AtomicU64::new(1),
        }
    }

    /// A reader that refuses no life for its length and no key for its size.
    pub(super) fn unbounded() -> Self {
        Self {
            ttl_max: TTL_ANY,
            name_bytes: usize::MAX,
            live_limit: LiveLimit::new(u64::MAX, Quota::none()),
            budget: None,
            next_sequence: AtomicU64::new(1),
        }
    }

    /// Adds bounds: a quota for each tenant, and a budget for the bytes of all live events, which are in `engines` engines.
    pub(super) fn within(self, quota: &Arc<Quota>, budget: &Budget, engines: usize) -> Self {
        let live_limit = LiveLimit::new(self.live_limit.limit(), Arc::clone(quota));
        Self { live_limit, budget: Some((budget.clone(), engines)), ..self }
    }

    /// How many objects are live.
    pub(super) fn live_count(&self) -> usize {
        self.live_limit.count()
    }

    /// Takes the members that make an event live.
    pub(super) fn read<'a>(&self, members: &mut Members<'a>, faults: &mut Vec<Fault>) -> Option<Life<'a>> {
        let (ttl, key) = (members.take("ttl_s"), members.take("key"));
        if ttl.is_none() && key.is_none() {
            return None;
        }
        let ttl = ttl.map_or(Ok(self.ttl_max), |text| self.ttl(text));
        let key = key.map(|text| self.key(text)).transpose();
        match (ttl, key) {
            (Ok(ttl), Ok(key)) => Some(Life { ttl, key }),
            (ttl, key) => {
                faults.extend(ttl.err().into_iter().chain(key.err()));
                None
            }
        }
    }

    /// Begins the life of an event. There has to be room for its bytes, and the object needs a place. An event that
    /// replaces another one counts beside it for as long as both are there.
    pub(super) fn begin(
        &self,
        life: Life<'_>,
        behalf: Behalf<'_>,
        id: &str,
        bytes: usize,
    ) -> Result<Live, ApiError> {
        let Life { ttl, key } = life;
        let object = object(behalf, key.as_deref(), id);
        let held = match &self.budget {
            Some((budget, engines)) => {
                let account = budget.tenant(behalf.tenant_name());
                account.hold(Kind::LiveEvents, live_bytes(bytes, &object, *engines))?
            }
            None => budget::Held::default(),
        };
        let permit = self.live_limit.acquire(&object)?;
        Ok(Live {
            object: Arc::clone(permit.object()),
            id: tenant::inside(behalf.tenant_name(), id).into(),
            sequence: self.next_sequence.fetch_add(1, Ordering::Relaxed),
            expires: clock::now() + ttl,
            record: OnceLock::new(),
            is_written: AtomicBool::new(false),
            _reserved: Box::new((permit, held)),
        })
    }

    /// Takes a life up again that was begun before. Its object has a place and its bytes have room, even where there is less by now.
    pub(super) fn resume(
        &self,
        object: &str,
        id: Arc<str>,
        sequence: u64,
        expires: Instant,
        bytes: usize,
    ) -> Live {
        self.next_sequence.fetch_max(sequence + 1, Ordering::Relaxed);
        let hold = |(budget, engines): &(Budget, usize)| {
            let account = budget.tenant(tenant::split(object).0);
            account.hold_anyway(Kind::LiveEvents, live_bytes(bytes, object, *engines))
        };
        let held = self.budget.as_ref().map(hold).unwrap_or_default();
        let permit = self.live_limit.acquire_again(object);
        let object = Arc::clone(permit.object());
        let (record, is_written) = (OnceLock::new(), AtomicBool::new(true));
        let reserved = Box::new((permit, held));
        Live { object, id, sequence, expires, record, is_written, _reserved: reserved }
    }

    fn ttl(&self, text: &str) -> Result<Duration, Fault> {
        let seconds = json::read::<f64>(text, "/ttl_s", "a number of seconds")?;
        if seconds > 0.0 && seconds <= self.ttl_max.as_secs_f64() {
            // However short, a life is one.
            return Ok(Duration::from_secs_f64(seconds).max(Duration::from_nanos(1)));
        }
        let limit = self.ttl_max.as_secs();
        let detail = format!("must be more than 0 seconds and at most {limit} (limits.ttl_s)");
        Err(Fault { pointer: "/ttl_s".to_owned(), detail })
    }

    fn key<'a>(&self, text: &'a str) -> Result<Cow<'a, str>, Fault> {
        let limit = self.name_bytes;
        match json::read_text(text) {
            Ok(key) if (1..=limit).contains(&key.len()) => Ok(key),
            _ => {
                let detail = format!("must be a text of 1 to {limit} bytes (limits.name_bytes)");
                Err(Fault { pointer: "/key".to_owned(), detail })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use matcher::geo::World;

    use super::*;
    use crate::config::Config;
    use crate::ingest::feature::FeatureReader;
    use crate::model::event::Published;

    /// Reads events with some members, and gives back their lives.
    struct Bench(FeatureReader);

    impl Bench {
        fn new(live_events: u64) -> Self {
            let limits = Limits { live_events, ..Config::default().limits };
            Self(FeatureReader::new(World::Geodetic, &limits, 7))
        }

        fn read(&self, members: &str) -> Result<Option<Live>, ApiError> {
            let text = format!(
                r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[9.1,45.4]}}{members}}}"#
            );
            self.0.parse(Behalf::default(), &text).map(|published| published.live)
        }

        #[track_caller]
        fn check_fault(&self, members: &str, pointer: &str) {
            match self.read(members) {
                Err(ApiError::Invalid(faults)) => {
                    assert!(matches!(&faults[..], [one] if one.pointer == pointer), "{members}: {faults:?}");
                }
                other => panic!("{members}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_time_to_live_or_a_key_makes_an_event_live() {
        let bench = Bench::new(10);
        for members in ["", r#","ttl_s":null,"key":null,"id":"a""#] {
            assert!(bench.read(members).unwrap().is_none(), "{members}");
        }
        for (members, object, id, ttl_ms) in [
            (r#","id":"a","ttl_s":60"#, "id:a", "a", 60_000),
            (r#","id":"\u0061\n","ttl_s":1e-1"#, "id:a\n", "a\n", 100),
            (r#","id":1.50,"ttl_s":2592000"#, "id:1.50", "1.50", 2_592_000_000),
            (r#","id":"a","key":"\u0063am","ttl_s":1.5"#, "key:cam", "a", 1_500),
            (r#","id":7,"key":"7""#, "key:7", "7", 2_592_000_000),
        ] {
            let before = Instant::now();
            let live = bench.read(members).unwrap().unwrap();
            assert_eq!((&*live.object, &*live.id), (object, id), "{members}");
            let left = live.expires.saturating_duration_since(before);
            assert!(left >= Duration::from_millis(ttl_ms), "{members}: {left:?}");
            assert!(left <= Duration::from_millis(ttl_ms) + before.elapsed(), "{members}: {left:?}");
        }
        assert!(bench.read(r#","ttl_s":1e-300"#).unwrap().is_some());
    }

    #[test]
    fn a_life_has_an_end_and_an_object_a_name() {
        let bench = Bench::new(10);
        for ttl in ["0", "-1", "2592000.1", "1e300", "1e999", "\"5\"", "true", "[5]"] {
            bench.check_fault(&format!(r#","ttl_s":{ttl}"#), "/ttl_s");
        }
        let long = format!("\"{}\"", "x".repeat(257));
        for key in ["\"\"", "7", "{}", "\"\\ud800\"", &long] {
            bench.check_fault(&format!(r#","ttl_s":5,"key":{key}"#), "/key");
        }
        assert!(bench.read(&format!(r#","key":"{}""#, "x".repeat(256))).unwrap().is_some());
    }

    #[test]
    fn newer_events_have_greater_numbers_and_share_the_place_of_their_object() {
        let bench = Bench::new(2);
        let a = bench.read(r#","key":"a""#).unwrap().unwrap();
        let b = bench.read(r#","id":"a","ttl_s":5"#).unwrap().unwrap();
        // Who is refused takes no place, and who does not live needs none.
        assert!(matches!(bench.read(r#","key":"c""#), Err(ApiError::Limit { limit: 2, .. })));
        assert!(matches!(bench.read(r#","key":"c","time":"now""#), Err(ApiError::Invalid(_))));
        assert!(bench.read("").unwrap().is_none());
        let newer = bench.read(r#","key":"\u0061","id":9"#).unwrap().unwrap();
        assert!(a.sequence < b.sequence && b.sequence < newer.sequence);
        assert!(Arc::ptr_eq(&a.object, &newer.object));
        drop((a, b));
        assert!(bench.read(r#","key":"c""#).is_ok());
    }

    #[test]
    fn what_live_events_take_is_bounded_for_all_and_for_each_tenant() {
        let mut config = Config::default();
        (config.limits.live_bytes, config.quotas.tenant_live_bytes) = (150_000, 60_000);
        let budget = Budget::new(&config);
        let reader =
            FeatureReader::new(World::Geodetic, &config.limits, 7).within(&Quota::none(), &budget, 2);
        let publish = |tenant: &str, key: &str, text_bytes: usize| -> Result<Published, ApiError> {
            let text = format!(
                r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[9.1,45.4]}},"key":"{key}","properties":{{"a":"{}"}}}}"#,
                "x".repeat(text_bytes)
            );
            reader.parse(Behalf { tenant: Some(tenant), confinement: None }, &text)
        };
        let taken = || budget.broker().bytes(Kind::LiveEvents);
        let setting = |refused: Result<Published, ApiError>| match refused {
            Err(ApiError::Limit { setting, .. }) => setting,
            other => panic!("{other:?}"),
        };
        let small = publish("a", "1", 10).unwrap();
        assert!((1_000..2_500).contains(&taken()), "{}", taken());
        // Its text and its attribute, each with room to spare.
        let large = publish("a", "2", 15_000).unwrap();
        assert!((30_000..40_000).contains(&taken()), "{}", taken());
        assert_eq!(setting(publish("a", "3", 15_000)), "quotas.tenant_live_bytes");
        assert_eq!(
            setting(publish("a", "1", 15_000)),
            "quotas.tenant_live_bytes",
            "a larger one of the same object"
        );
        let newer = publish("a", "1", 11).unwrap();
        assert_eq!(budget.tenant("a").bytes(Kind::LiveEvents), taken());
        let others = ["b", "c", "d"].map(|tenant| publish(tenant, "1", 15_000).unwrap());
        assert_eq!(setting(publish("e", "1", 15_000)), "limits.live_bytes");
        assert!(publish("e", "1", 10).is_ok());
        // What was live before the broker began has room.
        let again = reader.resume_life(&tenant::inside("a", "key:9"), "9".into(), 1, clock::now(), 500_000);
        assert!(taken() > 500_000);
        drop((small, large, newer, others, again));
        assert_eq!(taken(), 0);
    }
}
