//! Networks of constraints: a fault names a line, and all algorithms leave the same values.

use groups::network::{Algorithm, Domains, Network, xcsp};

/// Values of all variables, and constraints, up to which a network is made arc consistent.
const SMALL: usize = 256;

/// An instance in XCSP3, as `nearcast groups solve` reads it.
pub fn instance(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let network = match xcsp::read(text) {
        Ok(network) => network,
        Err(fault) => {
            assert!((1..=text.split('\n').count()).contains(&fault.line), "{fault}");
            assert!(!fault.problem.is_empty());
            return;
        }
    };
    if network.nodes_count() > SMALL || network.constraints_count() > SMALL {
        return;
    }
    let all = Domains::new(&network);
    let expected = closure(&network, &all, Algorithm::Ac3Bit);
    for algorithm in Algorithm::ALL {
        assert_eq!(closure(&network, &all, algorithm), expected, "{algorithm:?}");
    }
}

/// The values that are left; `None` where a variable has none.
fn closure(network: &Network, domains: &Domains, algorithm: Algorithm) -> Option<String> {
    algorithm.enforce(network, domains).domains.map(|domains| domains.closure(network))
}
