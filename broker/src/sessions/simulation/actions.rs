//! The next action, chosen by chance; and the end of a run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;

use super::book::{Asks, Step};
use super::broker::{CONFINED_TO, behalf, confinement};
use super::model::{Held, Live};
use super::reader::Connection;
use super::{Done, Simulation, What};
use crate::ingest::subscription::Prepared;
use crate::model::completion::Completion;
use crate::outbox::{Bounds, Outbox};
use crate::sessions::Resume;
use crate::shard::{Coming, Command};

/// Bytes that a quick reader takes at once.
const ALL: usize = 1 << 20;

impl Simulation {
    /// Does one thing.
    pub(super) fn act(&mut self) -> Result<(), String> {
        let faults = self.plan.faults;
        let crashes = self.plan.crashes;
        let client = format!("c{}", self.choices.below(self.plan.clients_count));
        let chosen = self.choices.below(1_000 + (faults + crashes) as usize);
        match chosen {
            0..180 => self.publish(),
            180..270 => self.move_client(client),
            270..370 => self.install(client),
            370..395 => self.remove(client),
            395..450 => self.attach(client),
            450..460 => self.forget(client),
            460..485 => self.revoke(),
            485..530 => self.acknowledge(client),
            530..550 => self.detach(),
            550..620 => {
                let ms = self.choices.one(&[1, 10, 100, 700, 1_000, 2_500]);
                self.trace.add(format!("{ms} ms pass"));
                self.pass(ms);
                Ok(())
            }
            620..700 => self.read_some(),
            700..730 => {
                self.broker().store.idle();
                if self.disk.is_off() { self.crash_now() } else { Ok(()) }
            }
            730..1_000 => {
                let shard = self.choices.below(self.plan.shards_count);
                let commands_max = self.choices.one(&[1, 1, 2, 5, 100]);
                self.step(shard, commands_max)
            }
            more if more < 1_000 + faults as usize => self.change_faults(),
            _ => self.begin_to_crash(),
        }
    }

    fn publish(&mut self) -> Result<(), String> {
        let number = self.number();
        let event = Arc::new(self.choices.event(number));
        let text = event.text();
        let published = match self.broker().features.parse(behalf(None), &text) {
            Ok(published) => published,
            Err(refusal) => return Err(format!("{text}: {refusal:?}")),
        };
        let sequence = published.live.as_ref().map_or(0, |live| live.sequence);
        let expires_ms = self.now_ms + event.ttl_ms();
        if event.is_live() {
            let live = Live { event: Arc::clone(&event), sequence, expires_ms };
            self.published.live.insert(text.clone(), live);
        }
        self.trace.add(format!("publish {text}"));
        let shards = self.broker().shards.clone();
        let future = Box::pin(async move {
            let receipt: Option<Arc<Completion>> = shards.receipt();
            let mut events = vec![Coming { event: published, pass: None, receipt: receipt.clone() }];
            shards.publish(&mut events).await?;
            if let Some(receipt) = receipt {
                receipt.settled().await?;
            }
            Ok(Done::Other(true))
        });
        let is_live = event.is_live();
        let step = Step::Publish { event, sequence, expires_ms };
        self.ask(What::Publish(number), future, &step, |_| is_live)
    }

    fn move_client(&mut self, client: String) -> Result<(), String> {
        let to = self.choices.place();
        let mut track = vec![to];
        let mut text = format!(r#"{{"coordinates":[{to},0]}}"#);
        if self.choices.chance(0.2) {
            track = (0..3).map(|_| self.choices.place()).collect();
            let points: Vec<_> =
                track.iter().enumerate().map(|(time, at)| format!("[{at},0,{time}]")).collect();
            text = format!(r#"{{"track":[{}]}}"#, points.join(","));
        }
        self.trace.add(format!("move {client} {text}"));
        let parsed = self.broker().positions.parse(&text).map_err(|refusal| format!("{refusal:?}"))?;
        let shards = self.broker().shards.clone();
        let name = client.as_str().into();
        let future = Box::pin(async move {
            let receipt = shards.receipt();
            shards.move_client(&name, parsed, None, receipt.as_ref()).await?;
            if let Some(receipt) = receipt {
                receipt.settled().await?;
            }
            Ok(Done::Other(true))
        });
        let session = self.number();
        self.ask(What::Other, future, &Step::Move { client, track, session }, |_| true)
    }

    fn install(&mut self, client: String) -> Result<(), String> {
        let id = format!("s{}", self.choices.below(self.plan.subscriptions_max));
        let mut spec = self.choices.spec(&self.plan);
        let confinement = confinement(&client);
        spec.confined = confinement.is_some().then_some(CONFINED_TO);
        // Over a WebSocket it ends with that, unless it is durable.
        let owned =
            self.connections.iter().find(|(_, reader)| reader.client == client && reader.cursor.is_some());
        let owner = owned.map(|(number, reader)| (*number, Arc::clone(&reader.outbox)));
        let owner = owner.filter(|_| self.choices.chance(0.4));
        let text = spec.document();
        self.trace
            .add(format!("install {client} {id} {:?} {text}", owner.as_ref().map(|(number, _)| number)));
        let prepared = self.broker().subscriptions.parse(&id, &text);
        let prepared = prepared.and_then(|prepared| prepared.on_behalf(behalf(confinement.as_ref())));
        let prepared = prepared.map_err(|refusal| format!("{text}: {refusal:?}"))?;
        let is_stored = owner.is_none() || spec.durable;
        let source = prepared.source.filter(|_| is_stored);
        let prepared = Box::new(Prepared { source, ..prepared });
        let number = owner.as_ref().map(|(number, _)| *number).filter(|_| !spec.durable);
        let held = Box::new(Held::new(spec, number, is_stored));
        let (shards, name) = (self.broker().shards.clone(), client.as_str().into());
        let owner = owner.map(|(_, outbox)| outbox);
        let future = Box::pin(async move {
            let install = |client, reply| Command::Install {
                client,
                subscription: prepared,
                change: None,
                owner,
                answer: None,
                reply,
            };
            shards.ask(&name, install).await??;
            Ok(Done::Other(true))
        });
        let session = self.number();
        self.ask(What::Other, future, &Step::Install { client, id, held, session }, move |_| is_stored)
    }

    fn remove(&mut self, client: String) -> Result<(), String> {
        let id = format!("s{}", self.choices.below(self.plan.subscriptions_max));
        self.trace.add(format!("remove {client} {id}"));
        let (shards, name) = (self.broker().shards.clone(), client.as_str().into());
        let text = id.as_str().into();
        let future = Box::pin(async move {
            let remove = |client, reply| Command::Remove { client, id: text, confinement: None, reply };
            Ok(Done::Other(shards.ask(&name, remove).await??))
        });
        // Of one that was not stored nothing has to be on disk.
        self.ask(What::Other, future, &Step::Remove { client, id }, |_| false)
    }

    fn attach(&mut self, client: String) -> Result<(), String> {
        let connection = self.number();
        let outbox = Arc::new(Outbox::new(connection, Bounds::new(&self.broker().config.outbox)));
        let is_stream = self.choices.chance(0.4);
        let asks = match (self.choices.below(4), self.session(&client)) {
            (0, _) => Asks::After { epoch: "0123456789abcdef".to_owned(), offset: 1, is_stream },
            (1..3, Some(session)) if let Some(epoch) = session.epoch.clone() => {
                let offset = usize::try_from(session.offset()).map_err(|error| error.to_string())?;
                let offset = self.choices.below(offset + 2) as u64;
                Asks::After { epoch, offset, is_stream }
            }
            _ => Asks::Nothing,
        };
        let resume = match (&asks, is_stream) {
            (Asks::Nothing, false) => Resume::Ready,
            (Asks::Nothing, true) => Resume::Fresh,
            (Asks::After { epoch, offset, .. }, false) => {
                Resume::ReadyAfter { epoch: epoch.clone(), offset: *offset }
            }
            (Asks::After { epoch, offset, .. }, true) => {
                Resume::After { epoch: epoch.clone(), offset: *offset }
            }
        };
        let shown = match &asks {
            Asks::Nothing => "from where it is".to_owned(),
            // Epochs are not the same in every run.
            Asks::After { epoch, offset, .. } => {
                format!("after {offset}{}", if epoch.starts_with("0123456789a") { " of another" } else { "" })
            }
        };
        self.trace.add(format!("attach {client} {connection} {shown}, a stream: {is_stream}"));
        self.connections.insert(connection, Connection::new(client.clone(), Arc::clone(&outbox)));
        let confinement = confinement(&client);
        let (shards, name) = (self.broker().shards.clone(), client.as_str().into());
        let future = Box::pin(async move {
            let attach = |client, reply| Command::Attach { client, outbox, resume, confinement, reply };
            Ok(Done::Attached(shards.ask(&name, attach).await??))
        });
        let session = self.number();
        let step = Step::Attach { client, connection, asks, session };
        self.ask(What::Attach(connection), future, &step, |_| false)
    }

    fn forget(&mut self, client: String) -> Result<(), String> {
        // What is acknowledged is of the session that there is.
        let is_of_it = |step: &Step| matches!(step, Step::Ack { client: of, .. } if *of == client);
        if self.books[self.shard_of(&client)].queue.iter().any(is_of_it) {
            return Ok(());
        }
        self.trace.add(format!("forget {client}"));
        let (shards, name) = (self.broker().shards.clone(), client.as_str().into());
        let future = Box::pin(async move {
            let forget = |client, reply| Command::Forget { client, reply };
            Ok(Done::Other(shards.ask(&name, forget).await??))
        });
        self.ask(What::Other, future, &Step::Forget { client }, |_| false)
    }

    fn revoke(&mut self) -> Result<(), String> {
        let live: Vec<_> = self.books[0].now.live.values().map(|live| live.event.id.clone()).collect();
        let id = if live.is_empty() { "x".to_owned() } else { live[self.choices.below(live.len())].clone() };
        self.trace.add(format!("revoke {id}"));
        let last = self.number();
        self.published.revoked.insert(id.clone(), last);
        let (shards, name) = (self.broker().shards.clone(), id.as_str().into());
        let future = Box::pin(async move { Ok(Done::Other(shards.revoke(&name, None).await?)) });
        self.ask(What::Revoke(id.clone(), last), future, &Step::Revoke { id }, |_| false)
    }

    fn acknowledge(&mut self, client: String) -> Result<(), String> {
        // What is acknowledged is of the session that there is.
        let is_forgotten = |step: &Step| matches!(step, Step::Forget { client: of } if *of == client);
        if self.books[self.shard_of(&client)].queue.iter().any(is_forgotten) {
            return Ok(());
        }
        let session = self.session(&client).map(|session| session.number);
        let cursors = self.connections.values().filter(|reader| {
            reader.client == client && reader.begins.as_ref().map(|begins| begins.session) == session
        });
        // What it has got, and sometimes what nobody has got yet.
        let Some(last) = cursors.filter_map(|reader| reader.cursor).max() else { return Ok(()) };
        let offset = match self.choices.chance(0.05) {
            true => last + 1_000,
            false => last.saturating_sub(self.choices.one(&[0, 0, 1, 3])),
        };
        self.ack(client, offset)
    }

    fn ack(&mut self, client: String, offset: u64) -> Result<(), String> {
        self.trace.add(format!("ack {client} {offset}"));
        let (shards, name) = (self.broker().shards.clone(), client.as_str().into());
        let future = Box::pin(async move {
            let ack = |client, reply| Command::Ack { client, offset, state: None, reply };
            shards.ask(&name, ack).await??;
            Ok(Done::Other(false))
        });
        // What is beyond the last changes nothing.
        let is_beyond = self.session(&client).is_none_or(|session| offset > session.offset() + 500);
        let step = if is_beyond { Step::Nothing } else { Step::Ack { client, offset } };
        self.ask(What::Other, future, &step, |_| false)
    }

    fn detach(&mut self) -> Result<(), String> {
        let connections: Vec<_> = self.connections.keys().copied().collect();
        if connections.is_empty() {
            return Ok(());
        }
        let connection = connections[self.choices.below(connections.len())];
        self.detach_one(connection);
        Ok(())
    }

    fn detach_one(&mut self, connection: u64) {
        let Some(reader) = self.connections.remove(&connection) else { return };
        self.trace.add(format!("detach {} {connection}", reader.client));
        let shards = self.broker().shards.clone();
        shards.detach(&reader.client.as_str().into(), connection).now_or_never();
        self.follow_queues(&Step::Detach { client: reader.client, connection });
    }

    fn read_some(&mut self) -> Result<(), String> {
        let connections: Vec<_> = self.connections.keys().copied().collect();
        if connections.is_empty() {
            return Ok(());
        }
        let connection = connections[self.choices.below(connections.len())];
        let bytes_max = self.choices.one(&[1, 700, ALL, ALL]);
        self.read(connection, bytes_max)
    }

    fn change_faults(&mut self) -> Result<(), String> {
        let shard = self.choices.below(self.plan.shards_count);
        match self.choices.below(4) {
            0 | 1 => {
                let fails = self.choices.chance(0.5);
                self.trace.add(format!("the way of shard {shard} to the disk fails: {fails}"));
                self.broker().faults.fails[shard].store(fails, Ordering::Relaxed);
            }
            2 => {
                let room = self.choices.one(&[0, 5_000, 100_000]);
                self.trace.add(format!("the disk has room for {room} bytes"));
                self.disk.leave_room(Some(room));
            }
            _ => {
                self.trace.add("there is room again, and all ways are free".to_owned());
                self.mend();
            }
        }
        Ok(())
    }

    fn mend(&mut self) {
        self.disk.leave_room(None);
        self.broker().faults.fails.iter().for_each(|fails| fails.store(false, Ordering::Relaxed));
    }

    fn begin_to_crash(&mut self) -> Result<(), String> {
        if self.choices.chance(0.4) {
            return self.crash_now();
        }
        let writes = self.choices.below(40) as u64;
        self.trace.add(format!("the end comes after {writes} writes"));
        self.disk.lose_power_after(writes);
        Ok(())
    }

    /// Lets everything that is under way come to its end: then readers have got all that there is for them.
    pub(super) fn come_to_rest(&mut self) -> Result<(), String> {
        self.mend();
        self.disk.lose_power_after(u64::MAX);
        self.trace.add("nothing more comes".to_owned());
        for _ in 0..20 {
            self.pass(1_100);
            self.mend();
            for shard in 0..self.plan.shards_count {
                self.step(shard, usize::MAX)?;
            }
            for connection in self.connections.keys().copied().collect::<Vec<_>>() {
                self.read(connection, ALL)?;
            }
        }
        for _ in 0..3_000 {
            for connection in self.connections.keys().copied().collect::<Vec<_>>() {
                self.read(connection, ALL)?;
            }
            if self.books.iter().all(|book| book.queue.is_empty()) {
                break;
            }
            for shard in 0..self.plan.shards_count {
                self.step(shard, usize::MAX)?;
            }
        }
        if !self.requests.is_empty() {
            return Err(format!("{} requests are not answered", self.requests.len()));
        }
        for (number, reader) in &self.connections {
            let session = self.session(&reader.client).filter(|session| session.durable);
            if let Some(session) = session
                && reader.cursor != Some(session.offset())
            {
                return Err(format!(
                    "{number} of {} is at {:?} of {session:?}",
                    reader.client, reader.cursor
                ));
            }
        }
        Ok(())
    }

    /// Everybody goes: then nothing is on disk.
    pub(super) fn leave_nothing(&mut self) -> Result<(), String> {
        for connection in self.connections.keys().copied().collect::<Vec<_>>() {
            self.detach_one(connection);
        }
        for client in 0..self.plan.clients_count {
            self.forget(format!("c{client}"))?;
        }
        self.pass(super::spec::TTL_MS + 1);
        self.come_to_rest()?;
        // Folds begin with commits: somebody comes and goes.
        for round in 0..3 * self.plan.fold_rows + 3 {
            self.move_client("last".to_owned())?;
            let shard = self.shard_of("last");
            self.step(shard, 1)?;
            if round % 2 == 1 {
                self.forget("last".to_owned())?;
                self.step(shard, 1)?;
            }
            for _ in 0..10_000 {
                if !self.broker().store.idle() {
                    break;
                }
            }
        }
        self.forget("last".to_owned())?;
        self.come_to_rest()?;
        let report = self.broker().store.check().map_err(|error| error.to_string())?;
        // Those events are held that are known to have gone to somebody.
        let held = (self.plan.recent_events * self.plan.shards_count) as u64;
        let left = report.counts.iter().filter(|(what, count)| match *what {
            "last commit" | "commits in the log" => false,
            "texts of events" | "of these to be removed" => *count > held,
            _ => *count > 0,
        });
        let left: Vec<_> = left.collect();
        if !report.is_whole() || !left.is_empty() {
            return Err(format!("{report}\nleft on disk: {left:?}"));
        }
        Ok(())
    }
}
