//! The view of a broker that two looks at it give.

use jiff::Timestamp;
use nearcast_client::documents::{ClientFigures, Stats};
use serde_json::{Map, Value, json};

use super::figures::Spread;
use super::sample::{Everything, Sample, Seen};
use crate::print::{count, plain};

/// Numbers, with the names that they have on the screen and in JSON.
#[derive(Debug, Default)]
pub(super) struct View {
    url: String,
    at: Timestamp,
    /// The broker's word on its state, or the reason why it gives none.
    state: String,
    pub(super) is_ready: bool,
    about: Option<About>,
    /// Why there is no more.
    pub(super) note: Option<String>,
    pub(super) rates: Vec<Rate>,
    pub(super) levels: Vec<(&'static str, u64)>,
    pub(super) latencies: Vec<(&'static str, Option<Spread>)>,
    pub(super) clients: Option<Vec<ClientFigures>>,
    pub(super) own: Option<Own>,
}

#[derive(Debug)]
struct About {
    version: String,
    engine: String,
    world: String,
    shards: u64,
    uptime_s: u64,
}

/// A figure that only grows: its total, and its rate.
#[derive(Debug)]
pub(super) struct Rate {
    pub(super) name: &'static str,
    /// Absent at the first look, and behind a restart of the broker.
    pub(super) per_second: Option<f64>,
    pub(super) total: u64,
}

/// A client and its own subscriptions.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) client: Option<String>,
    pub(super) subscriptions: Vec<OwnSubscription>,
}

#[derive(Debug)]
pub(super) struct OwnSubscription {
    pub(super) id: String,
    pub(super) evaluations: u64,
    pub(super) matches: u64,
    pub(super) deliveries: u64,
    pub(super) last_match: Option<String>,
}

type Count = fn(&Stats) -> u64;

/// Members of `/v1/stats` that only grow.
const COUNTS: [(&str, Count); 8] = [
    ("events", |stats| stats.events),
    ("refused", |stats| stats.events_rejected),
    ("matches", |stats| stats.matches),
    ("deliveries", |stats| stats.deliveries),
    ("frames", |stats| stats.frames_sent),
    ("dropped", |stats| stats.deliveries_dropped),
    ("unread", |stats| stats.deliveries_unread),
    ("moves", |stats| stats.moves),
];

/// Members of `/v1/stats` that say how much is there now.
const LEVELS: [(&str, Count); 12] = [
    ("connections", |stats| stats.connections),
    ("websockets", |stats| stats.websockets),
    ("event_streams", |stats| stats.event_streams),
    ("clients", |stats| stats.clients),
    ("subscriptions", |stats| stats.subscriptions),
    ("live_objects", |stats| stats.live_objects),
    ("queued", |stats| stats.queued),
    ("durable_sessions", |stats| stats.durable_sessions),
    ("readers_behind", |stats| stats.readers_behind),
    ("kept_matches", |stats| stats.kept_matches),
    ("kept_bytes", |stats| stats.kept_bytes),
    ("engine_bytes", |stats| stats.engine_bytes),
];

/// Times, by the histograms that they come from. The last one is there with a data directory only.
const LATENCIES: [(&str, &str); 6] = [
    ("publish_to_write", "nearcast_publish_to_write_seconds"),
    ("ingest", "nearcast_ingest_seconds"),
    ("queue", "nearcast_queue_seconds"),
    ("match", "nearcast_match_seconds"),
    ("write", "nearcast_write_seconds"),
    ("commit", "nearcast_store_commit_seconds"),
];

impl View {
    /// Before anything was seen.
    pub(super) fn blank(url: &str) -> Self {
        Self { url: url.to_owned(), at: Timestamp::now(), ..Self::default() }
    }

    /// A view of the present look, with rates since an earlier look.
    pub(super) fn new(url: &str, before: Option<&Sample>, now: &Sample) -> Self {
        let mut view = Self::blank(url);
        match &now.seen {
            Seen::Everything(everything) => {
                let earlier = before.and_then(|before| match &before.seen {
                    // A broker that was started again has begun to count anew.
                    Seen::Everything(earlier) if earlier.stats.uptime_s <= everything.stats.uptime_s => {
                        Some((&**earlier, (now.at - before.at).as_secs_f64()))
                    }
                    Seen::Everything(_) | Seen::Own { .. } | Seen::Busy(_) | Seen::Away(_) => None,
                });
                view.everything(everything, earlier);
            }
            Seen::Own { ready, client, subscriptions, why } => {
                view.say(ready);
                let rows = subscriptions.iter().map(|subscription| {
                    let activity = subscription.activity.clone().unwrap_or_default();
                    OwnSubscription {
                        id: subscription.id.clone().unwrap_or_default(),
                        evaluations: activity.evaluations,
                        matches: activity.matches,
                        deliveries: activity.deliveries,
                        last_match: activity.last_match,
                    }
                });
                view.own = Some(Own { client: client.clone(), subscriptions: rows.collect() });
                view.note =
                    Some(format!("Rates, queues and clients take a token with the scope admin: {why}"));
            }
            Seen::Busy(why) | Seen::Away(why) => view.state.clone_from(why),
        }
        view
    }

    fn say(&mut self, ready: &str) {
        self.is_ready = ready.starts_with("ready");
        ready.clone_into(&mut self.state);
    }

    fn everything(&mut self, now: &Everything, earlier: Option<(&Everything, f64)>) {
        self.say(&now.ready);
        let stats = &now.stats;
        self.about = Some(About {
            version: stats.version.clone(),
            engine: stats.engine.clone(),
            world: stats.world.clone(),
            shards: stats.shards,
            uptime_s: stats.uptime_s,
        });
        self.rates = COUNTS
            .map(|(name, of)| {
                let per_second = earlier.map(|(earlier, seconds)| {
                    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more")]
                    let more = of(stats).saturating_sub(of(&earlier.stats)) as f64;
                    more / seconds.max(1e-3)
                });
                Rate { name, per_second, total: of(stats) }
            })
            .into();
        self.levels = LEVELS.map(|(name, of)| (name, of(stats))).into();
        let wait_ms =
            now.figures.sum("nearcast_admission_wait_seconds").map(|seconds| whole(seconds * 1000.0));
        self.levels.extend(wait_ms.map(|wait_ms| ("admission_wait_ms", wait_ms)));
        let spread = |name| earlier.and_then(|(earlier, _)| now.figures.spread(&earlier.figures, name));
        self.latencies = LATENCIES.map(|(name, histogram)| (name, spread(histogram))).into();
        self.clients = Some(now.clients.clone());
    }

    /// One line about the broker: which it is, and how it is.
    pub(super) fn headline(&self) -> String {
        let about = self.about.as_ref().map(|about| {
            let About { version, engine, world, shards, uptime_s } = about;
            let are = if *shards == 1 { "shard" } else { "shards" };
            format!(
                "nearcast {version} at {}, {engine}, {world}, {shards} {are}, up {}",
                self.url,
                uptime(*uptime_s)
            )
        });
        plain(&about.unwrap_or_else(|| format!("nearcast at {}", self.url)))
    }

    /// Time of the look and state of the broker, in one line.
    pub(super) fn state(&self) -> String {
        format!("{} {}", self.at.strftime("%H:%M:%SZ"), plain(&self.state))
    }

    /// All of it for programs.
    pub(super) fn json(&self) -> Value {
        let mut view = Map::new();
        let mut add = |name: &str, value: Value| view.insert(name.to_owned(), value);
        add("time", self.at.to_string().into());
        add("url", self.url.as_str().into());
        add("ready", self.is_ready.into());
        add("state", self.state.as_str().into());
        if let Some(note) = &self.note {
            add("note", note.as_str().into());
        }
        if let Some(About { version, engine, world, shards, uptime_s }) = &self.about {
            let about = json!({"version": version, "engine": engine, "world": world, "shards": shards, "uptime_s": uptime_s});
            add("broker", about);
            let rate = |rate: &Rate| {
                (rate.name.to_owned(), json!({"per_second": rate.per_second, "total": rate.total}))
            };
            add("rates", self.rates.iter().map(rate).collect::<Map<_, _>>().into());
            add(
                "levels",
                self.levels
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), json!(value)))
                    .collect::<Map<_, _>>()
                    .into(),
            );
            let latency = |(name, spread): &(&str, Option<Spread>)| {
                let spread = spread
                    .map(|spread| json!({"count": spread.count, "p50_s": spread.p50, "p99_s": spread.p99}));
                ((*name).to_owned(), json!(spread))
            };
            add("latencies", self.latencies.iter().map(latency).collect::<Map<_, _>>().into());
            add("clients", json!(self.clients));
        }
        if let Some(Own { client, subscriptions }) = &self.own {
            let row = |row: &OwnSubscription| {
                json!({"id": row.id, "evaluations": row.evaluations, "matches": row.matches, "deliveries": row.deliveries,
                       "last_match": row.last_match})
            };
            add("client", json!(client));
            add("subscriptions", subscriptions.iter().map(row).collect::<Vec<_>>().into());
        }
        view.into()
    }
}

fn uptime(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// The name of a figure for people.
pub(crate) fn title(name: &str) -> String {
    name.replace('_', " ")
}

/// A rate in a few characters.
pub(super) fn rate(per_second: Option<f64>) -> String {
    match per_second {
        None => "-".to_owned(),
        Some(rate) if rate > 0.0 && rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => count(whole(rate)),
    }
}

/// A level as text, in the unit of its name.
pub(crate) fn level(name: &str, value: u64) -> String {
    if name.ends_with("_bytes") { bytes(value) } else { count(value) }
}

/// Bytes in a unit that suits them.
fn bytes(value: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = value as f64;
    match value {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float beyond stays at the end of the range"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// A time in seconds, in a unit that suits it.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

/// The columns of clients.
pub(crate) const CLIENT_COLUMNS: [&str; 8] =
    ["client", "behind", "waiting", "bytes", "kept", "connected", "subscribed", "silent"];

/// A client's row.
pub(crate) fn client_row(client: &ClientFigures) -> [String; 8] {
    let tenant = client.tenant.as_ref().map(|tenant| format!("{tenant} / ")).unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "no silence is that long")]
    let silence = client.silence_ms.map(|silence_ms| seconds(silence_ms as f64 / 1000.0));
    [
        plain(&format!("{tenant}{}{}", client.client, if client.durable { " (durable)" } else { "" })),
        count(client.behind),
        count(client.waiting_frames),
        bytes(client.waiting_bytes),
        count(client.kept_matches),
        count(client.connections),
        count(client.subscriptions),
        silence.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// The columns of a client's own subscriptions.
pub(super) const OWN_COLUMNS: [&str; 5] =
    ["subscription", "evaluations", "matches", "deliveries", "last match"];

/// A subscription's row.
pub(super) fn own_row(row: &OwnSubscription) -> [String; 5] {
    let last_match = row.last_match.as_deref().map_or_else(|| "-".to_owned(), plain);
    [plain(&row.id), count(row.evaluations), count(row.matches), count(row.deliveries), last_match]
}
