//! Engines over one workload, which grow from size to size so that each subscription is drawn once.

use std::collections::BTreeMap;
use std::sync::mpsc;

use anyhow::Context;
use device::Device;
use matcher::area::Area;
use matcher::condition::Condition;
use matcher::engine::Engine;
use matcher::engine::cells::Cells;
use matcher::fixtures::workload::{Config, Workload};
use matcher::geo::{Position, Radius};
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use matcher_gpu::{Clcb, Gpu};

use super::plan::{Plan, Who};
use super::scene::Scene;
use crate::baseline::rtree::Circles;
use crate::baseline::{Circle, Contents, circle};
use crate::engines::oracle::Oracle;

/// Subscriptions that are drawn ahead in one piece, by a thread beside the one that installs them.
const CHUNK: u32 = 1_000;
/// Clients with a single filter: for what a lone location update costs. Above all ids of a workload.
const LONE_FIRST: u32 = 3_000_000_000;
/// How many of them there are, so that their filters are not all in the caches.
pub const LONE_COUNT: u32 = 1_000;

/// The engines that take part, and what the baselines are made of.
pub struct Field {
    config: Config,
    /// Our engine on the CPU.
    pub cells: Option<Cells>,
    /// CLCB to the letter.
    pub clcb: Option<Clcb>,
    /// The batched engine.
    pub gpu: Option<Gpu>,
    /// Present when the R*-tree with content takes part.
    contents: Option<Contents>,
    circles: Vec<Circle>,
    moved: BTreeMap<ClientId, Position>,
    installed: u32,
}

impl Field {
    /// Without subscriptions.
    ///
    /// # Errors
    /// When a device fails.
    pub fn new(scene: &Scene, plan: &Plan, devices: &[Device]) -> anyhow::Result<Self> {
        let world = Workload::new(scene.config.clone())?.world();
        let device = devices.first();
        let clcb = device.filter(|_| plan.has(Who::Clcb)).map(|device| Clcb::new(world, device));
        let gpu = device.filter(|_| plan.has(Who::Gpu)).map(|_| Gpu::new(world, devices));
        let content = plan.has(Who::RtreeContent) && scene.matching.is_some();
        Ok(Self {
            config: scene.config.clone(),
            cells: plan.has(Who::Cells).then(|| Cells::new(world)),
            clcb: clcb.transpose()?,
            gpu: gpu.transpose()?,
            contents: content.then(Contents::empty),
            circles: Vec::new(),
            moved: BTreeMap::new(),
            installed: 0,
        })
    }

    /// The workload of what is installed.
    ///
    /// # Errors
    /// Never, once the field was made.
    pub fn workload(&self) -> anyhow::Result<Workload> {
        Ok(Workload::new(Config { subscriptions: self.installed.max(1), ..self.config.clone() })?)
    }

    /// Subscriptions installed.
    #[must_use]
    pub fn subscriptions(&self) -> u32 {
        self.installed
    }

    /// A tree, bulk loaded, of all filters where they are now.
    #[must_use]
    pub fn tree(&self) -> Circles {
        Circles::new(&self.circles)
    }

    /// Where a filter is now.
    ///
    /// # Panics
    /// When there is no such filter.
    #[must_use]
    pub fn circle(&self, filter: u32) -> Circle {
        self.circles[filter as usize]
    }

    /// Our engines that take part.
    pub fn engines(&mut self) -> Vec<&mut dyn Engine> {
        self.engines_and_contents().0
    }

    /// The same, and the content of all filters where the R*-tree needs it.
    pub fn engines_and_contents(&mut self) -> (Vec<&mut dyn Engine>, Option<&Contents>) {
        let cells = self.cells.as_mut().map(|engine| engine as &mut dyn Engine);
        let clcb = self.clcb.as_mut().map(|engine| engine as &mut dyn Engine);
        let gpu = self.gpu.as_mut().map(|engine| engine as &mut dyn Engine);
        (cells.into_iter().chain(clcb).chain(gpu).collect(), self.contents.as_ref())
    }

    /// Brute force over what is installed, with the clients where they are now.
    #[must_use]
    pub fn oracle<'a>(&self, workload: &'a Workload) -> Oracle<'a> {
        let mut oracle = Oracle::new(workload);
        self.moved.iter().for_each(|(client, position)| oracle.move_client(*client, *position));
        oracle
    }

    /// Installs subscriptions until there are so many.
    ///
    /// # Errors
    /// When an engine takes no more.
    pub fn grow(&mut self, subscriptions: u32) -> anyhow::Result<()> {
        let workload = Workload::new(self.config.clone())?;
        let installed = self.installed;
        std::thread::scope(|scope| {
            let (chunks, drawn) = mpsc::sync_channel(4);
            let source = &workload;
            scope.spawn(move || {
                let mut next = installed;
                while next < subscriptions {
                    let end = subscriptions.min(next + CHUNK);
                    let chunk: Vec<Subscription> =
                        (next..end).map(|index| source.subscription(index)).collect();
                    // Nobody listens any more when an installation has failed.
                    if chunks.send(chunk).is_err() {
                        return;
                    }
                    next = end;
                }
            });
            drawn.iter().try_for_each(|chunk| {
                chunk.iter().try_for_each(|subscription| self.install(&workload, subscription))
            })
        })?;
        self.settle()
    }

    fn install(&mut self, workload: &Workload, subscription: &Subscription) -> anyhow::Result<()> {
        let home = workload.position(workload.home(subscription.client));
        for filter in &subscription.filters {
            self.circles.push(circle(&filter.area, &home)?);
            if let Some(contents) = &mut self.contents {
                contents.push(workload, filter)?;
            }
        }
        let id = SubscriptionId(subscription.client.0);
        for engine in self.engines() {
            engine.move_client(subscription.client, Some(home));
            engine.install(id, subscription)?;
        }
        self.installed += 1;
        Ok(())
    }

    /// Adds the clients with a single filter, which asks for what no event has.
    ///
    /// # Errors
    /// When an engine takes no more.
    pub fn add_lone(&mut self) -> anyhow::Result<()> {
        let world = self.workload()?.world();
        let radius = Radius::new(world, 76.0).context("76 m are a radius")?;
        let condition = Condition::parse("\"asked by nobody\" = 1")?;
        for client in lone_clients() {
            let filters = vec![Filter { area: Area::Following(radius), condition: condition.clone() }];
            let subscription = Subscription { client, filters };
            for engine in self.engines() {
                engine.install(SubscriptionId(client.0), &subscription)?;
            }
        }
        Ok(())
    }

    /// Takes them away.
    pub fn remove_lone(&mut self) {
        for client in lone_clients() {
            for engine in self.engines() {
                engine.move_client(client, None);
                engine.remove(SubscriptionId(client.0));
            }
        }
    }

    /// Notes where clients are that the engines were told of.
    pub fn note_moves(&mut self, moves: &[(ClientId, Position)]) {
        let filters_per_client = self.config.filters_per_subscription as usize;
        for (client, position) in moves {
            self.moved.insert(*client, *position);
            let first = client.0 as usize * filters_per_client;
            for circle in &mut self.circles[first..first + filters_per_client] {
                circle.centre = [position.x(), position.y()];
            }
        }
    }

    /// Waits until the devices have what the engines were told.
    ///
    /// # Errors
    /// When a device fails.
    pub fn settle(&mut self) -> anyhow::Result<()> {
        if let Some(clcb) = &mut self.clcb {
            clcb.settle()?;
        }
        if let Some(gpu) = &mut self.gpu {
            gpu.settle()?;
        }
        Ok(())
    }
}

/// The clients with a single filter.
pub fn lone_clients() -> impl Iterator<Item = ClientId> + Clone {
    (LONE_FIRST..LONE_FIRST + LONE_COUNT).map(ClientId)
}
