//! The streams that a broker reads, and the commands that wait for them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::tailer::{Attach, Fault, Tailer, Taken};
use super::{Stream, Timing};
use crate::log::{Identity, Sent};

/// For each stream the last sequence that was handed out. Taken when a command is put in the queue of an engine, it is what the engine has
/// worked off when it comes to that command.
pub type Frontier = BTreeMap<Stream, u64>;

/// Commands that wait. More are refused.
const COMMANDS_MAX: usize = 4_096;

/// Reads the streams that the areas of a broker's clients need, and holds back commands that need others.
///
/// A command is carried out when each stream that its client needs before and after it is read, and was read to its end a short while
/// ago. Commands of one client keep their order; those of others overtake it. A stream is read for a while longer than it is needed.
#[derive(Debug)]
pub struct Reader {
    timing: Timing,
    parts: BTreeMap<Stream, Part>,
    /// What each client needs, as of the last command that was carried out.
    clients: BTreeMap<u64, Needs>,
    waiting: VecDeque<Waiting>,
    to_detach: VecDeque<Stream>,
    attachments: u64,
}

/// A command that changes what a client's areas are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Names the command.
    pub command: u64,
    /// Names the client.
    pub client: u64,
    /// The streams that all of the client's areas touch after the command. None for a client that goes.
    pub cover: BTreeSet<Stream>,
    /// Streams that the client may need soon. The command does not wait for them.
    pub ahead: BTreeSet<Stream>,
}

/// Why a command is not taken: as many wait as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{COMMANDS_MAX} commands wait for streams")]
pub struct ClaimError;

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is to be put in the engine's queue at once, before anything more is taken from a stream. It may be answered then.
    Carry(u64),
    /// It has waited for [`Timing::wait`], and is as if it had never been.
    Refuse(u64),
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Append a marker to the stream, and say by [`Reader::marked`] what came of it.
    Mark(Stream),
    /// Attach to the stream.
    Attach(Stream, Attach),
    /// The stream is not read any more.
    Detach(Stream),
}

#[derive(Clone, Debug, Default)]
struct Needs {
    cover: BTreeSet<Stream>,
    /// With those ahead.
    all: BTreeSet<Stream>,
}

#[derive(Debug)]
struct Waiting {
    command: u64,
    client: u64,
    needs: Needs,
    since: Duration,
}

#[derive(Debug)]
struct Part {
    reading: Reading,
    /// How many clients and commands need it.
    needed: usize,
    /// Since when none does.
    unneeded_since: Duration,
    /// Whether reading ended with a fault, and what is lost has not been told.
    is_broken: bool,
}

#[derive(Debug)]
enum Reading {
    ToMark,
    Marking { since: Duration },
    Tailing(Box<Tailer>),
}

impl Reader {
    /// Reads nothing yet.
    #[must_use]
    pub fn new(timing: Timing) -> Self {
        Self {
            timing,
            parts: BTreeMap::new(),
            clients: BTreeMap::new(),
            waiting: VecDeque::new(),
            to_detach: VecDeque::new(),
            attachments: 0,
        }
    }

    /// Takes a command, which [`Reader::decide`] decides about: at once, where the streams are read already.
    ///
    /// # Errors
    /// [`ClaimError`], and the command is as if it had never been.
    pub fn claim(&mut self, now: Duration, claim: Claim) -> Result<(), ClaimError> {
        if self.waiting.len() >= COMMANDS_MAX {
            return Err(ClaimError);
        }
        let Claim { command, client, cover, mut ahead } = claim;
        ahead.extend(&cover);
        let needs = Needs { cover, all: ahead };
        for stream in &needs.all {
            let new = || Part { reading: Reading::ToMark, needed: 0, unneeded_since: now, is_broken: false };
            self.parts.entry(*stream).or_insert_with(new).needed += 1;
        }
        self.waiting.push_back(Waiting { command, client, needs, since: now });
        Ok(())
    }

    /// What becomes of a command, if that is known of one. Asked until it says none, after whatever has arrived was taken: what waits in a
    /// socket is behind, and a report in it is old.
    pub fn decide(&mut self, now: Duration) -> Option<Decision> {
        let mut held = BTreeSet::new();
        let next = self.waiting.iter().enumerate().find_map(|(at, waiting)| {
            let is_over = now.saturating_sub(waiting.since) >= self.timing.wait;
            let is_ready = !held.contains(&waiting.client) && self.is_ready(now, waiting);
            held.insert(waiting.client);
            (is_ready || is_over).then_some((at, is_ready))
        });
        let (at, is_ready) = next?;
        let Waiting { command, client, needs, .. } = self.waiting.remove(at)?;
        if !is_ready {
            self.let_go(now, &needs);
            return Some(Decision::Refuse(command));
        }
        let before = if needs.all.is_empty() {
            self.clients.remove(&client)
        } else {
            self.clients.insert(client, needs)
        };
        self.let_go(now, &before.unwrap_or_default());
        Some(Decision::Carry(command))
    }

    /// The next request, if one is due.
    pub fn poll(&mut self, now: Duration) -> Option<Action> {
        let timing = self.timing;
        let is_over = |part: &Part| {
            part.needed == 0
                && !part.is_broken
                && !matches!(part.reading, Reading::Marking { .. })
                && now.saturating_sub(part.unneeded_since) >= timing.keep
        };
        let to_detach = &mut self.to_detach;
        self.parts.retain(|stream, part| {
            let is_over = is_over(part);
            to_detach.extend(is_over.then_some(*stream));
            !is_over
        });
        if let Some(stream) = self.to_detach.pop_front() {
            return Some(Action::Detach(stream));
        }
        self.parts.iter_mut().find_map(|(stream, part)| match &mut part.reading {
            Reading::ToMark => {
                part.reading = Reading::Marking { since: now };
                Some(Action::Mark(*stream))
            }
            Reading::Marking { .. } => None,
            Reading::Tailing(tailer) => {
                tailer.poll(now, &mut self.attachments).map(|attach| Action::Attach(*stream, attach))
            }
        })
    }

    /// Takes what came of a marker. One whose fate is unknown is asked for again. Returns whether records are lost: reading had ended with
    /// a [`Fault`], what was read last may be gone from the log, and what is before the marker may not have been read.
    #[must_use]
    pub fn marked(&mut self, now: Duration, stream: Stream, marker: Option<Identity>) -> bool {
        let Some(part) = self.parts.get_mut(&stream) else { return false };
        let Reading::Marking { since } = part.reading else { return false };
        let Some(marker) = marker else {
            part.reading = Reading::ToMark;
            return false;
        };
        part.reading = Reading::Tailing(Box::new(Tailer::behind(marker, since, now, self.timing)));
        std::mem::take(&mut part.is_broken)
    }

    /// An attachment could not be made, or ended.
    pub fn failed(&mut self, now: Duration, stream: Stream, attachment: u64) {
        if let Some(Part { reading: Reading::Tailing(tailer), .. }) = self.parts.get_mut(&stream) {
            tailer.failed(now, attachment);
        }
    }

    /// Takes what an attachment sent. A record goes into the engine's queue.
    ///
    /// # Errors
    /// Any [`Fault`], which is the operator's to know. Reading begins anew behind a marker, and [`Reader::marked`] tells the loss then.
    pub fn take<'a>(
        &mut self,
        now: Duration,
        stream: Stream,
        attachment: u64,
        sent: &'a Sent,
    ) -> Result<Taken<'a>, Fault> {
        let Some(part) = self.parts.get_mut(&stream) else { return Ok(Taken::Nothing) };
        let Reading::Tailing(tailer) = &mut part.reading else { return Ok(Taken::Nothing) };
        let taken = tailer.take(now, attachment, sent);
        if taken.is_err() {
            (part.reading, part.is_broken) = (Reading::ToMark, true);
        }
        taken
    }

    /// Up to where each stream that is read has been handed out.
    #[must_use]
    pub fn frontier(&self) -> Frontier {
        let tailers = self.parts.iter().filter_map(|(stream, part)| Some((*stream, part.tailer()?)));
        tailers.map(|(stream, tailer)| (stream, tailer.last())).collect()
    }

    fn is_ready(&self, now: Duration, waiting: &Waiting) -> bool {
        let before = self.clients.get(&waiting.client).map(|needs| &needs.cover);
        waiting.needs.cover.iter().chain(before.into_iter().flatten()).all(|stream| {
            let current_at = self.parts.get(stream).and_then(Part::tailer).and_then(Tailer::current_at);
            current_at.is_some_and(|current_at| now.saturating_sub(current_at) <= self.timing.stale)
        })
    }

    fn let_go(&mut self, now: Duration, needs: &Needs) {
        for stream in &needs.all {
            if let Some(part) = self.parts.get_mut(stream) {
                (part.needed, part.unneeded_since) = (part.needed - 1, now);
            }
        }
    }
}

impl Part {
    fn tailer(&self) -> Option<&Tailer> {
        match &self.reading {
            Reading::Tailing(tailer) => Some(tailer),
            Reading::ToMark | Reading::Marking { .. } => None,
        }
    }
}
