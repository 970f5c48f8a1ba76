//! Bytes that are held for a connection, a client, a tenant and all of them together.
//!
//! This is the one place that accounts for memory. Each holder has an [`Account`] with a count for each [`Kind`]. The count
//! of an account is part of its parent's, too: a connection's of its client's, a client's of its tenant's, a tenant's of the
//! broker's. Code that keeps something for longer than a step keeps a [`Held`] beside it, which gives the bytes back when it
//! is dropped. Where a level has a bound for a kind, a request that would pass it is refused with the setting that says so.
//!
//! The accounts of clients and tenants are found by name, once, and then kept by what holds something; an account that nothing holds is gone.
//! Counting takes an atomic addition for each level and no lock.

mod account;
mod bounds;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::config::Config;
use crate::model::tenant;
pub(crate) use account::{Account, Held};
use bounds::{Bounds, Level};

/// The purpose for which bytes are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Answers that wait for a connection.
    Answers,
    /// Deliveries that wait for a connection.
    Outbox,
    /// Matches that are kept until they are acknowledged.
    Kept,
    /// Live events, in all engines.
    LiveEvents,
    /// How live objects stand to subscriptions.
    Members,
    /// The log of deliveries to all clients.
    DeliveryLog,
    /// The documents of subscriptions.
    Documents,
    /// Findings ahead of changes that are put off.
    Surveys,
    /// Pages of live events on their way to askers.
    Pages,
    /// Areas along routes.
    Routes,
}

/// All accounts. A clone is another handle to the same.
#[derive(Clone)]
pub(crate) struct Budget {
    books: Arc<Books>,
    broker: Arc<Account>,
}

/// State that accounts share: their bounds, and the registers in which they are found by name.
struct Books {
    bounds: Bounds,
    tenants: Register,
    clients: Register,
}

/// Accounts by name. An account removes its entry when it goes. The lock is held to look one up, or to put one in or out.
#[derive(Default)]
struct Register(RwLock<HashMap<Arc<str>, Weak<Account>, foldhash::fast::RandomState>>);

impl Kind {
    /// How many there are.
    const COUNT: usize = Self::ALL.len();

    /// All kinds.
    pub(crate) const ALL: [Self; 10] = [
        Self::Answers,
        Self::Outbox,
        Self::Kept,
        Self::LiveEvents,
        Self::Members,
        Self::DeliveryLog,
        Self::Documents,
        Self::Surveys,
        Self::Pages,
        Self::Routes,
    ];

    /// Its name in figures.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Outbox => "outbox",
            Self::Kept => "kept",
            Self::LiveEvents => "live_events",
            Self::Members => "members",
            Self::DeliveryLog => "delivery_log",
            Self::Documents => "documents",
            Self::Surveys => "surveys",
            Self::Pages => "pages",
            Self::Routes => "routes",
        }
    }
}

impl Budget {
    pub(crate) fn new(config: &Config) -> Self {
        Self::within(Bounds::of(config))
    }

    fn within(bounds: Bounds) -> Self {
        let books = Arc::new(Books { bounds, tenants: Register::default(), clients: Register::default() });
        let broker = Account::new(Level::Broker, "".into(), None, Arc::clone(&books));
        Self { books, broker: Arc::new(broker) }
    }

    /// The account of the whole broker: of all holders together, and of bytes that are held for nobody in particular.
    pub(crate) fn broker(&self) -> &Arc<Account> {
        &self.broker
    }

    /// A tenant's account, by its name; the tenant without a name has one, too.
    pub(crate) fn tenant(&self, tenant: &str) -> Arc<Account> {
        self.books.tenants.find_or_insert(tenant, |name| {
            Account::new(Level::Tenant, name, Some(Arc::clone(&self.broker)), Arc::clone(&self.books))
        })
    }

    /// A client's account, by its name with that of its tenant (see [`tenant::inside`]).
    pub(crate) fn client(&self, client: &str) -> Arc<Account> {
        if let Some(account) = self.books.clients.find(client) {
            return account;
        }
        let parent = self.tenant(tenant::split(client).0);
        self.books.clients.find_or_insert(client, |name| {
            Account::new(Level::Client, name, Some(parent), Arc::clone(&self.books))
        })
    }

    /// The account of one of a client's connections, which nobody else finds.
    pub(crate) fn connection(&self, client: &Arc<Account>) -> Arc<Account> {
        let (parent, books) = (Arc::clone(client), Arc::clone(&self.books));
        Arc::new(Account::new(Level::Connection, "".into(), Some(parent), books))
    }
}

impl Register {
    fn find(&self, name: &str) -> Option<Arc<Account>> {
        // A panic under the lock is impossible but for memory running out; what is there is still right. The same below.
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).and_then(Weak::upgrade)
    }

    fn find_or_insert(&self, name: &str, make: impl FnOnce(Arc<str>) -> Account) -> Arc<Account> {
        if let Some(account) = self.find(name) {
            return account;
        }
        let name: Arc<str> = name.into();
        let new = Arc::new(make(Arc::clone(&name)));
        let mut accounts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been first. An account on its way out cannot be had any more, and holds nothing.
        if let Some(account) = accounts.get(&name).and_then(Weak::upgrade) {
            drop(accounts);
            return account;
        }
        accounts.insert(name, Arc::downgrade(&new));
        drop(accounts);
        new
    }

    /// Forgets an account that is on its way out, unless another one has taken its name since.
    fn forget(&self, account: &Account) {
        let mut accounts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_this = |entry: &Weak<Account>| std::ptr::eq(entry.as_ptr(), account);
        if accounts.get(account.name()).is_some_and(is_this) {
            accounts.remove(account.name());
        }
    }
}

impl Books {
    fn forget(&self, account: &Account) {
        match account.level() {
            Level::Tenant => self.tenants.forget(account),
            Level::Client => self.clients.forget(account),
            Level::Broker | Level::Connection => {}
        }
    }
}

#[cfg(test)]
mod tests;
