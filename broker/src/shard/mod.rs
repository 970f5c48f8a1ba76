//! Shards: each an engine with its thread, and the sessions of the clients that were dealt to it.
//!
//! Commands come through one queue, so the order in which they were put there is the order of their effect: what
//! was acknowledged after it was queued is seen by every event that is published afterwards.

mod command;
mod deferred;
mod executor;
mod load;
mod publishing;
mod queue;
mod worker;

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::SharedSeed;
use matcher::engine::Footprint;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::admission::{Backlog, Change, MoveTurn};
use crate::config;
use crate::engines::{Engines, Made, Report};
pub(crate) use crate::event_stream::Coming;
use crate::event_stream::EventStream;
use crate::ingest::Confinement;
use crate::ingest::position::Move;
use crate::limits::ClientLimit;
use crate::model::aside::aside;
use crate::model::completion::Completion;
use crate::model::error::ApiError;
use crate::model::event::Placed;
use crate::routing::{RouteNews, TellRoutes};
use crate::sessions::{
    Asked, Attached, Disk, Health, Heavy, Known, LivePage, LiveQuestion, Mover, Rank, Restored, Sessions,
    Shared, Told,
};
use crate::store::Store;
pub(crate) use command::Command;
use executor::ShardExecutor;
use load::Load;
pub(crate) use queue::Receiver;
use queue::{Room, Sender, queue};
pub(crate) use worker::Shard;

/// Handle to all shards; a clone bumps reference counts only.
#[derive(Clone)]
pub(crate) struct Shards {
    /// One queue per shard, the only way to change or ask its engine. A full queue holds its senders back.
    senders: Arc<[Sender]>,
    /// The executor of each shard.
    executors: Arc<[Arc<ShardExecutor>]>,
    /// The load of each shard.
    loads: Arc<[Arc<Load>]>,
    /// How long a sender is held back before it is refused.
    wait: Duration,
    /// Whether what is answered has to be on disk.
    has_store: bool,
    /// Clients whose moves are waited for.
    heavy: Arc<Heavy>,
    /// Held while something goes into all queues on which they have to agree what came first: the birth of a live event, and
    /// its end. A std mutex: held for a few pushes, never over an await.
    order: Arc<Mutex<()>>,
    /// Limit on the clients of all shards together.
    client_limit: Arc<ClientLimit>,
    /// Whether the disk takes what it is given.
    health: Arc<Health>,
    /// The stream that events go through before they come before the engines, in a cluster with several active brokers.
    stream: Option<Arc<EventStream>>,
    /// The report of each engine.
    reports: Arc<[Report]>,
    /// Deals clients out. Keyed, so that nobody outside can overload one shard by choosing names.
    hash: Dealing,
}

/// Where a client is: its shard, and the number that it has there. A connection resolves its client once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    shard: usize,
    number: u32,
}

/// What a fault says that keeps a question from its answer.
const UNANSWERED: &str = "a question could not be answered";

/// Hasher that deals clients out to shards.
pub(crate) type Dealing = foldhash::fast::SeedableRandomState;

impl Backlog for Shards {
    fn wait(&self, now: Instant) -> Duration {
        let waits = self.depths().zip(&*self.loads).map(|(queued, load)| load.wait(queued, now));
        waits.max().unwrap_or_default()
    }

    fn cost_of_one(&self) -> Duration {
        self.loads.iter().map(|load| load.cost(1)).max().unwrap_or_default()
    }

    fn hurry(&self) {
        self.senders.iter().filter(|sender| sender.depth() > 0).for_each(Sender::notify);
    }
}

impl Shards {
    /// Starts the threads, with what was found on disk. Each gives its sessions back when it ends: to let go of what is
    /// kept is to have it removed from the disk, as long as any of them still writes there.
    ///
    /// # Errors
    /// When the system gives no more threads.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(crate) fn start(
        config: &config::Config,
        engines: Engines,
        shared: &Shared,
        store: Option<&Store>,
        restored: Restored,
    ) -> std::io::Result<(Self, Vec<std::thread::JoinHandle<Sessions>>)> {
        let disk = |_| store.map(|store| Box::new(store.clone()) as Box<dyn Disk>);
        // A shard writes how far it has got for its clients, so that they have to be its clients at the next start, too.
        let dealing = restored
            .dealing
            .map_or_else(Dealing::random, |seed| Dealing::with_seed(seed, SharedSeed::global_fixed()));
        let (mut shards, made) = Self::make(config, engines, shared, disk, restored, dealing);
        shards.executors =
            made.into_iter().map(|(shard, receiver)| Arc::new(ShardExecutor::new(shard, receiver))).collect();
        let mut threads = Vec::new();
        for (index, executor) in shards.executors.iter().map(Arc::clone).enumerate() {
            let thread = std::thread::Builder::new().name(format!("shard-{index}"));
            // Where it writes in the place of a connection's task, that may have to set a timer.
            let runtime = Handle::current();
            threads.push(thread.spawn(move || {
                let _inside = runtime.enter();
                executor.run()
            })?);
        }
        Ok((shards, threads))
    }

    /// Makes the shards, with what was found on disk, and the queue of each. `disk` is what a shard writes to.
    pub(crate) fn make(
        config: &config::Config,
        engines: Engines,
        shared: &Shared,
        disk: impl Fn(usize) -> Option<Box<dyn Disk>>,
        restored: Restored,
        hash: Dealing,
    ) -> (Self, Vec<(Shard, Receiver)>) {
        let count = engines.count();
        let read_of =
            |shard| (restored.frontier_of(shard).map(|read| read.next), restored.findings_of(shard));
        let mut read: Vec<_> = (0..count).map(read_of).collect();
        let mut dealt: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
        for client in restored.clients {
            dealt[index_of(&hash, &client.name, count)].push(client);
        }
        let times = (restored.timeline, restored.seen_ms);
        let mut senders = Vec::new();
        let mut made = Vec::new();
        let mut loads = Vec::new();
        let mut reports = Vec::new();
        let mut has_store = false;
        for (index, Made { engine, report }) in engines.into_made().enumerate() {
            let (sender, receiver) = queue(config.queue.commands);
            let disk = disk(index);
            has_store |= disk.is_some();
            let seed = hash.hash_one(index);
            let mut sessions = Sessions::new(engine, config, shared, disk, index, seed);
            let (next, had) = std::mem::take(&mut read[index]);
            sessions.begin_at(next, had);
            let clients = std::mem::take(&mut dealt[index]);
            sessions.restore(clients, &restored.live, &restored.findings, times);
            let load = Arc::new(Load::new(shared.metrics.started));
            let shard = Shard::new(
                sessions,
                &shared.metrics,
                report.clone(),
                config.queue.clone(),
                Arc::clone(&load),
                shared.telemetry.is_some().then_some(index),
            );
            made.push((shard, receiver));
            loads.push(load);
            senders.push(sender);
            reports.push(report);
        }
        let (wait, stream) = (Duration::from_millis(config.queue.wait_ms), shared.stream.clone());
        let (senders, loads, reports) = (senders.into(), loads.into(), reports.into());
        let (client_limit, health) = (Arc::clone(&shared.client_limit), Arc::clone(&shared.health));
        let (order, heavy) = (Arc::default(), Arc::clone(&shared.heavy));
        (
            Self {
                senders,
                executors: Arc::new([]),
                loads,
                wait,
                has_store,
                heavy,
                order,
                client_limit,
                health,
                stream,
                reports,
                hash,
            },
            made,
        )
    }

    /// Whether what is answered has to be on disk.
    pub(crate) fn has_store(&self) -> bool {
        self.has_store
    }

    /// Makes the receipt of a request, which is answered when everything it asked for is safe. `None` without a store, where
    /// it is enough that its commands wait in the queues.
    pub(crate) fn receipt(&self) -> Option<Arc<Completion>> {
        self.has_store.then(Completion::new)
    }

    /// Returns a receipt for moves: with a store, and also where a client has much to look for, since its moves take long.
    pub(crate) fn receipt_of_moves(&self) -> Option<Arc<Completion>> {
        (self.has_store || self.heavy.any()).then(Completion::new)
    }

    /// Whether the moves of a client, by its name inside, are waited for before its connection goes on.
    pub(crate) fn is_heavy(&self, client: &str) -> bool {
        self.heavy.has(client)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.senders.len()
    }

    /// The reports of the engines, shard by shard.
    pub(crate) fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The report that stands for all: that of the first engine that has lost its device, or else that of the first engine.
    pub(crate) fn report(&self) -> &Report {
        let failed = self.reports.iter().find(|report| report.failure().is_some());
        failed.unwrap_or(&self.reports[0])
    }

    /// Commands that wait, shard by shard.
    pub(crate) fn depths(&self) -> impl Iterator<Item = usize> {
        self.senders.iter().map(Sender::depth)
    }

    /// Whether all of them run.
    pub(crate) fn alive(&self) -> bool {
        self.senders.iter().all(|sender| !sender.is_closed())
    }

    /// Why the disk takes nothing now.
    pub(crate) fn storage_failure(&self) -> Option<String> {
        self.health.failure()
    }

    fn of(&self, client: &str) -> &Sender {
        &self.senders[self.index_of(client)]
    }

    /// The number of the shard of a client.
    pub(crate) fn index_of(&self, client: &str) -> usize {
        index_of(&self.hash, client, self.senders.len())
    }

    /// Waits for room for `count` commands in every queue.
    async fn room(&self, count: usize) -> Result<Vec<Room<'_>>, ApiError> {
        let mut rooms = Vec::with_capacity(self.senders.len());
        for sender in self.senders.iter() {
            rooms.push(sender.room(count, self.wait).await?);
        }
        Ok(rooms)
    }

    /// A panic under the lock is impossible but for memory running out.
    fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a move into its client's queue, where it is in force for everything that is sent afterwards; its turn is dropped when
    /// it has been carried out. Only
    /// where clients are nearly too many does it wait until the shard has said whether this is one, and the move is safe.
    pub(crate) async fn move_client(
        &self,
        client: &Arc<str>,
        Move { fix, track }: Move,
        turn: Option<Arc<MoveTurn>>,
        receipt: Option<&Arc<Completion>>,
    ) -> Result<(), ApiError> {
        self.health.check()?;
        if let Some(permit) = self.client_limit.acquire_in_advance(client) {
            let mover = Mover::Named(Some(permit));
            return self.put_move(self.of(client), client, mover, Move { fix, track }, turn, receipt).await;
        }
        self.ask(client, |client, reply| Command::MoveIfRoom { client, fix, track, reply }).await?
    }

    /// Puts a move into its client's queue as [`move_client`](Self::move_client) does, for a connection that reads for the client: as
    /// long as it does, the client is there.
    pub(crate) async fn move_attached(
        &self,
        place: Place,
        client: &Arc<str>,
        told: Move,
        turn: Option<Arc<MoveTurn>>,
        receipt: Option<&Arc<Completion>>,
    ) -> Result<(), ApiError> {
        self.health.check()?;
        let mover = Mover::Known(place.number);
        self.put_move(&self.senders[place.shard], client, mover, told, turn, receipt).await
    }

    async fn put_move(
        &self,
        sender: &Sender,
        client: &Arc<str>,
        mover: Mover,
        Move { fix, track }: Move,
        turn: Option<Arc<MoveTurn>>,
        receipt: Option<&Arc<Completion>>,
    ) -> Result<(), ApiError> {
        let mut room = sender.room(1, self.wait).await?;
        let receipt = receipt.filter(|_| self.has_store || self.is_heavy(client));
        let (client, ticket) = (Arc::clone(client), receipt.map(Completion::ticket));
        let is_awaited = ticket.is_some();
        let command = Command::Move { client, mover, fix, track, turn, ticket };
        if is_awaited {
            room.put(command);
        } else {
            room.put_move(command);
        }
        Ok(())
    }

    /// The place of a client that a connection has begun to read for.
    pub(crate) fn place_of(&self, client: &str, attached: &Attached) -> Place {
        Place { shard: self.index_of(client), number: attached.number }
    }

    /// Ends the live events of an id in every shard, of these those that a confinement holds for; says whether there was one.
    pub(crate) async fn revoke(
        &self,
        id: &Arc<str>,
        confinement: Option<&Arc<Confinement>>,
    ) -> Result<bool, ApiError> {
        self.health.check_removal()?;
        match &self.stream {
            Some(stream) => stream.revoke(id, confinement).await,
            None => self.revoke_at(id, confinement, None).await,
        }
    }

    /// Ends live events as [`revoke`](Self::revoke) does, of a stream those before a place.
    pub(crate) async fn revoke_at(
        &self,
        id: &Arc<str>,
        confinement: Option<&Arc<Confinement>>,
        place: Option<Placed>,
    ) -> Result<bool, ApiError> {
        let mut found = false;
        let revoke = |reply| {
            let (id, confinement) = (Arc::clone(id), confinement.cloned());
            Command::Revoke { id, confinement, place, reply }
        };
        for one in self.ask_all(revoke).await? {
            found |= one?;
        }
        Ok(found)
    }

    /// Lists the deliveries of the events of an id, over all shards, as far as the caller may know of them; `None` where none of that id
    /// is known.
    pub(crate) async fn deliveries(
        &self,
        id: &Arc<str>,
        known: Option<Known>,
        payer: &Arc<str>,
    ) -> Result<Option<wire::Deliveries>, ApiError> {
        let remembered = self
            .ask_all(|reply| {
                let (id, payer) = (Arc::clone(id), Arc::clone(payer));
                Command::Remembered { id, payer, reply }
            })
            .await?;
        let named = Arc::clone(id);
        let asked = aside(move || Asked::among(remembered, &named, known.as_ref()), UNANSWERED)
            .await
            .map(Arc::new)?;
        let told = self
            .ask_all(|reply| {
                let (id, asked, payer) = (Arc::clone(id), Arc::clone(&asked), Arc::clone(payer));
                Command::Deliveries { id, asked, payer, reply }
            })
            .await?;
        let named = Arc::clone(id);
        aside(move || Told::joined(&named, told), UNANSWERED).await
    }

    /// Asks all shards, and then waits for their answers: those that write something to disk do it together.
    async fn ask_all<T>(&self, command: impl Fn(oneshot::Sender<T>) -> Command) -> Result<Vec<T>, ApiError> {
        let rooms = self.room(1).await?;
        let mut answers = Vec::with_capacity(rooms.len());
        {
            let _order = self.order();
            for mut room in rooms {
                let (reply, answer) = oneshot::channel();
                room.put(command(reply));
                answers.push(answer);
            }
        }
        let mut told = Vec::with_capacity(answers.len());
        for answer in answers {
            told.push(answer.await.map_err(|_| ApiError::Stopping)?);
        }
        Ok(told)
    }

    /// Asks the shard of a client.
    pub(crate) async fn ask<T>(
        &self,
        client: &Arc<str>,
        command: impl FnOnce(Arc<str>, oneshot::Sender<T>) -> Command,
    ) -> Result<T, ApiError> {
        let (reply, answer) = oneshot::channel();
        self.of(client).room(1, self.wait).await?.put(command(Arc::clone(client), reply));
        answer.await.map_err(|_| ApiError::Stopping)
    }

    /// Tells the shard of a client that a connection is gone, however long that takes.
    pub(crate) async fn detach(&self, client: &Arc<str>, connection: u64) {
        let command = Command::Detach { client: Arc::clone(client), connection };
        // A queue that is closed has no sessions left to detach from.
        self.of(client).send(command).await;
    }

    /// Whether a panic has ended one of them.
    pub(crate) fn have_failed(&self) -> bool {
        self.executors.iter().any(|executor| executor.has_failed())
    }

    /// Waits until one of them has ended, which before a stop it should not.
    pub(crate) async fn one_ended(&self) {
        futures_util::future::select_all(self.senders.iter().map(|sender| Box::pin(sender.closed()))).await;
    }

    /// Whether all of them have ended.
    pub(crate) fn ended(&self) -> bool {
        self.senders.iter().all(Sender::is_closed)
    }

    /// The numbers of the last findings of a version of a situation that the stream of events has brought to all shards, and to some shard.
    pub(crate) async fn findings_read(
        &self,
        client: &Arc<str>,
        version: &Arc<str>,
    ) -> Result<(u64, u64), ApiError> {
        let ask = |reply| {
            let (client, version) = (Arc::clone(client), Arc::clone(version));
            Command::FindingRead { client, version, reply }
        };
        let read = self.ask_all(ask).await?;
        let (least, greatest) = (read.iter().min(), read.iter().max());
        Ok((least.copied().unwrap_or(0), greatest.copied().unwrap_or(0)))
    }

    /// The sum of the footprints of all engines.
    pub(crate) async fn footprint(&self, payer: &Arc<str>) -> Result<Footprint, ApiError> {
        let mut sum = Footprint::default();
        let ask = |reply| Command::Footprint { payer: Arc::clone(payer), reply };
        for one in self.ask_all(ask).await? {
            sum.subscriptions += one.subscriptions;
            sum.filters += one.filters;
            sum.bytes += one.bytes;
        }
        Ok(sum)
    }

    /// The clients of all shards behind a place in the order of their listing, `limit` at most, and the place behind them if
    /// there are more.
    pub(crate) async fn list_clients(
        &self,
        after: Option<Rank<String>>,
        limit: usize,
        payer: &Arc<str>,
    ) -> Result<wire::Clients, ApiError> {
        let list = |reply| {
            let (after, payer) = (after.clone(), Arc::clone(payer));
            Command::ListClients { after, limit: limit + 1, payer, reply }
        };
        let pages = self.ask_all(list).await?.into_iter();
        Ok(Rank::first(pages.map(|clients| wire::Clients { clients, next: None }), limit))
    }

    /// A way to tell shards of areas along routes, however long that takes.
    pub(crate) fn tell_routes(&self) -> TellRoutes {
        let senders = Arc::clone(&self.senders);
        Arc::new(move |shard, news| {
            let senders = Arc::clone(&senders);
            Box::pin(async move {
                let Some(sender) = senders.get(shard) else { return };
                let command = match news {
                    RouteNews::Found(found) => Command::RoutesFound(found),
                    RouteNews::Slowed(places) => Command::StreetsSlowed(places),
                };
                sender.send(command).await;
            })
        })
    }

    /// Finds live events, in a shard: each has all of them.
    pub(crate) async fn query(
        &self,
        shard: usize,
        question: LiveQuestion,
        change: Change,
    ) -> Result<LivePage, ApiError> {
        let (reply, answer) = oneshot::channel();
        let sender = self.senders.get(shard).ok_or(ApiError::Internal("there is no such shard"))?;
        sender.room(1, self.wait).await?.put(Command::Query {
            question: Box::new(question),
            change: Some(change),
            reply,
        });
        answer.await.map_err(|_| ApiError::Stopping)?
    }

    /// Tells all that everything has been read that the stream of events got up to a time.
    pub(crate) async fn tell_read_until(&self, at: Instant) {
        for sender in self.senders.iter() {
            // One that is closed has ended.
            sender.send(Command::ReadUntil(at)).await;
        }
    }

    /// Lets everything that is queued take effect, then ends the threads.
    pub(crate) async fn stop(&self) {
        for sender in self.senders.iter() {
            // One that is closed has stopped already.
            sender.send(Command::Stop).await;
        }
        for sender in self.senders.iter() {
            sender.closed().await;
        }
    }
}

/// The shard of a client.
pub(crate) fn index_of(hash: &Dealing, client: &str, count: usize) -> usize {
    usize::try_from(hash.hash_one(client) % count as u64).expect("less than the number of shards")
}

#[cfg(test)]
mod full_disk_tests;
