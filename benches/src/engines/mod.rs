//! The bench `engines`: an engine against its competitors in one run, with the answers checked.

pub mod contender;
pub mod moves;
pub mod oracle;
pub mod process;
pub mod race;
pub mod report;
pub mod scenario;
