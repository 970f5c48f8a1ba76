//! What this machine is.

use std::fs;

use crate::report::record::Machine;

impl Machine {
    /// This one, as far as `/proc` tells; elsewhere only its cores are known.
    #[must_use]
    pub fn here() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let (name, version) = (read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease"));
        Self {
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            processor: member(&read("/proc/cpuinfo"), "model name").unwrap_or_default().to_owned(),
            memory_bytes: member(&read("/proc/meminfo"), "MemTotal").and_then(kilobytes).unwrap_or_default(),
            kernel: format!("{} {}", name.trim(), version.trim()).trim().to_owned(),
        }
    }
}

/// What stands behind a name and a colon in one of `/proc`'s files.
pub(super) fn member<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let mut members = text.lines().filter_map(|line| line.split_once(':'));
    members.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim())
}

/// A number of kilobytes, in bytes.
pub(super) fn kilobytes(value: &str) -> Option<u64> {
    value.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_memory_and_a_kernel() {
        let machine = Machine::here();
        assert!(machine.cores > 0 && machine.memory_bytes > 1 << 24, "{machine:?}");
        assert!(machine.kernel.starts_with("Linux ") && machine.kernel.len() > 6, "{machine:?}");
    }

    #[test]
    fn members_are_found_by_their_whole_name() {
        let text = "MemTotalHuge: 3 kB\nMemTotal:       16 kB\nodd";
        assert_eq!(member(text, "MemTotal").and_then(kilobytes), Some(16_384));
        assert_eq!(member(text, "odd"), None);
        assert_eq!(kilobytes("16"), None);
    }
}
