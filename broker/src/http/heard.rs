//! When a connection is one of somebody's, and no more one of nobody in particular.

use std::sync::Arc;

/// To be told once a request of a connection was let in, by its token where tokens are wanted.
#[derive(Clone)]
pub(crate) struct Heard(Arc<dyn Fn() + Send + Sync>);

impl Heard {
    pub(crate) fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn tell(&self) {
        (self.0)();
    }
}
