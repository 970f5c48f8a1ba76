//! GeoJSON files that the settings name, and what is told of their faults.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use wire::Fault;

use crate::model::error::ApiError;

/// The most bytes of a file.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The most faults of a file that are told.
const FAULTS_TOLD: usize = 10;

/// The text of a file. Blocks.
///
/// # Errors
/// A file that cannot be read, has more than 64 MiB, or is not UTF-8.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).context("cannot be read")?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).context("cannot be read")?;
    anyhow::ensure!(bytes.len() as u64 <= FILE_BYTES_MAX, "has more than {FILE_BYTES_MAX} bytes");
    String::from_utf8(bytes).context("is not UTF-8")
}

/// The faults of a text that is not even an object.
pub(crate) fn faults_of(refusal: ApiError) -> Vec<Fault> {
    if let ApiError::Invalid(faults) = refusal {
        return faults;
    }
    vec![Fault { pointer: String::new(), detail: refusal.problem().detail.unwrap_or_default() }]
}

/// The first few faults as a sentence.
pub(crate) fn listed(faults: &[Fault]) -> String {
    let told = faults.iter().take(FAULTS_TOLD).map(|fault| match fault.pointer.as_str() {
        "" => fault.detail.clone(),
        pointer => format!("{pointer}: {}", fault.detail),
    });
    let more = faults.len().saturating_sub(FAULTS_TOLD);
    let more = (more > 0).then(|| format!("and {more} more"));
    told.chain(more).collect::<Vec<_>>().join("; ")
}
