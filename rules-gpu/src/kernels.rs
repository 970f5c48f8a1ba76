//! The kernels of a device: those that interpret, and those that were compiled with a program.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use device::{CompileError, Device, DriverError, LoadedModule, Source};
use kernels::rules as k;

use crate::compile::Compiled;
use crate::launchers::{LetterKernel, RoundKernels};
use crate::source::program_source;

/// In which form a device has rules. Answers do not depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// The kernels were compiled with the program.
    Compiled,
    /// The kernels interpret the program's code.
    Interpreted {
        /// Why.
        reason: Arc<str>,
    },
}

impl Default for Form {
    /// That of a run without constraints.
    fn default() -> Self {
        Self::Interpreted { reason: "there is nothing to do".into() }
    }
}

/// Least constraints of a goal for which a program is compiled: below, a run ends before the compiler would.
const COMPILE_FROM: usize = 1 << 14;
/// Programs whose kernels, or whose refusals, are kept; of more, those asked for longest ago go.
const KEPT_MAX: usize = 64;
/// Most occurrences and most words of code of a program that is compiled: compilers take minutes over large ones.
const OCCURRENCES_MAX: usize = 64;
const WORDS_MAX: usize = 1 << 12;

/// The kernels for a device. A clone shares what was compiled.
#[derive(Clone, Debug)]
pub struct Kernels {
    device: Device,
    rounds: RoundKernels,
    letter: LetterKernel,
    compile_from: usize,
    /// Held while a program is compiled, so that each is compiled once.
    kept: Arc<Mutex<VecDeque<Kept>>>,
}

/// What a program became.
#[derive(Debug)]
struct Kept {
    scheme: Scheme,
    program: String,
    /// The module, or why there is none.
    module: Result<LoadedModule, Arc<str>>,
}

/// What is compiled with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Rounds,
    Letter,
}

impl Kernels {
    /// Loads the kernels that interpret.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn load(device: &Device) -> Result<Self, DriverError> {
        Ok(Self {
            device: device.clone(),
            rounds: RoundKernels::of(&device.module(&kernels::RULES)?)?,
            letter: LetterKernel::of(&device.module(&kernels::RULES_LETTER)?)?,
            compile_from: COMPILE_FROM,
            kept: Arc::default(),
        })
    }

    /// Compiles programs for goals of at least this number of constraints: 0 is every one, [`usize::MAX`] none. Without this, from 16,384 on.
    #[must_use]
    pub fn compiling_from(self, constraints: usize) -> Self {
        Self { compile_from: constraints, ..self }
    }

    /// The device that they are for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The kernels of rounds that interpret.
    pub(crate) fn rounds(&self) -> &RoundKernels {
        &self.rounds
    }

    /// The kernels of rounds for a program, and in which form it is.
    ///
    /// # Errors
    /// The device is lost.
    pub(crate) fn rounds_for(
        &self,
        compiled: &Compiled,
        constraints: usize,
    ) -> Result<(RoundKernels, Form), DriverError> {
        match self.module(compiled, constraints, Scheme::Rounds)? {
            Ok(module) => Ok((RoundKernels::of(&module)?, Form::Compiled)),
            Err(reason) => Ok((self.rounds.clone(), Form::Interpreted { reason })),
        }
    }

    /// The kernel of the paper's scheme for a program, and in which form it is.
    ///
    /// # Errors
    /// The device is lost.
    pub(crate) fn letter_for(
        &self,
        compiled: &Compiled,
        constraints: usize,
    ) -> Result<(LetterKernel, Form), DriverError> {
        match self.module(compiled, constraints, Scheme::Letter)? {
            Ok(module) => Ok((LetterKernel::of(&module)?, Form::Compiled)),
            Err(reason) => Ok((self.letter.clone(), Form::Interpreted { reason })),
        }
    }

    /// The module of a program, or why there is none.
    fn module(
        &self,
        compiled: &Compiled,
        constraints: usize,
        scheme: Scheme,
    ) -> Result<Result<LoadedModule, Arc<str>>, DriverError> {
        if constraints < self.compile_from {
            return Ok(Err("the goal is small".into()));
        }
        if compiled.occurrences.len() > OCCURRENCES_MAX || compiled.code.len() > WORDS_MAX {
            return Ok(Err("the program is large".into()));
        }
        let program = program_source(compiled);
        // What it holds is whole at any time.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|known| known.scheme == scheme && known.program == program) {
            let known = kept.remove(at).expect("it was just found");
            let module = known.module.clone();
            kept.push_back(known);
            return Ok(module);
        }
        let module = match compile(&self.device, &program, scheme) {
            Ok(module) => Ok(module),
            Err(CompileError::Driver(
                error @ (DriverError::DeviceLost { .. } | DriverError::LaunchFailed { .. }),
            )) => {
                return Err(error);
            }
            Err(error) => {
                tracing::warn!(%error, "rules are interpreted on the device");
                Err(error.to_string().into())
            }
        };
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(Kept { scheme, program, module: module.clone() });
        Ok(module)
    }
}

fn compile(device: &Device, program: &str, scheme: Scheme) -> Result<LoadedModule, CompileError> {
    let (name, text) = match scheme {
        Scheme::Rounds => ("kernel_rules.cu", k::SOURCE),
        Scheme::Letter => ("kernel_rules_letter.cu", k::LETTER_SOURCE),
    };
    let mut headers = k::HEADERS.to_vec();
    headers.push(("rules_program.cuh", program));
    device.compile(&Source { name, text, headers: &headers, defines: &[k::COMPILED] })
}
