//! Networks from outside.

mod folder;
mod generator;
mod instances;
mod oracle;
mod random;
mod xcsp;
