//! Parts of subscriptions that every fast engine keeps on the host: names, texts, constraints and areas by number.
//!
//! A condition's normal form becomes words ([`constraints`]) that refer to interned names and texts; an area becomes a
//! number ([`shapes`]); a [`roster`] knows which subscriptions are whose. An event is seen through the numbers of its
//! names ([`view`]). Engines put filters where they find them quickly, by the bounds and codes of what is here
//! ([`codes`]), and decide by it exactly what those leave in doubt.

pub mod codes;
pub mod constraints;
pub mod names;
pub mod roster;
pub mod shapes;
pub mod slab;
pub mod table;
pub mod texts;
pub mod view;

/// No number: in lists that end.
pub const NONE: u32 = u32::MAX;
