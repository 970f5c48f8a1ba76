//! Commands to a shard.

use std::sync::Arc;
use std::time::Instant;

use matcher::engine::Footprint;
use matcher::live::Fix;
use tokio::sync::oneshot;

use crate::admission::{Change, InFlightGuard, MoveTurn};
use crate::ingest::Confinement;
use crate::ingest::explain::Question;
use crate::ingest::position::Track;
use crate::ingest::subscription::Prepared;
use crate::model::completion::CompletionGuard;
use crate::model::error::ApiError;
use crate::model::event::{Placed, Published};
use crate::outbox::Outbox;
use crate::push::PushSubscription;
use crate::routing::{AreaHeld, AreaPlace, AreasAsked, RoutesFound};
use crate::sessions::{
    Asked, Attached, Installed, LivePage, LiveQuestion, Located, Mover, Rank, Remembered, Resume, State, Told,
};

/// A command; what asks has a channel for the answer.
pub(crate) enum Command {
    /// Match an event and deal it out. The ticket is settled when it is safe; there is none where nobody waits.
    Match { event: Arc<Published>, pass: Option<Arc<InFlightGuard>>, ticket: Option<CompletionGuard> },
    /// A client is there now, and came by its track. Should it be new, it has a permit already.
    Move {
        client: Arc<str>,
        mover: Mover,
        fix: Fix,
        track: Option<Track>,
        turn: Option<Arc<MoveTurn>>,
        ticket: Option<CompletionGuard>,
    },
    /// A client is there now, as with `Move`; should it be new, it needs a permit.
    MoveIfRoom {
        client: Arc<str>,
        fix: Fix,
        track: Option<Track>,
        reply: oneshot::Sender<Result<(), ApiError>>,
    },
    /// Make or replace a subscription.
    Install {
        client: Arc<str>,
        subscription: Box<Prepared>,
        /// It is under way until then.
        change: Option<Change>,
        /// The connection that it ends with; none for one that stays.
        owner: Option<Arc<Outbox>>,
        /// Put into the owner's outbox once it is in force, before any delivery that it brings.
        answer: Option<Box<str>>,
        reply: oneshot::Sender<Result<Installed, ApiError>>,
    },
    /// End a subscription, on behalf of an asker with this confinement.
    Remove {
        client: Arc<str>,
        id: Arc<str>,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<bool, ApiError>>,
    },
    /// Give the document of one subscription, to an asker with this confinement.
    Get {
        client: Arc<str>,
        id: Arc<str>,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<Option<String>, ApiError>>,
    },
    /// Give the documents of all subscriptions of a client, by id, to an asker with this confinement.
    List {
        client: Arc<str>,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<Vec<String>, ApiError>>,
    },
    /// A connection reads for a client from now on.
    Attach {
        client: Arc<str>,
        outbox: Arc<Outbox>,
        resume: Resume,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<Attached, ApiError>>,
    },
    /// A client needs nothing up to an offset any more; a situation does not, for it has a state.
    Ack {
        client: Arc<str>,
        offset: u64,
        state: Option<Box<State>>,
        reply: oneshot::Sender<Result<(), ApiError>>,
    },
    /// A connection reads no more; its subscriptions end.
    Detach { client: Arc<str>, connection: u64 },
    /// Everything of a client is gone.
    Forget { client: Arc<str>, reply: oneshot::Sender<Result<bool, ApiError>> },
    /// End the live events of an id, of these those that a confinement holds for; where it has a place in the stream of events, those that
    /// came before.
    Revoke {
        id: Arc<str>,
        confinement: Option<Arc<Confinement>>,
        place: Option<Placed>,
        reply: oneshot::Sender<Result<bool, ApiError>>,
    },
    /// Hand out the events that may be of an id.
    Remembered { id: Arc<str>, payer: Arc<str>, reply: oneshot::Sender<Remembered> },
    /// Say to whom events of an id went.
    Deliveries { id: Arc<str>, asked: Arc<Asked>, payer: Arc<str>, reply: oneshot::Sender<Told> },
    /// Say why an event comes to a client, or does not.
    Explain {
        client: Arc<str>,
        question: Box<Question>,
        /// Whether the client itself asks.
        to_itself: bool,
        payer: Arc<str>,
        reply: oneshot::Sender<Result<wire::Explanation, ApiError>>,
    },
    /// Give the number of the last finding of a version of a situation that the stream of events has brought.
    FindingRead { client: Arc<str>, version: Arc<str>, reply: oneshot::Sender<u64> },
    /// Give the footprint of the engine.
    Footprint { payer: Arc<str>, reply: oneshot::Sender<Footprint> },
    /// The clients behind a place in the order of their listing, `limit` at most.
    ListClients {
        after: Option<Rank<String>>,
        limit: usize,
        payer: Arc<str>,
        reply: oneshot::Sender<Vec<wire::ClientFigures>>,
    },
    /// Find live events.
    Query {
        question: Box<LiveQuestion>,
        change: Option<Change>,
        reply: oneshot::Sender<Result<LivePage, ApiError>>,
    },
    /// Say where a client is, to itself or to somebody else, to an asker with this confinement.
    Locate {
        client: Arc<str>,
        to_itself: bool,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<Located, ApiError>>,
    },
    /// Say where a client is, as [`Command::Locate`], and where its areas along routes lie.
    Routes {
        client: Arc<str>,
        asked: AreasAsked,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<(Located, Vec<AreaHeld>), ApiError>>,
    },
    /// End the connections of a client, on behalf of an asker with this confinement.
    Disconnect {
        client: Arc<str>,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<(), ApiError>>,
    },
    /// Make or replace the push subscription of a client.
    PutPush {
        client: Arc<str>,
        subscription: Arc<PushSubscription>,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<bool, ApiError>>,
    },
    /// Describe the push subscription of a client, to an asker with this confinement.
    GetPush {
        client: Arc<str>,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<Option<wire::PushState>, ApiError>>,
    },
    /// Remove the push subscription of a client, or only a particular one, on behalf of an asker with this confinement.
    RemovePush {
        client: Arc<str>,
        only: Option<Arc<PushSubscription>>,
        confinement: Option<Arc<Confinement>>,
        reply: oneshot::Sender<Result<bool, ApiError>>,
    },
    /// Put areas along routes where they lie now.
    RoutesFound(RoutesFound),
    /// Streets of these areas have become slow.
    StreetsSlowed(Vec<AreaPlace>),
    /// Everything has been read that the stream of events got up to a time.
    ReadUntil(Instant),
    /// Nothing comes after this.
    Stop,
}

impl Command {
    /// The client whose commands take effect in their order.
    pub(super) fn client(&self) -> Option<&Arc<str>> {
        match self {
            Self::Move { client, .. }
            | Self::MoveIfRoom { client, .. }
            | Self::Install { client, .. }
            | Self::Remove { client, .. }
            | Self::Get { client, .. }
            | Self::List { client, .. }
            | Self::Attach { client, .. }
            | Self::Ack { client, .. }
            | Self::Detach { client, .. }
            | Self::Forget { client, .. }
            | Self::Explain { client, .. }
            | Self::Locate { client, .. }
            | Self::Routes { client, .. }
            | Self::Disconnect { client, .. }
            | Self::PutPush { client, .. }
            | Self::GetPush { client, .. }
            | Self::RemovePush { client, .. } => Some(client),
            Self::Match { .. }
            | Self::Revoke { .. }
            | Self::Remembered { .. }
            | Self::Deliveries { .. }
            | Self::FindingRead { .. }
            | Self::Footprint { .. }
            | Self::ListClients { .. }
            | Self::Query { .. }
            | Self::RoutesFound(_)
            | Self::StreetsSlowed(_)
            | Self::ReadUntil(_)
            | Self::Stop => None,
        }
    }

    /// Lets go of what others wait for until a command has been carried out, since that may take a while. It waits behind its own client's.
    pub(super) fn let_others_pass(&mut self) {
        if let Self::Install { change, .. } = self {
            *change = None;
        } else if let Self::Move { turn, .. } = self {
            *turn = None;
        }
    }

    /// Refuses it to its sender, if that waits for an answer; gives it back where nobody does.
    pub(super) fn refuse(self, refusal: &ApiError) -> Option<Self> {
        let refusal = refusal.clone();
        match self {
            Self::Match { ticket: Some(ticket), .. } | Self::Move { ticket: Some(ticket), .. } => {
                ticket.settle(Err(refusal));
            }
            Self::MoveIfRoom { reply, .. } | Self::Ack { reply, .. } | Self::Disconnect { reply, .. } => {
                drop(reply.send(Err(refusal)));
            }
            Self::Install { reply, .. } => drop(reply.send(Err(refusal))),
            Self::Remove { reply, .. }
            | Self::Forget { reply, .. }
            | Self::Revoke { reply, .. }
            | Self::PutPush { reply, .. }
            | Self::RemovePush { reply, .. } => {
                drop(reply.send(Err(refusal)));
            }
            Self::Get { reply, .. } => drop(reply.send(Err(refusal))),
            Self::List { reply, .. } => drop(reply.send(Err(refusal))),
            Self::GetPush { reply, .. } => drop(reply.send(Err(refusal))),
            Self::Attach { reply, .. } => drop(reply.send(Err(refusal))),
            Self::Explain { reply, .. } => drop(reply.send(Err(refusal))),
            Self::Query { reply, .. } => drop(reply.send(Err(refusal))),
            Self::Locate { reply, .. } => drop(reply.send(Err(refusal))),
            Self::Routes { reply, .. } => drop(reply.send(Err(refusal))),
            other @ (Self::Match { .. }
            | Self::Move { .. }
            | Self::Detach { .. }
            | Self::Remembered { .. }
            | Self::Deliveries { .. }
            | Self::FindingRead { .. }
            | Self::Footprint { .. }
            | Self::ListClients { .. }
            | Self::RoutesFound(_)
            | Self::StreetsSlowed(_)
            | Self::ReadUntil(_)
            | Self::Stop) => return Some(other),
        }
        None
    }
}
