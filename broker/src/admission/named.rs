//! Entries that admission keeps by names from requests, as long as they tell anything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One of each name. One that nobody holds, and that tells no more than a new one would, is let go of now and then.
#[derive(Debug)]
pub(super) struct Named<T> {
    /// A std mutex: held for a look, and now and then for one at all of them.
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    by_name: HashMap<Arc<str>, Arc<T>, foldhash::fast::RandomState>,
    /// How many there may be before those are let go of that a new one could stand for.
    many: usize,
}

/// Entries that are kept whether they are needed or not.
pub(super) const FEW: usize = 1_024;

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { known: Mutex::new(Known { by_name: HashMap::default(), many: 0 }) }
    }
}

impl<T> Named<T> {
    /// The one of a name, if there is one.
    pub(super) fn find(&self, name: &str) -> Option<Arc<T>> {
        self.known().by_name.get(name).map(Arc::clone)
    }

    /// The one of a name, made by `new` where there is none. `is_rested` says of one whether a new one would do as well.
    pub(super) fn of(
        &self,
        name: &str,
        is_rested: impl Fn(&T) -> bool,
        new: impl FnOnce() -> Arc<T>,
    ) -> Arc<T> {
        let mut known = self.known();
        if let Some(one) = known.by_name.get(name) {
            return Arc::clone(one);
        }
        if known.by_name.len() >= known.many.max(FEW) {
            known.by_name.retain(|_, one| Arc::strong_count(one) > 1 || !is_rested(one));
            // So the look at all of them costs each new one as much as a few looks at one.
            known.many = known.by_name.len() * 2;
        }
        let one = new();
        known.by_name.insert(name.into(), Arc::clone(&one));
        one
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known().by_name.len()
    }

    fn known(&self) -> MutexGuard<'_, Known<T>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
