//! Names that are called and are defined nowhere, and those that they probably mean.

use super::Compiler;
use crate::program::FAULTS_MAX;
use crate::syntax::Fault;

/// Bytes of a name beyond which it is near nothing.
const NAME_BYTES_MAX: usize = 24;

impl Compiler<'_> {
    /// What was found since the last time, in the order of places, the first [`FAULTS_MAX`].
    pub(super) fn take_faults(&mut self) -> Vec<Fault> {
        let mut faults = std::mem::take(&mut self.faults);
        for (at, name, arity) in std::mem::take(&mut self.unknown).into_iter().take(FAULTS_MAX) {
            let name = self.atoms.name(name);
            let meant = self.meant(name, arity);
            let meant = meant.map(|(name, arity)| format!(": did you mean {name}/{arity}?"));
            faults.insert(at, format!("{name}/{arity} is defined nowhere{}", meant.unwrap_or_default()));
        }
        faults.into_iter().take(FAULTS_MAX).map(|(at, what)| Fault { at, what }).collect()
    }

    /// What a call probably means: the same name with other arguments, or else one with as many from which few letters keep it.
    fn meant(&self, name: &str, arity: usize) -> Option<(&str, usize)> {
        let known = self.code.callables.keys().map(|(name, arity)| (self.atoms.name(*name), *arity));
        let near = known.filter(|known| known.0 == name || known.1 == arity);
        let near = near.filter_map(|known| Some((distance(name, known.0)?, known.1.abs_diff(arity), known)));
        near.min().map(|(.., known)| known)
    }
}

/// How many letters differ, where that are few: none in a name of up to two, one up to seven, two beyond.
fn distance(name: &str, known: &str) -> Option<usize> {
    let allowed = match known.len().max(name.len()) {
        ..=2 => 0,
        3..=7 => 1,
        8..=NAME_BYTES_MAX => 2,
        _ => return (name == known).then_some(0),
    };
    // Nearly all names end here, so that the distance is seldom computed.
    if name.len().abs_diff(known.len()) > allowed
        || (name.as_bytes().first() != known.as_bytes().first()
            && name.as_bytes().last() != known.as_bytes().last())
    {
        return None;
    }
    Some(strsim::osa_distance(name, known)).filter(|distance| *distance <= allowed)
}
