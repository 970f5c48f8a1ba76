//! What takes part in a race: an engine, or a baseline.

use matcher::engine::cells::Cells;
use matcher::engine::scan::Scan;
use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::fixtures::workload::Workload;
use matcher::geo::World;

use crate::baseline::counting::{Counting, Location};
use crate::baseline::rtree::{Circles, Survivors};
use crate::baseline::{Circle, Contents, Prepared};

/// Finds what one event matches.
pub trait Contender {
    /// What the report calls it.
    fn name(&self) -> &str;

    /// What it finds; decides what its answers are compared with.
    fn finds(&self) -> Finds;

    /// Matches one event and keeps the answer until the next.
    fn find(&mut self, event: &Prepared);

    /// The answer to the last event, in any order.
    fn answer(&self) -> Box<dyn Iterator<Item = u32> + '_>;
}

/// Which part of the problem a contender solves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finds {
    /// Subscriptions by location and content.
    Subscriptions,
    /// Filters by location only.
    FiltersNearby,
    /// Filters by content only.
    FiltersByContent,
}

/// The engines that can be measured.
pub const ENGINES: [&str; 2] = ["scan", "cells"];

/// An empty engine by its name; `None` when there is none of that name.
#[must_use]
pub fn engine(name: &str, world: World) -> Option<Box<dyn Engine>> {
    match name {
        "scan" => Some(Box::new(Scan::new(world))),
        "cells" => Some(Box::new(Cells::new(world))),
        _ => None,
    }
}

/// Puts all clients where they are at first, and installs all subscriptions.
///
/// # Errors
/// When the engine takes no more.
pub fn fill(engine: &mut dyn Engine, workload: &Workload) -> anyhow::Result<()> {
    for (id, subscription) in workload.subscriptions() {
        let home = workload.position(workload.home(subscription.client));
        engine.move_client(subscription.client, Some(home));
        engine.install(id, &subscription)?;
    }
    Ok(())
}

/// An engine that gets events one by one.
pub struct OneByOne {
    engine: Box<dyn Engine>,
    rows: MatchRows,
}

impl OneByOne {
    /// Wraps a filled engine.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>) -> Self {
        Self { engine, rows: MatchRows::new() }
    }

    /// The engine.
    pub fn engine(&mut self) -> &mut dyn Engine {
        self.engine.as_mut()
    }

    /// Matches a batch; one row per event.
    ///
    /// # Panics
    /// When the engine fails, which CPU engines never do.
    pub fn find_batch(&mut self, events: &[&Event]) -> &MatchRows {
        self.rows.clear();
        self.engine.match_batch(events, &mut self.rows).expect("an engine on the CPU never fails");
        &self.rows
    }
}

impl Contender for OneByOne {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn finds(&self) -> Finds {
        Finds::Subscriptions
    }

    fn find(&mut self, event: &Prepared) {
        self.find_batch(&[&event.event]);
    }

    fn answer(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        Box::new(self.rows.iter().flatten().map(|id| id.0))
    }
}

/// What the baselines share, so that it exists once.
pub struct Baselines {
    circles: Vec<Circle>,
    tree: Circles,
    contents: Contents,
    names_count: usize,
    filters_per_subscription: u32,
}

impl Baselines {
    /// Builds the tree and compiles the conditions.
    ///
    /// # Errors
    /// When the workload has what a baseline does not know.
    pub fn new(workload: &Workload) -> anyhow::Result<Self> {
        let circles = crate::baseline::circles(workload)?;
        Ok(Self {
            tree: Circles::new(&circles),
            circles,
            contents: Contents::new(workload)?,
            names_count: workload.names().len(),
            filters_per_subscription: workload.config().filters_per_subscription,
        })
    }

    /// The R*-tree alone.
    #[must_use]
    pub fn rtree(&self) -> impl Contender + '_ {
        TreeOnly::new(&self.tree)
    }

    /// The R*-tree, and the content of what it finds.
    #[must_use]
    pub fn rtree_and_content(&self) -> impl Contender + '_ {
        let survivors = Survivors::new(&self.contents, self.names_count, self.filters_per_subscription);
        TreeAndContent::new(&self.tree, survivors)
    }

    /// The counting matcher, and the location of what it finds.
    ///
    /// # Errors
    /// When there are more filters than it can number.
    pub fn counting(&self) -> anyhow::Result<impl Contender + use<>> {
        self.counting_with(Location::Afterwards)
    }

    /// The counting matcher with something else made of location.
    ///
    /// # Errors
    /// When there are more filters than it can number.
    pub fn counting_with(&self, location: Location) -> anyhow::Result<CountingMatcher> {
        let per_subscription = self.filters_per_subscription;
        let (contents, circles) = (&self.contents, &self.circles);
        let counting = Counting::new(contents, circles, self.names_count, per_subscription, location)?;
        Ok(CountingMatcher { counting, location, found: Vec::new() })
    }

    /// The A-Tree, or why it is left out.
    ///
    /// # Errors
    /// With more filters than it can be built of in reasonable time.
    #[cfg(feature = "atree")]
    pub fn atree(&self) -> anyhow::Result<impl Contender + use<>> {
        crate::baseline::atree::Tree::new(&self.contents, self.names_count)
    }

    /// It is left out: it was not built.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "atree"))]
    pub fn atree(&self) -> anyhow::Result<OneByOne> {
        anyhow::bail!("this program was built without the feature `atree`")
    }

    /// The circles of all filters, and what their contents ask.
    #[must_use]
    pub fn parts(&self) -> (&[Circle], &Contents) {
        (&self.circles, &self.contents)
    }
}

/// An R*-tree alone.
pub struct TreeOnly<'a, const MAX: usize> {
    tree: &'a Circles<MAX>,
    found: Vec<u32>,
}

impl<'a, const MAX: usize> TreeOnly<'a, MAX> {
    /// Looks into this tree.
    #[must_use]
    pub fn new(tree: &'a Circles<MAX>) -> Self {
        Self { tree, found: Vec::new() }
    }
}

impl<const MAX: usize> Contender for TreeOnly<'_, MAX> {
    fn name(&self) -> &str {
        "rtree"
    }

    fn finds(&self) -> Finds {
        Finds::FiltersNearby
    }

    fn find(&mut self, event: &Prepared) {
        self.found.clear();
        self.tree.visit(event.at, |filter| self.found.push(filter));
    }

    fn answer(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        Box::new(self.found.iter().copied())
    }
}

/// An R*-tree, and the content of what it finds.
pub struct TreeAndContent<'a> {
    tree: &'a Circles,
    survivors: Survivors<'a>,
    found: Vec<u32>,
}

impl<'a> TreeAndContent<'a> {
    /// Looks into this tree, and checks what it finds with these contents.
    #[must_use]
    pub fn new(tree: &'a Circles, survivors: Survivors<'a>) -> Self {
        Self { tree, survivors, found: Vec::new() }
    }
}

impl Contender for TreeAndContent<'_> {
    fn name(&self) -> &str {
        "rtree + content"
    }

    fn finds(&self) -> Finds {
        Finds::Subscriptions
    }

    fn find(&mut self, event: &Prepared) {
        self.survivors.find(self.tree, event, &mut self.found);
    }

    fn answer(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        Box::new(self.found.iter().copied())
    }
}

/// A counting matcher.
pub struct CountingMatcher {
    counting: Counting,
    location: Location,
    found: Vec<u32>,
}

impl CountingMatcher {
    /// The matcher, to move filters.
    pub fn counting(&mut self) -> &mut Counting {
        &mut self.counting
    }
}

impl Contender for CountingMatcher {
    fn name(&self) -> &str {
        counting_name(self.location)
    }

    fn finds(&self) -> Finds {
        match self.location {
            Location::Ignored => Finds::FiltersByContent,
            Location::Afterwards | Location::Intervals | Location::Comparisons => Finds::Subscriptions,
        }
    }

    fn find(&mut self, event: &Prepared) {
        self.counting.find(event, &mut self.found);
    }

    fn answer(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        Box::new(self.found.iter().copied())
    }
}

/// What reports call a counting matcher.
#[must_use]
pub fn counting_name(location: Location) -> &'static str {
    match location {
        Location::Ignored => "counting, content only",
        Location::Afterwards => "counting",
        Location::Intervals => "counting, location as intervals",
        Location::Comparisons => "counting, location as comparisons",
    }
}
