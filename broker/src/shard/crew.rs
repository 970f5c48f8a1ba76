//! A shard and its workers, which take turns: its thread, and now and then a sender that has put in something small.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Command;
use super::bell::{Bell, nanoseconds};
use super::queue::Receiver;
use super::worker::Shard;
use crate::sessions::Sessions;

/// Events that count as few, at most.
pub(super) const LITTLE: usize = 4;

/// Time that counts as short: some tens of times that in which a thread wakes.
pub(super) const LITTLE_TIME: Duration = Duration::from_millis(1);

/// Time beyond which a helper's step was long, and not only interrupted once.
const LONG: Duration = Duration::from_millis(4);

/// Factor for the time in which the thread works alone after a helper's long step.
const ALONE: u32 = 20;

/// A shard, as those who work in it share it.
pub(super) struct Crew {
    bell: Arc<Bell>,
    /// A std mutex, for a step or more: locked by the holder of the turn, or one that has just given it back. Nothing, where
    /// work has ended or failed.
    work: Mutex<Option<Work>>,
    /// The shard whose work a panic has interrupted. It is held until the end: to let go of what is kept would have the other shards
    /// remove that from the disk. A std mutex: held for an exchange or a look.
    failed: Mutex<Option<Shard>>,
    /// Time until which the thread does everything itself, for a helper's step took long; nanoseconds from `started`.
    alone_ns: AtomicU64,
    started: Instant,
}

/// The state that the member with the turn works with.
struct Work {
    shard: Shard,
    receiver: Receiver,
    /// Commands at hand; kept for its memory.
    commands: Vec<Command>,
    has_ended: bool,
}

/// The outcome of a step.
enum Step {
    /// Something was done.
    Done,
    /// There was nothing to do until then.
    Idle { deadline: Option<Instant> },
    /// Nothing will ever come.
    Ended,
}

/// The turn. When work is interrupted by a panic nothing is left of it to go on with: senders find the queue closed.
struct Guard<'a> {
    inside: MutexGuard<'a, Option<Work>>,
    crew: &'a Crew,
}

impl Crew {
    pub(super) fn new(shard: Shard, receiver: Receiver) -> Self {
        let bell = Arc::clone(&receiver.bell);
        let work = Work { shard, receiver, commands: Vec::new(), has_ended: false };
        Self {
            bell,
            work: Mutex::new(Some(work)),
            failed: Mutex::default(),
            alone_ns: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Whether a panic has interrupted the work.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Runs the thread from its start to the end, when it gives the sessions back.
    pub(super) fn run(&self) -> Sessions {
        self.bell.begin();
        loop {
            let mut work = self.work();
            let at_work = work.inside.as_mut().expect("a panic of a helper has ended the work");
            while !at_work.has_ended {
                match at_work.step() {
                    Step::Done => {}
                    Step::Ended => at_work.has_ended = true,
                    Step::Idle { deadline } => {
                        self.bell.rest(deadline);
                        if at_work.receiver.is_empty() || !self.bell.take() {
                            break;
                        }
                        // What is there may be about to be there: whoever puts it in is to go on.
                        std::thread::yield_now();
                    }
                }
            }
            if at_work.has_ended {
                return work.inside.take().expect("it is there").shard.sessions;
            }
            drop(work);
            self.bell.sleep();
        }
    }

    /// Whether the next step is likely to be short: no helper's took long of late, and nothing is due.
    pub(super) fn takes_help(&self) -> bool {
        nanoseconds(self.started.elapsed()) >= self.alone_ns.load(Ordering::Relaxed) && !self.bell.is_due()
    }

    /// Does, in the place of the thread, what is there, if it sleeps: a step, and the thread goes on with the rest. Where it does not
    /// sleep, it sees to it.
    pub(super) fn help(&self) {
        if !self.bell.take() {
            return;
        }
        let mut work = self.work();
        let Some(at_work) = work.inside.as_mut() else { return };
        let started = Instant::now();
        at_work.has_ended = matches!(at_work.step(), Step::Ended);
        let took = started.elapsed();
        if took > LONG {
            let alone = self.started.elapsed() + took * ALONE;
            self.alone_ns.store(nanoseconds(alone), Ordering::Relaxed);
        }
        loop {
            if at_work.has_ended || !at_work.receiver.is_empty() {
                return self.bell.call();
            }
            self.bell.rest_for_thread(at_work.shard.next_deadline());
            if at_work.receiver.is_empty() || !self.bell.take() {
                return;
            }
        }
    }

    fn work(&self) -> Guard<'_> {
        Guard { inside: self.work.lock().unwrap_or_else(PoisonError::into_inner), crew: self }
    }
}

impl Work {
    /// Does what is there or due.
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
        self.receiver.bell.set_moves_tell(self.shard.sessions.has_live());
        if gone_on.is_break() { Step::Ended } else { Step::Done }
    }

    /// Whether the commands at hand may have much to tell: a move has where events are live.
    fn tell_much(&self) -> bool {
        let moves_tell = self.shard.sessions.has_live();
        let tell = |command: &&Command| moves_tell || !matches!(command, Command::Move { .. });
        self.commands.iter().filter(tell).nth(LITTLE).is_some()
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(Work { mut shard, receiver, .. }) = self.inside.take()
        {
            // Whatever state they are in, their readers are told. A fault in that is no worse than the one that is there.
            let told = std::panic::AssertUnwindSafe(|| {
                shard.abandon();
                shard.sessions.say_goodbye();
            });
            drop(std::panic::catch_unwind(told));
            *self.crew.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(shard);
            drop(receiver);
            self.crew.bell.call();
        }
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

    /// Moves that lie there, and events that the caller, the thread or whoever has the turn deals out.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_works_events_meet_the_moves_before_them() {
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
        let mut helped = 0;
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
            } else if shards.publish_and_help(&mut events).await.unwrap() {
                shards.help();
                helped += 1;
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
        assert!(helped > 0);
        shards.stop().await;
        threads.into_iter().for_each(|thread| drop(ended(thread)));
    }

    #[tokio::test]
    async fn a_thread_ends_with_the_last_of_those_who_could_tell_it_something() {
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
