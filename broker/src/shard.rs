//! Shards: each a thread that owns an engine and the sessions of the clients that were dealt to it.
//!
//! Commands come through one queue, so the order in which they were put there is the order of their effect: what
//! was acknowledged after it was queued is seen by every event that is published afterwards.

use std::hash::BuildHasher;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use matcher::engine::Footprint;
use matcher::event::Event;
use matcher::live::Fix;
use tokio::sync::{mpsc, oneshot};

use crate::census::{Census, Place};
use crate::config::{self, Queue};
use crate::engines::{Engines, Made, Report};
use crate::ingest::explain::Question;
use crate::ingest::feature::Published;
use crate::ingest::subscription::Prepared;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::refusal::Refusal;
use crate::sessions::{Attached, Installed, Resume, Sessions, Told};

/// What a shard can be told.
pub(crate) enum Command {
    /// Match an event and deal it out.
    Match(Arc<Published>),
    /// A client is there now. Should it be new, it has a place already.
    Move { client: Arc<str>, fix: Fix, place: Place },
    /// The same for a client that needs a place should it be new.
    MoveIfRoom { client: Arc<str>, fix: Fix, reply: oneshot::Sender<Result<(), Refusal>> },
    /// Make or replace a subscription.
    Install {
        client: Arc<str>,
        subscription: Box<Prepared>,
        /// The connection that it ends with; none for one that stays.
        owner: Option<Arc<Outbox>>,
        /// Put into the owner's outbox once it is in force, before any delivery that it brings.
        answer: Option<Box<str>>,
        reply: oneshot::Sender<Result<Installed, Refusal>>,
    },
    /// End a subscription.
    Remove { client: Arc<str>, id: Arc<str>, reply: oneshot::Sender<bool> },
    /// The document of one subscription.
    Get { client: Arc<str>, id: Arc<str>, reply: oneshot::Sender<Option<String>> },
    /// The documents of all subscriptions of a client, by id.
    List { client: Arc<str>, reply: oneshot::Sender<Vec<String>> },
    /// A connection reads for a client from now on.
    Attach {
        client: Arc<str>,
        outbox: Arc<Outbox>,
        resume: Resume,
        reply: oneshot::Sender<Result<Attached, Refusal>>,
    },
    /// A connection reads no more; its subscriptions end.
    Detach { client: Arc<str>, connection: u64 },
    /// Everything of a client is gone.
    Forget { client: Arc<str>, reply: oneshot::Sender<bool> },
    /// End the live events of an id.
    Revoke { id: Arc<str>, reply: oneshot::Sender<bool> },
    /// Say to whom the events of an id went.
    Deliveries { id: Arc<str>, reply: oneshot::Sender<Told> },
    /// Say why an event comes to a client, or does not.
    Explain {
        client: Arc<str>,
        question: Box<Question>,
        reply: oneshot::Sender<Result<wire::Explanation, Refusal>>,
    },
    /// What the engine holds.
    Footprint { reply: oneshot::Sender<Footprint> },
    /// Nothing comes after this.
    Stop,
}

/// Handle to all shards; a clone bumps reference counts only.
#[derive(Clone)]
pub(crate) struct Shards {
    /// One queue per shard, the only way to change or ask its engine. A full queue holds its senders back.
    senders: Arc<[mpsc::Sender<Command>]>,
    /// How long a sender is held back before it is refused.
    wait: Duration,
    /// Of the clients of all shards.
    census: Arc<Census>,
    /// What the engines say of themselves.
    reports: Arc<[Report]>,
    /// Deals clients out. Keyed, so that nobody outside can overload one shard by choosing names.
    hash: foldhash::fast::RandomState,
}

impl Shards {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub(crate) fn start(
        config: &config::Config,
        engines: Engines,
        metrics: &Arc<Metrics>,
    ) -> std::io::Result<(Self, Vec<std::thread::JoinHandle<()>>)> {
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        let mut reports = Vec::new();
        let census = Census::new(config.limits.clients);
        for (index, Made { engine, report }) in engines.into_made().enumerate() {
            let (sender, receiver) = mpsc::channel(config.queue.commands);
            let sessions = Sessions::new(engine, config, Arc::clone(&census), Arc::clone(metrics));
            let (metrics, queue) = (Arc::clone(metrics), config.queue.clone());
            let shard = Shard { sessions, metrics, report: report.clone(), queue };
            let thread = std::thread::Builder::new().name(format!("shard-{index}"));
            // Of its own, for its clock: nothing else ever waits on this thread.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            threads.push(thread.spawn(move || runtime.block_on(shard.run(receiver)))?);
            senders.push(sender);
            reports.push(report);
        }
        let wait = Duration::from_millis(config.queue.wait_ms);
        let (senders, reports) = (senders.into(), reports.into());
        Ok((Self { senders, wait, census, reports, hash: Default::default() }, threads))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.senders.len()
    }

    /// What the engines say of themselves, shard by shard.
    pub(crate) fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The same in one: of the first that has lost its device, or of the first.
    pub(crate) fn report(&self) -> &Report {
        let failed = self.reports.iter().find(|report| report.failure().is_some());
        failed.unwrap_or(&self.reports[0])
    }

    /// Commands that wait, shard by shard.
    pub(crate) fn depths(&self) -> impl Iterator<Item = usize> {
        self.senders.iter().map(|sender| sender.max_capacity() - sender.capacity())
    }

    /// Whether all of them run.
    pub(crate) fn alive(&self) -> bool {
        self.senders.iter().all(|sender| !sender.is_closed())
    }

    fn of(&self, client: &str) -> &mpsc::Sender<Command> {
        let index = self.hash.hash_one(client) % self.senders.len() as u64;
        &self.senders[usize::try_from(index).expect("less than the number of shards")]
    }

    /// Puts an event into every queue, or into none: room is found everywhere first.
    pub(crate) async fn publish(&self, event: Published) -> Result<(), Refusal> {
        let event = Arc::new(event);
        if let [only] = &*self.senders {
            return send(only, Command::Match(event), self.wait).await;
        }
        let mut permits = Vec::with_capacity(self.senders.len());
        for sender in self.senders.iter() {
            match sender.try_reserve() {
                Ok(permit) => permits.push(permit),
                Err(mpsc::error::TrySendError::Closed(())) => return Err(Refusal::Stopping),
                Err(mpsc::error::TrySendError::Full(())) => permits.push(reserve(sender, self.wait).await?),
            }
        }
        for permit in permits {
            permit.send(Command::Match(Arc::clone(&event)));
        }
        Ok(())
    }

    /// Puts a move into its client's queue, where it is in force for everything that is sent afterwards. Only
    /// where clients are nearly too many does it wait until the shard has said whether this is one.
    pub(crate) async fn move_client(&self, client: &Arc<str>, fix: Fix) -> Result<(), Refusal> {
        if let Some(place) = self.census.place_in_advance() {
            let client = Arc::clone(client);
            return send(self.of(&client), Command::Move { client, fix, place }, self.wait).await;
        }
        self.ask(client, |client, reply| Command::MoveIfRoom { client, fix, reply }).await?
    }

    /// Ends the live events of an id in every shard; says whether there was one.
    pub(crate) async fn revoke(&self, id: &Arc<str>) -> Result<bool, Refusal> {
        let mut found = false;
        for sender in self.senders.iter() {
            let (reply, answer) = oneshot::channel();
            send(sender, Command::Revoke { id: Arc::clone(id), reply }, self.wait).await?;
            found |= answer.await.map_err(|_| Refusal::Stopping)?;
        }
        Ok(found)
    }

    /// Says to whom the events of an id went, over all shards; `None` where none of that id is known.
    pub(crate) async fn deliveries(&self, id: &Arc<str>) -> Result<Option<wire::Deliveries>, Refusal> {
        let mut told = Vec::with_capacity(self.senders.len());
        for sender in self.senders.iter() {
            let (reply, answer) = oneshot::channel();
            send(sender, Command::Deliveries { id: Arc::clone(id), reply }, self.wait).await?;
            told.push(answer.await.map_err(|_| Refusal::Stopping)?);
        }
        Ok(Told::joined(id, told))
    }

    /// Asks the shard of a client.
    pub(crate) async fn ask<T>(
        &self,
        client: &Arc<str>,
        command: impl FnOnce(Arc<str>, oneshot::Sender<T>) -> Command,
    ) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        send(self.of(client), command(Arc::clone(client), reply), self.wait).await?;
        answer.await.map_err(|_| Refusal::Stopping)
    }

    /// Tells the shard of a client that a connection is gone, however long that takes.
    pub(crate) async fn detach(&self, client: &Arc<str>, connection: u64) {
        let command = Command::Detach { client: Arc::clone(client), connection };
        // A queue that is closed has no sessions left to detach from.
        let _ = self.of(client).send(command).await;
    }

    /// Whether all of them have ended.
    pub(crate) fn ended(&self) -> bool {
        self.senders.iter().all(mpsc::Sender::is_closed)
    }

    /// What all engines hold.
    pub(crate) async fn footprint(&self) -> Result<Footprint, Refusal> {
        let mut sum = Footprint::default();
        for sender in self.senders.iter() {
            let (reply, answer) = oneshot::channel();
            send(sender, Command::Footprint { reply }, self.wait).await?;
            let one = answer.await.map_err(|_| Refusal::Stopping)?;
            sum.subscriptions += one.subscriptions;
            sum.filters += one.filters;
            sum.bytes += one.bytes;
        }
        Ok(sum)
    }

    /// Lets everything that is queued take effect, then ends the threads.
    pub(crate) async fn stop(&self) {
        for sender in self.senders.iter() {
            // One that is closed has stopped already.
            let _ = sender.send(Command::Stop).await;
        }
        for sender in self.senders.iter() {
            sender.closed().await;
        }
    }
}

async fn send(sender: &mpsc::Sender<Command>, command: Command, wait: Duration) -> Result<(), Refusal> {
    match sender.try_send(command) {
        Ok(()) => Ok(()),
        Err(mpsc::error::TrySendError::Closed(_)) => Err(Refusal::Stopping),
        Err(mpsc::error::TrySendError::Full(command)) => {
            reserve(sender, wait).await?.send(command);
            Ok(())
        }
    }
}

async fn reserve(
    sender: &mpsc::Sender<Command>,
    wait: Duration,
) -> Result<mpsc::Permit<'_, Command>, Refusal> {
    match tokio::time::timeout(wait, sender.reserve()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) => Err(Refusal::Stopping),
        Err(_) => Err(Refusal::Overloaded),
    }
}

struct Shard {
    sessions: Sessions,
    metrics: Arc<Metrics>,
    /// Tells whether the engine uses a device: it may give that up.
    report: Report,
    queue: Queue,
}

impl Shard {
    /// Takes whatever waits, up to a bound: a lone command does not wait for company. What happens by itself happens
    /// before whatever came after its time.
    async fn run(mut self, mut receiver: mpsc::Receiver<Command>) {
        let mut commands = Vec::new();
        let mut events = Vec::new();
        loop {
            let batch = self.queue.batch_of(self.report.has_device());
            let received = receiver.recv_many(&mut commands, batch);
            let received = match self.sessions.next_deadline() {
                Some(deadline) => tokio::time::timeout_at(deadline.into(), received).await.ok(),
                None => Some(received.await),
            };
            self.sessions.advance();
            if received == Some(0) {
                return;
            }
            for command in commands.drain(..) {
                if let Command::Match(event) = command {
                    events.push(event);
                    continue;
                }
                self.match_run(&mut events);
                if self.apply(command).is_break() {
                    return;
                }
            }
            self.match_run(&mut events);
        }
    }

    /// Matches events that came in a row.
    fn match_run(&mut self, events: &mut Vec<Arc<Published>>) {
        let Some(oldest) = events.first() else { return };
        let started = Instant::now();
        self.metrics.queue_wait.record(started.duration_since(oldest.body.received));
        let batch: Vec<&Event> = events.iter().map(|published| &*published.event).collect();
        match self.sessions.match_batch(&batch) {
            Ok(()) => {
                for (index, published) in events.iter().enumerate() {
                    self.sessions.deliver(index, published);
                }
                self.sessions.wake_readers();
            }
            // Engines on the CPU never fail, and those on a device have one of these to go on with.
            Err(error) => tracing::error!(%error, events = events.len(), "events could not be matched"),
        }
        self.metrics.match_batch.record(started.elapsed());
        #[expect(clippy::cast_precision_loss, reason = "a batch has 65,536 events at most")]
        self.metrics.batch_events.record(events.len() as f64);
        events.clear();
    }

    /// Carries a command out; says whether it was the last. Who asked may be gone by now: then nobody needs the
    /// reply.
    fn apply(&mut self, command: Command) -> ControlFlow<()> {
        let sessions = &mut self.sessions;
        match command {
            Command::Match(event) => self.match_run(&mut vec![event]),
            Command::Stop => {
                // What was queued behind is refused: its senders see the channel closed.
                sessions.say_goodbye();
                return ControlFlow::Break(());
            }
            Command::Move { client, fix, place } => {
                // It was answered already, which is what the place is for.
                if let Err(refusal) = sessions.move_client(&client, fix, Some(place)) {
                    tracing::error!(?refusal, "a move could not be carried out");
                }
            }
            Command::MoveIfRoom { client, fix, reply } => {
                drop(reply.send(sessions.move_client(&client, fix, None)));
            }
            Command::Install { client, subscription, owner, answer, reply } => {
                let owner_connection = owner.as_ref().map(|outbox| outbox.connection);
                let installed = sessions.install(&client, *subscription, owner_connection);
                if let (Ok(_), Some(outbox), Some(answer)) = (&installed, owner, answer) {
                    outbox.push_answer(answer);
                }
                // An answer over HTTP is on its way before whatever the subscription brings.
                drop(reply.send(installed));
                sessions.tell_changes();
            }
            Command::Remove { client, id, reply } => drop(reply.send(sessions.remove(&client, &id))),
            Command::Get { client, id, reply } => drop(reply.send(sessions.document(&client, &id))),
            Command::List { client, reply } => drop(reply.send(sessions.documents(&client))),
            Command::Attach { client, outbox, resume, reply } => {
                let connection = outbox.connection;
                let attached = sessions.attach(&client, outbox, resume);
                if let Err(Ok(_)) = reply.send(attached) {
                    // The connection went away while it waited.
                    sessions.detach(&client, connection);
                }
            }
            Command::Detach { client, connection } => sessions.detach(&client, connection),
            Command::Forget { client, reply } => drop(reply.send(sessions.forget(&client))),
            Command::Revoke { id, reply } => drop(reply.send(sessions.revoke(&id))),
            Command::Deliveries { id, reply } => drop(reply.send(sessions.deliveries(&id))),
            Command::Explain { client, question, reply } => {
                drop(reply.send(sessions.explain(&client, *question)));
            }
            Command::Footprint { reply } => drop(reply.send(sessions.footprint())),
        }
        ControlFlow::Continue(())
    }
}
