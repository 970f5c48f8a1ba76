//! Documents of groups.

use std::sync::Arc;

use groups::matching::{Definition, DefinitionError, Part};
use matcher::geo::World;
use matcher::subscription::Filter;
use serde_json::json;
use serde_json::value::RawValue;
use wire::Fault;

use super::fields::{fault, filled_object};
use super::json::{self, Members};
use super::near;
use super::subscription::{SubscriptionReader, quoted};
use crate::model::error::ApiError;

/// Reported groups where a document does not say how many.
const LIMIT_DEFAULT: usize = 100;

/// Reported groups, at most.
const LIMIT_MAX: usize = 1_000;

/// Begins the names of the attributes that tell the members of a group.
const ROLES: &str = "roles.";

/// A document that was read.
pub(crate) struct ReadGroups {
    /// The filter of each role, in the order of the definition's roles.
    pub(crate) roles: Vec<Filter>,
    pub(crate) definition: Arc<Definition>,
    /// The texts of its conditions.
    pub(crate) conditions: Vec<String>,
    /// The filters of the candidates, as a subscription has them.
    pub(crate) filters: Vec<String>,
    /// Its normalised form.
    pub(crate) text: String,
}

/// Reads what groups are.
///
/// # Errors
/// [`ApiError::Invalid`] with every fault that was found, and [`ApiError::Malformed`].
pub(crate) fn read(reader: &SubscriptionReader, world: World, text: &str) -> Result<ReadGroups, ApiError> {
    let mut members = Members::parse(text)?;
    let mut faults = Vec::new();
    // What the broker says of groups beside them; so that what was answered can be sent back.
    for told in ["name", "activity", "groups"] {
        members.take(told);
    }
    let mut roles = Roles::default();
    roles.read(reader, &mut members, &mut faults)?;
    let conditions = conditions(&mut members, &mut faults);
    let limit = limit(&mut members, &mut faults);
    let order = members.take("order").filter(|text| *text != "null").and_then(|text| {
        json::read::<String>(text, "/order", "a term over the roles, such as \"DISTANCE(taxi, rider)\"")
            .map_err(|found| faults.push(found))
            .ok()
    });
    members.refuse_rest("", &near::GROUPS, 0, &mut faults);
    let names: Vec<_> = roles.names.iter().map(String::as_str).collect();
    let texts: Vec<_> = conditions.iter().map(String::as_str).collect();
    let definition = Definition::new(world, &names, &texts, order.as_deref(), limit);
    let definition = definition.map_err(|found| {
        // A role with a fault of its own is not among the names.
        if faults.is_empty() {
            faults.extend(found.into_iter().map(|error| told(&names, error)));
        }
    });
    let (Ok(definition), true) = (definition, faults.is_empty()) else {
        return Err(ApiError::Invalid(faults));
    };
    let order = order.map(|order| format!(r#","order":{}"#, quoted(&order))).unwrap_or_default();
    let text = format!(
        r#"{{"roles":{{{}}},"where":{},"limit":{limit}{order}}}"#,
        roles.documents.join(","),
        json!(conditions)
    );
    let Roles { names: _, roles, documents: _, filters } = roles;
    Ok(ReadGroups { roles, definition: Arc::new(definition), conditions, filters, text })
}

/// A fault of the definition, where it is in the document.
fn told(names: &[&str], DefinitionError { part, fault }: DefinitionError) -> Fault {
    let pointer = match part {
        Part::Roles => "/roles".to_owned(),
        Part::Role(index) => json::pointer("/roles", names[index]),
        Part::Conditions => "/where".to_owned(),
        Part::Where(index) => format!("/where/{index}"),
        Part::Order => "/order".to_owned(),
    };
    Fault { pointer, detail: fault.to_string() }
}

/// The roles, each as it is evaluated, as it is shown, and as a filter.
#[derive(Default)]
struct Roles {
    names: Vec<String>,
    roles: Vec<Filter>,
    documents: Vec<String>,
    filters: Vec<String>,
}

impl Roles {
    fn read(
        &mut self,
        reader: &SubscriptionReader,
        members: &mut Members<'_>,
        faults: &mut Vec<Fault>,
    ) -> Result<(), ApiError> {
        const EXPECTED: &str = "an object of roles, such as {\"taxi\": {\"where\": \"type = 'taxi'\"}, \"rider\": {\"where\": \"type = 'rider'\"}}";
        let Some(roles) = filled_object(members, "roles", EXPECTED, faults)? else { return Ok(()) };
        for (name, text) in roles.rest() {
            let pointer = json::pointer("/roles", name);
            if name.is_empty() || name.contains('.') {
                fault::<()>(
                    faults,
                    &pointer,
                    "a role has a name without dots, which stand before attributes",
                );
            }
            let limit = reader.limits().name_bytes;
            if ROLES.len() + name.len() > limit {
                let detail = format!(
                    "{ROLES}NAME is an attribute of each group's event, and names of attributes have at most {limit} bytes (limits.name_bytes)"
                );
                fault::<()>(faults, &pointer, &detail);
            }
            let Some((filter, document)) = reader.context(text, &pointer, faults)? else { continue };
            self.names.push(name.to_owned());
            self.roles.push(filter);
            self.documents.push(format!("{}:{document}", quoted(name)));
            if !self.filters.contains(&document) {
                self.filters.push(document);
            }
        }
        Ok(())
    }
}

/// The conditions between roles; none where there is no `where`.
fn conditions(members: &mut Members<'_>, faults: &mut Vec<Fault>) -> Vec<String> {
    const EXPECTED: &str =
        "an array of conditions over one or two roles, such as [\"DISTANCE(taxi, rider) <= 800\"]";
    let Some(text) = members.take("where") else { return Vec::new() };
    let mut noted = |found: Result<_, Fault>| found.map_err(|fault| faults.push(fault)).ok();
    let texts = match json::read::<Vec<&RawValue>>(text, "/where", EXPECTED) {
        Ok(texts) => texts,
        Err(fault) => return noted(Err(fault)).into_iter().collect(),
    };
    let condition = |(index, text): (usize, &RawValue)| {
        noted(json::read(text.get(), &format!("/where/{index}"), "a condition, a text"))
    };
    texts.into_iter().enumerate().filter_map(condition).collect()
}

fn limit(members: &mut Members<'_>, faults: &mut Vec<Fault>) -> usize {
    let expected = format!("a whole number from 1 to {LIMIT_MAX}");
    let Some(text) = members.take("limit") else { return LIMIT_DEFAULT };
    match json::read::<usize>(text, "/limit", &expected) {
        Ok(limit) if (1..=LIMIT_MAX).contains(&limit) => limit,
        Ok(_) => {
            fault::<()>(faults, "/limit", &format!("must be {expected}"));
            LIMIT_DEFAULT
        }
        Err(found) => {
            faults.push(found);
            LIMIT_DEFAULT
        }
    }
}
