//! Arc consistency on a device against the processor's: on the processor as a device, and with `NEARCAST_GPU_TESTS=1` on a real one.

mod failures;
#[path = "../../../groups/tests/it/network/folder.rs"]
#[expect(dead_code, reason = "one instance by its name is for the processor's tests")]
mod folder;
#[path = "../../../groups/tests/it/network/generator.rs"]
mod generator;
mod instances;
#[path = "../../../groups/tests/it/network/oracle.rs"]
#[expect(dead_code, reason = "solutions are for the processor's tests")]
mod oracle;
mod random;

use device::Device;
use groups::network::ne::Model;
use groups::network::{Algorithm, Domains, Network};
use groups_gpu::{Bits, Kernels, Letter, Method};

/// Memory of the processor as a device.
const HOST_BYTES: u64 = 1 << 30;

/// Whether a real device is to be there.
fn is_on_device() -> bool {
    std::env::var_os("NEARCAST_GPU_TESTS").is_some_and(|value| value == "1")
}

/// Whether the long form of tests is asked for.
fn is_soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1")
}

/// The kernels of the tests' device.
fn kernels() -> Kernels {
    let device = if is_on_device() {
        Device::all().expect("NEARCAST_GPU_TESTS=1 demands a device").swap_remove(0)
    } else {
        Device::host(HOST_BYTES)
    };
    Kernels::load(&device).expect("the device takes them")
}

/// The algorithms on a device.
struct Engines {
    letter: Letter,
    bits: Bits,
}

impl Engines {
    fn new(kernels: &Kernels) -> Self {
        let letter = Letter::new(kernels).expect("streams");
        Self { letter, bits: Bits::new(kernels).expect("a stream") }
    }

    fn load(&mut self, network: &Network) {
        self.letter.load(network).expect("memory");
        self.bits.load(network).expect("memory");
    }

    /// Holds the paper's algorithms against the same ones on the processor: nodes, loops and deletions.
    fn check_letter(&mut self, network: &Network, start: &Domains, of: &str) {
        let model = Model::build(network, start);
        let nodes = |e: &[u8]| e.iter().map(|e| u32::from(*e)).sum::<u32>();
        let before = nodes(&model.nodes.e);
        for method in [Method::Ac4Gpu, Method::Ac4GpuPlus] {
            let expected = match method {
                Method::Ac4Gpu => model.clone().ac4gpu(),
                Method::Ac4GpuPlus => model.clone().ac4gpu_plus(),
            };
            self.letter.build(start).expect("a model");
            let loops = self.letter.run(method).expect("a run");
            let found = self.letter.nodes(&loops).expect("nodes");
            assert_eq!(
                (found.is_consistent, found.loops),
                (expected.is_consistent, expected.loops),
                "{of} {method:?}"
            );
            if expected.is_consistent {
                assert_eq!((&found.nodes.x, &found.nodes.v), (&expected.nodes.x, &expected.nodes.v), "{of}");
                assert_eq!(found.nodes.e, expected.nodes.e, "{of} {method:?}");
                let deleted = loops.deleted.iter().sum::<u32>();
                assert_eq!(deleted, before - nodes(&found.nodes.e), "{of} {method:?}: {:?}", loops.deleted);
            }
        }
    }

    /// Holds the rounds and the batch of one against AC3bit+rm.
    fn check_bits(&mut self, network: &Network, start: &Domains, of: &str) -> Option<Domains> {
        let expected = Algorithm::Ac3Bit.enforce(network, start).domains;
        assert_eq!(self.bits.enforce(network, start).expect("rounds").domains, expected, "{of}");
        let batch = self.bits.enforce_all(network, std::slice::from_ref(start)).expect("a batch");
        assert_eq!((batch.len(), &batch[0].domains), (1, &expected), "{of}, in a batch");
        expected
    }
}
