//! Steps of several sources in one order of time.

use crate::plan::{Step, Steps};

/// The earliest first; of those at the same time, the first source's.
pub(super) fn merge(sources: Vec<Steps>) -> Merge {
    let heads = sources.into_iter().map(Iterator::peekable).collect();
    Merge { sources: heads }
}

pub(super) struct Merge {
    sources: Vec<std::iter::Peekable<Steps>>,
}

impl Iterator for Merge {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let heads = self.sources.iter_mut().enumerate();
        let first = heads.filter_map(|(index, source)| source.peek().map(|step| (step.at, index))).min()?;
        self.sources[first.1].next()
    }
}
