//! `nearcast-load`: what a broker carries, on this machine, under a load that one can say in a file.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::carry_out() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nearcast-load: {error:#}");
            ExitCode::from(2)
        }
    }
}
