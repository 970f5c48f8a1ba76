//! Commands that have much to look at: they are deferred until a survey has looked at it, a slice at each step of the shard.
//!
//! Later commands of their clients wait behind them, so that the commands of each client take effect in their order. The
//! commands of everybody else go on. Only commands are deferred whose senders wait for them: they are in force when they are
//! answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use matcher::live::Survey;

use super::Command;
use crate::budget::Held;
use crate::model::error::ApiError;
use crate::sessions::HeavyClient;

/// The surveys that are under way at once, by turns; the others wait for one to end.
const SURVEYS: usize = 16;

/// Bytes that surveys may hold while they take turns: for a client with 200 subscriptions over 100,000 live events it is some
/// megabytes. Beyond that one comes to its end before another goes on.
const SURVEYED_BYTES: u64 = 64 << 20;

/// The commands that may wait behind a deferred one.
const BEHIND: usize = 256;

/// The deferred commands that a shard may have. They hold nothing that others wait for, so that nothing else bounds them.
const DEFERRED: usize = 1_024;

/// The deferred commands of a shard, those first that are surveyed.
#[derive(Default)]
pub(super) struct Deferrals {
    under_way: VecDeque<Deferred>,
}

/// A deferred command.
pub(super) struct Deferred {
    pub(super) command: Command,
    /// `None` where it has to begin, for the first time or again.
    pub(super) survey: Option<Survey>,
    /// The memory that it takes.
    pub(super) held: Held,
    /// How long that has taken.
    pub(super) took: Duration,
    /// Commands that came for its client since.
    pub(super) behind: Vec<Command>,
    /// Its moves are waited for meanwhile, so that they can wait.
    _heavy: HeavyClient,
}

impl Deferrals {
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    fn of(&mut self, command: &Command) -> Option<&mut Deferred> {
        if self.under_way.is_empty() {
            return None;
        }
        let client = command.client()?;
        self.under_way.iter_mut().find(|deferred| deferred.command.client() == Some(client))
    }

    /// Keeps a command that has to wait for another of its client, or refuses it where too much waits; gives any other back.
    pub(super) fn keep(&mut self, mut command: Command) -> Option<Command> {
        let Some(before) = self.of(&command) else { return Some(command) };
        if before.gives_way_to(&command) {
            return Some(command);
        }
        let is_install = |command: &Command| matches!(command, Command::Install { .. });
        let is_full =
            before.behind.len() >= BEHIND || is_install(&command) && before.behind.iter().any(is_install);
        if is_full {
            let refused = command.refuse(&ApiError::Overloaded);
            before.behind.extend(refused);
            return None;
        }
        command.let_others_pass();
        before.behind.push(command);
        None
    }

    /// Client whose deferred command looks from another place once this one has been carried out.
    pub(super) fn moved_by(&mut self, command: &Command) -> Option<Arc<str>> {
        let is_move = matches!(command, Command::Move { .. });
        self.of(command).filter(|_| is_move).and(command.client()).map(Arc::clone)
    }

    /// Its survey begins again.
    pub(super) fn begin_again(&mut self, client: &Arc<str>) {
        let of_client =
            self.under_way.iter_mut().filter(|deferred| deferred.command.client() == Some(client));
        of_client.for_each(|deferred| deferred.survey = None);
    }

    /// Defers a command, whose survey has taken some time, or refuses it where there are too many.
    pub(super) fn defer(
        &mut self,
        mut command: Command,
        survey: Survey,
        held: Held,
        took: Duration,
        heavy: HeavyClient,
    ) {
        if self.under_way.len() >= DEFERRED {
            // It has somebody who waits for it.
            drop(command.refuse(&ApiError::Overloaded));
            return;
        }
        command.let_others_pass();
        let survey = (self.under_way.len() < SURVEYS).then_some(survey);
        self.under_way.push_back(Deferred { command, survey, held, took, behind: Vec::new(), _heavy: heavy });
    }

    /// The one whose turn it is.
    pub(super) fn next(&mut self) -> Option<&mut Deferred> {
        self.under_way.front_mut()
    }

    /// It has had its turn and goes on later.
    pub(super) fn pass(&mut self) {
        let surveyed = self.under_way.len().min(SURVEYS);
        let held: u64 = self.under_way.iter().take(surveyed).map(|deferred| deferred.held.bytes()).sum();
        if held > SURVEYED_BYTES {
            return;
        }
        self.under_way.make_contiguous()[..surveyed].rotate_left(1);
    }

    /// It is to be carried out.
    pub(super) fn take(&mut self) -> Option<Deferred> {
        self.under_way.pop_front()
    }
}

impl Deferred {
    /// A move that was answered already is in force for every event that comes behind it. What is not installed yet can be so after it.
    fn gives_way_to(&self, command: &Command) -> bool {
        matches!((&self.command, command), (Command::Install { .. }, Command::Move { ticket: None, .. }))
            || matches!(command, Command::Ack { .. } | Command::Disconnect { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;

    use futures_util::FutureExt as _;
    use matcher::geo::World;
    use tokio::sync::oneshot;

    use crate::budget::{Budget, Kind};
    use crate::config::Config;
    use crate::engines::Engines;
    use crate::ingest::Behalf;
    use crate::ingest::feature::FeatureReader;
    use crate::ingest::position::PositionReader;
    use crate::ingest::subscription::SubscriptionReader;
    use crate::model::completion::Completion;
    use crate::model::delivery::Entry;
    use crate::outbox::{Bounds, Outbox};
    use crate::sessions::{Restored, Resume, Shared};
    use crate::shard::{Coming, Dealing, Receiver, Shard, Shards};

    use super::*;

    const LIVES: usize = 1_000;

    /// A shard that does what it is told to, when it is told to.
    struct Bench {
        config: Config,
        budget: Budget,
        features: FeatureReader,
        shards: Shards,
        shard: Shard,
        receiver: Receiver,
        commands: Vec<Command>,
    }

    type Answer<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>>>>;

    impl Bench {
        /// Makes a bench with live events at places where all circles hold them.
        fn new() -> Self {
            let mut config = Config::default();
            config.server.shards = 1;
            config.outbox.frames = 10 * LIVES;
            let engines = Engines::find(&config).unwrap();
            let shared = Shared::new(&config, 1);
            let (restored, hash) = (Restored::default(), Dealing::random());
            let (shards, mut made) = Shards::make(&config, engines, &shared, |_| None, restored, hash);
            let (shard, receiver) = made.remove(0);
            let features = FeatureReader::new(World::Geodetic, &config.limits, 7);
            let budget = shared.budget.clone();
            let mut bench = Self { config, budget, features, shards, shard, receiver, commands: Vec::new() };
            for number in 0..LIVES {
                bench.publish(&format!(
                    r#""id":{number},"ttl_s":600,"properties":{{"level":{}}}"#,
                    56 + number % 8
                ));
            }
            bench
        }

        fn step(&mut self) {
            self.receiver.take(&mut self.commands, usize::MAX);
            assert!(self.shard.step(&mut self.commands).is_continue());
        }

        fn publish(&mut self, members: &str) {
            let text = format!(
                r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[9,45]}},{members}}}"#
            );
            let event = self.features.parse(Behalf::default(), &text).unwrap();
            let mut events = vec![Coming { event, pass: None, receipt: None }];
            self.shards.publish(&mut events).now_or_never().unwrap().unwrap();
            self.step();
        }

        fn ask<T: 'static>(
            &self,
            client: &str,
            command: impl FnOnce(Arc<str>, oneshot::Sender<T>) -> Command + 'static,
        ) -> Answer<T> {
            let (shards, client) = (self.shards.clone(), Arc::<str>::from(client));
            let mut answer: Answer<T> = Box::pin(async move { shards.ask(&client, command).await });
            assert!((&mut answer).now_or_never().is_none());
            answer
        }

        fn attach(&mut self, client: &str) -> Arc<Outbox> {
            let outbox = Arc::new(Outbox::new(1, Bounds::new(&self.config.outbox)));
            let (own, resume) = (Arc::clone(&outbox), Resume::Ready);
            let attach =
                |client, reply| Command::Attach { client, outbox: own, resume, confinement: None, reply };
            let attached = self.ask(client, attach);
            self.step();
            attached.now_or_never().unwrap().unwrap().unwrap();
            outbox
        }

        fn install(
            &self,
            client: &str,
            document: &str,
        ) -> Answer<Result<crate::sessions::Installed, ApiError>> {
            let limits = self.config.limits.clone();
            let reader = SubscriptionReader::new(World::Geodetic, limits, self.config.outbox.overflow);
            let subscription = Box::new(reader.parse("s", document).unwrap());
            self.ask(client, |client, reply| Command::Install {
                client,
                subscription,
                change: None,
                owner: None,
                answer: None,
                reply,
            })
        }

        fn go(&self, client: &str, longitude: f64, receipt: Option<&Arc<Completion>>) {
            let positions = PositionReader::new(World::Geodetic, &self.config.limits);
            let told = positions.parse(&format!(r#"{{"coordinates":[{longitude},45]}}"#)).unwrap();
            let client = client.into();
            let moved = self.shards.move_client(&client, told, None, receipt);
            moved.now_or_never().unwrap().unwrap();
        }
    }

    /// Conditions of which each live event satisfies one of the last.
    fn slow(area: &str) -> String {
        let filter = |number: usize| {
            let condition = format!("level = {number} AND level < 100");
            format!(r#"{{"area":{area},"where":"{condition}"}}"#)
        };
        let filters: Vec<_> = (0..64).map(filter).collect();
        format!(r#"{{"filters":[{}]}}"#, filters.join(","))
    }

    fn deliveries(outbox: &Outbox) -> usize {
        let mut batch = Vec::new();
        let _ = outbox.next_batch(&mut batch, usize::MAX).now_or_never();
        batch.iter().filter(|entry| matches!(entry, Entry::Delivery(_))).count()
    }

    #[test]
    fn others_go_on_while_an_installation_looks_at_much() {
        let mut bench = Bench::new();
        let (own, others) = (bench.attach("slow"), bench.attach("other"));
        let installed = bench.install("other", r#"{"filters":[{"where":"kind = 'other'"}]}"#);
        bench.step();
        assert!(installed.now_or_never().unwrap().unwrap().is_ok());
        let circle = r#"{"center":[9,45],"radius_m":1000}"#;
        let mut installed = bench.install("slow", &slow(circle));
        bench.step();
        let id = "s".into();
        let got = |client, reply| Command::Get { client, id, confinement: None, reply };
        let mut got = bench.ask("slow", got);
        let (mut answer, mut steps, mut looked_up) = (None, 0, 0);
        while answer.is_none() {
            assert!(bench.shard.next_deadline().is_some_and(|at| at < std::time::Instant::now()));
            assert!(got.as_mut().now_or_never().is_none(), "it comes before what it asks for");
            bench.publish(r#""properties":{"kind":"other"}"#);
            steps += 1;
            assert_eq!(deliveries(&others), 1, "step {steps}");
            looked_up = looked_up.max(bench.budget.client("slow").bytes(Kind::Surveys));
            if steps == 1 {
                bench.publish(r#""id":"news","ttl_s":600,"properties":{"level":60}"#);
                // It is in force at once: nobody waits for it.
                bench.go("slow", 9.0, None);
                bench.publish(r#""id":"near","reach_m":10,"ttl_s":600,"properties":{"level":60}"#);
            }
            answer = installed.as_mut().now_or_never();
        }
        assert!(answer.unwrap().unwrap().is_ok());
        assert!(steps > 2, "{steps}");
        assert!(looked_up > 0 && bench.budget.broker().bytes(Kind::Surveys) == 0, "{looked_up}");
        assert!(got.now_or_never().unwrap().unwrap().unwrap().is_some());
        // Everything once, with what came in the meantime.
        assert_eq!(deliveries(&own), LIVES + 2);
    }

    #[test]
    fn moves_of_a_client_with_much_to_look_for_take_effect_in_their_order() {
        let mut bench = Bench::new();
        let (own, others) = (bench.attach("slow"), bench.attach("other"));
        for (client, document) in [("slow", &*slow(r#"{"radius_m":1000}"#)), ("other", r#"{"filters":[{}]}"#)]
        {
            let installed = bench.install(client, document);
            bench.step();
            assert!(installed.now_or_never().unwrap().unwrap().is_ok());
        }
        deliveries(&others);
        let receipts: Vec<_> =
            (0..3).map(|_| bench.shards.receipt_of_moves().expect("it is waited for")).collect();
        for (receipt, longitude) in receipts.iter().zip([8.0, 9.0, 7.0]) {
            bench.go("slow", longitude, Some(receipt));
        }
        let mut steps = 0;
        let mut last = Box::pin(receipts[2].settled());
        while last.as_mut().now_or_never().is_none() {
            bench.publish(r#""properties":{"kind":"other"}"#);
            steps += 1;
            assert_eq!(deliveries(&others), 1, "step {steps}");
        }
        assert!(steps > 2, "{steps}");
        assert!(receipts[..2].iter().all(|receipt| receipt.settled().now_or_never() == Some(Ok(()))));
        assert_eq!(deliveries(&own), LIVES);
        // It is where it was last: nothing that is published there now comes.
        bench.publish(r#""properties":{"level":60}"#);
        assert_eq!(deliveries(&own), 0);
    }

    #[test]
    fn at_a_stop_what_is_not_done_is_refused() {
        let mut bench = Bench::new();
        let own = bench.attach("slow");
        let installed = bench.install("slow", &slow(r#"{"center":[9,45],"radius_m":1000}"#));
        bench.step();
        bench.commands.push(Command::Stop);
        assert!(bench.shard.step(&mut bench.commands).is_break());
        assert_eq!(installed.now_or_never().unwrap().unwrap_err(), ApiError::Stopping);
        assert_eq!(deliveries(&own), 0);
    }

    #[test]
    fn of_one_client_few_commands_wait_and_its_moves_are_waited_for() {
        let mut bench = Bench::new();
        let circle = r#"{"center":[9,45],"radius_m":1000}"#;
        assert!(bench.shards.receipt_of_moves().is_none());
        let mut installed: Vec<_> = (0..3).map(|_| bench.install("slow", &slow(circle))).collect();
        bench.step();
        assert!(bench.shards.is_heavy("slow") && !bench.shards.is_heavy("other"));
        let refused = installed.pop().unwrap().now_or_never().unwrap().unwrap();
        assert!(matches!(refused, Err(ApiError::Overloaded)));
        let receipts: Vec<_> =
            (0..2 * BEHIND).map(|_| bench.shards.receipt_of_moves().expect("it is waited for")).collect();
        for receipt in &receipts {
            bench.go("slow", 9.0, Some(receipt));
        }
        bench.receiver.take(&mut bench.commands, usize::MAX);
        assert!(bench.shard.step(&mut bench.commands).is_continue());
        let refused = receipts
            .iter()
            .filter(|receipt| receipt.settled().now_or_never() == Some(Err(ApiError::Overloaded)));
        assert!(refused.count() >= BEHIND);
    }
}
