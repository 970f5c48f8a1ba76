//! From bytes to checked events, positions and subscriptions.

pub(crate) mod area;
pub(crate) mod attributes;
pub(crate) mod explain;
pub(crate) mod feature;
pub(crate) mod file;
pub(crate) mod framing;
pub(crate) mod interest;
pub(crate) mod json;
mod life;
pub(crate) mod position;
pub(crate) mod subscription;
pub(crate) mod value;
