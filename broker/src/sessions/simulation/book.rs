//! The book on a shard: the state that it has to have now, the part of it on disk, and the commands in its queue.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::model::{Held, Setting, Shard};
use super::reader::Beginning;
use super::spec::Event;

/// The book that is kept of a shard.
#[derive(Default)]
pub(super) struct Book {
    pub(super) now: Shard,
    /// The state when the last commit succeeded.
    pub(super) on_disk: Shard,
    /// The states when commits failed that may have happened nonetheless.
    pub(super) attempts: Vec<Shard>,
    pub(super) queue: VecDeque<Step>,
    pub(super) queued: u64,
}

/// The effect that a command has to have.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Publish {
        event: Arc<Event>,
        sequence: u64,
        expires_ms: u64,
    },
    Move {
        client: String,
        track: Vec<i64>,
        session: u64,
    },
    Install {
        client: String,
        id: String,
        held: Box<Held>,
        session: u64,
    },
    Remove {
        client: String,
        id: String,
    },
    Attach {
        client: String,
        connection: u64,
        asks: Asks,
        session: u64,
    },
    Ack {
        client: String,
        offset: u64,
    },
    Detach {
        client: String,
        connection: u64,
    },
    Forget {
        client: String,
    },
    Revoke {
        id: String,
    },
    /// An acknowledgement that is refused.
    Nothing,
}

/// Where a reader wants to go on.
#[derive(Clone)]
pub(super) enum Asks {
    Nothing,
    /// The reader begins after an offset of the session that is called so; an event stream also acknowledges what was before.
    After {
        epoch: String,
        offset: u64,
        is_stream: bool,
    },
}

impl fmt::Debug for Asks {
    /// Without the epoch, which is another in each run of the same seed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::After { offset, is_stream, .. } => write!(f, "After {{ {offset}, a stream: {is_stream} }}"),
        }
    }
}

impl Step {
    /// Whether it is refused while the disk takes nothing. Events, and their ends, that are on their way are not.
    fn is_change(&self) -> bool {
        match self {
            Self::Move { .. } | Self::Install { .. } | Self::Remove { .. } | Self::Forget { .. } => true,
            Self::Publish { .. }
            | Self::Revoke { .. }
            | Self::Attach { .. }
            | Self::Ack { .. }
            | Self::Detach { .. }
            | Self::Nothing => false,
        }
    }
}

impl Book {
    pub(super) fn push(&mut self, step: Step) -> u64 {
        self.queue.push_back(step);
        self.queued += 1;
        self.queued
    }

    /// Carries out what the shard has carried out. Readers that begin are appended to `begun`.
    pub(super) fn carry_out(
        &mut self,
        count: usize,
        is_failing: bool,
        setting: Setting,
        begun: &mut Vec<(u64, Beginning)>,
    ) -> Result<(), String> {
        self.now.advance(setting)?;
        for step in self.queue.drain(..count) {
            let shard = &mut self.now;
            shard.carried_out += 1;
            if is_failing && step.is_change() {
                continue;
            }
            match step {
                Step::Publish { event, sequence, expires_ms } => {
                    shard.publish(&event, sequence, expires_ms, setting)?;
                }
                Step::Move { client, track, session } => {
                    shard.move_client(&client, &track, session, setting)?
                }
                Step::Install { client, id, held, session } => {
                    shard.install(&client, &id, *held, session, setting)?;
                }
                Step::Remove { client, id } => drop(shard.remove(&client, &id)),
                Step::Attach { client, connection, asks, session } => {
                    begun.push((connection, attach(shard, &client, connection, &asks, session)));
                }
                Step::Ack { client, offset } => shard.acknowledge(&client, offset),
                Step::Detach { client, connection } => shard.detach(&client, connection),
                Step::Forget { client } => drop(shard.clients.remove(&client)),
                Step::Revoke { id } => shard.revoke(&id, setting)?,
                Step::Nothing => {}
            }
        }
        Ok(())
    }
}

fn attach(shard: &mut Shard, name: &str, connection: u64, asks: &Asks, number: u64) -> Beginning {
    let client = shard.enter(name, number);
    client.readers.insert(connection);
    let session = &mut client.session;
    let mut beginning = Beginning { session: session.number, after: None, is_astray: false };
    let known = match asks {
        Asks::Nothing => None,
        Asks::After { epoch, offset, .. } => {
            let is_known = session.epoch.as_deref() == Some(epoch) && *offset <= session.released;
            // Of a session that is not durable nobody outside can say how far it has come.
            beginning.is_astray = !is_known || !session.durable;
            is_known.then_some(*offset)
        }
    };
    if session.durable {
        beginning.after = Some(known.unwrap_or(session.acknowledged));
        if let (Some(offset), Asks::After { is_stream: true, .. }) = (known, asks) {
            session.acknowledge(offset);
        }
    }
    beginning
}
