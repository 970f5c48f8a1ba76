//! A member of the simulated cluster: a standby or a writer, what it has asked the log, and its client.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cluster::ledger::{Answer, End, Standby, State, Status, Timing, Writer};
use cluster::log::Identity;
use cluster::simulated::{Partition, Simulated};

use super::judge::{Judge, digest};

pub(super) const TIMING: Timing = Timing {
    ttl: Duration::from_secs(5),
    grace: Duration::from_secs(2),
    follow: Duration::from_millis(100),
    retry: Duration::from_millis(100),
    busy: Duration::from_secs(1),
    give_up: Duration::from_secs(25),
    missing: Duration::from_secs(15),
};

/// The rows of a ledger, as one number.
#[derive(Debug, Default)]
pub(super) struct Digest {
    pub(super) rows: u64,
    pub(super) digest: u64,
    restored: Vec<u8>,
    /// Whether it began with a snapshot.
    pub(super) is_restored: bool,
}

pub(super) enum Role {
    Standby(Box<Standby<Digest>>),
    Active { writer: Box<Writer>, state: Digest, pushed: BTreeMap<u64, Vec<u8>> },
    Down { until: Duration },
}

pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) log: Simulated,
    pub(super) role: Role,
    pub(super) nonce: u64,
    /// Not run before: SIGSTOP.
    pub(super) stopped_until: Duration,
    /// The last record that it knew when its process before ended.
    known: Option<Identity>,
    calls: Vec<Pin<Box<dyn Future<Output = Answer>>>>,
}

impl State for Digest {
    fn apply(&mut self, number: u64, row: &[u8]) -> Result<(), String> {
        if number != self.rows + 1 {
            return Err(format!("after row {}", self.rows));
        }
        (self.rows, self.digest) = (number, digest(self.digest, row));
        Ok(())
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn restore(&mut self, chunk: &[u8]) -> Result<(), String> {
        self.restored.extend(chunk);
        if let Some((head, _)) = self.restored.split_first_chunk::<16>() {
            self.is_restored = true;
            let (rows, digest) = head.split_at(8);
            self.rows = u64::from_le_bytes(rows.try_into().unwrap());
            self.digest = u64::from_le_bytes(digest.try_into().unwrap());
        }
        Ok(())
    }
}

impl Digest {
    fn chunks(&self) -> impl Iterator<Item = Vec<u8>> + Send + 'static {
        let parts = [self.rows.to_le_bytes().to_vec(), self.digest.to_le_bytes().to_vec(), vec![7; 5_000]];
        parts.into_iter()
    }
}

impl Node {
    pub(super) fn new(name: &'static str, log: Simulated, nonce: u64) -> Self {
        let role = Role::Down { until: Duration::ZERO };
        let stopped_until = Duration::ZERO;
        let mut node = Self { name, log, role, nonce, stopped_until, known: None, calls: Vec::new() };
        node.start(nonce);
        node
    }

    /// Begins anew as another process.
    pub(super) fn start(&mut self, nonce: u64) {
        self.nonce = nonce;
        self.calls.clear();
        let standby = Standby::new(self.name.to_owned(), nonce, TIMING, Digest::default());
        self.role = Role::Standby(Box::new(standby.expecting(self.known)));
    }

    /// Dies. What it has asked for goes on.
    pub(super) fn die(&mut self, until: Duration) {
        self.calls.clear();
        self.known = self.last();
        self.role = Role::Down { until };
        self.stopped_until = Duration::ZERO;
    }

    pub(super) fn is_up(&self) -> bool {
        !matches!(self.role, Role::Down { .. })
    }

    pub(super) fn is_running(&self, now: Duration) -> bool {
        self.is_up() && self.stopped_until <= now
    }

    pub(super) fn can_beat(&self, now: Duration) -> bool {
        self.is_running(now) && self.log.partition() != Partition::Requests
    }

    pub(super) fn can_look(&self, now: Duration) -> bool {
        self.is_running(now) && self.log.partition() == Partition::None
    }

    /// The last record that it takes for committed.
    pub(super) fn last(&self) -> Option<Identity> {
        match &self.role {
            // What it knew before counts until it has read as far.
            Role::Standby(standby) => {
                [standby.last(), self.known].into_iter().flatten().max_by_key(|known| known.sequence)
            }
            Role::Active { writer, .. } => Some(writer.last()),
            Role::Down { .. } => None,
        }
    }

    /// The state, where it is that after some row.
    pub(super) fn state(&self) -> Option<&Digest> {
        match &self.role {
            Role::Standby(standby) => standby.is_whole().then(|| standby.state()),
            Role::Active { state, .. } => Some(state),
            Role::Down { .. } => None,
        }
    }

    /// Takes a row of its client.
    pub(super) fn push(&mut self, now: Duration, row: &[u8]) -> bool {
        let Role::Active { writer, pushed, .. } = &mut self.role else { return false };
        let number = writer.push(now, row.to_owned());
        number.is_ok_and(|number| pushed.insert(number, row.to_owned()).is_none())
    }

    pub(super) fn snapshot(&mut self) {
        if let Role::Active { writer, state, .. } = &mut self.role {
            // One may be under way.
            let _ = writer.snapshot(state.rows, state.chunks().map(Ok));
        }
    }

    /// Runs until it waits.
    pub(super) fn run(&mut self, now: Duration, judge: &mut Judge) -> Result<(), String> {
        if !self.is_running(now) {
            return Ok(());
        }
        loop {
            let mut answers = Vec::new();
            self.calls.retain_mut(|call| {
                match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(answer) => answers.push(answer),
                    Poll::Pending => return true,
                }
                false
            });
            let is_idle = answers.is_empty();
            for answer in answers {
                match &mut self.role {
                    Role::Standby(standby) => standby.answer(now, answer),
                    Role::Active { writer, .. } => writer.answer(now, answer),
                    Role::Down { .. } => {}
                }
            }
            let request = match &mut self.role {
                Role::Standby(standby) => standby.poll(now),
                Role::Active { writer, .. } => writer.poll(now),
                Role::Down { .. } => None,
            };
            let is_done = is_idle && request.is_none();
            if let Some(request) = request {
                let log = self.log.clone();
                self.calls.push(Box::pin(async move { request.make(&log).await }));
            }
            self.change(judge)?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Takes over, acknowledges, or begins anew.
    fn change(&mut self, judge: &mut Judge) -> Result<(), String> {
        match &mut self.role {
            Role::Standby(standby) => match standby.status() {
                Status::Following | Status::Sealing => Ok(()),
                Status::Failed(error) => {
                    judge.failed(error)?;
                    self.known = None;
                    self.start(judge.nonce());
                    Ok(())
                }
                Status::Owner => {
                    let place = Role::Down { until: Duration::ZERO };
                    let Role::Standby(standby) = std::mem::replace(&mut self.role, place) else {
                        unreachable!("it was a standby")
                    };
                    let applied = standby.applied();
                    let (writer, state) = standby.into_writer().map_err(|_| "an owner does not write")?;
                    if applied != state.rows {
                        return Err(format!("row {applied} is applied, and the state has {}", state.rows));
                    }
                    judge.took_over(&writer, &state)?;
                    self.role = Role::Active { writer: Box::new(writer), state, pushed: BTreeMap::new() };
                    Ok(())
                }
            },
            Role::Active { writer, state, pushed } => {
                while state.rows < writer.committed() {
                    let number = state.rows + 1;
                    let row = pushed.remove(&number).ok_or("a row is committed that nobody pushed")?;
                    judge.acknowledged(writer, number, &row)?;
                    state.apply(number, &row)?;
                }
                if let Some(end) = writer.end() {
                    judge.ended(end)?;
                    self.known = Some(writer.last()).filter(|_| !matches!(end, End::WentBack { .. }));
                    if let End::Refused(error) = end {
                        return Err(error.to_string());
                    }
                    self.start(judge.nonce());
                }
                Ok(())
            }
            Role::Down { .. } => Ok(()),
        }
    }
}
