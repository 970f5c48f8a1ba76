//! The executor of a shard: its thread, and now and then a producer that has enqueued little and runs it inline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wakeup::{Executor, Step, Task};

use super::Command;
use super::load::nanoseconds;
use super::queue::Receiver;
use super::worker::Shard;
use crate::sessions::Sessions;

/// Events that count as few, at most.
pub(super) const LITTLE: usize = 4;

/// Time that counts as short: some tens of times that in which a thread wakes.
pub(super) const LITTLE_TIME: Duration = Duration::from_millis(1);

/// Time beyond which an inline run was long, and not only interrupted once.
const LONG: Duration = Duration::from_millis(4);

/// Factor for the time in which nothing runs inline after a long inline run.
const ALONE: u32 = 20;

/// A shard, as the threads that run it share it.
pub(super) struct ShardExecutor {
    executor: Executor<ShardTask>,
    /// The shard that a panic has interrupted. It is held until the end: to let go of what is kept would have the other shards
    /// remove that from the disk. A std mutex: held for an exchange or a look.
    failed: Mutex<Option<Shard>>,
    /// Time until which nothing runs inline, because an inline run took long; nanoseconds from `started`.
    alone_ns: AtomicU64,
    started: Instant,
}

/// A shard with its queue.
struct ShardTask {
    shard: Shard,
    receiver: Receiver,
    /// Commands at hand; kept for its memory.
    commands: Vec<Command>,
}

/// A run of the shard. After a panic in it nothing is left to go on with: senders find the queue closed.
struct Run<'a>(&'a ShardExecutor);

impl ShardExecutor {
    pub(super) fn new(shard: Shard, receiver: Receiver) -> Self {
        let wakeup = Arc::clone(&receiver.wakeup);
        let task = ShardTask { shard, receiver, commands: Vec::new() };
        Self {
            executor: Executor::new(task, wakeup),
            failed: Mutex::default(),
            alone_ns: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Whether a panic has interrupted the shard.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Runs the shard on its own thread to the end, and gives the sessions back.
    pub(super) fn run(&self) -> Sessions {
        let _run = Run(self);
        self.executor.run().shard.sessions
    }

    /// Whether the next step is likely to be short: no inline run took long of late, and nothing is due.
    pub(super) fn can_run_inline(&self) -> bool {
        nanoseconds(self.started.elapsed()) >= self.alone_ns.load(Ordering::Relaxed)
            && !self.executor.is_due()
    }

    /// Runs a step on the caller's thread, if the shard's thread is parked. That thread goes on with the rest.
    pub(super) fn run_inline(&self) {
        let _run = Run(self);
        let started = Instant::now();
        self.executor.run_inline();
        let took = started.elapsed();
        if took > LONG {
            let alone = self.started.elapsed() + took * ALONE;
            self.alone_ns.store(nanoseconds(alone), Ordering::Relaxed);
        }
    }
}

impl Task for ShardTask {
    fn step(&mut self) -> Step {
        let deadline = self.shard.next_deadline();
        let Some(count) = self.receiver.take(&mut self.commands, self.shard.batch()) else {
            self.shard.end();
            return Step::Ended;
        };
        if count == 0 && deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return Step::Idle { deadline };
        }
        self.shard.take_alarms(&mut self.commands, &mut self.receiver);
        self.shard.sessions.press(!self.receiver.is_empty() || self.tell_much());
        let gone_on = self.shard.step(&mut self.commands);
        self.receiver.set_moves_tell(self.shard.sessions.has_live());
        if gone_on.is_break() { Step::Ended } else { Step::Done }
    }

    fn has_more(&self) -> bool {
        !self.receiver.is_empty()
    }

    fn deadline(&self) -> Option<Instant> {
        self.shard.next_deadline()
    }
}

impl ShardTask {
    /// Whether the commands at hand may have much to tell: a move has where events are live.
    fn tell_much(&self) -> bool {
        let moves_tell = self.shard.sessions.has_live();
        let tell = |command: &&Command| moves_tell || !matches!(command, Command::Move { .. });
        self.commands.iter().filter(tell).nth(LITTLE).is_some()
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        self.0.executor.abort(|ShardTask { mut shard, receiver, .. }| {
            // Whatever state they are in, their connections are closed. A fault in that is no worse than the one that is there.
            let told = std::panic::AssertUnwindSafe(|| {
                shard.abandon();
                shard.sessions.say_goodbye();
            });
            drop(std::panic::catch_unwind(told));
            *self.0.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(shard);
            drop(receiver);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::thread::JoinHandle;

    use matcher::geo::World;

    use crate::config::Config;
    use crate::engines::Engines;
    use crate::ingest::Behalf;
    use crate::ingest::feature::FeatureReader;
    use crate::ingest::position::PositionReader;
    use crate::ingest::subscription::SubscriptionReader;
    use crate::model::delivery::Entry;
    use crate::outbox::{Bounds, Outbox};
    use crate::sessions::{Restored, Resume, Shared};
    use crate::shard::{Coming, Shards};

    use super::*;

    fn start() -> (Config, Shards, Vec<JoinHandle<Sessions>>) {
        let mut config = Config::default();
        config.server.shards = 1;
        let engines = Engines::find(&config).unwrap();
        let shared = Shared::new(&config, 1);
        let (shards, threads) = Shards::start(&config, engines, &shared, None, Restored::default()).unwrap();
        (config, shards, threads)
    }

    fn ended(thread: JoinHandle<Sessions>) -> Sessions {
        let started = Instant::now();
        while !thread.is_finished() {
            assert!(started.elapsed() < Duration::from_secs(60), "the thread goes on");
            std::thread::sleep(Duration::from_micros(100));
        }
        thread.join().unwrap()
    }

    /// Moves lie in the queue, and events are dealt out by the caller or by the shard's thread.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn events_meet_the_moves_before_them_on_any_thread() {
        const ROUNDS: u64 = 500;
        let (config, shards, threads) = start();
        let outbox = Arc::new(Outbox::new(1, Bounds::new(&config.outbox)));
        let client: Arc<str> = "car".into();
        let own = Arc::clone(&outbox);
        let attach = |client, reply| Command::Attach {
            client,
            outbox: own,
            resume: Resume::Ready,
            confinement: None,
            reply,
        };
        shards.ask(&client, attach).await.unwrap().unwrap();
        let reader = SubscriptionReader::new(World::Geodetic, config.limits.clone(), config.outbox.overflow);
        let document = r#"{"filters":[{"area":{"radius_m":50}}]}"#;
        let subscription = Box::new(reader.parse("s", document).unwrap());
        let install = |client, reply| Command::Install {
            client,
            subscription,
            change: None,
            owner: None,
            answer: None,
            reply,
        };
        shards.ask(&client, install).await.unwrap().unwrap();
        let features = FeatureReader::new(World::Geodetic, &config.limits, 7);
        let positions = PositionReader::new(World::Geodetic, &config.limits);
        let mut inline_count = 0;
        for round in 0..ROUNDS {
            // Each move leaves where the last event was.
            let longitude = round % 2;
            let told = positions.parse(&format!(r#"{{"coordinates":[{longitude},45]}}"#)).unwrap();
            shards.move_client(&client, told, None, None).await.unwrap();
            let text = format!(
                r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{longitude},45]}},"properties":{{"n":{round}}}}}"#
            );
            let event = features.parse(Behalf::default(), &text).unwrap();
            let mut events = vec![Coming { event, pass: None, receipt: None }];
            if round % 3 == 0 {
                shards.publish(&mut events).await.unwrap();
            } else if shards.publish_inline(&mut events).await.unwrap() {
                shards.run_inline();
                inline_count += 1;
            }
            if round % 50 == 0 {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        }
        let mut numbers = Vec::new();
        while numbers.len() < usize::try_from(ROUNDS).unwrap() {
            let mut batch = Vec::new();
            let waiting = outbox.next_batch(&mut batch, usize::MAX);
            tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("all come");
            numbers.extend(batch.into_iter().filter_map(|entry| match entry {
                Entry::Delivery(delivery) => Some(delivery.offset),
                Entry::Answer(_) | Entry::Gap(_) => None,
            }));
        }
        assert!(numbers.iter().copied().eq(1..=ROUNDS));
        assert!(inline_count > 0);
        shards.stop().await;
        threads.into_iter().for_each(|thread| drop(ended(thread)));
    }

    #[tokio::test]
    async fn a_thread_ends_with_the_last_sender() {
        for round in 0..200 {
            let (_, shards, threads) = start();
            if round % 2 == 0 {
                shards.footprint(&"car".into()).await.unwrap();
            }
            drop(shards);
            threads.into_iter().for_each(|thread| drop(ended(thread)));
        }
    }
}
