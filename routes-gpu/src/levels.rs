//! Routes at coarser levels: the processor leads to the level and away from it, and the device through it.

use routes::{Approach, Batch, Costed, Hierarchy, Level, LevelMemory, Metric, Route};

use crate::error::Error;
use crate::searcher::{Form, Searcher};

/// A route, and the level that it is of.
pub type LevelRoute = (usize, Route);

impl Searcher {
    /// Routes at a level, each with the level that it is of: 0 where the level has none, and `None` where there is none at all.
    ///
    /// Shape: graph 0 of those that are loaded is that of the streets, and graph `number` that of the level; the hierarchy and metric are those that the
    /// level was made of.
    ///
    /// # Errors
    /// As [`Searcher::routes`].
    ///
    /// # Panics
    /// If there is no such graph or node.
    pub fn level_routes(
        &mut self,
        (number, level): (usize, &Level),
        (hierarchy, metric): (&Hierarchy, &Metric),
        ends: &[[u32; 2]],
        form: Form,
    ) -> Result<Vec<Option<LevelRoute>>, Error> {
        let routes = self.by_level((number, level), (hierarchy, metric), ends, |searcher, queries| {
            Ok(searcher.routes(queries, form)?.into_iter().map(Some).collect())
        });
        Ok(routes?.into_iter().map(Option::flatten).collect())
    }

    /// As [`Searcher::level_routes`] for a batch of a contract, as [`Searcher::batch_routes`] finds those of one graph.
    ///
    /// # Errors
    /// As [`Searcher::routes`].
    ///
    /// # Panics
    /// If there is no such graph or node.
    pub fn level_batch(
        &mut self,
        level: (usize, &Level),
        made_of: (&Hierarchy, &Metric),
        ends: &[[u32; 2]],
        batch: &mut Batch<'_>,
        now_ns: impl Fn() -> u64,
    ) -> Result<Vec<Option<Option<LevelRoute>>>, Error> {
        self.by_level(level, made_of, ends, |searcher, queries| {
            searcher.batch_routes(queries, batch, &now_ns)
        })
    }

    fn by_level(
        &mut self,
        (number, level): (usize, &Level),
        (hierarchy, metric): (&Hierarchy, &Metric),
        ends: &[[u32; 2]],
        mut search: impl FnMut(&mut Self, &[(usize, [u32; 2])]) -> Result<Vec<Option<Option<Route>>>, Error>,
    ) -> Result<Vec<Option<Option<LevelRoute>>>, Error> {
        let mut memory = LevelMemory::default();
        // Known to have none, until one is found.
        let mut found = vec![Some(None); ends.len()];
        let (mut between, mut queries) = (Vec::new(), Vec::new());
        let Costed { graph, costs } = self.graphs.costed(0);
        for (place, ends) in ends.iter().enumerate() {
            match level.approach((hierarchy, graph, costs), *ends, &mut memory) {
                Some(Approach::Whole(route)) => found[place] = Some(Some((number, route))),
                Some(Approach::Between(approach)) => {
                    queries.push((number, approach.ends));
                    between.push((place, approach));
                }
                None => {}
            }
        }
        for ((place, approach), across) in between.into_iter().zip(search(self, &queries)?) {
            let complete = |across| (number, level.complete((hierarchy, metric), approach, &across));
            found[place] = across.map(|across| across.map(complete));
        }
        let missing: Vec<_> = (0..ends.len()).filter(|place| found[*place] == Some(None)).collect();
        let queries: Vec<_> = missing.iter().map(|place| (0, ends[*place])).collect();
        let routes = if queries.is_empty() { Vec::new() } else { search(self, &queries)? };
        for (place, route) in missing.into_iter().zip(routes) {
            found[place] = route.map(|route| route.map(|route| (0, route)));
        }
        Ok(found)
    }
}
