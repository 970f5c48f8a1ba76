//! From bytes to checked events, positions and subscriptions, and which of them a token permits.

pub(crate) mod area;
pub(crate) mod attributes;
mod behalf;
pub(crate) mod check;
mod confinement;
pub(crate) mod explain;
pub(crate) mod feature;
mod fields;
pub(crate) mod file;
pub(crate) mod framing;
pub(crate) mod groups;
pub(crate) mod interest;
pub(crate) mod json;
mod life;
pub(crate) mod near;
pub(crate) mod place;
pub(crate) mod position;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod rules;
pub(crate) mod scan;
pub(crate) mod subscription;
pub(crate) mod value;
mod zones;

pub(crate) use behalf::Behalf;
pub(crate) use confinement::Confinement;
pub(crate) use zones::Zones;

/// A document that was read, and its size.
pub(crate) trait Weighed {
    /// Bytes that it has in its normalised form: what was short may be long there.
    fn bytes(&self) -> usize;
}
