//! Who comes back to a broker that stopped, and when: after the time that the broker told each client, and if it is not there
//! then, after waits of the client's own (docs/protocol/connections.md, "Coming back").

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::Load;
use crate::drive::Who;
use crate::drive::reader::Ended;
use crate::drive::shared::{Nanos, nanos};

/// The bound of a client's first wait of its own; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest bound of a wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Attempts that may fail before a client stays away, which takes a minute on average.
const ATTEMPTS_MAX: u32 = 10;

/// A client that is away because the broker stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence {
    /// When the broker wanted it back.
    since: Nanos,
    /// The last offset that it has.
    offset: u64,
    failures: u32,
}

/// When absent clients connect again, the first one first.
#[derive(Debug, Default)]
pub(super) struct Returns(BinaryHeap<Reverse<(Nanos, Who)>>);

impl Returns {
    /// When the first one is due.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }
}

impl Load {
    /// A connection has ended that was not to break. Its client comes back if the broker told it when, or it was on its way back.
    pub(super) fn stay_away(&mut self, who: Who, ended: &Ended, offset: u64) {
        let now = self.shared.now();
        let voice = self.voice(who);
        let (absence, at) = match (ended.retry_in, voice.absence) {
            (Some(retry_in), _) => {
                let at = now + nanos(retry_in);
                (Absence { since: at, offset, failures: 0 }, at)
            }
            (None, Some(absence)) if absence.failures < ATTEMPTS_MAX => {
                let bound = (FIRST_WAIT * 2_u32.pow(absence.failures)).min(LONGEST_WAIT);
                let wait = bound.mul_f64(rand::random());
                (Absence { failures: absence.failures + 1, ..absence }, now + nanos(wait))
            }
            (None, _) => {
                voice.absence = None;
                return self.note(&ended.why);
            }
        };
        let was_here = voice.absence.replace(absence).is_none();
        voice.is_ready = false;
        if let Who::Client(client) = who
            && was_here
            && self.checked[client as usize]
        {
            self.sent.journal.breaks.push((client, now));
        }
        self.returns.0.push(Reverse((at, who)));
    }

    /// Connects those again that are due.
    pub(super) fn return_due(&mut self) {
        while self.returns.next().is_some_and(|at| at <= self.shared.now())
            && let Some(Reverse((_, who))) = self.returns.0.pop()
        {
            let Some(Absence { since, offset, .. }) = self.voice(who).absence else { continue };
            if let Err(error) = self.connect(who, Some((since, offset))) {
                self.stay_away(who, &Ended { why: format!("{error:#}").into(), retry_in: None }, offset);
            }
        }
    }
}
