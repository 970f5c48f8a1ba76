//! Stands between a program and its files, and notes what of them would outlive a loss of power.
//!
//! Preloaded (`LD_PRELOAD`) into a program, it carries out each call that changes something below the folder
//! `POWER_LOSS_FOLDER` as the C library would, and appends a [`record`] of it to the file `POWER_LOSS_JOURNAL`. Whoever
//! reads that journal knows the content of each file twice, as the program saw it and as far as it was synced, and can
//! rebuild the folder as a loss of power might have left it.
//!
//! Calls and records are in one order, under one lock, except for syncs: those are noted when they begin and when they have
//! succeeded, and take with them what was written before they began. A program that is killed between a call and its record
//! has done something that the journal does not know, but nobody was told of it.
//!
//! While there is a file `POWER_LOSS_FULL` the disk is full: what is written into watched files fails with `ENOSPC`.
//!
//! What it cannot follow is noted as well, as [`record::Kind::Unmodelled`], so that a test fails instead of proving nothing:
//! shared writable mappings, symbolic links, files that are opened to be written synchronously. System calls that do not go
//! through the C library are seen by comparing the files with the journal afterwards.
//!
//! **`unsafe`**: everything here speaks C's interface, with the caller's pointers. They are passed on to the system call
//! unchanged; what is read through them is what that call has just read through them without a fault.

#![cfg(target_os = "linux")]

pub mod calls;
pub mod record;
mod watch;
