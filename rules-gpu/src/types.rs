//! Types of arguments, for a language that wants them.

use kernels::rules as k;

use crate::subset::{Action, Expression, Pattern, Program, Refusal, Rule, Test, Value};

/// What an argument or a variable always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Whole,
    Float,
    Atom,
}

/// Types of a program.
#[derive(Debug)]
pub(crate) struct Types {
    /// By kind and argument.
    pub(crate) arguments: Vec<Vec<Type>>,
    /// By rule and variable.
    pub(crate) variables: Vec<Vec<Type>>,
}

/// Types on their way: none where nothing is known yet.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    arguments: Vec<Vec<Option<Type>>>,
    variables: Vec<Vec<Option<Type>>>,
}

/// Where two types meet.
struct Clash;

fn meet(left: &mut Option<Type>, right: &mut Option<Type>) -> Result<(), Clash> {
    match (*left, *right) {
        (Some(a), Some(b)) if a != b => Err(Clash),
        (known, None) => {
            *right = known;
            Ok(())
        }
        (None, known) => {
            *left = known;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn of_value(value: Value) -> Type {
    match value {
        Value::Int(_) => Type::Whole,
        Value::Float(_) => Type::Float,
        Value::Atom(_) => Type::Atom,
    }
}

/// The type of an expression, where it is known; with a variable of unknown type it may become known.
fn of(expression: &Expression, variables: &[Option<Type>]) -> Option<Type> {
    match expression {
        Expression::Value(value) => Some(of_value(*value)),
        Expression::Variable(variable) => variables[*variable],
        Expression::Unary(k::SQRT | k::TO_FLOAT, _) => Some(Type::Float),
        Expression::Unary(k::MINUS | k::ABS | k::SIGN, operand) => of(operand, variables),
        Expression::Unary(..) => Some(Type::Whole),
        Expression::Binary(k::PLUS | k::SUBTRACT | k::MULTIPLY | k::DIVIDE | k::MIN | k::MAX, operands) => {
            let [left, right] = [&operands[0], &operands[1]].map(|operand| of(operand, variables));
            match (left, right) {
                (Some(Type::Float), _) | (_, Some(Type::Float)) => Some(Type::Float),
                (Some(left), Some(_)) => Some(left),
                _ => None,
            }
        }
        Expression::Binary(..) => Some(Type::Whole),
        Expression::Distance(_) => Some(Type::Float),
    }
}

impl Types {
    /// Finds types: as declared, as constants and expressions say, and whole numbers otherwise.
    ///
    /// # Errors
    /// The first rule in which something has two types.
    pub(crate) fn new(program: &Program) -> Result<Self, Refusal> {
        let declared = |text: &String| match text.as_str() {
            "int" | "integer" | "natural" | "dense_int" => Some(Type::Whole),
            "float" => Some(Type::Float),
            "atom" => Some(Type::Atom),
            _ => None,
        };
        let mut known = Known {
            arguments: program.kinds.iter().map(|kind| kind.types.iter().map(declared).collect()).collect(),
            variables: program.rules.iter().map(|rule| vec![None; rule.variables]).collect(),
        };
        loop {
            let before = known.clone();
            for (idx, rule) in program.rules.iter().enumerate() {
                let Known { arguments, variables } = &mut known;
                learn(rule, arguments, &mut variables[idx]).map_err(|Clash| {
                    let what = "something has values of two types there: declare them, as in chr_constraint p(+float)";
                    let fault = rules::view::fault(&program.text, rule.at, what.to_owned());
                    Refusal::Rule { rule: rule.name.clone(), fault }
                })?;
            }
            if known == before {
                break;
            }
        }
        let settle = |types: Vec<Vec<Option<Type>>>| {
            let settled = |types: Vec<Option<Type>>| {
                types.into_iter().map(|known| known.unwrap_or(Type::Whole)).collect()
            };
            types.into_iter().map(settled).collect()
        };
        Ok(Self { arguments: settle(known.arguments), variables: settle(known.variables) })
    }

    /// The type of an expression of a rule.
    pub(crate) fn of(&self, rule: usize, expression: &Expression) -> Type {
        let variables: Vec<_> = self.variables[rule].iter().map(|known| Some(*known)).collect();
        of(expression, &variables).unwrap_or(Type::Whole)
    }
}

/// What a rule says about types.
fn learn(
    rule: &Rule,
    arguments: &mut [Vec<Option<Type>>],
    variables: &mut [Option<Type>],
) -> Result<(), Clash> {
    for head in &rule.heads {
        for (argument, pattern) in arguments[head.kind].iter_mut().zip(&head.arguments) {
            match pattern {
                Pattern::Any => {}
                Pattern::Value(value) => meet(argument, &mut Some(of_value(*value)))?,
                Pattern::Variable(variable) => meet(argument, &mut variables[*variable])?,
            }
        }
    }
    for test in &rule.guard {
        if let Test::Is(variable, value) | Test::Let(variable, value) = test {
            let mut known = of(value, variables);
            meet(&mut variables[*variable], &mut known)?;
        }
    }
    for action in &rule.body {
        match action {
            Action::Is(variable, value) | Action::Let(variable, value) => {
                let mut known = of(value, variables);
                meet(&mut variables[*variable], &mut known)?;
            }
            Action::Add(kind, values) => {
                for (argument, value) in arguments[*kind].iter_mut().zip(values) {
                    match value {
                        Expression::Variable(variable) => meet(argument, &mut variables[*variable])?,
                        value => meet(argument, &mut of(value, variables))?,
                    }
                }
            }
            Action::Same(..) | Action::SameNumber(..) | Action::Fail => {}
        }
    }
    Ok(())
}
