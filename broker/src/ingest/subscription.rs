//! Subscription documents.

use std::sync::Arc;

use matcher::area::{Area, Corridor, Polygon};
use matcher::condition::Condition;
use matcher::geo::{Radius, World};
use matcher::live::{Interest, Nearest};
use matcher::subscription::Filter;
use serde_json::value::RawValue;
use wire::Fault;

use super::area::{self, AreaBounds, AreaRead, RouteTo};
use super::interest::{self, InterestBounds};
use super::json::{self, Members};
use super::near;
use super::value;
use super::{Behalf, Confinement, Weighed};
use crate::config::Limits;
use crate::cql2_json;
use crate::model::delivery::OverflowName;
use crate::model::error::{ApiError, quoted as quoted_part};
use crate::model::way::Way;

/// A checked subscription.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The client's name for the subscription.
    pub(crate) id: Arc<str>,
    /// The alternatives.
    pub(crate) filters: Vec<Filter>,
    /// The confinement of the client's token, which the filters have as well.
    pub(crate) confinement: Option<Arc<Confinement>>,
    /// For each filter, the number of the nearest objects in its area that count.
    pub(crate) nearest: Vec<Nearest>,
    /// The routes along which areas are to lie.
    pub(crate) routes: Vec<RouteArea>,
    /// How many constraints the filters have in their normal form.
    pub(crate) constraints: u64,
    /// The events or transitions that the client is told of.
    pub(crate) interest: Interest,
    /// Whether it outlives its connection, and what it brings is kept.
    pub(crate) durable: bool,
    /// Policy for losses at a bound; `None`: as the broker is set.
    pub(crate) overflow: Option<OverflowName>,
    /// The document in its normalised form.
    pub(crate) document: Arc<str>,
    /// The document as it was sent, where it is to be kept on disk: [`SubscriptionReader::parse`] makes the same of it.
    /// (Of the normalised form it may not: that can be too long to be sent.)
    pub(crate) source: Option<Box<str>>,
    /// The situation whose inputs it brings.
    pub(crate) situation: Option<StoredSituation>,
}

/// An area along a route from the client.
#[derive(Clone, Debug)]
pub(crate) struct RouteArea {
    /// The filter whose area it is.
    pub(crate) filter: usize,
    pub(crate) to: RouteTo,
    pub(crate) radius: Radius,
    /// Where it leads, once that is found.
    pub(crate) way: Option<Arc<Way>>,
}

/// A situation as it stands beside the subscription that brings its inputs.
#[derive(Clone, Debug)]
pub(crate) struct StoredSituation {
    pub(crate) document: Box<str>,
    pub(crate) is_paused: bool,
}

/// Member of a subscription of the broker's own: the document of the situation whose inputs it brings.
pub(crate) const SITUATION: &str = "situation";

/// Member of a subscription of the broker's own, beside [`SITUATION`]: whether the situation is paused.
pub(crate) const PAUSED: &str = "paused";

impl Prepared {
    /// Puts an area along a way that was found.
    pub(crate) fn lay(&mut self, index: usize, way: Arc<Way>, corridor: Corridor) {
        let Some(route) = self.routes.get_mut(index) else { return };
        route.way = Some(way);
        if let Some(filter) = self.filters.get_mut(route.filter) {
            filter.area = Area::Corridor(Box::new(corridor));
        }
    }

    /// Narrows the subscription to the events of one tenant, and of these to the events that a token is confined to. What is
    /// told of it does not change.
    pub(crate) fn on_behalf(mut self, behalf: Behalf<'_>) -> Result<Self, ApiError> {
        behalf.confine(&mut self.filters)?;
        self.constraints = constraints_count(&self.filters);
        self.confinement = behalf.confinement.cloned();
        Ok(self)
    }
}

impl Weighed for Box<Prepared> {
    fn bytes(&self) -> usize {
        self.document.len()
    }
}

/// Reads subscriptions.
pub(crate) struct SubscriptionReader {
    world: World,
    limits: Limits,
    overflow: OverflowName,
    /// Whether subscriptions are kept on disk.
    has_store: bool,
}

impl SubscriptionReader {
    pub(crate) fn new(world: World, limits: Limits, overflow: OverflowName) -> Self {
        Self { world, limits, overflow, has_store: false }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Makes the reader one for a broker that keeps subscriptions on disk, or not.
    pub(crate) fn with_store(self, has_store: bool) -> Self {
        Self { has_store, ..self }
    }

    /// Reads a document, whose `id`, if it has one, must be the one that it is put under.
    pub(crate) fn parse(&self, id: &str, text: &str) -> Result<Prepared, ApiError> {
        let mut members = Members::parse(text)?;
        if let Some(text) = members.take("id") {
            let found: String = json::read(text, "/id", "a text")?;
            if found != id {
                let (found, id) = (quoted_part(&found), quoted_part(id));
                return Err(ApiError::invalid("/id", format!("is {found:?} here and {id:?} in the address")));
            }
        }
        let prepared = self.parse_rest(id, members)?;
        Ok(Prepared { source: self.has_store.then(|| text.into()), ..prepared })
    }

    /// Reads a subscription of the broker's own, which has the document of its situation beside it.
    pub(crate) fn parse_own(&self, id: &str, text: &str) -> Result<Prepared, ApiError> {
        let mut members = Members::parse(text)?;
        let is_paused = members.take(PAUSED) == Some("true");
        let situation =
            members.take(SITUATION).map(|document| StoredSituation { document: document.into(), is_paused });
        let prepared = self.parse_rest(id, members)?;
        Ok(Prepared { source: self.has_store.then(|| text.into()), situation, ..prepared })
    }

    /// Reads the members of a frame that are left when `id`, `op` and the like are taken. Of those only a durable
    /// subscription is to be kept.
    pub(crate) fn parse_members(&self, id: &str, members: Members<'_>) -> Result<Prepared, ApiError> {
        let is_kept = self.has_store && members.get("durable") == Some("true");
        let source = is_kept.then(|| members.to_text().into());
        Ok(Prepared { source, ..self.parse_rest(id, members)? })
    }

    /// Checks what a client wants to call a subscription.
    pub(crate) fn check_id(&self, id: &str, pointer: &str) -> Result<(), Fault> {
        let limit = self.limits.name_bytes;
        let detail = if id.is_empty() || id.len() > limit {
            format!("a subscription's id has 1 to {limit} bytes (limits.name_bytes)")
        } else if id.chars().any(char::is_control) {
            "a subscription's id has no control characters".to_owned()
        } else {
            return Ok(());
        };
        Err(Fault { pointer: pointer.to_owned(), detail })
    }

    fn parse_rest(&self, id: &str, mut members: Members<'_>) -> Result<Prepared, ApiError> {
        self.check_id(id, "/id")?;
        let mut faults = Vec::new();
        let durable = durable(&mut members, &mut faults);
        let overflow = overflow(&mut members, &mut faults);
        let bounds = InterestBounds { world: self.world, dwell_s: self.limits.ttl_s };
        let (interest, interest_document) = interest::take(&mut members, bounds, &mut faults);
        // What the broker says of a subscription beside it; so that what was answered can be sent back.
        members.take("activity");
        members.take("warnings");
        let texts = self.filter_texts(&mut members, &mut faults);
        members.refuse_rest("", &near::SUBSCRIPTION, 0, &mut faults);
        let mut filters = Vec::with_capacity(texts.len());
        let mut nearest = Vec::with_capacity(texts.len());
        let mut routes = Vec::new();
        let mut documents = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            match self.filter(text.get(), &format!("/filters/{index}"), &mut faults)? {
                Some(read) => {
                    self.check_counting(&nearest, read.nearest, index, &mut faults);
                    if let (Some(to), Some(radius)) = (read.route, read.filter.area.radius()) {
                        routes.push(RouteArea { filter: filters.len(), to, radius, way: None });
                    }
                    filters.push(read.filter);
                    nearest.push(read.nearest);
                    documents.push(read.document);
                }
                None if faults.is_empty() => {
                    return Err(ApiError::Internal("a filter is neither right nor wrong"));
                }
                None => {}
            }
        }
        if !faults.is_empty() {
            return Err(ApiError::Invalid(faults));
        }
        let told = match overflow.unwrap_or(self.overflow) {
            OverflowName::KeepLatest => "keep-latest",
            OverflowName::DropOldest => "drop-oldest",
            OverflowName::Disconnect => "disconnect",
        };
        let document = format!(
            r#"{{"id":{},"filters":[{}],{interest_document},"durable":{durable},"overflow":"{told}"}}"#,
            quoted(id),
            documents.join(",")
        );
        let (id, document) = (id.into(), document.into());
        Ok(Prepared {
            id,
            constraints: constraints_count(&filters),
            filters,
            confinement: None,
            nearest,
            routes,
            interest,
            durable,
            overflow,
            document,
            source: None,
            situation: None,
        })
    }

    fn filter_texts<'a>(&self, members: &mut Members<'a>, faults: &mut Vec<Fault>) -> Vec<&'a RawValue> {
        let limit = self.limits.filters_per_subscription;
        let expected = format!("an array of 1 to {limit} filters (limits.filters_per_subscription)");
        let read = match members.take("filters") {
            Some(text) => json::read::<Vec<&RawValue>>(text, "/filters", &expected),
            None => Err(Fault { pointer: "/filters".to_owned(), detail: format!("must be {expected}") }),
        };
        match read {
            Ok(texts) if (1..=limit).contains(&texts.len()) => texts,
            Ok(texts) => {
                let detail = format!("must be {expected}, found {}", texts.len());
                faults.push(Fault { pointer: "/filters".to_owned(), detail });
                Vec::new()
            }
            Err(fault) => {
                faults.push(fault);
                Vec::new()
            }
        }
    }

    /// Adds a fault where one more filter counts the nearest than `limits.nearest_filters` allows.
    fn check_counting(&self, before: &[Nearest], one_more: Nearest, index: usize, faults: &mut Vec<Fault>) {
        let limit = self.limits.nearest_filters;
        if one_more.is_some() && before.iter().flatten().count() >= limit {
            let pointer = format!("/filters/{index}/area/nearest");
            let detail = format!(
                "at most {limit} filters of a subscription may count the nearest (limits.nearest_filters)"
            );
            faults.push(Fault { pointer, detail });
        }
    }

    /// Reads a context set as a filter, beside its normalised form. It is of no client, so that its area neither follows one nor counts the
    /// nearest.
    pub(super) fn context(
        &self,
        text: &str,
        pointer: &str,
        faults: &mut Vec<Fault>,
    ) -> Result<Option<(Filter, String)>, ApiError> {
        let Some(FilterRead { filter, nearest, route, document }) = self.filter(text, pointer, faults)?
        else {
            return Ok(None);
        };
        let mut refuse = |member: &str, detail: &str| {
            faults.push(Fault { pointer: format!("{pointer}/{member}"), detail: detail.to_owned() });
        };
        if matches!(filter.area, Area::Following(_)) {
            refuse("area", "needs a `center`: there is no client that the area could follow");
        } else if route.is_some() {
            refuse("area", "cannot lie along a route: there is no client from which it could lead");
        } else if nearest.is_some() {
            refuse("area", "cannot count the nearest: that is for subscriptions");
        } else if filter.condition.reads_client() {
            refuse("where", "cannot have 'me': there is no client");
        } else {
            return Ok(Some((filter, document)));
        }
        Ok(None)
    }

    /// Reads a GeoJSON Polygon or MultiPolygon, which stands at `pointer`.
    pub(super) fn polygon(&self, text: &str, pointer: &str) -> Result<Polygon, Fault> {
        area::polygon(self.world, text, pointer, self.area_bounds())
    }

    fn area_bounds(&self) -> AreaBounds {
        let Limits { vertices_per_area: vertices, nearest, .. } = self.limits;
        AreaBounds { vertices, nearest }
    }

    /// A filter, or faults.
    fn filter(
        &self,
        text: &str,
        pointer: &str,
        faults: &mut Vec<Fault>,
    ) -> Result<Option<FilterRead>, ApiError> {
        let mut members = match Members::parse(text) {
            Ok(members) => members,
            Err(refusal) => return below(pointer, refusal, faults).map(|()| None),
        };
        let faults_before = faults.len();
        let mut document = Vec::new();
        let area = match members.take("area") {
            None => Some(AreaRead { area: Area::Everywhere, nearest: None, route: None }),
            Some(text) => {
                document.push(format!("\"area\":{text}"));
                match area::parse(self.world, text, self.area_bounds()) {
                    Ok(area) => Some(area),
                    Err(refusal) => below(&format!("{pointer}/area"), refusal, faults).map(|()| None)?,
                }
            }
        };
        let condition = match members.take("where") {
            None => Some(Condition::always()),
            Some(text) => match self.condition(text, &format!("{pointer}/where")) {
                Ok(condition) => {
                    document.push(format!("\"where\":{}", quoted(&condition.normal().to_string())));
                    Some(condition)
                }
                Err(fault) => {
                    faults.push(fault);
                    None
                }
            },
        };
        members.refuse_rest(pointer, &near::FILTER, faults_before, faults);
        let (Some(AreaRead { area, nearest, route }), Some(condition), true) =
            (area, condition, faults.len() == faults_before)
        else {
            return Ok(None);
        };
        let filter = Filter { area, condition };
        Ok(Some(FilterRead { filter, nearest, route, document: format!("{{{}}}", document.join(",")) }))
    }

    fn condition(&self, text: &str, pointer: &str) -> Result<Condition, Fault> {
        let fault = |pointer: String, detail: String| Fault { pointer, detail };
        let limit = self.limits.condition_bytes;
        if text.len() > limit {
            let detail = format!("a condition may have at most {limit} bytes (limits.condition_bytes)");
            return Err(fault(pointer.to_owned(), detail));
        }
        let document = value::read(text, pointer)?;
        cql2_json::condition(self.world, &document)
            .map_err(|error| fault(format!("{pointer}{}", error.pointer), error.detail))
    }
}

/// A filter as it was read.
struct FilterRead {
    filter: Filter,
    nearest: Nearest,
    route: Option<RouteTo>,
    /// The document in its normalised form.
    document: String,
}

fn constraints_count(filters: &[Filter]) -> u64 {
    filters.iter().map(|filter| filter.condition.normal().constraints_count()).sum()
}

/// Puts the faults of a part under the part's pointer.
pub(super) fn below(parent: &str, refusal: ApiError, faults: &mut Vec<Fault>) -> Result<(), ApiError> {
    let refusal = refusal.below(parent);
    if let ApiError::Invalid(found) = refusal {
        faults.extend(found);
        return Ok(());
    }
    Err(refusal)
}

fn durable(members: &mut Members<'_>, faults: &mut Vec<Fault>) -> bool {
    match members.take("durable") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            let detail = "must be true or false".to_owned();
            faults.push(Fault { pointer: "/durable".to_owned(), detail });
            false
        }
    }
}

fn overflow(members: &mut Members<'_>, faults: &mut Vec<Fault>) -> Option<OverflowName> {
    match members.take("overflow")? {
        "\"keep-latest\"" => Some(OverflowName::KeepLatest),
        "\"drop-oldest\"" => Some(OverflowName::DropOldest),
        "\"disconnect\"" => Some(OverflowName::Disconnect),
        _ => {
            let detail = "must be \"drop-oldest\", \"keep-latest\" or \"disconnect\"".to_owned();
            faults.push(Fault { pointer: "/overflow".to_owned(), detail });
            None
        }
    }
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::config::Config;

    fn reader() -> SubscriptionReader {
        let limits = Limits { filters_per_subscription: 2, condition_bytes: 40, ..Config::default().limits };
        SubscriptionReader::new(World::Geodetic, limits, OverflowName::DropOldest)
    }

    fn parse(text: &str) -> Result<Prepared, ApiError> {
        reader().parse("s1", text)
    }

    #[track_caller]
    fn check_fault(text: &str, expected: &[&str]) {
        let Err(ApiError::Invalid(faults)) = parse(text) else { panic!("{text} must be refused") };
        let pointers: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, expected, "{text}: {faults:?}");
    }

    #[test]
    fn where_a_part_cannot_be_read_is_told_of_the_document() {
        check_fault(
            r#"{"filters":[{"area":{"radius_m":5,"\ud800":1}},{"wher\udc00e":"a = 1"}]}"#,
            &["/filters/0/area", "/filters/1"],
        );
    }

    #[test]
    fn the_normalised_form_is_a_subscription_again() {
        let text = r#"{"filters":[{"area":{"radius_m":5},"where":"NOT (a = 1 OR b = 2)"},{}],"overflow":"disconnect"}"#;
        let prepared = parse(text).unwrap();
        assert_eq!(prepared.filters.len(), 2);
        assert_eq!(prepared.overflow, Some(OverflowName::Disconnect));
        let document: wire::Subscription = serde_json::from_str(&prepared.document).unwrap();
        assert_eq!(document.id.as_deref(), Some("s1"));
        assert_eq!(document.filters[0].condition, Some("NOT a = 1 AND NOT b = 2".into()));
        assert_eq!(&*parse(&prepared.document).unwrap().document, &*prepared.document);
    }

    #[test]
    fn what_is_kept_and_what_is_lost_stand_in_the_normalised_form() {
        for (members, durable, overflow) in [
            (r#""durable":true,"overflow":"keep-latest""#, true, Some(OverflowName::KeepLatest)),
            (r#""durable":false,"overflow":"drop-oldest""#, false, Some(OverflowName::DropOldest)),
            (r#""durable":null,"overflow":null"#, false, None),
        ] {
            let prepared = parse(&format!(r#"{{"filters":[{{}}],{members}}}"#)).unwrap();
            assert_eq!((prepared.durable, prepared.overflow), (durable, overflow), "{members}");
            let shown = members.replace("null,", "false,").replace("null", "\"drop-oldest\"");
            assert!(prepared.document.ends_with(&format!("{shown}}}")), "{}", prepared.document);
        }
    }

    #[test]
    fn transitions_and_the_nearest_stand_in_the_normalised_form() {
        let text = r#"{"activity":{"matches":3},"filters":[{"area":{"nearest":20,"radius_m":5}},{"area":{"nearest":1}}],
            "on":["exit","enter"],"initial":true,"dwell_s":2.5,"hysteresis_m":10}"#;
        let prepared = parse(text).unwrap();
        assert_eq!(prepared.nearest, [NonZeroU32::new(20), NonZeroU32::new(1)]);
        assert_eq!(prepared.filters[1].area, Area::Everywhere);
        let Interest::Transitions(transitions) = prepared.interest else { panic!("transitions") };
        assert!(transitions.enter && transitions.exit && transitions.initial);
        assert_eq!(
            &*prepared.document,
            concat!(
                r#"{"id":"s1","filters":[{"area":{"nearest":20,"radius_m":5}},{"area":{"nearest":1}}],"#,
                r#""on":["enter","exit"],"initial":true,"dwell_s":2.5,"hysteresis_m":10,"#,
                r#""durable":false,"overflow":"drop-oldest"}"#
            )
        );
        let again = parse(&prepared.document).unwrap();
        assert_eq!((&again.document, again.interest), (&prepared.document, prepared.interest));
        assert_eq!(again.nearest, prepared.nearest);
    }

    #[test]
    fn only_some_of_the_filters_may_count_the_nearest() {
        let limits = Limits { filters_per_subscription: 9, nearest_filters: 2, ..Config::default().limits };
        let reader = SubscriptionReader::new(World::Geodetic, limits, OverflowName::DropOldest);
        let parse = |filters: &str| reader.parse("s1", &format!(r#"{{"filters":[{filters}]}}"#));
        let counting = r#"{"area":{"nearest":3}}"#;
        assert!(parse(&format!("{{}},{counting},{{}},{counting},{{}}")).is_ok());
        let Err(ApiError::Invalid(faults)) = parse(&[counting, "{}", counting, counting, counting].join(","))
        else {
            panic!("two too many")
        };
        let pointers: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, ["/filters/3/area/nearest", "/filters/4/area/nearest"]);
        assert!(faults[0].detail.contains("limits.nearest_filters"), "{faults:?}");
    }

    #[test]
    fn every_fault_is_told_with_its_pointer() {
        check_fault("{}", &["/filters"]);
        check_fault(r#"{"filters":[]}"#, &["/filters"]);
        check_fault(r#"{"filters":[{},{},{}]}"#, &["/filters"]);
        check_fault(r#"{"filters":{}}"#, &["/filters"]);
        check_fault(r#"{"filters":[{"were":"a = 1"}],"extra":1}"#, &["/extra", "/filters/0/were"]);
        check_fault(
            r#"{"filters":[{"where":"a ="},{"where":5,"area":{"radius_m":-1}}]}"#,
            &["/filters/0/where", "/filters/1/area/radius_m", "/filters/1/where"],
        );
        check_fault(
            r#"{"filters":[{"where":{"op":"=","args":[{"property":"a"}]}}]}"#,
            &["/filters/0/where/args"],
        );
        check_fault(r#"{"filters":[7]}"#, &["/filters/0"]);
        check_fault(r#"{"id":"s2","filters":[{}]}"#, &["/id"]);
        check_fault(r#"{"filters":[{}],"on":["evnt"],"dwell_s":-1}"#, &["/on", "/dwell_s"]);
        check_fault(r#"{"filters":[{}],"initial":true}"#, &["/initial"]);
        check_fault(r#"{"filters":[{},{"area":{"radius_m":1,"nearest":0}}]}"#, &["/filters/1/area/nearest"]);
        check_fault(r#"{"filters":[{}],"overflow":"explode"}"#, &["/overflow"]);
        check_fault(r#"{"filters":[{}],"durable":"yes"}"#, &["/durable"]);
        check_fault(
            r#"{"filters":[{"where":{"op":"not","args":[{"a":1,"a":2}]}}]}"#,
            &["/filters/0/where/args/0/a"],
        );
        let long = format!(r#"{{"filters":[{{"where":"a = '{}'"}}]}}"#, "x".repeat(40));
        check_fault(&long, &["/filters/0/where"]);
    }

    #[test]
    fn what_is_kept_reads_as_the_same_subscription_again() {
        let reader = reader().with_store(true);
        let again = |source: &str, first: &Prepared| {
            let again = reader.parse("s1", source).unwrap();
            assert_eq!((&again.document, again.interest), (&first.document, first.interest), "{source}");
            assert_eq!((again.durable, again.overflow), (first.durable, first.overflow), "{source}");
            assert_eq!(again.nearest, first.nearest, "{source}");
        };
        let text = r#" {"id":"s1", "filters":[{"where":"a = 1 OR a = 2"}, {}], "activity":{"matches":1}} "#;
        let put = reader.parse("s1", text).unwrap();
        assert_eq!(put.source.as_deref(), Some(text));
        again(text, &put);
        // Of a frame what is no part of the subscription is gone.
        let frame = |durable: &str| {
            let text = format!(
                r#"{{"op":"subscribe","ref":7,"id":"s1","filter\u0073":[{{"where":"a LIKE '\"%'","area":{{"nearest":2}}}}],
                    {durable}"on":["enter"],"overflow":"keep-latest"}}"#
            );
            let mut members = Members::parse(&text).unwrap();
            assert!(["op", "ref", "id"].iter().all(|name| members.take(name).is_some()));
            reader.parse_members("s1", members).unwrap()
        };
        let durable = frame(r#""durable":true,"#);
        let source = durable.source.as_deref().unwrap();
        assert!(durable.durable && !source.contains("subscribe") && !source.contains('7'), "{source}");
        again(source, &durable);
        assert!(
            [frame(""), frame(r#""durable":false,"#)].iter().all(|one| one.source.is_none() && !one.durable)
        );
        // Without a store nothing is kept, so nothing is copied.
        assert!(parse(text).unwrap().source.is_none());
    }
}
