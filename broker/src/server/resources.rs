//! The means that the settings name and a broker needs.

use std::sync::Arc;

use crate::auth::Authenticator;
use crate::base_map::BaseMap;
use crate::config::Config;
use crate::engines::{CheckEngines, Engines};
use crate::push::PushMeans;
use crate::routing::Streets;
use crate::tls::Tls;

/// The means that the settings name, found before anything listens, so that what cannot be had is told at once.
pub struct Resources {
    /// The engines that match.
    pub engines: Engines,
    /// The engines of checks.
    pub check_engines: CheckEngines,
    /// The certificate that connections are secured with, if they are.
    pub tls: Option<Tls>,
    /// The authenticator that lets requests in.
    pub authenticator: Arc<Authenticator>,
    /// The map that the console draws below everything that moves, if any.
    pub base_map: Option<BaseMap>,
    /// The streets that routes lead through, if any.
    pub streets: Option<Arc<Streets>>,
    /// The means to send push messages, unless push is off.
    pub push: Option<PushMeans>,
}

impl Resources {
    /// Finds all of it. Blocks: opening devices takes some tenths of a second.
    ///
    /// # Errors
    /// An engine, a certificate, keys, zones, a base map, streets or a key for push messages that cannot be had.
    pub fn of(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            engines: Engines::find(config)?,
            check_engines: CheckEngines::find(config)?,
            tls: Tls::read(&config.tls)?,
            authenticator: Arc::new(Authenticator::open(config)?),
            base_map: BaseMap::read(config)?,
            streets: Streets::read(config)?,
            push: PushMeans::find(config)?,
        })
    }
}
