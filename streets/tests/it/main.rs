//! Streets as they are read: each form, and files that are not what they should be.

mod country;
mod faults;
mod forms;
