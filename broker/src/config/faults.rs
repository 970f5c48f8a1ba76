//! Faults of settings that are of the right type.

use std::net::SocketAddr;

use axum::http::Uri;
use axum::http::uri::Scheme;
use cluster::events::EVENT_BYTES_MAX;
use cluster::jetstream::Access;
use matcher::area::{CORRIDOR_POSITIONS_MAX, POLYGON_POSITIONS_MAX};
use matcher::condition::Condition;
use matcher::condition::text::TEXT_BYTES_MAX;

use super::https::{self, is_url};
use super::{self as config, AuthMode, Config, WorldName};

/// A hundred years, so that the end of a life is always a time that clocks know.
pub(super) const TTL_S_MAX: u64 = 3_153_600_000;
/// Nested deeper, JSON would be read at the cost of the stack.
pub(super) const DEPTH_MAX: usize = 100;
/// A day: clocks that are further apart are wrong.
const LEEWAY_S_MAX: u64 = 86_400;
/// Cells of a grid that are so large fit often enough around the globe to be cells.
const ROUND_M_MAX: u64 = 1_000_000;
/// An engine numbers live objects with 32 bits, and for a moment has more than may be live.
const LIVE_EVENTS_MAX: u64 = 1_000_000_000;

/// Longest line that the pages show to everybody.
const NOTICE_BYTES_MAX: usize = 100;

/// It is a part of names in NATS.
const CLUSTER_NAME_BYTES_MAX: usize = 64;

/// Four weeks: no push service keeps a message longer.
const PUSH_S_MAX: u64 = 2_419_200;
/// Each holds an event.
const PUSH_QUEUE_MAX: u64 = 10_000_000;

/// Routes would not lead along a street that is slower if there is any other.
const SLOW_FACTOR_MAX: f64 = 1_000.0;
/// Around an event further away streets have nothing to do with it.
const SLOW_RADIUS_M_MAX: f64 = 5_000.0;
const SLOW_HOLD_S_MAX: u64 = 3_600;

/// More partitions than that a cluster does not have: each reads all events.
const PARTITIONS_MAX: u32 = 64;
/// Room for some large records.
const EVENTS_BYTES_MIN: u64 = 16 << 20;
/// The least that the HTTP library can do with.
const HEAD_BYTES_MIN: usize = 8_192;
/// The least for pages of one client: two of the largest.
const PAGE_BYTES_MIN: u64 = 8 << 20;

impl Config {
    fn cluster_faults(&self) -> Vec<String> {
        let config::Cluster {
            nats,
            system_nats,
            name,
            replicas,
            url,
            partition,
            partitions,
            events_bytes,
            ..
        } = &self.cluster;
        let mut faults = Vec::new();
        if !self.cluster.is_set() {
            if *partitions != 1 {
                faults.push("cluster.partitions is set, and cluster.nats is not".to_owned());
            }
            return faults;
        }
        if self.store.data.is_empty() {
            faults.push(
                "cluster.nats is set, and store.data is not: name a folder for the copy of the cluster's data"
                    .to_owned(),
            );
        }
        for (key, servers) in [("cluster.nats", nats), ("cluster.system_nats", system_nats)] {
            let access = Access { servers: servers.clone(), ..Access::default() };
            if !servers.is_empty()
                && let Err(error) = access.addresses()
            {
                faults.push(format!("{key}: {error}"));
            }
        }
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > CLUSTER_NAME_BYTES_MAX || !name.bytes().all(is_letter) {
            faults.push(format!(
                "cluster.name {name:?} is not 1 to {CLUSTER_NAME_BYTES_MAX} letters, digits, - and _"
            ));
        }
        if ![1, 3, 5].contains(replicas) {
            faults.push(format!("cluster.replicas {replicas} is not 1, 3 or 5"));
        }
        if !(1..=PARTITIONS_MAX).contains(partitions) {
            faults.push(format!("cluster.partitions {partitions} is not 1 to {PARTITIONS_MAX}"));
        } else if !(1..=*partitions).contains(partition) {
            faults
                .push(format!("cluster.partition {partition} is not 1 to {partitions} (cluster.partitions)"));
        }
        if *events_bytes < EVENTS_BYTES_MIN {
            faults.push(format!("cluster.events_bytes {events_bytes} is less than {EVENTS_BYTES_MIN}"));
        }
        if self.cluster.is_partitioned() && self.limits.event_bytes > EVENT_BYTES_MAX / 2 {
            faults.push(format!(
                "limits.event_bytes {} is more than the {} that the cluster's stream of events takes",
                self.limits.event_bytes,
                EVENT_BYTES_MAX / 2
            ));
        }
        if self.cluster.is_partitioned() && url.is_empty() {
            faults.push(
                "cluster.url is empty: with cluster.partitions, clients are sent from one broker to another"
                    .to_owned(),
            );
        }
        if !url.is_empty() && !is_address(url, &[Scheme::HTTP, Scheme::HTTPS]) {
            // Not shown, as below.
            faults.push(
                "cluster.url is not an address such as https://a.example:7070, without a name and a password: \
                 clients see it"
                    .to_owned(),
            );
        }
        faults
    }

    /// All values that cannot be used.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        match self.server.listen.parse::<SocketAddr>() {
            Ok(address) if !address.ip().is_loopback() && !self.server.insecure && !self.wants_tokens() => {
                faults.push(format!(
                    "server.listen {address} is not a loopback address and nobody would have to say who they are: \
                     set auth.mode to jwt or oidc, or add --insecure if that is meant"
                ));
            }
            Ok(_) => {}
            Err(_) => faults.push(format!(
                "server.listen {:?} is not an address with a port, such as 127.0.0.1:7070",
                self.server.listen
            )),
        }
        let hosts = self.server.hosts.split(',').map(str::trim).filter(|host| !host.is_empty());
        faults.extend(hosts.filter(|host| !is_host_name(host)).map(|host| {
            format!("server.hosts {host:?} is not the name of a host, such as broker.example, without scheme and port")
        }));
        faults.extend(self.auth.faults());
        if !self.wants_tokens() && !self.auth.zones.is_empty() {
            faults
                .push("auth.zones is set, and auth.mode is none: no token would confine anybody".to_owned());
        }
        if self.tls.cert.is_empty() != self.tls.key.is_empty() {
            faults.push("tls.cert and tls.key go together: one is set and the other is not".to_owned());
        }
        faults.extend(self.cluster_faults());
        let config::Telemetry { otlp_endpoint, sample, .. } = &self.telemetry;
        if !otlp_endpoint.is_empty() && !is_address(otlp_endpoint, &[Scheme::HTTP]) {
            // Not shown: somebody may have put a secret into it.
            faults.push(
                "telemetry.otlp_endpoint is not an address such as http://127.0.0.1:4318: http, host, and where it is not 80 \
                 a port; https is for a collector beside the broker to speak, secrets are for OTEL_EXPORTER_OTLP_HEADERS"
                    .to_owned(),
            );
        }
        if !(0.0..=1.0).contains(sample) {
            faults.push(format!("telemetry.sample {sample} is not from 0.0 to 1.0"));
        }
        let share = self.situations.tenant_time_share;
        if !(share > 0.0 && share <= 1.0) {
            faults.push(format!("situations.tenant_time_share {share} is not above 0 and at most 1"));
        }
        let config::Admission { tardiness, kp, ki, .. } = self.admission;
        for (key, value) in [("tardiness", tardiness), ("ki", ki)] {
            if !(value > 0.0 && value <= 1.0) {
                faults.push(format!("admission.{key} {value} is not above 0 and at most 1"));
            }
        }
        if !(0.0..1.0).contains(&kp) {
            faults.push(format!(
                "admission.kp {kp} is not from 0 to less than 1, above which the controller swings"
            ));
        }
        if self.privacy.round_m < -1 {
            faults.push(format!("privacy.round_m {} is less than -1", self.privacy.round_m));
        }
        if !self.routes.streets.is_empty() && self.server.world != WorldName::Geodetic {
            faults.push("routes.streets are in degrees, and server.world is not geodetic".to_owned());
        }
        let config::SlowStreets { condition, factor, radius_m, hold_s, .. } = &self.routes.slow;
        if !condition.is_empty() && self.routes.streets.is_empty() {
            faults.push(
                "routes.slow.where says what slows streets down, and routes.streets names none".to_owned(),
            );
        }
        if !condition.is_empty()
            && let Err(error) = Condition::parse(condition)
        {
            faults.push(format!("routes.slow.where {condition:?} is no condition: {error}"));
        }
        if !(1.0..=SLOW_FACTOR_MAX).contains(factor) {
            faults.push(format!("routes.slow.factor {factor} is not from 1 to {SLOW_FACTOR_MAX}"));
        }
        if !(0.0..=SLOW_RADIUS_M_MAX).contains(radius_m) {
            faults.push(format!("routes.slow.radius_m {radius_m} is not from 0 to {SLOW_RADIUS_M_MAX}"));
        }
        if *hold_s > SLOW_HOLD_S_MAX {
            faults.push(format!("routes.slow.hold_s {hold_s} is more than {SLOW_HOLD_S_MAX}"));
        }
        let config::Console { base_map, object, interests, notice } = &self.console;
        faults.extend(config::interests::read(interests).err().into_iter().flatten());
        if base_map == config::DEMO_ROADS && self.server.world != WorldName::Geodetic {
            faults.push(
                "console.base_map demo is in degrees, and server.world is not geodetic; a file of that name is ./demo"
                    .to_owned(),
            );
        }
        if object.len() > self.limits.name_bytes || object.contains(char::is_control) {
            faults.push(format!(
                "console.object {object:?} is the name of no attribute: at most {} bytes (limits.name_bytes) without control \
                 characters",
                self.limits.name_bytes
            ));
        }
        if notice.len() > NOTICE_BYTES_MAX || notice.contains(char::is_control) {
            faults.push(format!(
                "console.notice is no line of at most {NOTICE_BYTES_MAX} bytes without control characters"
            ));
        }
        if !is_contact(&self.push.contact) {
            faults.push(format!(
                "push.contact {:?} is neither an address such as mailto:ops@example.org nor an https URL",
                self.push.contact
            ));
        }
        self.fault_unless_positive(&mut faults);
        faults.extend(self.quotas.faults());
        if self.connection.silence_timeout_ms <= self.connection.ping_interval_ms {
            faults.push(
                "connection.silence_timeout_ms must be more than connection.ping_interval_ms, or living \
                 connections would be taken for dead"
                    .to_owned(),
            );
        }
        if self.connection.head_bytes < HEAD_BYTES_MIN {
            faults.push(format!(
                "connection.head_bytes {} is less than {HEAD_BYTES_MIN}, which many legal heads have",
                self.connection.head_bytes
            ));
        }
        let config::Sessions { kept_bytes, kept_total_bytes, .. } = self.sessions;
        if kept_total_bytes < kept_bytes {
            faults.push(format!(
                "sessions.kept_total_bytes {kept_total_bytes} is less than sessions.kept_bytes {kept_bytes}, which \
                 one client may take"
            ));
        }
        if self.server.shards > 1024 {
            faults.push(format!("server.shards {} is more than 1024", self.server.shards));
        }
        faults
    }

    fn fault_unless_positive(&self, faults: &mut Vec<String>) {
        let limits = &self.limits;
        let counts = [
            ("limits.body_bytes", limits.body_bytes),
            ("limits.frame_bytes", limits.frame_bytes as u64),
            ("limits.event_bytes", limits.event_bytes as u64),
            ("limits.attributes_per_event", limits.attributes_per_event as u64),
            ("limits.depth", limits.depth as u64),
            ("limits.name_bytes", limits.name_bytes as u64),
            ("limits.text_bytes", limits.text_bytes as u64),
            ("limits.client_name_bytes", limits.client_name_bytes as u64),
            ("limits.position_bytes", limits.position_bytes as u64),
            ("limits.track_bytes", limits.track_bytes as u64),
            ("limits.track_points", limits.track_points as u64),
            ("limits.track_m", limits.track_m),
            ("limits.subscription_bytes", limits.subscription_bytes as u64),
            ("limits.push_subscription_bytes", limits.push_subscription_bytes as u64),
            ("limits.subscription_bytes_per_client", limits.subscription_bytes_per_client as u64),
            ("limits.subscriptions_per_client", limits.subscriptions_per_client as u64),
            ("limits.filters_per_subscription", limits.filters_per_subscription as u64),
            ("limits.condition_bytes", limits.condition_bytes as u64),
            ("limits.constraints_per_client", limits.constraints_per_client),
            ("limits.vertices_per_area", limits.vertices_per_area as u64),
            ("limits.nearest", limits.nearest.into()),
            ("limits.nearest_filters", limits.nearest_filters as u64),
            ("limits.members_per_subscription", limits.members_per_subscription as u64),
            ("limits.members_per_client", limits.members_per_client as u64),
            ("limits.ttl_s", limits.ttl_s),
            ("limits.live_events", limits.live_events),
            ("limits.live_bytes", limits.live_bytes),
            ("limits.connections", limits.connections as u64),
            ("limits.readers_per_client", limits.readers_per_client as u64),
            ("limits.problems_in_a_row", limits.problems_in_a_row.into()),
            ("store.fsync_ms", self.store.fsync_ms),
            ("sessions.recent_bytes", self.sessions.recent_bytes as u64),
            ("sessions.kept_frames", self.sessions.kept_frames as u64),
            ("sessions.kept_bytes", self.sessions.kept_bytes as u64),
            ("sessions.kept_s", self.sessions.kept_s),
            ("sessions.kept_total_bytes", self.sessions.kept_total_bytes as u64),
            ("queue.commands", self.queue.commands as u64),
            ("admission.delay_ms", self.admission.delay_ms),
            ("outbox.frames", self.outbox.frames as u64),
            ("outbox.bytes", self.outbox.bytes as u64),
            ("outbox.answers", self.outbox.answers as u64),
            ("outbox.answer_bytes", self.outbox.answer_bytes as u64),
            ("push.ttl_s", self.push.ttl_s),
            ("push.queue", self.push.queue as u64),
            ("push.sends", self.push.sends as u64),
            ("push.sends_per_origin", self.push.sends_per_origin as u64),
            ("connection.head_timeout_ms", self.connection.head_timeout_ms),
            ("connection.idle_timeout_ms", self.connection.idle_timeout_ms),
            ("connection.body_timeout_ms", self.connection.body_timeout_ms),
            ("connection.write_timeout_ms", self.connection.write_timeout_ms),
            ("connection.ping_interval_ms", self.connection.ping_interval_ms),
            ("connection.read_buffer_bytes", self.connection.read_buffer_bytes as u64),
            ("connection.write_buffer_bytes", self.connection.write_buffer_bytes as u64),
        ];
        let zeros = counts.iter().filter(|(_, count)| *count == 0);
        faults.extend(zeros.map(|(key, _)| format!("{key} must be 1 or more")));
        let vertices_max = POLYGON_POSITIONS_MAX.min(CORRIDOR_POSITIONS_MAX) as u64;
        let ceilings = [
            ("limits.depth", limits.depth as u64, DEPTH_MAX as u64),
            ("limits.vertices_per_area", limits.vertices_per_area as u64, vertices_max),
            ("limits.condition_bytes", limits.condition_bytes as u64, TEXT_BYTES_MAX as u64),
            ("limits.ttl_s", limits.ttl_s, TTL_S_MAX),
            ("limits.live_events", limits.live_events, LIVE_EVENTS_MAX),
            ("sessions.kept_s", self.sessions.kept_s, TTL_S_MAX),
            ("sessions.idle_s", self.sessions.idle_s, TTL_S_MAX),
            ("push.every_s", self.push.every_s, PUSH_S_MAX),
            ("push.ttl_s", self.push.ttl_s, PUSH_S_MAX),
            ("push.queue", self.push.queue as u64, PUSH_QUEUE_MAX),
            ("privacy.round_m", self.shown_m().into(), ROUND_M_MAX),
            ("auth.leeway_s", self.auth.leeway_s, LEEWAY_S_MAX),
        ];
        let floors = [
            ("limits.page_bytes_per_client", limits.page_bytes_per_client, PAGE_BYTES_MIN),
            ("limits.page_bytes", limits.page_bytes, 2 * PAGE_BYTES_MIN),
        ];
        let low = floors.iter().filter(|(_, value, least)| value < least);
        faults.extend(low.map(|(key, value, least)| format!("{key} {value} is less than {least}")));
        let high = ceilings.iter().filter(|(_, value, most)| value > most);
        faults.extend(high.map(|(key, value, most)| format!("{key} {value} is more than {most}")));
    }
}

impl config::Auth {
    /// What is wrong with where keys come from.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        match (self.mode, self.jwks.is_empty()) {
            (AuthMode::Jwt, true) => faults.push(
                "auth.mode jwt needs auth.jwks, the keys that tokens are checked with: a file or an https URL"
                    .to_owned(),
            ),
            (AuthMode::None, false) => {
                faults.push("auth.jwks is set, and auth.mode is none: nobody would need a token".to_owned());
            }
            (AuthMode::Oidc, false) => faults.push(
                "auth.jwks is set, and auth.mode oidc asks auth.issuer where its keys are: set auth.mode to jwt, or \
                 leave auth.jwks empty"
                    .to_owned(),
            ),
            (AuthMode::Jwt, false) | (AuthMode::None | AuthMode::Oidc, true) => {}
        }
        if is_url(&self.jwks) && https::parse(&self.jwks).is_none() {
            faults.push(format!("auth.jwks {NOT_HTTPS}"));
        }
        if self.mode == AuthMode::Oidc && https::discovery(&self.issuer).is_none() {
            faults.push(match self.issuer.split_once("://") {
                _ if self.issuer.is_empty() => {
                    "auth.mode oidc needs auth.issuer, the address of the tokens' issuer: \
                     --auth oidc https://id.example/fleet"
                        .to_owned()
                }
                None => "auth.issuer has no scheme: https:// stands before the host".to_owned(),
                Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => {
                    "auth.issuer begins with http, and keys are fetched over https alone".to_owned()
                }
                Some(_) => format!("auth.issuer {NOT_HTTPS}, no query"),
            });
        }
        if self.tenant_claim.is_empty() {
            faults.push("auth.tenant_claim must name a claim".to_owned());
        }
        faults
    }
}

/// Does not show the address: somebody may have put a secret into it.
const NOT_HTTPS: &str =
    "is not an address such as https://id.example/fleet: https, a host, no user, no fragment";

/// Whether push services can reach somebody there (RFC 8292, 2.1), or nobody is named.
fn is_contact(contact: &str) -> bool {
    let is_mail = |address: &str| {
        address.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
            && !address.contains(char::is_whitespace)
    };
    contact.is_empty()
        || contact.strip_prefix("mailto:").map_or_else(|| https::parse(contact).is_some(), is_mail)
}

fn is_host_name(host: &str) -> bool {
    host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// Whether it names a host that is spoken to over HTTP, and nothing that a request would not have.
fn is_address(text: &str, schemes: &[Scheme]) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| {
        let is_named = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        uri.scheme().is_some_and(|scheme| schemes.contains(scheme)) && is_named && uri.query().is_none()
    })
}
