//! Networks from outside.

mod instances;
mod oracle;
mod random;
mod xcsp;
