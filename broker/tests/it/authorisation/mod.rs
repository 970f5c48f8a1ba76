//! Who may do what. The calls come from `/openapi.json` and the frames from its schema: one that these tests do not know is a
//! failure, so that none is let in by having been forgotten.

mod confined;
mod frames;
mod gates;
mod keys;
mod matrix;
mod privacy;
mod published;
mod publisher;
mod quotas;
mod situations;
mod streams;
mod tenants;
mod tokens;

use std::path::PathBuf;

use tempfile::TempDir;

use crate::harness::Serve;
pub(crate) use frames::open;
use tokens::Issuer;
pub(crate) use tokens::{ISSUER, claims};

/// A broker that wants tokens, with the keys of an issuer in a file, and more for its configuration, beginning with what
/// belongs to the section `auth`; and that file.
pub(crate) fn guarded(issuer: &Issuer, config: &str) -> (Serve, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let jwks = folder.path().join("keys.json");
    issuer.write(&jwks);
    let path = jwks.to_str().expect("a plain path");
    let serve = Serve::new().args(&["--auth", "jwt", "--jwks", path]).config(&format!("[auth]\n{config}"));
    (serve.keeping(folder), jwks)
}
