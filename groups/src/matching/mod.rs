//! Candidates that come, move and leave, and the groups among them.
