//! A broker inside the test's own process: for engines on devices that only a test has.

use std::ops::Deref;

use broker::{Authenticator, CheckEngines, Config, Engines, Resources};
use device::Device;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Door, within};

/// A broker with the engine that its settings name on given devices.
pub(crate) struct Inside {
    door: Door,
    shutdown: CancellationToken,
    broker: JoinHandle<anyhow::Result<()>>,
}

impl Inside {
    /// Starts it.
    pub(crate) async fn start(config: Config, devices: &[Device]) -> Self {
        let engines = Engines::with_devices(&config, Ok(devices)).expect("the devices have room");
        Self::start_on(config, engines, CheckEngines::default()).await
    }

    /// Starts one whose checks are evaluated on a device.
    pub(crate) async fn start_with_checks(config: Config, device: &Device) -> Self {
        let engines = Engines::find(&config).expect("an engine on the processor");
        let check_engines = CheckEngines::on(device).expect("the device has room");
        Self::start_on(config, engines, check_engines).await
    }

    async fn start_on(config: Config, engines: Engines, check_engines: CheckEngines) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let door = Door(listener.local_addr().expect("an address"));
        let authenticator = Authenticator::open(&config).expect("keys").into();
        let found = Resources {
            engines,
            check_engines,
            tls: None,
            authenticator,
            base_map: None,
            streets: None,
            push: None,
        };
        let shutdown = CancellationToken::new();
        let broker = tokio::spawn(broker::run_with(listener, config, found, shutdown.clone(), |_| {}));
        Self { door, shutdown, broker }
    }

    /// Asks it to end, and checks that it does so cleanly.
    pub(crate) async fn finish(self) {
        self.shutdown.cancel();
        let ended = within("the broker ends", self.broker).await;
        ended.expect("no panic").expect("a clean end");
    }
}

impl Deref for Inside {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}
