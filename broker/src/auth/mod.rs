//! Authentication and authorisation: tokens, the keys that they are checked with, and what they permit.
//!
//! A token alone authenticates a request. It becomes a [`Principal`]: its client, what that may do, to which events it
//! is confined, and for how long.
//! The keys are those of a file, or of an issuer that publishes them.
//! Where `auth.mode` is `none` everybody is the same principal, which may do everything and does not expire.

mod authenticator;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod issue;
mod issuer;
mod key_file;
mod keys;
mod principal;
mod renewable;
mod source;

pub use authenticator::Authenticator;
pub use issue::{Grant, Issued, issue, public_half};
pub(crate) use principal::{Principal, Scope, Scopes, check_time};
pub(crate) use renewable::Renewable;
pub(crate) use source::{SUBPROTOCOL, Token, TokenSource, is_token};
