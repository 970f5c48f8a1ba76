//! Engine time: what clients cost the threads of the engines, and how those wait that cost too much.
//!
//! An account fills at a set number of milliseconds a second, and holds what it gets in [`BURST`]. A command is paid for after it was
//! carried out, since nothing else tells what it costs: an account may so be in debt. Whatever its owner asks for next that
//! costs an engine something waits, before the queues of the engines, until the debt is paid.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::named::Named;
use crate::config::{Allotment, Config};
use crate::ingest::Confinement;
use crate::metrics::Metrics;
use crate::model::error::{ApiError, Cost};
use crate::model::tenant;

/// Engine time by which an empty account is full. It may be used at once: a client that begins brings what is to stay.
const BURST: Duration = Duration::from_secs(2);

/// No debt takes longer to pay: a single accident does not lock a client out for a day.
const DEBT_MAX: Duration = Duration::from_secs(600);

/// The accounts of all clients and tenants. They are made when something is charged, and let go of when they are full again.
pub(crate) struct EngineTime {
    metrics: Arc<Metrics>,
    started: Instant,
    clients: Accounts,
    tenants: Accounts,
    /// Time until which somebody may be in debt; nanoseconds from `started`. Mostly nobody is, and that is all that is looked
    /// at.
    debts_until_ns: AtomicU64,
    /// Shared by all that have waited for a debt and are not charged yet. As long as there are any, accounts are looked at: what comes
    /// meanwhile goes on behind them.
    passing: Arc<()>,
}

/// Accounts of clients by their names inside, or of tenants.
#[derive(Debug)]
struct Accounts {
    /// Milliseconds per second. 0: any number, and nothing is charged.
    allotment: Allotment,
    setting: &'static str,
    known: Named<Account>,
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
    /// The confinement under which these were made.
    confinement: Option<Arc<Confinement>>,
}

/// The debts that a command had to wait for, until it has been carried out and charged itself.
#[derive(Debug, Default)]
pub(crate) struct Paid {
    debts: Vec<Passing>,
}

/// A debt that was waited for. What has to wait for it as well goes on when this one is gone.
#[derive(Debug)]
struct Passing {
    _permit: OwnedSemaphorePermit,
    _any: Arc<()>,
}

impl Paid {
    /// Whether there were debts.
    pub(super) fn had_debts(&self) -> bool {
        !self.debts.is_empty()
    }
}

impl EngineTime {
    pub(crate) fn new(config: &Config, metrics: &Arc<Metrics>) -> Arc<Self> {
        let own = Allotment::of(config.admission.engine_ms_per_second.into());
        let tenant = config.allotments().engine_ms_per_second;
        Arc::new(Self {
            metrics: Arc::clone(metrics),
            started: Instant::now(),
            clients: Accounts::new(own, "admission.engine_ms_per_second"),
            tenants: Accounts::new(tenant, "quotas.tenant_engine_ms_per_second"),
            debts_until_ns: AtomicU64::new(0),
            passing: Arc::default(),
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

    /// Notes which subscriptions of a client in debt cost most, and under what confinement they were made.
    pub(crate) fn explain(&self, client: &str, costliest: Vec<Cost>, confinement: Option<Arc<Confinement>>) {
        if let Some(account) = self.clients.known.find(client) {
            let mut balance = account.balance();
            (balance.costliest, balance.confinement) = (costliest.into(), confinement);
        }
    }

    /// Whether a client may use less than `ms` in `seconds`.
    pub(crate) fn is_beyond(&self, ms: f64, seconds: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a setting of 32 bits")]
        let own = self.own() as f64;
        own > 0.0 && ms > own * seconds
    }

    /// The allotment of each client, in milliseconds per second.
    fn own(&self) -> u64 {
        self.clients.allotment.limit("")
    }

    /// The refusal for subscriptions that cost a client more than its allotment.
    pub(crate) fn refusal(&self, costliest: Vec<Cost>) -> ApiError {
        let setting = self.clients.setting;
        ApiError::TooCostly { limit: self.own(), setting, debt: BURST, costliest: costliest.into() }
    }

    /// Lets a command of a client go on that is going to cost an engine something: at once, or when what the client and its
    /// tenant owe has been paid. Where that takes longer than a sender is held back, it is refused.
    pub(super) async fn pay(
        &self,
        client: &str,
        asker: Option<&Arc<Confinement>>,
        patience: Duration,
    ) -> Result<Paid, ApiError> {
        let begun = Instant::now();
        let mut paid = Paid::default();
        if !self.has_debts(begun) {
            return Ok(paid);
        }
        for (accounts, name) in self.payers(client) {
            let Some(account) = accounts.known.find(name) else { continue };
            if account.lets_pass(begun) {
                continue;
            }
            self.metrics.held_for_cost.add(1);
            let passed = account.pass(begun + patience).await;
            let permit = passed.map_err(|debt| accounts.refusal(name, debt, account.costliest_for(asker)))?;
            paid.debts.push(Passing { _permit: permit, _any: Arc::clone(&self.passing) });
        }
        Ok(paid)
    }

    /// Refuses what would have to wait for a debt. Unlike where one waits, no subscriptions are named: it may be one of many.
    pub(super) fn check(&self, client: &str) -> Result<(), ApiError> {
        let now = Instant::now();
        if !self.has_debts(now) {
            return Ok(());
        }
        for (accounts, name) in self.payers(client) {
            let Some(account) = accounts.known.find(name) else { continue };
            if let Some(debt) = account.debt(now) {
                return Err(accounts.refusal(name, debt, Arc::default()));
            }
        }
        Ok(())
    }

    /// Returns the accounts that pay for a client. The client itself is the first, since the tenant's others are not to wait
    /// for its debt.
    fn payers<'a>(&'a self, client: &'a str) -> [(&'a Accounts, &'a str); 2] {
        [(&self.clients, client), (&self.tenants, tenant::split(client).0)]
    }

    /// Whether somebody may have to wait.
    fn has_debts(&self, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.started).as_nanos();
        now < u128::from(self.debts_until_ns.load(Ordering::Relaxed)) || Arc::strong_count(&self.passing) > 1
    }
}

impl Accounts {
    fn new(allotment: Allotment, setting: &'static str) -> Self {
        Self { allotment, setting, known: Named::default() }
    }

    /// Charges one, and says how long its debt takes to be paid, if it has any.
    fn charge(&self, name: &str, took: Duration, now: Instant) -> Option<Duration> {
        let ms_per_second = self.allotment.limit(name);
        if ms_per_second == 0 {
            return None;
        }
        let takes = took.saturating_mul(1_000) / u32::try_from(ms_per_second).unwrap_or(u32::MAX);
        let account = self.known.of(name, |account| account.is_full(now), || Arc::new(Account::new(now)));
        account.charge(takes, now)
    }

    /// The refusal where paying takes too long.
    fn refusal(&self, name: &str, debt: Duration, costliest: Arc<[Cost]>) -> ApiError {
        ApiError::TooCostly { limit: self.allotment.limit(name), setting: self.setting, debt, costliest }
    }
}

impl Account {
    fn new(now: Instant) -> Self {
        let balance = Balance { full_at: now, costliest: Arc::default(), confinement: None };
        Self { balance: Mutex::new(balance), passing: Arc::new(Semaphore::new(1)) }
    }

    /// Charges what comes in again during `takes`, and says how long the debt takes to be paid, if there is one.
    fn charge(&self, takes: Duration, now: Instant) -> Option<Duration> {
        let mut balance = self.balance();
        let full_at = balance.full_at.max(now) + takes;
        balance.full_at = full_at.min(now + BURST + DEBT_MAX);
        debt(balance.full_at, now)
    }

    /// How long the debt takes to be paid, if there is one.
    fn debt(&self, now: Instant) -> Option<Duration> {
        debt(self.balance().full_at, now)
    }

    /// Whether it has no debt, and nobody has waited for one who is not charged yet.
    fn lets_pass(&self, now: Instant) -> bool {
        self.debt(now).is_none() && self.passing.available_permits() > 0
    }

    /// The subscriptions that cost most, for who may know of them: none where who asks is confined otherwise than the client is.
    fn costliest_for(&self, asker: Option<&Arc<Confinement>>) -> Arc<[Cost]> {
        let balance = self.balance();
        let may_know = asker.is_none() || balance.confinement.as_ref() == asker;
        if may_know { Arc::clone(&balance.costliest) } else { Arc::default() }
    }

    fn is_full(&self, now: Instant) -> bool {
        self.balance().full_at <= now
    }

    /// Waits until the debt is paid, in the order in which it is asked. Says how long that takes where it takes too long.
    async fn pass(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, Duration> {
        let left = |debt: &Duration| Instant::now() + *debt <= deadline;
        let first = self.debt(Instant::now()).unwrap_or_default();
        if !left(&first) {
            return Err(first);
        }
        let turn = Arc::clone(&self.passing).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout_at(deadline.into(), turn).await else {
            return Err(self.debt(Instant::now()).unwrap_or_default());
        };
        while let Some(debt) = self.debt(Instant::now()) {
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

fn debt(full_at: Instant, now: Instant) -> Option<Duration> {
    let debt = full_at.saturating_duration_since(now).saturating_sub(BURST);
    (!debt.is_zero()).then_some(debt)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::super::named::FEW;
    use super::*;
    use crate::config::AuthMode;
    use crate::ingest::Zones;

    const MS: Duration = Duration::from_millis(1);

    fn engine_time(own: u32, tenant: u32) -> Arc<EngineTime> {
        let mut config = Config::default();
        config.admission.engine_ms_per_second = own;
        config.quotas.tenant_engine_ms_per_second = tenant.into();
        EngineTime::new(&config, &Arc::new(Metrics::new(1)))
    }

    fn debt_of(time: &EngineTime, client: &str, now: Instant) -> Option<Duration> {
        time.clients.known.find(client)?.debt(now)
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
        assert!(time.clients.known.len() <= 4 * FEW);
        assert!(debt_of(&time, "owes", later).is_some());
        assert!(time.clients.known.find("0").is_none());
    }

    #[test]
    fn nothing_is_charged_where_any_number_may_be_used() {
        let time = engine_time(0, 0);
        assert!(!time.charge("car", Duration::from_secs(3_600), Instant::now()));
        assert!(time.clients.known.find("car").is_none());
    }

    #[tokio::test]
    async fn who_owes_too_much_is_told_what_costs_it() {
        let time = engine_time(100, 0);
        time.charge("car", Duration::from_secs(2), Instant::now());
        let costliest = vec![Cost { subscription: "wide".into(), ms: 1_900 }];
        time.explain("car", costliest.clone(), None);
        let refusal = time.pay("car", None, 5_000 * MS).await.unwrap_err();
        let ApiError::TooCostly { limit, setting, debt, costliest: told } = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!((limit, setting, &*told), (100, "admission.engine_ms_per_second", &*costliest));
        assert!(debt > 17_000 * MS && debt <= 18_000 * MS, "{debt:?}");
        assert!(time.pay("other", None, Duration::ZERO).await.is_ok());
    }

    #[tokio::test]
    async fn who_is_confined_otherwise_is_told_no_names() {
        let time = engine_time(100, 0);
        time.charge("car", Duration::from_secs(2), Instant::now());
        let confined = |text: &str| Arc::new(Confinement::read_again(text, &Zones::default()).unwrap());
        let (own, other) = (confined(r#"{"where":"a = 1"}"#), confined(r#"{"where":"a = 2"}"#));
        let told = |asker: Option<&Arc<Confinement>>| {
            let refused = time.pay("car", asker, Duration::ZERO).now_or_never().unwrap();
            let Err(ApiError::TooCostly { costliest, .. }) = refused else { panic!("{refused:?}") };
            costliest.len()
        };
        let costliest = vec![Cost { subscription: "secret".into(), ms: 1_900 }];
        time.explain("car", costliest.clone(), None);
        assert_eq!([None, Some(&own)].map(told), [1, 0]);
        time.explain("car", costliest, Some(Arc::clone(&own)));
        assert_eq!([None, Some(&own), Some(&other)].map(told), [1, 1, 0]);
    }

    #[test]
    fn a_tenant_with_a_name_has_half_of_the_engines_where_tokens_are_wanted() {
        let mut config = Config::default();
        config.server.shards = 2;
        config.admission.engine_ms_per_second = 0;
        config.auth.mode = AuthMode::Jwt;
        let time = EngineTime::new(&config, &Arc::new(Metrics::new(1)));
        let [named, nameless] = ["acme", ""].map(|tenant| tenant::inside(tenant, "a").into_owned());
        for client in [named.as_str(), nameless.as_str()] {
            time.charge(client, 2_001 * MS, Instant::now());
        }
        let Err(ApiError::TooCostly { limit, .. }) = time.check(&named) else { panic!("it owes") };
        assert_eq!(limit, 1_000);
        assert!(time.check(&nameless).is_ok());
    }

    #[tokio::test]
    async fn a_tenant_owes_what_its_clients_use() {
        let time = engine_time(0, 10);
        let [a, b, c] = [("one", "a"), ("one", "b"), ("two", "a")]
            .map(|(tenant, client)| tenant::inside(tenant, client).into_owned());
        time.charge(&a, Duration::from_secs(1), Instant::now());
        let refusal = time.pay(&b, None, MS).await.unwrap_err();
        assert!(matches!(refusal, ApiError::TooCostly { setting: "quotas.tenant_engine_ms_per_second", .. }));
        assert!(time.pay(&c, None, MS).await.is_ok());
    }

    #[tokio::test]
    async fn a_client_in_debt_does_not_keep_its_tenant_waiting() {
        let time = engine_time(100, 1_000);
        let [poor, other, rest] =
            ["poor", "other", "rest"].map(|name| tenant::inside("one", name).into_owned());
        // The client owes eight seconds, the tenant 50 ms.
        let now = Instant::now();
        time.charge(&poor, Duration::from_secs(1), now);
        time.charge(&rest, 1_050 * MS, now);
        let mut waiting = Box::pin(time.pay(&poor, None, Duration::from_secs(60)));
        assert!(waiting.as_mut().now_or_never().is_none());
        let paid = async {
            tokio::select! {
                _ = &mut waiting => panic!("it owes eight seconds"),
                paid = time.pay(&other, None, Duration::from_secs(60)) => paid.unwrap(),
            }
        };
        let paid = tokio::time::timeout(Duration::from_secs(5), paid).await.expect("it owes nothing itself");
        assert!(paid.had_debts(), "the tenant's");
    }

    #[tokio::test]
    async fn what_comes_while_a_debt_is_paid_goes_on_behind_it() {
        let time = engine_time(100, 0);
        time.charge("car", 201 * MS, Instant::now());
        assert!(time.check("car").is_err());
        let paid = time.pay("car", None, Duration::from_secs(60)).await.unwrap();
        assert!(paid.had_debts());
        // The debt is paid, and what it was paid for is not charged yet.
        assert!(time.check("car").is_ok() && time.check("other").is_ok());
        let mut next = Box::pin(time.pay("car", None, Duration::from_secs(60)));
        assert!(next.as_mut().now_or_never().is_none());
        assert!(time.pay("other", None, Duration::ZERO).now_or_never().unwrap().is_ok());
        drop(paid);
        assert!(next.await.unwrap().had_debts());
        assert!(!time.pay("car", None, Duration::ZERO).now_or_never().unwrap().unwrap().had_debts());
    }

    #[tokio::test]
    async fn those_who_wait_go_on_one_after_the_other() {
        let time = engine_time(1_000, 0);
        let start = Instant::now();
        time.charge("car", Duration::from_secs(2), start);
        let account = time.clients.known.find("car").unwrap();
        let deadline = start + 2 * DEBT_MAX;
        let first = account.pass(deadline).await.unwrap();
        // It is carried out, and nobody knows yet what the next one will find.
        let mut second = Box::pin(account.pass(deadline));
        assert!(second.as_mut().now_or_never().is_none());
        time.charge("car", Duration::from_secs(3_600), Instant::now());
        drop(first);
        assert!(second.as_mut().now_or_never().is_none(), "it finds a debt");
        assert_eq!(account.passing.available_permits(), 0, "and is the next one");
        drop(second);
        assert_eq!(account.passing.available_permits(), 1);
    }
}
