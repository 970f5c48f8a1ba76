//! Runs a goal: `goal PROGRAM.chr GOAL`. Prints the time of the run, the store and the bindings.

use std::time::Instant;

use rules::{Goal, Setting, Wrong, run};

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, program, goal, ..] = &arguments[..] else { return eprintln!("goal PROGRAM.chr GOAL") };
    let program = std::fs::read_to_string(program).expect("the program can be read");
    let goal = match Goal::new(&program, goal) {
        Ok(goal) => goal,
        Err(Wrong::Program(faults) | Wrong::Goal(faults)) => {
            for fault in faults {
                eprintln!("{fault}");
            }
            return;
        }
    };
    let began = Instant::now();
    let answer = run(&goal, Setting::default());
    println!("{:.6} s", began.elapsed().as_secs_f64());
    match answer {
        Ok(answer) => {
            println!(
                "{} {} applications, store of {}",
                answer.is_success,
                answer.applications,
                answer.store.len()
            );
            if arguments.len() > 3 {
                println!("{}", answer.store.join("\n"));
            }
        }
        Err(error) => println!("{error}"),
    }
}
