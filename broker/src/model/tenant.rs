//! Tenants: clients, events and objects by the same names, each of which is another one's.
//!
//! Inside the broker a name of a tenant carries the tenant's, and is shown without it. In matching, where tokens are wanted,
//! every event has an attribute with its tenant, and every filter asks for its own: whatever else an engine does, it keeps
//! tenants apart by what it is exact in.

use std::borrow::Cow;

use matcher::condition::expression::{Comparison, Constraint, Test};
use matcher::event::{Attribute, Event, Scalar, Symbol, Value};
use matcher::subscription::Filter;

/// Stands before and behind a tenant's name, which has none of it, and neither have names of clients.
const MARK: char = '\u{1}';

/// The attribute of events. A document that has it is refused.
pub(crate) const ATTRIBUTE: &str = "\u{1}tenant";

/// Begins the names of the broker's own clients, as they are shown: `~checks/jump`.
pub(crate) const OWN: char = '~';

/// Whether a name, as it is shown, is that of a client of the broker's own.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with(OWN)
}

/// A name as the broker knows it. The tenant that has no name has names as they are, so that nothing changes where there are no
/// tenants; one that looks like another tenant's is told apart.
pub(crate) fn inside<'a>(tenant: &str, name: &'a str) -> Cow<'a, str> {
    if tenant.is_empty() && !name.starts_with(MARK) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{MARK}{tenant}{MARK}{name}"))
}

/// The tenant of a name that the broker knows, and the name as it is shown.
pub(crate) fn split(name: &str) -> (&str, &str) {
    name.strip_prefix(MARK).and_then(|rest| rest.split_once(MARK)).unwrap_or(("", name))
}

/// A name as it is shown.
pub(crate) fn outside(name: &str) -> &str {
    split(name).1
}

/// Says of an event whose it is.
pub(crate) fn mark(event: &mut Event, tenant: &str) {
    event.attributes.retain(|attribute| attribute.name.as_str() != ATTRIBUTE);
    let value = Value::Scalar(Scalar::Text(Symbol::new(tenant)));
    event.attributes.push(Attribute { name: Symbol::new(ATTRIBUTE), value });
}

/// Name of an event's tenant.
pub(crate) fn of(event: &Event) -> &str {
    marked(event).unwrap_or_default()
}

/// Name of an event's tenant, if it says whose it is.
pub(crate) fn marked(event: &Event) -> Option<&str> {
    let own = event.attributes.iter().rev().find(|attribute| attribute.name.as_str() == ATTRIBUTE);
    match own.map(|attribute| &attribute.value) {
        Some(Value::Scalar(Scalar::Text(tenant))) => Some(tenant.as_str()),
        Some(Value::Scalar(_) | Value::Array(_)) | None => None,
    }
}

/// Lets filters take a tenant's events alone.
pub(crate) fn confine(filters: &mut [Filter], tenant: &str) {
    let value = Scalar::Text(Symbol::new(tenant)).into();
    let own = Constraint {
        name: Symbol::new(ATTRIBUTE),
        casei: false,
        test: Test::Compare(Comparison::Equal, value),
    };
    for filter in filters {
        filter.condition = std::mem::take(&mut filter.condition).and(own.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_one_inside() {
        let tenants = ["", "a", "b", "key:a", "a b"];
        let names =
            ["", "x", "a", "id:x", "\u{1}", "\u{1}a", "\u{1}a\u{1}x", "\u{1}\u{1}x", "\u{1}key:a\u{1}x"];
        let mut seen = std::collections::HashMap::new();
        for tenant in tenants {
            for name in names {
                let inside = inside(tenant, name).into_owned();
                assert_eq!(split(&inside), (tenant, name), "{inside:?}");
                assert_eq!(seen.insert(inside.clone(), (tenant, name)), None, "{inside:?}");
            }
        }
        assert_eq!(inside("", "x"), "x");
    }
}
