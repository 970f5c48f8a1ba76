//! Groups as situations: live objects are candidates, and how the reported groups change becomes findings.

use std::collections::HashMap;
use std::sync::Arc;

use groups::matching::{Bounds, Candidate, Change, Definition, Group, Matching, Overflow, RoleSet};
use matcher::condition::expression::Truth;
use matcher::event::Event;
use matcher::geo::World;
use matcher::subscription::Filter;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wire::{ConditionLeaves, ExplainedObject, ExplainedPartners, ExplainedRole};

use super::{Decided, Finding, Host, Input, Logic, Parts, Plan, Standing};
use crate::config;
use crate::ingest::feature::FeatureReader;
use crate::ingest::groups::{ReadGroups, read as read_document};
use crate::model::error::ApiError;

/// Inputs after which the candidates are kept, at least: as many as there are candidates, so that an input costs the same for that
/// however many there are.
const KEEP_EVERY: u64 = 1_024;

/// Bytes of a candidate besides its text, by estimate.
const CANDIDATE_BYTES: usize = 256;

/// Reads a document.
pub(super) fn read(host: &Host, name: &str, text: &str) -> Result<Plan, ApiError> {
    let world = World::from(host.config.server.world);
    let ReadGroups { roles, definition, conditions, filters, text: document } =
        read_document(&host.subscriptions, world, text)?;
    let config::Groups { candidates, pairs, looks } = host.config.groups;
    let groups = Arc::new(Groups {
        name: name.to_owned(),
        roles,
        conditions,
        names: definition.roles().map(Arc::from).collect(),
        definition,
        bounds: Bounds { candidates_max: candidates, pairs_max: pairs, looks_max: looks },
        world,
        // What waits must not be lost before it is known.
        keep_within: host.config.situations.kept_events as u64 / 4,
        depth_max: host.config.limits.derived_depth,
        features: Arc::clone(&host.accepted),
    });
    let begin = move || Box::new(Grouping::new(&groups)) as Box<dyn Logic>;
    Ok(Plan {
        document,
        filters,
        is_about_objects: true,
        comparisons: 0.0,
        begin: Box::new(begin),
        gate: None,
    })
}

/// A document, as it was read.
struct Groups {
    name: String,
    /// The filter of each role.
    roles: Vec<Filter>,
    names: Vec<Arc<str>>,
    conditions: Vec<String>,
    definition: Arc<Definition>,
    bounds: Bounds,
    world: World,
    /// Inputs within which the candidates are kept.
    keep_within: u64,
    /// An object whose event was derived as many times is no candidate: its groups could not be published.
    depth_max: u32,
    features: Arc<FeatureReader>,
}

impl Groups {
    /// How an object stands in a role, by the names of things.
    fn explained(&self, standing: &groups::matching::Standing) -> ExplainedRole {
        let role = |index: usize| self.names[index].to_string();
        let partners = standing.partners.iter().map(|partners| ExplainedPartners {
            role: role(partners.role),
            candidates: partners.candidates as u64,
            left: partners
                .left
                .iter()
                .map(|left| ConditionLeaves {
                    condition: self.conditions[left.condition].clone(),
                    candidates: left.alone as u64,
                })
                .collect(),
            fitting: partners.fitting as u64,
            consistent: partners.consistent as u64,
        });
        ExplainedRole {
            role: role(standing.role),
            failed: standing.failed.iter().map(|index| self.conditions[*index].clone()).collect(),
            consistent: standing.is_consistent,
            partners: partners.collect(),
        }
    }

    /// Why an object is in groups or in none, in one sentence.
    fn sentence(&self, object: &str, groups: u64, standings: &[groups::matching::Standing]) -> String {
        match groups {
            0 => {}
            1 => return format!("{object} is in one group"),
            _ => return format!("{object} is in {groups} groups"),
        }
        let reason = |standing| self.reason(standing);
        let reasons = standings.iter().map(|one| format!("as {}, {}", self.names[one.role], reason(one)));
        format!("{object} is in no group: {}", reasons.collect::<Vec<_>>().join("; "))
    }

    /// Why an object of one role is in no group.
    fn reason(&self, standing: &groups::matching::Standing) -> String {
        if !standing.failed.is_empty() {
            let failed: Vec<_> = standing.failed.iter().map(|index| &*self.conditions[*index]).collect();
            return format!("{} is not true of it", failed.join(" and "));
        }
        let Some(partners) = standing.partners.iter().find(|partners| partners.consistent == 0) else {
            return match standing.partners[..] {
                [] => {
                    "no condition holds it back: other groups come before its own, or a role has no candidate"
                }
                _ => "it has partners, but there is no whole group of them, or others come before it",
            }
            .to_owned();
        };
        let (other, candidates) = (&self.names[partners.role], partners.candidates);
        if candidates == 0 {
            return format!("there is no candidate for {other}");
        }
        if partners.fitting > 0 {
            return format!("none of the {} of role {other} that fit has partners itself", partners.fitting);
        }
        let mut parts = Vec::new();
        for left in &partners.left {
            let condition = &self.conditions[left.condition];
            parts.push(match (left.together, parts.is_empty()) {
                (0, true) => format!("none satisfies {condition}"),
                (0, false) => format!("and none of these {condition}"),
                (some, true) => format!("{some} satisfy {condition}"),
                (some, false) => format!("{some} of these {condition}"),
            });
            if left.together == 0 {
                break;
            }
        }
        format!("of {candidates} of role {other} none fits: {}", parts.join(", "))
    }
}

/// The name of an object in a matching, in the order of the names as they are shown. Keys and ids are two name spaces, and so are those
/// of publishers with different confinements.
fn object_of(input: &Input) -> Arc<str> {
    let (space, name) = input.key.as_ref().map_or(('i', &input.id), |key| ('k', key));
    format!("{name}\0{space}{}", input.within.as_deref().unwrap_or_default()).into()
}

/// The name of an object as it is shown.
pub(super) fn shown(object: &str) -> &str {
    object.rsplit_once('\0').map_or(object, |(name, _)| name)
}

/// Groups at work.
struct Grouping {
    groups: Arc<Groups>,
    matching: Matching,
    /// The newest event of each candidate.
    newest: HashMap<Arc<str>, Newest>,
    evaluations: u64,
    /// Inputs since the candidates were kept.
    inputs: u64,
    /// Bytes of the candidates' texts.
    text_bytes: usize,
    has_changed: bool,
    is_ending: bool,
    /// What another run decided of the input to come.
    decided: Decided,
    has_left_out: bool,
    problem: Option<String>,
}

/// What is kept of groups at work.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    /// Whether they are about to end, so that their exits are to be published.
    is_ending: bool,
    /// The newest event of each candidate: its publisher's confinement and its text. The groups follow from them, whatever their order.
    #[serde(borrow)]
    candidates: Vec<(Option<&'a str>, &'a str)>,
}

/// The newest event of an object, as groups are reported by it.
struct Newest {
    event: Arc<Event>,
    id: Arc<str>,
    time_ms: i64,
    depth: u32,
    within: Option<Box<str>>,
    text: Box<str>,
}

impl Grouping {
    fn new(groups: &Arc<Groups>) -> Self {
        Self {
            groups: Arc::clone(groups),
            matching: Matching::new(Arc::clone(&groups.definition), groups.bounds),
            newest: HashMap::new(),
            evaluations: 0,
            inputs: 0,
            text_bytes: 0,
            has_changed: true,
            is_ending: false,
            decided: Decided::Nothing,
            has_left_out: false,
            problem: None,
        }
    }

    /// The roles that an object may take by an event.
    fn roles(&self, event: &Event) -> RoleSet {
        let takes = |filter: &Filter| {
            filter.condition.expression().truth(event) == Truth::True
                && filter.area.holds(self.groups.world, None, &event.position)
        };
        (0..self.groups.roles.len()).filter(|role| takes(&self.groups.roles[*role])).collect()
    }

    /// Makes an object a candidate by an event. Where that would pass a bound it is none until its next event.
    fn put(&mut self, object: &Arc<str>, input: &Input) -> Result<Vec<Change>, Overflow> {
        let candidate = Candidate { event: Arc::clone(&input.event), time_ms: input.time_ms };
        let roles = self.roles(&input.event);
        let refused = match self.matching.put(object, roles, candidate) {
            Ok(changes) => {
                if !roles.is_empty() {
                    self.note(object, input);
                }
                return Ok(changes);
            }
            Err(refused) => refused,
        };
        self.has_left_out = true;
        self.problem = Some(format!(
            "with object {} there would be {refused} ({}), so that it is no candidate until its next event",
            shown(object),
            setting_of(refused)
        ));
        self.matching.remove(object)
    }

    /// Notes the event by which an object is a candidate.
    fn note(&mut self, object: &Arc<str>, input: &Input) {
        let text: Box<str> = input.text.as_deref().unwrap_or_default().into();
        self.text_bytes += text.len();
        let newest = Newest {
            event: Arc::clone(&input.event),
            id: Arc::clone(&input.id),
            time_ms: input.time_ms,
            depth: input.depth,
            within: input.within.clone(),
            text,
        };
        if let Some(before) = self.newest.insert(Arc::clone(object), newest) {
            self.text_bytes -= before.text.len();
        }
    }

    /// Forgets an object that is no candidate any more.
    fn forget(&mut self, object: &str) {
        if let Some(before) = self.newest.remove(object) {
            self.text_bytes -= before.text.len();
        }
    }

    /// The event that tells of a change.
    fn finding(&self, group: &Group, transition: &str, offset: u64) -> Option<Finding> {
        let members = || group.objects().iter().filter_map(|object| self.newest.get(object));
        let named = self.groups.names.iter().zip(group.objects());
        let roles: Map<_, _> = named.map(|(role, object)| (role.to_string(), json!(shown(object)))).collect();
        let properties = [
            ("type", json!("group")),
            ("group", json!(self.groups.name)),
            ("roles", Value::Object(roles)),
            ("transition", json!(transition)),
        ];
        Some(Finding {
            position: members().next()?.event.position,
            time_ms: members().map(|newest| newest.time_ms).max()?,
            properties: properties.map(|(name, value)| (name.to_owned(), value)).into_iter().collect(),
            from: members().map(|newest| Arc::clone(&newest.id)).collect(),
            depth: members().map(|newest| newest.depth).max()?,
            offset,
            key: None,
            ttl_s: None,
            rule: None,
        })
    }
}

impl Logic for Grouping {
    fn take(&mut self, input: Arc<Input>, findings: &mut Vec<Finding>) -> Result<(), String> {
        self.inputs += 1;
        let object = object_of(&input);
        if !input.is_live || input.is_exit && !self.newest.contains_key(&object) {
            return Ok(());
        }
        (self.evaluations, self.has_changed) = (self.evaluations + 1, true);
        let is_too_deep = self.decided == Decided::Nothing && input.depth >= self.groups.depth_max;
        if is_too_deep && !input.is_exit {
            self.has_left_out = true;
            self.problem = Some(format!(
                "the event of object {} was derived {} times (limits.derived_depth), so that it is no candidate until its next event",
                shown(&object),
                input.depth
            ));
        }
        let changes = if input.is_exit || is_too_deep || self.decided.without() != 0 {
            self.matching.remove(&object)
        } else {
            self.put(&object, &input)
        };
        let changes = changes.map_err(|overflow| {
            format!(
                "object {} cannot be taken away, for {overflow} ({})",
                shown(&object),
                setting_of(overflow)
            )
        })?;
        for change in &changes {
            let (group, transition) = match change {
                Change::Exit(group) => (group, "exit"),
                Change::Enter(group) => (group, "enter"),
            };
            findings.extend(self.finding(group, transition, input.offset));
        }
        if !self.matching.has(&object) {
            self.forget(&object);
        }
        Ok(())
    }

    fn end(&mut self, offset: u64, findings: &mut Vec<Finding>) {
        findings
            .extend(self.matching.groups().iter().filter_map(|group| self.finding(group, "exit", offset)));
    }

    fn standing(&mut self) -> Option<Standing> {
        if !std::mem::take(&mut self.has_changed) {
            return None;
        }
        let counts = self.groups.names.iter().map(Arc::clone).zip(self.matching.counts());
        Some(Standing { counts: counts.collect(), groups: self.matching.groups() })
    }

    fn why(&self, object: &str) -> Option<ExplainedObject> {
        // There may be an object with that key, another one with that id, and more of confined publishers: the answer is about all.
        let mut alike: Vec<_> = self.newest.keys().filter(|one| shown(one) == object).collect();
        alike.sort_unstable();
        let standings: Vec<_> = alike.into_iter().flat_map(|one| self.matching.why(one)).collect();
        let roles: Vec<_> = standings.iter().map(|standing| self.groups.explained(standing)).collect();
        let has = |group: &&Group| group.objects().iter().any(|one| shown(one) == object);
        let groups = self.matching.groups().iter().filter(has).count() as u64;
        (!roles.is_empty()).then(|| ExplainedObject {
            object: object.to_owned(),
            groups,
            why: self.groups.sentence(object, groups, &standings),
            roles,
        })
    }

    fn needs(&self) -> Option<u64> {
        // Until the candidates are kept.
        Some(0)
    }

    fn state(&mut self, is_wanted: bool) -> Option<Box<[u8]>> {
        let every = KEEP_EVERY.max(self.newest.len() as u64).min(self.groups.keep_within.max(1));
        if self.inputs < every && !is_wanted {
            return None;
        }
        self.inputs = 0;
        let candidates =
            self.newest.values().map(|newest| (newest.within.as_deref(), &*newest.text)).collect();
        let kept = Kept { is_ending: self.is_ending, candidates };
        postcard::to_stdvec(&kept).ok().map(Vec::into_boxed_slice)
    }

    fn ending(&mut self) -> Option<Box<[u8]>> {
        self.is_ending = true;
        self.state(true)
    }

    fn is_ending(&self) -> bool {
        self.is_ending
    }

    fn decided(&mut self, decided: Decided) {
        self.decided = decided;
        let is_open = decided == Decided::Nothing;
        self.matching.bound(if is_open { self.groups.bounds } else { Bounds::NONE });
    }

    fn left_out(&mut self) -> Parts {
        u64::from(std::mem::take(&mut self.has_left_out))
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let Kept { is_ending, candidates } =
            postcard::from_bytes(state).map_err(|error| error.to_string())?;
        self.is_ending = is_ending;
        self.matching.bound(Bounds::NONE);
        for (within, text) in candidates {
            let observed = self.groups.features.observe(text);
            let observed = observed.map_err(|refusal| refusal.problem().detail.unwrap_or_default())?;
            let mut input = Input::observed(&observed, observed.time_ms, 0);
            (input.text, input.within) = (Some(text.into()), within.map(Box::from));
            let object = object_of(&input);
            self.put(&object, &input).map_err(|overflow| overflow.to_string())?;
        }
        self.matching.bound(self.groups.bounds);
        Ok(())
    }

    fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    fn ahead(&self) -> u64 {
        0
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    fn engine(&self) -> &'static str {
        "cpu"
    }

    fn bytes(&self) -> usize {
        self.matching.bytes() + self.text_bytes + self.newest.len() * CANDIDATE_BYTES
    }
}

/// The setting that a bound comes from.
fn setting_of(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Candidates { .. } => "groups.candidates",
        Overflow::Pairs { .. } => "groups.pairs",
        Overflow::Looks { .. } => "groups.looks",
    }
}
