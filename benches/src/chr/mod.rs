//! Constraint Handling Rules beside SWI-Prolog's, what origins cost, and how the time of a fact grows with the store.

mod cases;
mod growth;
mod origins;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rules::{Goal, Setting, run};

use crate::engines::process::{machine, profile};
use crate::engines::report::digits;
use cases::{CASES, Case};

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Scale {
    /// A twentieth of the size.
    pub is_quick: bool,
    /// Runs of each program.
    pub rounds: u16,
    /// Folder of the programs.
    pub data: PathBuf,
}

/// Prints tables in Markdown as they come. With a folder they are its `report.md` as well, beside a plot of the growth.
///
/// # Errors
/// When a program is not there, ends with another store than it has to, or a file cannot be written.
pub fn measure(scale: &Scale, folder: Option<&Path>) -> anyhow::Result<()> {
    let mut report = Report::default();
    peers(scale, &mut report)?;
    origins::measure(scale, &mut report)?;
    let grown = growth::measure(scale, &mut report)?;
    let Some(folder) = folder else { return Ok(()) };
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    growth::draw(&grown, folder)?;
    report.line("\n![How the time of a fact grows](growth.svg)");
    let path = folder.join("report.md");
    std::fs::write(&path, report.text).with_context(|| format!("writing {}", path.display()))
}

/// What was printed.
#[derive(Default)]
struct Report {
    text: String,
}

impl Report {
    fn line(&mut self, line: &str) {
        println!("{line}");
        self.text.push_str(line);
        self.text.push('\n');
    }
}

impl Case {
    /// Its program, and the constraints of its goal.
    fn read(&self, scale: &Scale) -> anyhow::Result<(PathBuf, String, Vec<String>)> {
        let file = scale.data.join(self.file).canonicalize();
        let file = file.with_context(|| format!("{} is not there", self.file))?;
        let program = std::fs::read_to_string(&file)?;
        let goal = (self.goal)(self.sized(scale), &mut StdRng::seed_from_u64(1));
        Ok((file, program, goal))
    }

    fn sized(&self, scale: &Scale) -> i64 {
        if scale.is_quick { (self.size / 20).max(10) } else { self.size }
    }
}

/// Seconds, and what is left in the store.
type Ran = (f64, Vec<String>);

fn by_engine(program: &str, goal: &[String]) -> anyhow::Result<Ran> {
    let goal = Goal::new(program, &goal.join(", ")).map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?;
    let began = Instant::now();
    let answer = run(&goal, Setting::default())?;
    let seconds = began.elapsed().as_secs_f64();
    ensure!(answer.is_success, "the goal failed");
    Ok((seconds, answer.store))
}

/// Runs a goal in a process of SWI-Prolog. Loading is not counted.
fn by_swi(folder: &Path, file: &Path, program: &str, goal: &[String]) -> anyhow::Result<Ran> {
    let text = format!("goals([{}]).\n", goal.join(",\n"));
    let own = folder.join("goal.pl");
    let of_module = program.contains(":- module(");
    let load = if of_module {
        format!(":- use_module('{}').\ncputime(T) :- statistics(cputime, T).\n", file.display())
    } else {
        program.to_owned()
    };
    let show = if of_module { "true" } else { "forall(current_chr_constraint(C), (writeq(C), nl))" };
    let main = format!(
        "{load}\n{text}:- initialization((goals(Gs), statistics(cputime, A), ( maplist(call, Gs) -> true ; halt(2) ), statistics(cputime, B), T is B - A, \
         format(\"seconds ~w~n\", [T]), {show}, halt), main).\n"
    );
    std::fs::write(&own, main)?;
    let output =
        Command::new("swipl").arg("--stack-limit=8g").arg("-q").arg(&own).output().context("swipl")?;
    let told = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "swipl: {}", String::from_utf8_lossy(&output.stderr));
    let (mut seconds, mut store) = (None, Vec::new());
    for line in told.lines() {
        match line.strip_prefix("seconds ") {
            Some(time) => seconds = Some(time.parse()?),
            None if seconds.is_some() => store.push(line.to_owned()),
            None => {}
        }
    }
    store.sort_unstable();
    Ok((seconds.context("swipl told no time")?, store))
}

/// The least, the median and the most.
fn spread(times: &mut [f64]) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [times[0], times[times.len() / 2], times[times.len() - 1]]
}

fn peers(scale: &Scale, report: &mut Report) -> anyhow::Result<()> {
    let version = Command::new("swipl").arg("--version").output().ok();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    report.line(&format!(
        "{}; one thread; build profile {}; {}\n",
        machine(),
        profile(),
        version.as_deref().unwrap_or("no SWI-Prolog here (package swi-prolog), so that nothing is compared")
    ));
    report.line("| program | size | ms | spread | SWI, ms | spread | times as fast |");
    report.line("| --- | ---: | ---: | --- | ---: | --- | ---: |");
    let folder = tempfile::tempdir()?;
    let mut ratios = Vec::new();
    for case in &CASES {
        let (file, program, goal) = case.read(scale)?;
        let (mut own, mut swi) = (Vec::new(), Vec::new());
        for _ in 0..scale.rounds {
            let (seconds, store) = by_engine(&program, &goal).with_context(|| case.name)?;
            own.push(seconds * 1e3);
            if version.is_some() {
                let (seconds, expected) =
                    by_swi(folder.path(), &file, &program, &goal).with_context(|| case.name)?;
                ensure!(!case.is_ground || store == expected, "{}: the stores differ", case.name);
                swi.push(seconds * 1e3);
            }
        }
        let [least, own, most] = spread(&mut own);
        let (size, own_spread) = (case.sized(scale), format!("{} to {}", digits(least), digits(most)));
        let mut row = format!("| {} | {size} | {} | {own_spread}", case.name, digits(own));
        if swi.is_empty() {
            row.push_str(" | | |");
        } else {
            let [least, swi, most] = spread(&mut swi);
            ratios.push(swi / own);
            write!(
                row,
                " | {} | {} to {} | {}",
                digits(swi),
                digits(least),
                digits(most),
                digits(swi / own)
            )?;
        }
        report.line(&format!("{row} |"));
    }
    if !ratios.is_empty() {
        report.line(&format!("\nMedian of the ratios: {}", digits(spread(&mut ratios)[1])));
    }
    Ok(())
}
