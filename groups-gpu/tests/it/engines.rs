//! The algorithms on a device, compared with those of the processor.

use std::fmt::Debug;

use groups::network::ne::Model;
use groups::network::{Algorithm, Domains, Network};
use groups_gpu::{Bits, Error, Kernels, Letter, Method, Pace};

/// All of them, with a network.
pub(crate) struct Engines {
    pub(crate) letter: Letter,
    pub(crate) bits: Bits,
}

/// Says what differs.
fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?} and not {expected:?}")) }
}

impl Engines {
    pub(crate) fn new(kernels: &Kernels) -> Self {
        let letter = Letter::new(kernels).expect("streams");
        Self { letter, bits: Bits::new(kernels).expect("a stream") }
    }

    pub(crate) fn load(&mut self, network: &Network) {
        self.letter.load(network).expect("memory");
        self.bits.load(network).expect("memory");
    }

    /// Holds the paper's algorithms against the same ones on the processor: nodes, loops and deletions.
    pub(crate) fn check_letter(&mut self, network: &Network, start: &Domains) -> Result<(), String> {
        let model = Model::build(network, start);
        let nodes = |e: &[u8]| e.iter().map(|e| u32::from(*e)).sum::<u32>();
        let before = nodes(&model.nodes.e);
        for (method, pace) in [Method::Ac4Gpu, Method::Ac4GpuPlus]
            .into_iter()
            .flat_map(|method| [(method, Pace::Host), (method, Pace::Device)])
        {
            let of = format!("{method:?}, {pace:?}");
            let expected = match method {
                Method::Ac4Gpu => model.clone().ac4gpu(),
                Method::Ac4GpuPlus => model.clone().ac4gpu_plus(),
            };
            let told = |error: Error| format!("{of}: {error}");
            self.letter.build(start).map_err(told)?;
            let loops = self.letter.run(method, pace).map_err(told)?;
            let found = self.letter.nodes(&loops).map_err(told)?;
            same(
                &format!("consistency and loops of {of}"),
                &(found.is_consistent, found.loops),
                &(expected.is_consistent, expected.loops),
            )?;
            if expected.is_consistent {
                let deleted = loops.deleted.iter().sum::<u32>();
                same("variables", &found.nodes.x, &expected.nodes.x)?;
                same("places", &found.nodes.v, &expected.nodes.v)?;
                same(&format!("nodes of {of}"), &found.nodes.e, &expected.nodes.e)?;
                same(&format!("deletions of {of}"), &deleted, &(before - nodes(&expected.nodes.e)))?;
            }
        }
        Ok(())
    }

    /// Holds rounds, and a batch of one, against AC3bit+rm; what is left.
    pub(crate) fn check_bits(
        &mut self,
        network: &Network,
        start: &Domains,
    ) -> Result<Option<Domains>, String> {
        let expected = Algorithm::Ac3Bit.enforce(network, start).domains;
        let found = self.bits.enforce(network, start).map_err(|error| error.to_string())?;
        same("rounds", &found.domains, &expected)?;
        let batch = self.bits.enforce_all(network, std::slice::from_ref(start));
        let batch: Vec<_> =
            batch.map_err(|error| error.to_string())?.into_iter().map(|outcome| outcome.domains).collect();
        same("a batch", &batch, &vec![expected.clone()])?;
        Ok(expected)
    }

    /// Does both.
    pub(crate) fn check(&mut self, network: &Network, start: &Domains) -> Result<Option<Domains>, String> {
        self.check_letter(network, start)?;
        self.check_bits(network, start)
    }
}
