//! Random programs beside SWI-Prolog's CHR, the system by K.U.Leuven.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rules::{Bounds, Goal, Setting, run};

/// Names of constraints and their arities.
const KINDS: [(&str, usize); 4] = [("a", 1), ("b", 2), ("c", 1), ("d", 2)];
const VARIABLES: [&str; 4] = ["X", "Y", "Z", "W"];
const OF_GOALS: [&str; 4] = ["P", "Q", "R", "S"];

/// A program and a goal.
struct World {
    random: StdRng,
    /// Whether goals have variables. Bodies count down otherwise, so that they end.
    is_logical: bool,
}

impl World {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.choose(&mut self.random).expect("there is something to pick")
    }

    fn term(&mut self, used: &[&str]) -> String {
        if !used.is_empty() && self.random.random_bool(0.8) {
            return self.pick(used).to_owned();
        }
        self.random.random_range(0..4).to_string()
    }

    fn head(&mut self, used: &mut Vec<&'static str>) -> String {
        let (name, arity) = *KINDS.choose(&mut self.random).expect("there are kinds");
        let mut arguments = Vec::new();
        for _ in 0..arity {
            if self.random.random_bool(0.85) {
                let variable = self.pick(&VARIABLES);
                if !used.contains(&variable) {
                    used.push(variable);
                }
                arguments.push(variable.to_owned());
            } else {
                arguments.push(self.random.random_range(0..4).to_string());
            }
        }
        format!("{name}({})", arguments.join(","))
    }

    fn rule(&mut self) -> String {
        let count = *[1, 1, 2, 2, 2, 3].choose(&mut self.random).expect("there are counts");
        let mut used = Vec::new();
        let heads: Vec<_> = (0..count).map(|_| self.head(&mut used)).collect();
        let (mut guards, mut body, mut added) = (Vec::new(), Vec::new(), 0);
        if !used.is_empty() && !self.is_logical && self.random.random_bool(0.7) {
            let (left, sign) = (self.pick(&used), self.pick(&[">", "<", "=:=", ">=", "=<"]));
            guards.push(format!("{left} {sign} {}", self.term(&used)));
        }
        if !used.is_empty() && self.is_logical && self.random.random_bool(0.2) {
            let (left, sign) = (self.pick(&used), self.pick(&["==", "\\=="]));
            guards.push(format!("{left} {sign} {}", self.term(&used)));
        }
        let is_propagation = self.random.random_bool(0.25);
        for _ in 0..*[0, 1, 1, 2].choose(&mut self.random).expect("there are counts") {
            let (name, arity) = *KINDS.choose(&mut self.random).expect("there are kinds");
            let mut arguments = Vec::new();
            for _ in 0..arity {
                if used.is_empty() || self.is_logical {
                    arguments.push(self.term(&used));
                } else {
                    let from = self.pick(&used);
                    added += 1;
                    body.push(format!("N{added} is {from} - 1"));
                    guards.push(format!("{from} > 0"));
                    arguments.push(format!("N{added}"));
                }
            }
            // Bodies that bring as many as are removed would not end.
            if !self.is_logical || (!is_propagation && body.len() + 1 < count) {
                body.push(format!("{name}({})", arguments.join(",")));
            }
        }
        if self.is_logical && used.len() > 1 && self.random.random_bool(0.4) {
            body.push(format!("{} = {}", used[0], used[1]));
        }
        guards.dedup();
        let guard = if guards.is_empty() { String::new() } else { guards.join(", ") + " | " };
        let body = if body.is_empty() { "true".to_owned() } else { body.join(", ") };
        let split = if is_propagation || count == 1 || self.random.random_bool(0.4) {
            0
        } else {
            self.random.random_range(1..count)
        };
        let sides = if split == 0 {
            heads.join(", ")
        } else {
            format!("{} \\ {}", heads[..split].join(", "), heads[split..].join(", "))
        };
        let arrow = if is_propagation { "==>" } else { "<=>" };
        format!("{sides} {arrow} {guard}{body}.")
    }

    fn goal(&mut self) -> String {
        let mut parts = Vec::new();
        for _ in 0..self.random.random_range(3..8) {
            let (name, arity) = *KINDS.choose(&mut self.random).expect("there are kinds");
            let arguments: Vec<_> = (0..arity)
                .map(|_| {
                    if self.is_logical && self.random.random_bool(0.6) {
                        self.pick(&OF_GOALS).to_owned()
                    } else {
                        self.random.random_range(0..5).to_string()
                    }
                })
                .collect();
            parts.push(format!("{name}({})", arguments.join(",")));
        }
        for chance in [0.7, 0.4] {
            if self.is_logical && self.random.random_bool(chance) {
                let (left, right) = (self.pick(&OF_GOALS), self.pick(&["P", "Q", "R", "S", "1", "2"]));
                parts.push(format!("{left} = {right}"));
            }
        }
        parts.join(", ")
    }
}

/// The variables of a goal in the order in which they come.
fn variables(goal: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for word in goal.split(|sign: char| !sign.is_alphanumeric()).filter(|word| OF_GOALS.contains(word)) {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// Store lines of a program in SWI-Prolog; `fail` where the goal fails, and none where it ends with an error or in no time.
fn theirs(folder: &Path, number: usize, program: &str, goal: &str) -> Option<Vec<String>> {
    let (path, names) = (folder.join(format!("p{number}.pl")), variables(goal));
    let mut text =
        format!(":- use_module(library(chr)).\n:- chr_constraint a/1, b/2, c/1, d/2.\n{program}\n");
    let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    let (values, quoted) = (names.join(","), quoted.join(","));
    write!(
        text,
        "go :- Vs = [{values}], Ns = [{quoted}], ( catch(({goal}), _, (writeln(error), halt)) -> out(Vs, Ns) ; writeln(fail) ), halt.\n\
         out(Vs, Ns) :- forall(current_chr_constraint(C), (copy_term_nat(Vs-C, Ws-D), nm(Ws, Ns), print_it(D))).\n\
         print_it(D) :- term_variables(D, Us), us(Us), write(D), nl.\n\
         us([]).\nus(['_'|T]) :- us(T).\n\
         nm([], []).\nnm([V|T], [N|M]) :- ( var(V) -> V = N ; true ), nm(T, M).\n",
    )
    .unwrap();
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new("timeout");
    command.args(["20", "swipl", "-q", "-g", "go"]).arg(&path).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().expect("SWI-Prolog is installed by `make test`");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    if !output.status.success() || lines.iter().any(|line| line == "error") {
        return None;
    }
    lines.sort_unstable();
    Some(lines)
}

fn ours(program: &str, goal: &str) -> Option<Vec<String>> {
    let text = format!(":- chr_constraint a/1, b/2, c/1, d/2.\n{program}");
    let goal = Goal::new(&text, goal).unwrap();
    let setting = Setting { bounds: Bounds { steps: 1_000_000, ..Bounds::default() }, ..Setting::default() };
    let answer = run(&goal, setting).ok()?;
    if !answer.is_success {
        return Some(vec!["fail".to_owned()]);
    }
    // Of variables that are none of the goal's only that they are some is compared.
    let nameless = |text: &String| {
        let mut parts = text.split('_');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            text + "_" + part.trim_start_matches(|sign: char| sign.is_ascii_digit())
        })
    };
    let mut lines: Vec<_> = answer.store.iter().map(nameless).collect();
    lines.sort_unstable();
    Some(lines)
}

#[test]
fn random_programs_end_with_the_stores_of_swi_prolog() {
    let count = if std::env::var_os("NEARCAST_SOAK").is_some() { 2_000 } else { 60 };
    let folder = std::env::temp_dir().join(format!("rules-peer-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut compared = 0;
    for number in 0..count {
        let mut world = World { random: StdRng::seed_from_u64(number as u64), is_logical: number % 2 == 1 };
        let rules: Vec<_> = (0..world.random.random_range(2..6)).map(|_| world.rule()).collect();
        let (program, goal) = (rules.join("\n"), world.goal());
        let Some(theirs) = theirs(&folder, number, &program, &goal) else { continue };
        assert_eq!(ours(&program, &goal).as_ref(), Some(&theirs), "seed {number}\n{program}\n?- {goal}.");
        compared += 1;
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(compared * 10 >= count * 9, "of {count} programs {compared} could be compared");
}
