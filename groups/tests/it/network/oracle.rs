//! Networks as tables of allowed pairs, with the definitions of consistency and solution written out.

use groups::network::{Builder, Domains, Network, Table};

/// A network that is described beside being built.
#[derive(Debug, Default)]
pub(crate) struct Described {
    pub(crate) sizes: Vec<usize>,
    /// Scope, and whether each pair is allowed.
    pub(crate) constraints: Vec<([usize; 2], Vec<Vec<bool>>)>,
    /// A variable, and whether each value is allowed.
    pub(crate) unary: Vec<(usize, Vec<bool>)>,
}

impl Described {
    /// The network, with each table as its supports or as its conflicts.
    pub(crate) fn build(&self, mut table: impl FnMut() -> Table) -> Network {
        let small = |count: usize| u32::try_from(count).expect("small");
        let mut builder = Builder::default();
        let mut variables = Vec::new();
        for (idx, size) in self.sizes.iter().enumerate() {
            let values: Vec<_> = (0..i64::from(small(*size))).map(|value| 3 * value - 5).collect();
            let domain = builder.domain(&values).expect("small");
            variables.push(builder.variable(&format!("v{idx}"), domain).expect("small"));
        }
        for (scope, allowed) in &self.constraints {
            let table = table();
            let mut tuples = Vec::new();
            for (a, row) in allowed.iter().enumerate() {
                let listed = row.iter().enumerate().filter(|(_, ok)| **ok == (table == Table::Supports));
                tuples.extend(listed.map(|(b, _)| [small(a), small(b)]));
            }
            let scope = scope.map(|variable| variables[variable]);
            let domains = scope.map(|variable| builder.domain_of(variable));
            let relation = builder.relation(domains, table, &tuples).expect("small");
            builder.constraint(scope, relation).expect("small");
        }
        for (variable, allowed) in &self.unary {
            let table = table();
            let listed = allowed.iter().enumerate().filter(|(_, ok)| **ok == (table == Table::Supports));
            let places: Vec<_> = listed.map(|(place, _)| small(place)).collect();
            builder.unary(variables[*variable], table, &places).expect("small");
        }
        builder.build()
    }

    fn allows(&self, places: &[usize]) -> bool {
        self.constraints.iter().all(|([x, y], allowed)| allowed[places[*x]][places[*y]])
            && self.unary.iter().all(|(x, allowed)| allowed[places[*x]])
    }

    /// All solutions among the values that are left.
    pub(crate) fn solutions(&self, network: &Network, left: &Domains) -> Vec<Vec<usize>> {
        let mut partial = vec![Vec::new()];
        for variable in 0..self.sizes.len() {
            let places: Vec<_> = left.places(network, variable).collect();
            partial = partial
                .into_iter()
                .flat_map(|before: Vec<usize>| {
                    places.iter().map(move |place| [&before[..], &[*place]].concat()).collect::<Vec<_>>()
                })
                .collect();
        }
        partial.retain(|places| self.allows(places));
        partial
    }

    /// Removes values until each has a support in each constraint; `None` if a variable has none left.
    pub(crate) fn closure(&self, network: &Network, start: &Domains) -> Option<Domains> {
        let mut left = start.clone();
        loop {
            let before = left.clone();
            for (variable, size) in self.sizes.iter().enumerate() {
                for place in 0..*size {
                    let fits = |([x, y], allowed): &([usize; 2], Vec<Vec<bool>>)| match (*x, *y) {
                        (x, y) if x == y => x != variable || allowed[place][place],
                        (x, y) if x == variable => left.places(network, y).any(|other| allowed[place][other]),
                        (x, y) if y == variable => left.places(network, x).any(|other| allowed[other][place]),
                        _ => true,
                    };
                    let is_allowed = self.unary.iter().all(|(x, allowed)| *x != variable || allowed[place]);
                    if !is_allowed || !self.constraints.iter().all(fits) {
                        left.remove(network, variable, place);
                    }
                }
                left.places(network, variable).next()?;
            }
            if left == before {
                return Some(left);
            }
        }
    }
}

/// Whether each variable's value alone is consistent with those of all others.
pub(crate) fn is_solution(network: &Network, places: &[usize]) -> bool {
    let mut domains = Domains::new(network);
    for (variable, place) in places.iter().enumerate() {
        domains.assign(network, variable, *place);
    }
    groups::network::Algorithm::Ac4.enforce(network, &domains).domains == Some(domains)
}
