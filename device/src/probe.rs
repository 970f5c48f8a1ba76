//! `kernel_probe.cu`: whether a device runs our kernels at all.

use crate::parameter::Parameter;
use crate::{Buffer, Device, DriverError, Kernel, Pinned, Priority, Stream};

const BLOCK_THREADS: u32 = 256;
/// More would find every device full; the kernel strides over the rest.
const BLOCKS_MAX: u32 = 1024;

/// Adds a number to each word and counts the odd results.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    kernel: Kernel,
}

impl Probe {
    /// Compiles the kernel for the device.
    ///
    /// # Errors
    /// [`DriverError`]
    pub(crate) fn new(device: &Device) -> Result<Self, DriverError> {
        Ok(Self { kernel: device.module(&kernels::PROBE)?.kernel("probe")? })
    }

    /// Starts it: `output` becomes `input` plus `addend`, wrapping, and the number of odd results is added to `odd`.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// When the two are not of one length, `odd` holds no word, or one belongs to another device.
    pub(crate) fn launch(
        &self,
        stream: &Stream,
        input: &Buffer<u32>,
        output: &Buffer<u32>,
        odd: &Buffer<u32>,
        addend: u32,
    ) -> Result<(), DriverError> {
        self.start(stream, input.len(), Parameter::buffer(input), output, odd, addend)
    }

    /// The same, but the device reads its input from the machine's memory.
    ///
    /// # Errors
    /// [`DriverError`]
    ///
    /// # Panics
    /// As [`Probe::launch`].
    pub(crate) fn launch_pinned(
        &self,
        stream: &Stream,
        input: &mut Pinned<u32>,
        output: &Buffer<u32>,
        odd: &Buffer<u32>,
        addend: u32,
    ) -> Result<(), DriverError> {
        self.start(stream, input.len(), Parameter::pinned(input), output, odd, addend)
    }

    /// `input` has `input_len` words.
    fn start(
        &self,
        stream: &Stream,
        input_len: usize,
        input: Parameter<'_>,
        output: &Buffer<u32>,
        odd: &Buffer<u32>,
        addend: u32,
    ) -> Result<(), DriverError> {
        assert_eq!(input_len, output.len(), "a result for each word");
        assert!(!odd.is_empty(), "a word for the count");
        let count = u32::try_from(input_len).expect("the kernel counts in 32 bits");
        let parameters = &mut [
            input,
            Parameter::buffer(output),
            Parameter::buffer(odd),
            Parameter::value(&count),
            Parameter::value(&addend),
        ];
        let grid = count.div_ceil(BLOCK_THREADS).min(BLOCKS_MAX);
        // SAFETY: the parameters mirror `probe` in kernels/src/kernel_probe.cu, which keeps indices into the first two below
        // `count`, their length, and writes the first word of the third.
        unsafe { stream.launch(&self.kernel, grid, BLOCK_THREADS, parameters) }
    }

    /// Runs it small, both ways, and looks at the answers.
    ///
    /// # Errors
    /// [`DriverError`], also when an answer is wrong.
    pub(crate) fn check(device: &Device) -> Result<(), DriverError> {
        const COUNT: u32 = 1000;
        let len = COUNT as usize;
        let probe = Self::new(device)?;
        let stream = device.stream(Priority::Low)?;
        let mut words = device.pinned::<u32>(len)?;
        for (word, value) in words.slice_mut()?.iter_mut().zip(0..COUNT) {
            *word = value;
        }
        let (first, second, odd) = (device.buffer(len)?, device.buffer(len)?, device.buffer(1)?);
        let mut odds = device.pinned(1)?;
        probe.launch_pinned(&stream, &mut words, &first, &odd, 1)?;
        probe.launch(&stream, &first, &second, &odd, 6)?;
        stream.download(&second, 0..len, &mut words, 0)?;
        stream.download(&odd, 0..1, &mut odds, 0)?;
        let sums_hold = words.slice()?.iter().copied().eq(7..COUNT + 7);
        // Half of the results are odd, twice.
        if sums_hold && odds.slice()? == [COUNT] {
            Ok(())
        } else {
            Err(DriverError::Other {
                operation: "probe",
                reason: "the device computes wrong answers".to_owned(),
            })
        }
    }
}
