//! `cells`, the default engine.
