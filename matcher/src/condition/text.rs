//! CQL2 text.
