//! Engine time: what clients cost the threads of the engines, and how those wait that cost too much.
//!
//! An account fills up by so many milliseconds a second, and holds what it gets in [`BURST_S`]. A command is paid for after it was
//! carried out, since nothing else tells what it costs: an account may so be in debt. Whatever its owner asks for next that
//! costs an engine something waits, before the queues of the engines, until the debt is paid.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Config;
use crate::metrics::Metrics;
use crate::refusal::Refusal;
use crate::tenant;

/// Seconds whose worth may be used at once: a client that begins brings what is to stay.
const BURST_S: u32 = 2;

/// No debt takes longer to pay: a single accident does not lock a client out for a day.
const DEBT_MAX: Duration = Duration::from_secs(600);

/// Accounts that are kept whether they are full or not.
const FEW: usize = 1_024;

/// The accounts of all clients and tenants. They are made when something is charged, and let go of when they are full again.
pub(crate) struct EngineTime {
    metrics: Arc<Metrics>,
    started: Instant,
    clients: Accounts,
    tenants: Accounts,
    /// Until then somebody may be in debt; nanoseconds from `started`. Mostly nobody is, and that is all that is looked at.
    debts_until_ns: AtomicU64,
}

/// Of clients by their names inside, or of tenants.
#[derive(Debug)]
struct Accounts {
    /// 0: any number, and nothing is charged.
    ms_per_second: u32,
    setting: &'static str,
    /// A std mutex: held for a look, and now and then for one at all of them.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<Arc<str>, Arc<Account>, foldhash::fast::RandomState>,
    /// How many there may be before those are let go of that are full.
    many: usize,
}

/// The account of a client or a tenant.
#[derive(Debug)]
struct Account {
    /// A std mutex: held for a look.
    balance: Mutex<Balance>,
    /// Commands that wait for the debt to be paid go on one after the other, each when the one before has been charged.
    passing: Arc<Semaphore>,
}

#[derive(Debug)]
struct Balance {
    /// When it will be full again.
    full_at: Instant,
    /// The subscriptions that cost most when it was charged last.
    costliest: Arc<[Cost]>,
}

/// What a subscription has cost of late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) subscription: Arc<str>,
    pub(crate) ms: u64,
}

/// The debts that a command had to wait for, until it has been carried out and charged itself.
#[derive(Debug, Default)]
pub(crate) struct Paid {
    _passing: Vec<OwnedSemaphorePermit>,
}

impl EngineTime {
    pub(crate) fn new(config: &Config, metrics: &Arc<Metrics>) -> Arc<Self> {
        let (own, tenant) =
            (config.admission.engine_ms_per_second, config.quotas.tenant_engine_ms_per_second);
        Arc::new(Self {
            metrics: Arc::clone(metrics),
            started: Instant::now(),
            clients: Accounts::new(own, "admission.engine_ms_per_second"),
            tenants: Accounts::new(tenant, "quotas.tenant_engine_ms_per_second"),
            debts_until_ns: AtomicU64::new(0),
        })
    }

    /// Charges a client, by its name inside, and its tenant. Says whether the client is in debt.
    pub(crate) fn charge(&self, client: &str, took: Duration, now: Instant) -> bool {
        self.metrics.engine_charged.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        let of_tenant = self.tenants.charge(tenant::split(client).0, took, now);
        let of_client = self.clients.charge(client, took, now);
        if let Some(longest) = of_tenant.into_iter().chain(of_client).max() {
            let until = (now + longest).saturating_duration_since(self.started);
            let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
            self.debts_until_ns.fetch_max(until, Ordering::Relaxed);
        }
        of_client.is_some()
    }

    /// Notes which subscriptions of a client in debt cost most.
    pub(crate) fn explain(&self, client: &str, costliest: Vec<Cost>) {
        if let Some(account) = self.clients.find(client) {
            account.balance().costliest = costliest.into();
        }
    }

    /// Whether so many milliseconds are more than a client may use in so many seconds.
    pub(crate) fn is_beyond(&self, ms: f64, seconds: f64) -> bool {
        self.clients.ms_per_second > 0 && ms > f64::from(self.clients.ms_per_second) * seconds
    }

    /// What is told of subscriptions that cost a client more than that.
    pub(crate) fn refusal(&self, costliest: Vec<Cost>) -> Refusal {
        let Accounts { ms_per_second, setting, .. } = self.clients;
        let debt = Duration::from_secs(BURST_S.into());
        Refusal::TooCostly { limit: ms_per_second.into(), setting, debt, costliest: costliest.into() }
    }

    /// Lets a command of a client go on that is going to cost an engine something: at once, or when what the client and its
    /// tenant owe has been paid. Where that takes longer than a sender is held back, it is refused.
    pub(super) async fn pay(&self, client: &str, patience: Duration) -> Result<Paid, Refusal> {
        let begun = Instant::now();
        let mut paid = Paid::default();
        if !self.has_debts(begun) {
            return Ok(paid);
        }
        for (accounts, name) in [(&self.tenants, tenant::split(client).0), (&self.clients, client)] {
            let Some(account) = accounts.find(name) else { continue };
            if account.debt(accounts.burst(), begun).is_none() {
                continue;
            }
            self.metrics.held_for_cost.add(1);
            let passed = account.pass(accounts.burst(), begun + patience).await;
            paid._passing.push(passed.map_err(|debt| {
                let costliest = Arc::clone(&account.balance().costliest);
                let limit = accounts.ms_per_second.into();
                Refusal::TooCostly { limit, setting: accounts.setting, debt, costliest }
            })?);
        }
        Ok(paid)
    }

    fn has_debts(&self, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.started).as_nanos();
        now < u128::from(self.debts_until_ns.load(Ordering::Relaxed))
    }
}

impl Accounts {
    fn new(ms_per_second: u32, setting: &'static str) -> Self {
        Self { ms_per_second, setting, known: Mutex::default() }
    }

    /// How long an account that is empty takes to be full.
    fn burst(&self) -> Duration {
        Duration::from_secs(BURST_S.into())
    }

    /// Charges one, and says how long its debt takes to be paid, if it has any.
    fn charge(&self, name: &str, took: Duration, now: Instant) -> Option<Duration> {
        if self.ms_per_second == 0 {
            return None;
        }
        let takes = took.saturating_mul(1_000) / self.ms_per_second;
        self.of(name, now).charge(takes, self.burst(), now)
    }

    fn find(&self, name: &str) -> Option<Arc<Account>> {
        self.known().by_name.get(name).map(Arc::clone)
    }

    fn of(&self, name: &str, now: Instant) -> Arc<Account> {
        let mut known = self.known();
        if let Some(account) = known.by_name.get(name) {
            return Arc::clone(account);
        }
        if known.by_name.len() >= known.many.max(FEW) {
            let is_needed = |account: &Arc<Account>| Arc::strong_count(account) > 1 || !account.is_full(now);
            known.by_name.retain(|_, account| is_needed(account));
            // So the look at all of them costs each new one as much as a few looks at one.
            known.many = known.by_name.len() * 2;
        }
        let account = Arc::new(Account::new(now));
        known.by_name.insert(name.into(), Arc::clone(&account));
        account
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn new(now: Instant) -> Self {
        let balance = Balance { full_at: now, costliest: Arc::new([]) };
        Self { balance: Mutex::new(balance), passing: Arc::new(Semaphore::new(1)) }
    }

    /// Charges what takes so long to come in again, and says how long the debt takes to be paid, if there is one.
    fn charge(&self, takes: Duration, burst: Duration, now: Instant) -> Option<Duration> {
        let mut balance = self.balance();
        let full_at = balance.full_at.max(now) + takes;
        balance.full_at = full_at.min(now + burst + DEBT_MAX);
        debt(balance.full_at, burst, now)
    }

    /// How long the debt takes to be paid, if there is one.
    fn debt(&self, burst: Duration, now: Instant) -> Option<Duration> {
        debt(self.balance().full_at, burst, now)
    }

    fn is_full(&self, now: Instant) -> bool {
        self.balance().full_at <= now
    }

    /// Waits until the debt is paid, in the order in which it is asked. Says how long that takes where it takes too long.
    async fn pass(&self, burst: Duration, deadline: Instant) -> Result<OwnedSemaphorePermit, Duration> {
        let left = |debt: &Duration| Instant::now() + *debt <= deadline;
        let first = self.debt(burst, Instant::now()).unwrap_or_default();
        if !left(&first) {
            return Err(first);
        }
        let turn = Arc::clone(&self.passing).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout_at(deadline.into(), turn).await else {
            return Err(self.debt(burst, Instant::now()).unwrap_or_default());
        };
        while let Some(debt) = self.debt(burst, Instant::now()) {
            if !left(&debt) {
                return Err(debt);
            }
            tokio::time::sleep(debt).await;
        }
        Ok(permit)
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn debt(full_at: Instant, burst: Duration, now: Instant) -> Option<Duration> {
    let debt = full_at.saturating_duration_since(now).saturating_sub(burst);
    (!debt.is_zero()).then_some(debt)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn engine_time(own: u32, tenant: u32) -> Arc<EngineTime> {
        let mut config = Config::default();
        config.admission.engine_ms_per_second = own;
        config.quotas.tenant_engine_ms_per_second = tenant;
        EngineTime::new(&config, &Arc::new(Metrics::new(1)))
    }

    fn debt_of(time: &EngineTime, client: &str, now: Instant) -> Option<Duration> {
        time.clients.find(client)?.debt(time.clients.burst(), now)
    }

    #[test]
    fn what_is_beyond_a_burst_is_owed_and_paid_by_time() {
        let time = engine_time(100, 0);
        let start = Instant::now();
        assert!(!time.charge("car", 200 * MS, start), "two seconds' worth may come at once");
        assert!(!time.has_debts(start));
        assert!(time.charge("car", 10 * MS, start));
        assert_eq!(debt_of(&time, "car", start), Some(100 * MS));
        assert!(time.has_debts(start) && !time.has_debts(start + 110 * MS));
        assert_eq!(debt_of(&time, "car", start + 60 * MS), Some(40 * MS));
        assert_eq!(debt_of(&time, "car", start + 100 * MS), None);
        // Nothing is saved up beyond a burst.
        let later = start + Duration::from_secs(3_600);
        assert!(!time.charge("car", 200 * MS, later) && time.charge("car", MS, later));
        // Nobody else owes anything.
        assert!(!time.charge("other", MS, later));
    }

    #[test]
    fn a_debt_has_an_end() {
        let time = engine_time(1, 0);
        let start = Instant::now();
        (0..10).for_each(|_| assert!(time.charge("car", Duration::from_secs(3_600), start)));
        assert_eq!(debt_of(&time, "car", start), Some(DEBT_MAX));
    }

    #[test]
    fn accounts_that_are_full_are_let_go_of() {
        let time = engine_time(100, 0);
        let start = Instant::now();
        time.charge("owes", Duration::from_secs(1), start);
        let later = start + 200 * MS;
        for index in 0..3 * FEW {
            time.charge(&index.to_string(), MS, start);
        }
        for index in 0..FEW {
            time.charge(&format!("later-{index}"), MS, later);
        }
        assert!(time.clients.known().by_name.len() <= 4 * FEW);
        assert!(debt_of(&time, "owes", later).is_some());
        assert!(time.clients.find("0").is_none());
    }

    #[test]
    fn nothing_is_charged_where_any_number_may_be_used() {
        let time = engine_time(0, 0);
        assert!(!time.charge("car", Duration::from_secs(3_600), Instant::now()));
        assert!(time.clients.find("car").is_none());
    }

    #[tokio::test]
    async fn who_owes_too_much_is_told_what_costs_it() {
        let time = engine_time(100, 0);
        time.charge("car", Duration::from_secs(2), Instant::now());
        let costliest = vec![Cost { subscription: "wide".into(), ms: 1_900 }];
        time.explain("car", costliest.clone());
        let refusal = time.pay("car", 5_000 * MS).await.unwrap_err();
        let Refusal::TooCostly { limit, setting, debt, costliest: told } = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!((limit, setting, &*told), (100, "admission.engine_ms_per_second", &*costliest));
        assert!(debt > 17_000 * MS && debt <= 18_000 * MS, "{debt:?}");
        assert!(time.pay("other", Duration::ZERO).await.is_ok());
    }

    #[tokio::test]
    async fn a_tenant_owes_what_its_clients_use() {
        let time = engine_time(0, 10);
        let [a, b, c] = [("one", "a"), ("one", "b"), ("two", "a")]
            .map(|(tenant, client)| tenant::inside(tenant, client).into_owned());
        time.charge(&a, Duration::from_secs(1), Instant::now());
        let refusal = time.pay(&b, MS).await.unwrap_err();
        assert!(matches!(refusal, Refusal::TooCostly { setting: "quotas.tenant_engine_ms_per_second", .. }));
        assert!(time.pay(&c, MS).await.is_ok());
    }

    #[tokio::test]
    async fn those_who_wait_go_on_one_after_the_other() {
        let time = engine_time(1_000, 0);
        let start = Instant::now();
        time.charge("car", Duration::from_secs(2), start);
        let account = time.clients.find("car").unwrap();
        let (burst, deadline) = (time.clients.burst(), start + 2 * DEBT_MAX);
        let first = account.pass(burst, deadline).await.unwrap();
        // It is carried out, and nobody knows yet what the next one will find.
        let mut second = Box::pin(account.pass(burst, deadline));
        assert!(second.as_mut().now_or_never().is_none());
        time.charge("car", Duration::from_secs(3_600), Instant::now());
        drop(first);
        assert!(second.as_mut().now_or_never().is_none(), "it finds a debt");
        assert_eq!(account.passing.available_permits(), 0, "and is the next one");
        drop(second);
        assert_eq!(account.passing.available_permits(), 1);
    }
}
