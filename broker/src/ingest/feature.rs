//! Events: GeoJSON Features with a point.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use matcher::event::Event;
use matcher::geo::{Position, Radius, World};
use wire::Fault;

use super::attributes::{self, Bounds};
use super::json::{self, Members, Object};
use super::life::{Life, LifeReader};
use super::scan::Shape;
use super::{Behalf, Confinement, Zones};
use super::{near, place, position};
use crate::budget::Budget;
use crate::config::Limits;
use crate::limits::Quota;
use crate::model::error::ApiError;
use crate::model::event::{Body, Carried, Live, ObjectHash, Published, split_within};
use crate::model::problems::PASSED_ON;
use crate::model::record::StoredBody;
use crate::model::{clock, tenant};

pub(crate) use super::life::RehearsedLife;

/// An event's body that was read back from disk.
pub(crate) fn read_back(stored_text: &str, received_ms: u64, stored: Arc<StoredBody>) -> Body {
    Body { stored: OnceLock::from(stored), ..body_of(stored_text, received_ms) }
}

/// An event's body, of its text as it is stored.
fn body_of(stored_text: &str, received_ms: u64) -> Body {
    let (within, rest) = split_within(stored_text);
    let (carried, text) = Carried::split(rest);
    // What was published is a Feature.
    let object = object_of(within, text).unwrap_or_default();
    let members = Members::parse(text).ok();
    let member = |name| members.as_ref().and_then(|members| members.get(name));
    let is_alarm = member("priority") == Some(ALARM);
    let first_received_ms = NonZeroU64::new(received_ms);
    let deadline = member("deadline_ms")
        .and_then(|text| Duration::try_from_secs_f64(text.parse::<f64>().ok()? / 1_000.0).ok())
        .and_then(|after| {
            let ago = Duration::from_millis(clock::unix_ms().saturating_sub(received_ms));
            clock::now().checked_add(after.saturating_sub(ago))
        });
    Body {
        is_alarm,
        deadline,
        first_received_ms,
        within: within.map(Box::from),
        carried,
        ..Body::new(text.into(), clock::now(), object)
    }
}

/// The object of a Feature as it was delivered, of a publisher with a confinement or without one.
pub(crate) fn object_of(within: Option<&str>, text: &str) -> Result<ObjectHash, ApiError> {
    let members = Members::parse(text)?;
    let key = members.get("key").and_then(|text| json::read_text(text).ok());
    let id = members.get("id").map(|text| json::read_text(text).unwrap_or(Cow::Borrowed(text)));
    Ok(ObjectHash::new(within, key.as_deref(), id.as_deref().unwrap_or_default()))
}

/// A Feature that is not going to be published.
#[derive(Debug)]
pub(crate) struct Rehearsed {
    pub(crate) event: Event,
    pub(crate) is_alarm: bool,
    /// The life that it would have.
    pub(crate) life: Option<RehearsedLife>,
}

/// A Feature as it was delivered, and what a situation has to know of it.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) event: Arc<Event>,
    pub(crate) id: Arc<str>,
    /// Its `time`, in Unix milliseconds; without one, now.
    pub(crate) time_ms: i64,
    pub(crate) has_time: bool,
    /// How many times it was derived from other events.
    pub(crate) depth: u32,
    pub(crate) key: Option<Arc<str>>,
    /// Whether it stays live.
    pub(crate) is_live: bool,
}

/// Member of an event that the broker derived from others: which situation did, from which events, and how deep that goes.
pub(crate) const DERIVED: &str = "derived";

/// A Feature as it was read.
struct Read<'a> {
    event: Event,
    life: Option<Life<'a>>,
    id: Option<Cow<'a, str>>,
    time: Option<jiff::Timestamp>,
    is_alarm: bool,
    /// How long after its arrival it is too late to deliver it.
    deadline: Option<Duration>,
    /// What is probably not meant so.
    warnings: Vec<Fault>,
}

/// Value of `priority` in an alarm, as JSON.
const ALARM: &str = "\"alarm\"";

/// Reads Features.
pub(crate) struct FeatureReader {
    world: World,
    bounds: Bounds,
    event_bytes: usize,
    lives: LifeReader,
    zones: Arc<Zones>,
    /// Begins the ids that this broker makes, so that two runs make different ones.
    id_prefix: Box<str>,
    next_id: AtomicU64,
}

impl FeatureReader {
    pub(crate) fn new(world: World, limits: &Limits, seed: u64) -> Self {
        Self {
            world,
            bounds: Bounds::of(limits),
            event_bytes: limits.event_bytes,
            lives: LifeReader::new(limits),
            zones: Arc::default(),
            id_prefix: format!("n{:012x}-", seed & 0xffff_ffff_ffff).into(),
            next_id: AtomicU64::new(0),
        }
    }

    /// Makes the reader one for a broker whose settings have these zones.
    pub(crate) fn with_zones(self, zones: &Arc<Zones>) -> Self {
        Self { zones: Arc::clone(zones), ..self }
    }

    /// Bounds the live objects of each tenant by a quota, and counts what they take in all engines. To be called before the first of them.
    pub(crate) fn within(self, quota: &Arc<Quota>, budget: &Budget, engines: usize) -> Self {
        Self { lives: self.lives.within(quota, budget, engines), ..self }
    }

    /// A reader of events that were accepted before, maybe under wider limits: it refuses none of them for its size.
    pub(crate) fn of_accepted(&self) -> Self {
        Self {
            world: self.world,
            bounds: Bounds::NONE,
            event_bytes: usize::MAX,
            lives: LifeReader::unbounded(),
            zones: Arc::clone(&self.zones),
            id_prefix: Box::default(),
            next_id: AtomicU64::new(0),
        }
    }

    /// The zones that events are in.
    pub(crate) fn zones(&self) -> &Arc<Zones> {
        &self.zones
    }

    /// The bytes that an event may have.
    pub(crate) fn event_bytes(&self) -> usize {
        self.event_bytes
    }

    /// How many objects are live.
    pub(crate) fn live_objects(&self) -> usize {
        self.lives.live_count()
    }

    /// The refusal of an event that is too large.
    pub(crate) fn too_large(&self) -> ApiError {
        ApiError::TooLarge { what: "an event", limit: self.event_bytes as u64, setting: "limits.event_bytes" }
    }

    /// Reads one Feature.
    pub(crate) fn parse(&self, behalf: Behalf<'_>, text: &str) -> Result<Published, ApiError> {
        self.parse_object(behalf, Object::scan(Shape::Feature, text)).map(|(published, _)| published)
    }

    /// Reads one Feature whose members may have been told apart. Beside it stand warnings, mostly none.
    pub(crate) fn parse_object(
        &self,
        behalf: Behalf<'_>,
        object: Object<'_>,
    ) -> Result<(Published, Vec<Fault>), ApiError> {
        let text = object.text;
        if text.len() > self.event_bytes {
            return Err(self.too_large());
        }
        let members = object.into_members()?;
        if members.get(DERIVED).is_some() {
            let detail = "must not be there: it tells what the broker derived its own events from";
            return Err(ApiError::invalid("/derived", detail));
        }
        self.accept(behalf, text, members)
    }

    /// Reads an event of the broker's own, which may have been derived.
    pub(crate) fn parse_own(&self, behalf: Behalf<'_>, text: &str) -> Result<Published, ApiError> {
        self.accept(behalf, text, Members::parse(text)?).map(|(published, _)| published)
    }

    fn accept(
        &self,
        behalf: Behalf<'_>,
        text: &str,
        mut members: Members<'_>,
    ) -> Result<(Published, Vec<Fault>), ApiError> {
        let has_line_ends = members.has_line_ends();
        let cleaned = without_nulls(&members);
        let text = cleaned.as_deref().unwrap_or(text);
        let Read { event, life, id, time, is_alarm, deadline, warnings } = self.read(behalf, &mut members)?;
        let made = if id.is_none() { Some(self.made_id(behalf)) } else { None };
        let id = id.as_deref().or(made.as_deref()).unwrap_or_default();
        let within = behalf.confinement.map(|confinement| Box::from(confinement.fingerprint()));
        let key = life.as_ref().and_then(|life| life.key.as_deref());
        let object = ObjectHash::new(within.as_deref(), key, id);
        // Last of what can fail, so that nothing that is refused takes a place.
        let text = complete(text, has_line_ends, made.as_deref(), time.is_some());
        let bytes = text.len() + event.bytes();
        let live = life.map(|life| self.lives.begin(life, behalf, id, bytes)).transpose()?;
        let received = clock::now();
        let deadline = deadline.map(|after| received + after);
        let body = Body { is_alarm, deadline, within, ..Body::new(text, received, object) };
        Ok((Published::new(event, body, live), warnings))
    }

    /// Reads a Feature as it was delivered.
    pub(crate) fn observe(&self, text: &str) -> Result<Observed, ApiError> {
        let mut members = Object::scan(Shape::Feature, text).into_members()?;
        let depth = members.get(DERIVED).map_or(0, depth_of);
        let Read { event, id, time, life, .. } = self.read(Behalf::default(), &mut members)?;
        let is_live = life.is_some();
        let key = life.and_then(|life| life.key).map(Arc::from);
        let has_time = time.is_some();
        let time_ms = time.map_or_else(|| clock::unix_ms().cast_signed(), jiff::Timestamp::as_millisecond);
        let id = id.unwrap_or_default().into();
        Ok(Observed { event: Arc::new(event), id, time_ms, has_time, depth, key, is_live })
    }

    /// Reads a Feature that is not going to be published: it takes no place and gets no id.
    pub(crate) fn rehearse(&self, behalf: Behalf<'_>, text: &str) -> Result<Rehearsed, ApiError> {
        if text.len() > self.event_bytes {
            return Err(self.too_large());
        }
        let mut members = Object::scan(Shape::Feature, text).into_members()?;
        let Read { event, life, id, is_alarm, .. } = self.read(behalf, &mut members)?;
        let life = life.map(|life| life.rehearse(behalf, id.as_deref()));
        Ok(Rehearsed { event, is_alarm, life })
    }

    /// Whether a Feature, as it was delivered, is among the events that a confinement is about.
    pub(crate) fn is_within(&self, confinement: &Confinement, text: &str) -> bool {
        let read = Members::parse(text).and_then(|mut members| self.read(Behalf::default(), &mut members));
        read.is_ok_and(|read| confinement.holds(&read.event))
    }

    /// An event that a broker of the cluster accepted at a time, in Unix milliseconds, with its text as it is stored. Its life is its object,
    /// its id and how long it was to be. `lenient` is what [`of_accepted`](Self::of_accepted) gives. Nothing is refused for its size, and the
    /// event takes its place where there is none left.
    pub(crate) fn accepted_elsewhere(
        &self,
        lenient: &Self,
        tenant: Option<&str>,
        stored_text: &str,
        received_ms: u64,
        life: Option<(&str, &str, Duration)>,
    ) -> Result<Published, ApiError> {
        let body = body_of(stored_text, received_ms);
        let behalf = Behalf { tenant, confinement: None };
        let Rehearsed { event, .. } = lenient.rehearse(behalf, &body.text)?;
        let live = life.map(|(object, id, ttl)| {
            let age = Duration::from_millis(clock::unix_ms().saturating_sub(received_ms));
            let now = clock::now();
            let expires = now.checked_sub(age).unwrap_or(now) + ttl;
            let bytes = body.text.len() + event.bytes();
            let live = self.lives.resume(object, id.into(), 0, expires, bytes);
            // No shard has written it yet.
            live.is_written.store(false, Ordering::Relaxed);
            live
        });
        Ok(Published::new(event, body, live))
    }

    /// The life of an event that was published before this broker began.
    pub(crate) fn resume_life(
        &self,
        object: &str,
        id: Arc<str>,
        sequence: u64,
        expires: Instant,
        bytes: usize,
    ) -> Live {
        self.lives.resume(object, id, sequence, expires, bytes)
    }

    fn read<'a>(&self, behalf: Behalf<'_>, members: &mut Members<'a>) -> Result<Read<'a>, ApiError> {
        let mut faults = Vec::new();
        check_kind(members, &mut faults);
        let is_alarm = is_alarm(members, &mut faults);
        let deadline = deadline(members, &mut faults);
        let position = self.geometry(members, &mut faults);
        let reach = self.reach(members, &mut faults);
        let life = self.lives.read(members, &mut faults);
        let id = id(members, self.bounds.name_bytes, &mut faults);
        let time = members
            .take("time")
            .and_then(|text| position::time(text, "/time").map_err(|fault| faults.push(fault)).ok());
        let attributes = match members.take("properties") {
            Some(properties) => attributes::flatten(properties, &self.bounds, &mut faults),
            None => Vec::new(),
        };
        self.check_rest("", members, &mut faults);
        let warnings = near::EVENT.warnings(members, &PASSED_ON);
        let (Some(position), true) = (position, faults.is_empty()) else {
            return Err(ApiError::Invalid(faults));
        };
        let mut event = Event { position, attributes, reach };
        if let Some(tenant) = behalf.tenant {
            if event.attributes.iter().any(|attribute| attribute.name.as_str() == tenant::ATTRIBUTE) {
                let detail = format!("the attribute {:?} is the broker's own", tenant::ATTRIBUTE);
                return Err(ApiError::invalid("/properties", detail));
            }
            tenant::mark(&mut event, tenant);
        }
        self.zones.mark(&mut event);
        behalf.check(&event)?;
        Ok(Read { event, life, id, time, is_alarm, deadline, warnings })
    }

    /// Where there are tenants the numbers are drawn, for a count would tell each how much others publish.
    fn made_id(&self, behalf: Behalf<'_>) -> String {
        let number: u64 = match behalf.tenant {
            Some(_) => rand::random(),
            None => self.next_id.fetch_add(1, Ordering::Relaxed),
        };
        let mut id = String::with_capacity(MADE_ID_BYTES);
        id.push_str(&self.id_prefix);
        write!(id, "{number:x}").expect("a text grows");
        id
    }

    fn geometry(&self, members: &mut Members<'_>, faults: &mut Vec<Fault>) -> Option<Position> {
        let mut fault = |pointer: &str, detail: &str| {
            faults.push(Fault { pointer: pointer.to_owned(), detail: detail.to_owned() });
            None
        };
        let Some(object) = members.take_object("geometry") else {
            return fault("/geometry", &point(self.world, members));
        };
        let mut geometry = match object.into_members() {
            Ok(geometry) => geometry,
            Err(ApiError::Invalid(found)) => {
                let below = found
                    .into_iter()
                    .map(|fault| Fault { pointer: format!("/geometry{}", fault.pointer), ..fault });
                faults.extend(below);
                return None;
            }
            Err(_) => return fault("/geometry", &point(self.world, members)),
        };
        if geometry.take("type") != Some("\"Point\"") {
            if place::by_names(&geometry).is_some() {
                return fault("/geometry", &point(self.world, &geometry));
            }
            return fault("/geometry/type", "must be \"Point\": events happen in one place");
        }
        let Some(coordinates) = geometry.take("coordinates") else {
            return fault("/geometry/coordinates", "must be there");
        };
        self.check_rest("/geometry", &geometry, faults);
        position::coordinates(self.world, coordinates, "/geometry/coordinates")
            .map_err(|fault| faults.push(fault))
            .ok()
    }

    /// Checks the members that are only passed on.
    fn check_rest(&self, parent: &str, members: &Members<'_>, faults: &mut Vec<Fault>) {
        for (name, value) in members.rest() {
            if faults.len() > json::FAULTS_MAX {
                return;
            }
            attributes::check(value, &json::pointer(parent, name), &self.bounds, faults);
        }
    }

    fn reach(&self, members: &mut Members<'_>, faults: &mut Vec<Fault>) -> Option<Radius> {
        let text = members.take("reach_m")?;
        let radius = json::read::<f64>(text, "/reach_m", "a number of metres").and_then(|metres| {
            Radius::new(self.world, metres)
                .map_err(|error| Fault { pointer: "/reach_m".to_owned(), detail: error.to_string() })
        });
        radius.map_err(|fault| faults.push(fault)).ok()
    }
}

/// The longest deadline, in milliseconds: a day.
const DEADLINE_MS_MAX: f64 = 86_400_000.0;

fn deadline(members: &mut Members<'_>, faults: &mut Vec<Fault>) -> Option<Duration> {
    const EXPECTED: &str = "a number of milliseconds above 0 and at most 86400000";
    let text = members.take("deadline_ms")?;
    let read = json::read::<f64>(text, "/deadline_ms", EXPECTED).and_then(|ms| {
        let fault = || Fault { pointer: "/deadline_ms".to_owned(), detail: format!("must be {EXPECTED}") };
        if ms > 0.0 && ms <= DEADLINE_MS_MAX { Ok(ms) } else { Err(fault()) }
    });
    read.map(|ms| Duration::from_secs_f64(ms / 1_000.0)).map_err(|fault| faults.push(fault)).ok()
}

/// How many times an event was derived, as the member says.
fn depth_of(derived: &str) -> u32 {
    let depth = Members::parse(derived).ok().and_then(|members| members.get("depth")?.parse().ok());
    depth.unwrap_or(0)
}

/// What a geometry must be, with the place of an object that tells it by names.
fn point(world: World, members: &Members<'_>) -> String {
    let named = place::by_names(members);
    let coordinates = named.as_deref().unwrap_or_else(|| place::order(world));
    format!(r#"must be a GeoJSON Point: {{"type": "Point", "coordinates": {coordinates}}}"#)
}

/// Bytes of an id that the broker makes, at most.
const MADE_ID_BYTES: usize = 30;
/// Bytes of the members `id` and `time`, the first without what it says.
const ID_BYTES: usize = ",'id':''".len();
const TIME_BYTES: usize = ",'time':'2026-03-01T07:30:00.000Z'".len();

/// The Feature on one line, with what it lacks: an id where one was made, and the time.
fn complete(text: &str, has_line_ends: bool, made: Option<&str>, has_time: bool) -> Box<str> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let is_complete = made.is_none() && has_time;
    // To the byte: what is left over would cost another allocation.
    let added_bytes = made.map_or(0, |made| ID_BYTES + made.len()) + if has_time { 0 } else { TIME_BYTES };
    let mut body = String::with_capacity(text.len() + added_bytes);
    // A frame is one line, and so is the data of a server-sent event.
    if has_line_ends && text.contains(['\n', '\r']) {
        push_without_space(&mut body, text);
    } else {
        body.push_str(text);
    }
    if is_complete {
        return body.into_boxed_str();
    }
    body.pop();
    if let Some(made) = made {
        body.push_str(",\"id\":\"");
        body.push_str(made);
        body.push('"');
    }
    if !has_time {
        body.push_str(",\"time\":\"");
        clock::push_time(&mut body);
        body.push('"');
    }
    body.push('}');
    body.into_boxed_str()
}

/// Whether a Feature can be an alarm: of one with a fault only what its text says is known.
pub(crate) fn may_be_alarm(object: &Object<'_>) -> bool {
    match &object.members {
        Some(members) => members.get("priority") == Some(ALARM),
        None => object.text.contains(ALARM),
    }
}

fn is_alarm(members: &mut Members<'_>, faults: &mut Vec<Fault>) -> bool {
    match members.take("priority") {
        None | Some("\"normal\"") => false,
        Some(ALARM) => true,
        Some(_) => {
            let detail = "must be \"normal\" or \"alarm\"".to_owned();
            faults.push(Fault { pointer: "/priority".to_owned(), detail });
            false
        }
    }
}

fn check_kind(members: &mut Members<'_>, faults: &mut Vec<Fault>) {
    // Nearly always written plainly; with escapes it is the same text.
    let is_feature = |text: &str| {
        text == "\"Feature\"" || serde_json::from_str::<String>(text).is_ok_and(|kind| kind == "Feature")
    };
    if !members.take("type").is_some_and(is_feature) {
        faults.push(Fault { pointer: "/type".to_owned(), detail: "must be \"Feature\"".to_owned() });
    }
}

/// The id, where there is one; GeoJSON has texts and numbers.
fn id<'a>(members: &mut Members<'a>, name_bytes: usize, faults: &mut Vec<Fault>) -> Option<Cow<'a, str>> {
    let text = members.take("id")?;
    let read = if text.len() > name_bytes {
        Err(format!("may have at most {name_bytes} bytes (limits.name_bytes)"))
    } else if text == "\"\"" {
        // No path could name it.
        Err("must not be empty".to_owned())
    } else if text.starts_with('"') {
        json::read_text(text).map_err(|error| json::reason(&error))
    } else {
        // A number is named by its digits.
        let number = serde_json::from_str::<f64>(text);
        number.map(|_| Cow::Borrowed(text)).map_err(|_| "must be a text or a number".to_owned())
    };
    read.map_err(|detail| faults.push(Fault { pointer: "/id".to_owned(), detail })).ok()
}

/// Appends a JSON text without the space between its tokens.
fn push_without_space(body: &mut String, text: &str) {
    let mut in_text = false;
    let mut escaped = false;
    for character in text.chars() {
        if in_text {
            in_text = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else {
            in_text = character == '"';
            if matches!(character, ' ' | '\t' | '\n' | '\r') {
                continue;
            }
        }
        body.push(character);
    }
}

/// The Feature without its `"id": null` and `"time": null`, where it has such: the broker's own would stand there
/// a second time.
fn without_nulls(members: &Members<'_>) -> Option<String> {
    let is_null = |name: &str, value: &str| matches!(name, "id" | "time") && value == "null";
    if !members.rest().any(|(name, value)| is_null(name, value)) {
        return None;
    }
    Some(json::object(members.rest().filter(|(name, value)| !is_null(name, value))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::model::record::BodyId;

    fn parse(text: &str) -> Result<Published, ApiError> {
        FeatureReader::new(World::Geodetic, &Config::default().limits, 7).parse(Behalf::default(), text)
    }

    #[track_caller]
    fn faults(text: &str) -> Vec<String> {
        match parse(text) {
            Err(ApiError::Invalid(faults)) => faults.into_iter().map(|fault| fault.pointer).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn feature(members: &str) -> String {
        format!(r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[9.1,45.4]}}{members}}}"#)
    }

    #[test]
    fn a_delivered_event_is_the_published_one_with_id_and_time() {
        let text =
            feature(r#","id":"a","time":"2026-03-01T07:30:00Z","properties":{"a":1},"bbox":[1,2,3,4]"#);
        assert_eq!(&*parse(&text).unwrap().body.text, text);
        let made = parse(&feature(r#","id":null,"properties":{}"#)).unwrap().body;
        let made: serde_json::Value = serde_json::from_str(&made.text).unwrap();
        assert!(made["id"].is_string() && made["time"].is_string(), "{made}");
        assert_eq!(made.as_object().unwrap().len(), 5);
    }

    #[test]
    fn a_delivered_event_is_one_line() {
        let text = feature(",\n \"id\": 7,\r\n\"time\":\"2026-03-01T07:30:00Z\", \"note\": \"a \\\" b\"");
        let body = parse(&text).unwrap().body;
        assert!(
            body.text.ends_with(r#","id":7,"time":"2026-03-01T07:30:00Z","note":"a \" b"}"#),
            "{}",
            body.text
        );
    }

    #[test]
    fn every_fault_is_told_with_its_pointer() {
        let text = r#"{"type":"Thing","id":[],"geometry":{"type":"Point","coordinates":[200,0]},
            "time":"now","reach_m":-1,"ttl_s":0,"key":"","properties":{"a":1e999},"x":{"y":1e999}}"#;
        let pointers = faults(text);
        assert_eq!(pointers[..5], ["/type", "/geometry/coordinates", "/reach_m", "/ttl_s", "/key"]);
        assert_eq!(pointers[5..], ["/id", "/time", "/properties/a", "/x/y"]);
        assert_eq!(faults(r#"{"type":"Feature","geometry":null}"#), ["/geometry"]);
        assert_eq!(faults(r#"{"type":"Feature","geometry":[1,2]}"#), ["/geometry"]);
        assert_eq!(
            faults(r#"{"type":"Feature","geometry":{"type":"Polygon","coordinates":[]}}"#),
            ["/geometry/type"]
        );
        assert_eq!(faults(&feature(r#","properties":[]"#)), ["/properties"]);
        assert_eq!(faults(&feature(r#","priority":"urgent""#)), ["/priority"]);
        assert_eq!(faults(&feature(r#","properties":{"a":"\ud800"}"#)), ["/properties/a"]);
        assert_eq!(faults(&feature(r#","note":"\ud800""#)), ["/note"]);
    }

    #[test]
    fn an_alarm_says_so_and_may_be_told_from_the_text() {
        for (members, is_alarm) in [
            (r#","priority":"alarm""#, true),
            (r#","priority" : "alarm","ttl_s":5"#, true),
            (r#","priority":"normal""#, false),
            (r#","properties":{"priority":"alarm"}"#, false),
            ("", false),
        ] {
            let text = feature(members);
            let body = parse(&text).unwrap().body;
            assert_eq!(body.is_alarm, is_alarm, "{text}");
            assert_eq!(may_be_alarm(&Object::scan(Shape::Feature, &text)), is_alarm, "{text}");
            assert!(may_be_alarm(&Object { text: &text, members: None }) || !is_alarm, "{text}");
        }
    }

    #[test]
    fn an_object_is_known_by_its_key_or_else_its_id_also_from_what_was_delivered() {
        let object = |members: &str| {
            let body = parse(&feature(members)).unwrap().body;
            assert_eq!(object_of(None, &body.text), Ok(body.object), "{members}");
            body.object
        };
        let a = object(r#","id":"a""#);
        assert_eq!(a, object(r#","id":"\u0061","ttl_s":5,"key":null"#));
        assert_eq!(object(r#","id":7"#), object(r#","id":"7""#));
        let key = object(r#","id":"b","key":"a""#);
        assert_eq!(key, object(r#","key":"\u0061","ttl_s":9"#));
        assert_ne!(a, key);
        assert!(object("") != a && object(r#","ttl_s":5"#) != a);
    }

    #[test]
    fn objects_of_publishers_with_different_confinements_are_different_also_from_disk() {
        let claims = [r#"{"where":"a = 1"}"#, r#"{"where":"a < 2"}"#];
        let read = |claim: &str| Arc::new(Confinement::read_again(claim, &Zones::default()).unwrap());
        let confinements = [None, Some(read(claims[0])), Some(read(claims[1]))];
        let text = feature(r#","id":"e","time":"2026-03-01T07:30:00Z","key":"k","properties":{"a":1}"#);
        let reader = FeatureReader::new(World::Geodetic, &Config::default().limits, 7);
        let objects = confinements.each_ref().map(|confinement| {
            let behalf = Behalf { tenant: None, confinement: confinement.as_ref() };
            let mut published = reader.parse(behalf, &text).unwrap();
            let mut carried = Box::new(Carried::default());
            carried.mark(&["jump".into()]);
            for carried in [None, Some(carried)] {
                published.carry(carried);
                let body = &published.body;
                let stored = StoredBody::new(BodyId(7), true, &Arc::default());
                let again = read_back(&body.stored_text(), 1, stored);
                assert_eq!(
                    (&again.text, again.object, &again.within),
                    (&body.text, body.object, &body.within)
                );
                assert_eq!(again.trace_members(), body.trace_members());
            }
            published.body.object
        });
        assert!(objects[0] != objects[1] && objects[0] != objects[2] && objects[1] != objects[2]);
    }

    #[test]
    fn an_id_that_the_broker_made_names_the_object_as_it_is_delivered() {
        let published = parse(&feature(r#","ttl_s":5"#)).unwrap();
        let body: serde_json::Value = serde_json::from_str(&published.body.text).unwrap();
        let live = published.live.unwrap();
        assert_eq!(body["id"], *live.id);
        assert_eq!(*live.object, format!("id:{}", live.id));
        assert_eq!(body["ttl_s"], 5);
    }
}
