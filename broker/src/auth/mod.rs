//! Authentication and authorisation: tokens, the keys that they are checked with, and what they permit.
//!
//! A request is let in by its token alone (`gate`), which becomes a [`Permit`]: whom it is of, what it may do, to which events it
//! is confined, and for how long.
//! Where `auth.mode` is `none` everybody has the same permit, of everything and for good.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod gate;
mod keys;
mod permit;
mod renewable;
mod source;

pub use gate::Gate;
pub(crate) use permit::{Permit, Scope, Scopes, check_time};
pub(crate) use renewable::Renewable;
pub(crate) use source::{SUBPROTOCOL, Token, Whereabouts};
