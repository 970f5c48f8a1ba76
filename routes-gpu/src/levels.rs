//! Routes at coarser levels: the processor leads to the level and away from it, and the device through it.

use routes::{Approach, Costed, Hierarchy, Level, LevelMemory, Metric, Route};

use crate::error::Error;
use crate::searcher::{Form, Searcher};

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
    ) -> Result<Vec<Option<(usize, Route)>>, Error> {
        let mut memory = LevelMemory::default();
        let mut found = vec![None; ends.len()];
        let (mut between, mut queries) = (Vec::new(), Vec::new());
        let Costed { graph, costs } = self.graphs.costed(0);
        for (place, ends) in ends.iter().enumerate() {
            match level.approach((hierarchy, graph, costs), *ends, &mut memory) {
                Some(Approach::Whole(route)) => found[place] = Some((number, route)),
                Some(Approach::Between(approach)) => {
                    queries.push((number, approach.ends));
                    between.push((place, approach));
                }
                None => {}
            }
        }
        for ((place, approach), across) in between.into_iter().zip(self.routes(&queries, form)?) {
            let complete = |across| (number, level.complete((hierarchy, metric), approach, &across));
            found[place] = across.map(complete);
        }
        let missing: Vec<_> = (0..ends.len()).filter(|place| found[*place].is_none()).collect();
        let queries: Vec<_> = missing.iter().map(|place| (0, ends[*place])).collect();
        for (place, route) in missing.into_iter().zip(self.routes(&queries, form)?) {
            found[place] = route.map(|route| (0, route));
        }
        Ok(found)
    }
}
