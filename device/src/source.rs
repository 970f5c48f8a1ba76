//! CUDA C++ that is compiled when the program runs.

use crate::backend::Failure;
use crate::error::DriverError;

/// A source with all that it includes.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name in messages of the compiler.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
    /// What it may include: the name and the text of each. `stdint.h` and `math.h` are there without being named.
    pub headers: &'a [(&'a str, &'a str)],
    /// Names that are defined before the text, without a value.
    pub defines: &'a [&'a str],
}

/// Why a source did not become a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// There is no compiler on this machine: most have none. Use kernels that were compiled before.
    #[error("no CUDA compiler on this machine: {reason}")]
    NoCompiler {
        /// The loader's words.
        reason: String,
    },
    /// The compiler refused the source.
    #[error("the CUDA compiler refused {name}: {log}")]
    Refused {
        /// The source's name.
        name: String,
        /// The compiler's words.
        log: String,
    },
    /// The driver did not take what the compiler made.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// As [`CompileError`], before the device decides what a failure of the driver means for it.
#[derive(Debug)]
pub(crate) enum NotCompiled {
    NoCompiler(String),
    Refused(String),
    Failed(Failure),
}

impl From<Failure> for NotCompiled {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
