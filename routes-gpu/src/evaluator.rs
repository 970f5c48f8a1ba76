//! The paper's result evaluator: which sequences of kernels have a result.

/// A kernel of PAP*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// All searches begin.
    Initialise,
    /// Nodes on the frontier relax their arcs.
    Relax,
    /// Costs that became less are taken over.
    Update,
    /// The least key on the frontier, in each block.
    BlockMinimum,
    /// The least of the blocks, for each query.
    Minimum,
    /// Whole rounds, composed of the four before.
    Rounds,
}

/// A kernel, or a result, before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot follow {}", name(*.refused, "a result"), name(*.last, "nothing"))]
pub struct OutOfOrder {
    /// The kernel, or `None` for the result.
    pub refused: Option<Kernel>,
    /// The kernel that ran last.
    pub last: Option<Kernel>,
}

fn name(kernel: Option<Kernel>, none: &str) -> String {
    kernel.map_or_else(|| none.to_owned(), |kernel| format!("{kernel:?}"))
}

/// Accepts the language `Initialise ((Relax Update BlockMinimum Minimum) | Rounds)*`, kernel by kernel. There is a result wherever such a sequence
/// ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evaluator {
    last: Option<Kernel>,
}

impl Evaluator {
    /// Takes the next kernel.
    ///
    /// # Errors
    /// [`OutOfOrder`]; the kernel is not taken then.
    pub fn accept(&mut self, kernel: Kernel) -> Result<(), OutOfOrder> {
        let follows = match kernel {
            Kernel::Initialise => self.last.is_none(),
            Kernel::Relax | Kernel::Rounds => self.result().is_ok(),
            Kernel::Update => self.last == Some(Kernel::Relax),
            Kernel::BlockMinimum => self.last == Some(Kernel::Update),
            Kernel::Minimum => self.last == Some(Kernel::BlockMinimum),
        };
        if !follows {
            return Err(OutOfOrder { refused: Some(kernel), last: self.last });
        }
        self.last = Some(kernel);
        Ok(())
    }

    /// Whether what the kernels left is a result.
    ///
    /// # Errors
    /// [`OutOfOrder`] before the first kernel, and within a round.
    pub fn result(&self) -> Result<(), OutOfOrder> {
        match self.last {
            Some(Kernel::Initialise | Kernel::Minimum | Kernel::Rounds) => Ok(()),
            None | Some(Kernel::Relax | Kernel::Update | Kernel::BlockMinimum) => {
                Err(OutOfOrder { refused: None, last: self.last })
            }
        }
    }

    /// Takes a whole sequence.
    ///
    /// # Errors
    /// [`OutOfOrder`] at the first kernel that is refused, or at the end where there is no result.
    pub fn judge(sequence: &[Kernel]) -> Result<(), OutOfOrder> {
        let mut evaluator = Self::default();
        sequence.iter().try_for_each(|kernel| evaluator.accept(*kernel))?;
        evaluator.result()
    }
}
