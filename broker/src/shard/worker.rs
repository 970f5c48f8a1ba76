//! A shard at work: it takes the commands of its queue, step by step.

use std::ops::ControlFlow::{self, Continue};
use std::sync::Arc;
use std::time::{Duration, Instant};

use matcher::event::Event;
use matcher::live::Survey;
use matcher::violated;

use super::Command;
use super::deferred::{Deferrals, Deferred};
use super::load::Load;
use super::queue::Receiver;
use crate::admission::{InFlightGuard, MoveTurn};
use crate::config::Queue;
use crate::engines::Report;
use crate::metrics::Metrics;
use crate::model::clock;
use crate::model::completion::CompletionGuard;
use crate::model::error::ApiError;
use crate::model::event::Published;
use crate::sessions::{Answer, Mover, Payer, Sessions};
use crate::telemetry;

/// Surveys may take one part in `SURVEYED_PART` of a step, and a slice at least.
const SURVEYED_PART: u32 = 4;

/// A shard, for the holder of its executor lock.
pub(crate) struct Shard {
    pub(crate) sessions: Sessions,
    metrics: Arc<Metrics>,
    /// Tells whether the engine uses a device: it may give that up.
    report: Report,
    queue: Queue,
    load: Arc<Load>,
    /// Its number, where events are traced.
    traced_as: Option<usize>,
    /// Events that came in a row; kept for its memory.
    events: Vec<Matching>,
    /// Turn of the move at hand.
    turn: Option<Arc<MoveTurn>>,
    deferrals: Deferrals,
    /// When the step at hand began, and whether a command of it has had a slice.
    began: Instant,
    has_sliced: bool,
}

/// An event to match. It is under way as long as its pass is there.
struct Matching {
    published: Arc<Published>,
    _pass: Option<Arc<InFlightGuard>>,
    ticket: Option<CompletionGuard>,
}

impl Shard {
    pub(super) fn new(
        sessions: Sessions,
        metrics: &Arc<Metrics>,
        report: Report,
        queue: Queue,
        load: Arc<Load>,
        traced_as: Option<usize>,
    ) -> Self {
        let metrics = Arc::clone(metrics);
        let deferrals = Deferrals::default();
        let began = metrics.started;
        Self {
            sessions,
            metrics,
            report,
            queue,
            load,
            traced_as,
            events: Vec::new(),
            turn: None,
            deferrals,
            began,
            has_sliced: false,
        }
    }

    /// When there is something to do next, should nothing come.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if self.deferrals.is_empty() { self.sessions.next_deadline() } else { Some(self.metrics.started) }
    }

    /// Nothing comes any more: what is due happens, and what waits for the disk is written.
    pub(super) fn end(&mut self) {
        self.abandon();
        self.sessions.advance();
        self.sessions.commit_rest();
    }

    /// Forgets deferred commands. None of them was answered.
    pub(super) fn abandon(&mut self) {
        self.deferrals = Deferrals::default();
    }

    /// How many commands are taken at once.
    pub(super) fn batch(&self) -> usize {
        self.queue.batch_of(self.report.has_device(), self.sessions.has_disk())
    }

    /// Takes more than a batch where an alarm waits behind it, which would otherwise wait for what it overtakes.
    pub(super) fn take_alarms(&self, commands: &mut Vec<Command>, receiver: &mut Receiver) {
        let mut seen = 0;
        while self.load.took(alarms_in(&commands[seen..])) && commands.len() < self.queue.commands {
            seen = commands.len();
            match receiver.take_one() {
                Some(command) => commands.push(command),
                // It is about to come.
                None => return,
            }
        }
    }

    /// One step: what has happened by itself since the last one, a run of commands, and the commit of both. Says whether
    /// the last command was among them.
    pub(crate) fn step(&mut self, commands: &mut Vec<Command>) -> ControlFlow<()> {
        let started = clock::now();
        (self.began, self.has_sliced) = (started, false);
        self.load.begin(commands.len(), oldest_of(commands).unwrap_or(started));
        self.sessions.begin_work();
        self.sessions.advance();
        let mut events = std::mem::take(&mut self.events);
        // When the command before has ended, where nothing came in between: a run of moves needs a look at the clock for each.
        let mut ended = None;
        for command in commands.drain(..) {
            if let Command::Match { event, pass, ticket } = command {
                if self.sessions.has_had(event.place) {
                    continue;
                }
                events.push(Matching { published: event, _pass: pass, ticket });
                ended = None;
                continue;
            }
            self.match_run(&mut events);
            ended = self.take(command, ended.take())?;
        }
        self.match_run(&mut events);
        self.events = events;
        self.sessions.list_some();
        self.sessions.query_some();
        self.survey_some();
        let worked = clock::now();
        self.sessions.commit_and_release();
        self.load.end(worked.duration_since(started), clock::now().duration_since(worked));
        Continue(())
    }

    /// Carries a command out that is no event, or defers it. `surveyed` is what was found out ahead of it, and how long that took. `ended`
    /// is when the one before has ended, where nothing came in between; gives back the same of this one.
    fn carry_out(
        &mut self,
        command: Command,
        surveyed: Option<(Survey, Duration)>,
        ended: Option<Instant>,
    ) -> ControlFlow<(), Option<Instant>> {
        let began = ended.unwrap_or_else(clock::now);
        self.load.begin_own();
        let found = if let Command::RoutesFound(found) = &command { found.took } else { Duration::ZERO };
        let (command, before) = match surveyed {
            Some((survey, took)) => {
                self.sessions.use_survey(Some(survey));
                (Some(command), took)
            }
            None => (self.survey(command), found),
        };
        if let Some(command) = command {
            self.apply(command)?;
            self.sessions.use_survey(None);
        }
        let now = clock::now();
        self.charge(now.saturating_duration_since(began), before, now);
        Continue(if self.sessions.commit_when_full() { None } else { Some(now) })
    }

    /// Begins a survey for a command that has much to look at. Gives back what is to be carried out now.
    fn survey(&mut self, command: Command) -> Option<Command> {
        let began = clock::now();
        let Some(mut survey) = survey(&self.sessions, &command) else { return Some(command) };
        // One in a step, so that not each of a whole run has a slice.
        if !std::mem::replace(&mut self.has_sliced, true) && self.sessions.go_on(&mut survey, Duration::ZERO)
        {
            self.sessions.use_survey(Some(survey));
            return Some(command);
        }
        let Some(client) = command.client().map(Arc::clone) else {
            violated!("a command with a survey has a client");
            return Some(command);
        };
        let took = self.sessions.worked(clock::now().saturating_duration_since(began));
        self.sessions.charge_slice(&client, took);
        let heavy = self.sessions.make_heavy(&client);
        let held = self.sessions.hold_survey(&client);
        self.deferrals.defer(command, survey, held, took, heavy);
        None
    }

    /// Goes on with the deferred command whose turn it is, for a slice.
    fn survey_some(&mut self) {
        let Some(deferred) = self.deferrals.next() else { return };
        let began = clock::now();
        self.load.begin_own();
        if deferred.survey.is_none() {
            deferred.survey = survey(&self.sessions, &deferred.command);
        }
        let part = began.saturating_duration_since(self.began) / SURVEYED_PART;
        let is_done = deferred.survey.as_mut().is_none_or(|survey| self.sessions.go_on(survey, part));
        deferred.held.cover(deferred.survey.as_ref().map_or(0, Survey::bytes) as u64);
        let now = clock::now();
        let took = self.sessions.worked(now.saturating_duration_since(began));
        deferred.took += took;
        if let Some(client) = deferred.command.client() {
            self.sessions.charge_slice(client, took);
        }
        self.load.end_own(now.saturating_duration_since(began), now);
        if is_done {
            self.carry_out_next();
        } else {
            self.deferrals.pass();
        }
    }

    /// Carries the deferred command out whose turn it is, and what waits behind it.
    fn carry_out_next(&mut self) {
        let Some(Deferred { command, survey, took, behind, .. }) = self.deferrals.take() else { return };
        // None of these is the last command.
        let _ = self.carry_out(command, survey.map(|survey| (survey, took)), None);
        for command in behind {
            let _ = self.take(command, None);
        }
    }

    /// Carries out a command that is no event, unless it has to wait.
    fn take(&mut self, command: Command, ended: Option<Instant>) -> ControlFlow<(), Option<Instant>> {
        let Some(command) = self.deferrals.keep(command) else { return Continue(None) };
        let moved = self.deferrals.moved_by(&command);
        let ended = self.carry_out(command, None, ended)?;
        if let Some(client) = moved {
            self.deferrals.begin_again(&client);
        }
        Continue(ended)
    }

    /// Charges a command that is no event for the time that it took, and for that of its survey before.
    fn charge(&mut self, took: Duration, before: Duration, now: Instant) {
        self.sessions.charge(self.sessions.worked(took), before);
        self.load.end_own(took, now);
        if let Some(turn) = self.turn.take() {
            turn.took(took);
        }
    }

    /// Matches events that came in a row, alarms first: the recipient of an alarm has it before the others are looked at.
    fn match_run(&mut self, events: &mut Vec<Matching>) {
        // Of a stream what is stored is what came before a place.
        let is_in_order = events.iter().any(|matching| matching.published.place.is_some());
        let alarms = if is_in_order { 0 } else { put_alarms_first(events) };
        if alarms > 0 && alarms < events.len() {
            self.match_events(&mut events.drain(..alarms).collect());
            self.sessions.commit_and_release();
        }
        let batch = self.batch();
        while events.len() > batch {
            self.match_events(&mut events.drain(..batch).collect());
        }
        self.match_events(events);
    }

    fn match_events(&mut self, events: &mut Vec<Matching>) {
        let Some(oldest) = events.first() else { return };
        self.sessions.begin();
        let started = clock::now();
        self.metrics.queue_wait.record(started.duration_since(oldest.published.body.received));
        let batch: Vec<&Event> = events.iter().map(|matching| &*matching.published.event).collect();
        let matched = self.sessions.match_batch(&batch);
        if let Some(shard) = self.traced_as {
            let bodies = events.iter().map(|matching| &*matching.published.body);
            let count = |index| matched.is_ok().then(|| self.sessions.matches_count(index));
            telemetry::matched(shard, started, bodies, count);
        }
        let mut refused = Vec::new();
        let outcome = match matched {
            Ok(()) => {
                for (index, matching) in events.iter().enumerate() {
                    if !matching.published.is_taken(|| self.sessions.refuses_more()) {
                        refused.push(index);
                        continue;
                    }
                    self.sessions.deliver(index, &matching.published);
                    self.sessions.came_to(matching.published.place);
                    self.sessions.commit_when_full();
                }
                Ok(())
            }
            // Engines on the CPU never fail, and those on a device have one of these to go on with.
            Err(error) => {
                tracing::error!(%error, events = events.len(), "events could not be matched");
                Err(ApiError::Internal("events could not be matched"))
            }
        };
        self.metrics.match_batch.record(clock::now().duration_since(started));
        self.sessions.wake_readers();
        self.sessions.charge_matching(&batch);
        #[expect(clippy::cast_precision_loss, reason = "a batch has 65,536 events at most")]
        self.metrics.batch_events.record(events.len() as f64);
        for (index, matching) in events.drain(..).enumerate() {
            let Some(ticket) = matching.ticket else { continue };
            match &outcome {
                Ok(()) if refused.binary_search(&index).is_ok() => ticket.settle(Err(ApiError::Full)),
                Ok(()) => self.sessions.answer(Answer::CompletionGuard(ticket)),
                Err(refusal) => ticket.settle(Err(refusal.clone())),
            }
        }
    }

    /// Carries a command out; says whether it was the last. A client that asked may be gone by now: its
    /// reply is dropped.
    fn apply(&mut self, command: Command) -> ControlFlow<()> {
        let sessions = &mut self.sessions;
        sessions.begin();
        let command = if sessions.refuses_changes() {
            match refuse_change(command) {
                Some(command) => command,
                None => return Continue(()),
            }
        } else if matches!(command, Command::Install { .. } | Command::PutPush { .. })
            && sessions.refuses_more()
        {
            drop(command.refuse(&ApiError::Full));
            return Continue(());
        } else {
            command
        };
        match command {
            Command::Match { event, pass, ticket } => {
                self.match_run(&mut vec![Matching { published: event, _pass: pass, ticket }]);
            }
            Command::Stop => {
                self.deferrals = Deferrals::default();
                // What was queued behind is refused: its senders see the channel closed.
                sessions.commit_rest();
                sessions.say_goodbye();
                return ControlFlow::Break(());
            }
            Command::Move { client, mover, fix, track, turn, ticket } => {
                let moved = sessions.move_client(&client, mover, fix, track.as_deref());
                self.turn = turn;
                match (ticket, moved) {
                    (Some(ticket), Ok(())) => sessions.answer_move(&client, Answer::CompletionGuard(ticket)),
                    (Some(ticket), Err(refusal)) => ticket.settle(Err(refusal)),
                    (None, Ok(())) => {}
                    // It was answered already. Only a client that was deleted since has to be a new one without a permit.
                    (None, Err(refusal)) => tracing::debug!(?refusal, "a move could not be carried out"),
                }
            }
            Command::MoveIfRoom { client, fix, track, reply } => {
                match sessions.move_client(&client, Mover::Named(None), fix, track.as_deref()) {
                    Ok(()) => sessions.answer_move(&client, Answer::Changed(reply)),
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Command::Install { client, subscription, change: _change, owner, answer, reply } => {
                let owner_connection = owner.as_ref().map(|outbox| outbox.connection);
                match sessions.install(&client, *subscription, owner_connection) {
                    // An answer over HTTP is given before whatever the subscription brings is dealt out.
                    Ok(installed) => sessions.answer(Answer::Installed {
                        owner: owner.zip(answer),
                        reply,
                        installed: Box::new(installed),
                    }),
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
                sessions.tell_changes();
            }
            Command::Remove { client, id, confinement, reply } => {
                match sessions.check_confinement(&client, confinement.as_ref()) {
                    Ok(()) => {
                        let done = sessions.remove(&client, &id);
                        sessions.paid_by(Payer::Name(client));
                        sessions.answer(Answer::Done(reply, done));
                    }
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Command::Get { client, id, confinement, reply } => {
                let permitted = sessions.check_confinement(&client, confinement.as_ref());
                drop(reply.send(permitted.map(|()| sessions.document(&client, &id))));
            }
            Command::List { client, confinement, reply } => {
                let permitted = sessions.check_confinement(&client, confinement.as_ref());
                drop(reply.send(permitted.map(|()| sessions.documents(&client))));
                sessions.paid_by(Payer::Name(client));
            }
            Command::Attach { client, outbox, resume, confinement, reply } => {
                let connection = outbox.connection;
                let attached = sessions.attach(&client, outbox, resume, confinement);
                if let Err(Ok(_)) = reply.send(attached) {
                    // The connection went away while it waited.
                    sessions.detach(&client, connection);
                }
            }
            Command::Ack { client, offset, state, reply } => {
                let is_awaited = state.as_ref().is_some_and(|state| state.is_awaited);
                if let Some(state) = state {
                    sessions.record_state(&client, &state);
                }
                match sessions.acknowledge(&client, offset) {
                    Ok(()) if is_awaited => sessions.answer(Answer::Changed(reply)),
                    done => drop(reply.send(done)),
                }
            }
            Command::Detach { client, connection } => sessions.detach(&client, connection),
            Command::Forget { client, reply } => {
                let done = sessions.delete(&client);
                sessions.paid_by(Payer::Name(client));
                sessions.answer(Answer::Done(reply, done));
            }
            Command::Revoke { id, confinement, place, reply } => {
                let done = sessions.revoke(&id, confinement.as_deref(), place);
                sessions.answer(Answer::Done(reply, done));
            }
            Command::Remembered { id, payer, reply } => {
                drop(reply.send(sessions.remembered(&id)));
                sessions.paid_by(Payer::Name(payer));
            }
            Command::Deliveries { id, asked, payer, reply } => {
                drop(reply.send(sessions.deliveries(&id, &asked)));
                sessions.paid_by(Payer::Name(payer));
            }
            Command::Explain { client, question, to_itself, payer, reply } => {
                drop(reply.send(sessions.explain(&client, *question, to_itself)));
                sessions.paid_by(Payer::Name(payer));
            }
            Command::FindingRead { client, version, reply } => {
                // The broker that asked may be stopping.
                let _ = reply.send(sessions.finding_read(&client, &version));
            }
            Command::Footprint { payer, reply } => {
                // The client that asked may be gone.
                let _ = reply.send(sessions.footprint());
                sessions.paid_by(Payer::Name(payer));
            }
            Command::ListClients { after, limit, payer, reply } => {
                sessions.list_clients(after, limit, payer, reply);
            }
            Command::RoutesFound(found) => sessions.routes_found(found),
            Command::ReadUntil(at) => sessions.has_read_until(at),
            Command::StreetsSlowed(places) => sessions.streets_slowed(&places),
            Command::Query { question, change, reply } => sessions.query(*question, change, reply),
            Command::Locate { client, to_itself, confinement, reply } => {
                let permitted = sessions.check_confinement(&client, confinement.as_ref());
                drop(reply.send(permitted.map(|()| sessions.locate(&client, to_itself))));
            }
            Command::Routes { client, asked, confinement, reply } => {
                let permitted = sessions.check_confinement(&client, confinement.as_ref());
                drop(reply.send(permitted.map(|()| sessions.areas_along_routes(&client, &asked))));
            }
            Command::PutPush { client, subscription, confinement, reply } => {
                match sessions.put_push(&client, subscription, confinement.as_ref()) {
                    Ok(replaced) => sessions.answer(Answer::Done(reply, replaced)),
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Command::GetPush { client, confinement, reply } => {
                let permitted = sessions.check_confinement(&client, confinement.as_ref());
                drop(reply.send(permitted.map(|()| sessions.push_of(&client))));
            }
            Command::RemovePush { client, only, confinement, reply } => {
                match sessions.check_confinement(&client, confinement.as_ref()) {
                    Ok(()) => {
                        let done = sessions.remove_push(&client, only.as_ref());
                        sessions.answer(Answer::Done(reply, done));
                    }
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Command::Disconnect { client, confinement, reply } => {
                let permitted = sessions.check_confinement(&client, confinement.as_ref());
                drop(reply.send(permitted.map(|()| sessions.disconnect(&client))));
            }
        }
        Continue(())
    }
}

/// Begins a survey for a command that its sender waits for, where it has much to look at.
fn survey(sessions: &Sessions, command: &Command) -> Option<Survey> {
    if let Command::Install { client, subscription, .. } = command {
        return sessions.survey_installation(client, subscription);
    }
    let (Command::Move { client, fix, track, ticket: Some(_), .. }
    | Command::MoveIfRoom { client, fix, track, .. }) = command
    else {
        return None;
    };
    sessions.survey_move(client, *fix, track.as_deref())
}

/// Refuses what would have to be on disk; gives everything else back. Events, and the ends of live ones, that were on their way
/// are taken by all shards or by none: by now it is all, and their senders learn that they are not on disk.
fn refuse_change(command: Command) -> Option<Command> {
    let changes = matches!(
        command,
        Command::Move { .. }
            | Command::MoveIfRoom { .. }
            | Command::Install { .. }
            | Command::Remove { .. }
            | Command::Forget { .. }
            | Command::PutPush { .. }
            | Command::RemovePush { .. }
    );
    if !changes {
        return Some(command);
    }
    // A move that is not waited for is lost, as it would be were the broker killed.
    drop(command.refuse(&ApiError::Storage));
    None
}

fn alarms_in(commands: &[Command]) -> usize {
    let is_alarm =
        |command: &&Command| matches!(command, Command::Match { event, .. } if event.body.is_alarm);
    commands.iter().filter(is_alarm).count()
}

/// When the first event among commands was read.
fn oldest_of(commands: &[Command]) -> Option<Instant> {
    commands.iter().find_map(|command| {
        if let Command::Match { event, .. } = command { Some(event.body.received) } else { None }
    })
}

/// Lets alarms overtake the other events of a run, and says how many do. Among themselves they keep their order; behind an event
/// of its own object an alarm stays, for of two the later one counts.
fn put_alarms_first(events: &mut [Matching]) -> usize {
    let mut first = 0;
    for index in 0..events.len() {
        let body = &events[index].published.body;
        let overtakes = body.is_alarm
            && events[first..index].iter().all(|before| before.published.body.object != body.object);
        if overtakes {
            events[first..=index].rotate_right(1);
            first += 1;
        }
    }
    first
}
