//! A dry run: a goal from an empty store to its end.

use std::sync::Arc;

use crate::machine::{Error, Machine, Setting};
use crate::program::{Program, Wrong};
use crate::term::Term;

/// A goal, compiled with its program.
#[derive(Debug)]
pub struct Goal {
    program: Arc<Program>,
    variables: Vec<String>,
}

/// What a goal ended with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it succeeded.
    pub is_success: bool,
    /// The constraints that are left, as texts in the order of their code points.
    pub store: Vec<String>,
    /// The variables of the goal and their values, in the order in which they come in the goal.
    pub bindings: Vec<(String, String)>,
    /// How many times a rule was applied.
    pub applications: u64,
}

impl Goal {
    /// Compiles a program together with a goal.
    ///
    /// # Errors
    /// All that is wrong with the program, or what is wrong with the goal.
    pub fn new(program: &str, goal: &str) -> Result<Self, Wrong> {
        let (program, variables) = Program::with_goal(program, goal)?;
        Ok(Self { program, variables })
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }
}

/// Runs a goal to its first answer. A goal that fails leaves nothing.
///
/// # Errors
/// A bound that was reached, or an error of the program such as an expression without a value.
pub fn run(goal: &Goal, setting: Setting) -> Result<Answer, Error> {
    let mut machine = Machine::new(&goal.program, setting);
    let variables: Vec<_> = goal.variables.iter().map(|_| machine.heap.fresh()).collect();
    let is_success = machine.run(Program::GOAL, &variables)?;
    let applications = machine.applications;
    if !is_success {
        return Ok(Answer { applications, ..Answer::default() });
    }
    // A variable without value has the name of the first variable of the goal that it is, else a number by its age.
    let mut names: Vec<(u32, String)> = Vec::new();
    for (name, variable) in goal.variables.iter().zip(&variables) {
        if let Term::Var(cell) = machine.heap.resolve(*variable)
            && names.iter().all(|(known, _)| *known != cell)
        {
            names.push((cell, name.clone()));
        }
    }
    let mut others = Vec::new();
    let terms = machine.stored().flat_map(|(_, arguments)| arguments.iter()).chain(&variables);
    for term in terms {
        machine.heap.variables(*term, &mut |cell| {
            if names.iter().all(|(known, _)| *known != cell) {
                others.push(cell);
            }
        });
    }
    machine.check_walk()?;
    others.sort_unstable();
    others.dedup();
    names.extend(others.into_iter().zip(1..).map(|(cell, number)| (cell, format!("_{number}"))));
    names.sort_unstable();
    let name = |cell: u32| match names.binary_search_by_key(&cell, |(known, _)| *known) {
        Ok(idx) => names[idx].1.clone(),
        Err(_) => format!("_{cell}"),
    };
    let code = &goal.program.code;
    let stored: Vec<_> = machine
        .stored()
        .map(|(kind, arguments)| (code.kinds[kind as usize].name, arguments.to_vec()))
        .collect();
    let mut store = Vec::new();
    for (constraint, arguments) in stored {
        let term = if arguments.is_empty() {
            Term::Atom(constraint)
        } else {
            machine.heap.compound(constraint, &arguments)
        };
        store.push(machine.text_with(term, &name));
    }
    store.sort_unstable();
    let bindings = goal.variables.iter().zip(&variables);
    let bindings = bindings.map(|(name_of, variable)| (name_of.clone(), machine.text_with(*variable, &name)));
    Ok(Answer { is_success, bindings: bindings.collect(), store, applications })
}
