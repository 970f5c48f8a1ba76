//! One look at a broker.

use std::time::Instant;

use nearcast_client::documents::{ClientFigures, Stats, Subscription};
use nearcast_client::{Broker, Error};

use super::figures::Figures;
use crate::access::{in_words, passes};

/// One look at a broker.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) seen: Seen,
}

/// How much was shown.
#[derive(Debug)]
pub(super) enum Seen {
    /// All that an operator may see.
    Everything(Box<Everything>),
    /// The subscriptions that a client may see of its own, and the reason why it sees no more.
    Own { ready: String, client: Option<String>, subscriptions: Vec<Subscription>, why: String },
    /// A broker that cannot now: it starts, or its disk takes nothing.
    Busy(String),
    /// None at all.
    Away(String),
}

#[derive(Debug)]
pub(super) struct Everything {
    /// The broker's answer to whether it is ready.
    pub(super) ready: String,
    pub(super) stats: Stats,
    pub(super) figures: Figures,
    pub(super) clients: Vec<ClientFigures>,
}

impl Sample {
    /// Why there is nothing to be seen.
    pub(super) fn away(&self) -> Option<&str> {
        match &self.seen {
            Seen::Away(why) => Some(why),
            Seen::Everything(_) | Seen::Own { .. } | Seen::Busy(_) => None,
        }
    }
}

/// Looks at a broker.
pub(super) async fn take(broker: &Broker, client: Option<&str>, clients_max: u32) -> Sample {
    let seen = match everything(broker, clients_max).await {
        Ok(everything) => Ok(Seen::Everything(Box::new(everything))),
        Err(error) if is_forbidden(&error) => own(broker, client, &error).await,
        Err(error) => Err(error),
    };
    let seen = seen.unwrap_or_else(|error| {
        if passes(&error) { Seen::Busy(in_words(&error)) } else { Seen::Away(in_words(&error)) }
    });
    Sample { at: Instant::now(), seen }
}

async fn everything(broker: &Broker, clients_max: u32) -> Result<Everything, Error> {
    let stats = broker.stats().await?;
    let figures = Figures::parse(&broker.metrics().await?);
    let clients = match clients_max {
        0 => Vec::new(),
        limit => broker.clients(limit, None).await?.clients,
    };
    Ok(Everything { ready: readiness(broker).await?, stats, figures, clients })
}

async fn own(broker: &Broker, client: Option<&str>, why: &Error) -> Result<Seen, Error> {
    let ready = readiness(broker).await?;
    let (subscriptions, why) = match client {
        None => (Vec::new(), in_words(why)),
        Some(client) => match broker.subscriptions(client).await {
            Ok(subscriptions) => (subscriptions, in_words(why)),
            Err(error) if is_forbidden(&error) => (Vec::new(), in_words(&error)),
            Err(error) => return Err(error),
        },
    };
    Ok(Seen::Own { ready, client: client.map(str::to_owned), subscriptions, why })
}

/// The broker's answer to whether it is ready, also where it is not.
async fn readiness(broker: &Broker) -> Result<String, Error> {
    match broker.ready().await {
        Err(error) if error.problem().is_some() => Ok(in_words(&error)),
        said => said,
    }
}

fn is_forbidden(error: &Error) -> bool {
    error.problem().is_some_and(|problem| [401, 403].contains(&problem.status))
}
