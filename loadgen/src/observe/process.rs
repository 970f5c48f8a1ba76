//! What a process uses, from `/proc`. By hand, for the crates that read it do not build where there is none.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::machine::{kilobytes, member};
use crate::report::record::Usage;

/// What `/proc/PID/stat` counts in: Linux shows every process hundredths of a second, whatever the kernel's own clock does.
const TICKS_PER_S: f64 = 100.0;

/// Reads what a process has used since it was last asked.
#[derive(Debug)]
pub struct Meter {
    folder: PathBuf,
    last: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    at: Instant,
    ticks: u64,
    /// By thread id; one that ends takes its figure along, but not out of `ticks`.
    thread_ticks: HashMap<u32, u64>,
}

impl Meter {
    /// Measures a process.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        Self { folder: PathBuf::from(format!("/proc/{pid}")), last: None }
    }

    /// Measures this process.
    #[must_use]
    pub fn own() -> Self {
        Self { folder: PathBuf::from("/proc/self"), last: None }
    }

    /// What it used since the call before; none the first time, and where there is no such process. Costs two files, and
    /// one for each thread. Processor time comes in hundredths of a second.
    pub fn read(&mut self) -> Option<Usage> {
        let reading = Reading::of(&self.folder);
        let last = std::mem::replace(&mut self.last, reading)?;
        let reading = self.last.as_ref()?;
        let elapsed_s = (reading.at - last.at).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "differences of a second")]
        let cores = |ticks: u64| if elapsed_s > 0.0 { ticks as f64 / TICKS_PER_S / elapsed_s } else { 0.0 };
        let of_thread = |(id, ticks): (&u32, &u64)| {
            ticks.saturating_sub(last.thread_ticks.get(id).copied().unwrap_or_default())
        };
        let busiest = reading.thread_ticks.iter().map(of_thread).max().unwrap_or_default();
        let status = fs::read_to_string(self.folder.join("status")).ok()?;
        Some(Usage {
            cpu_cores: cores(reading.ticks.saturating_sub(last.ticks)),
            busiest_thread_cores: cores(busiest),
            resident_bytes: kilobytes(member(&status, "VmRSS")?)?,
        })
    }
}

impl Reading {
    fn of(folder: &Path) -> Option<Self> {
        let threads = fs::read_dir(folder.join("task")).ok()?.flatten();
        let thread =
            |entry: fs::DirEntry| Some((entry.file_name().to_str()?.parse().ok()?, ticks(&entry.path())?));
        Some(Self {
            thread_ticks: threads.filter_map(thread).collect(),
            at: Instant::now(),
            ticks: ticks(folder)?,
        })
    }
}

/// Processor time in user and kernel mode.
fn ticks(folder: &Path) -> Option<u64> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The second field is the name in parentheses, which may itself hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}
