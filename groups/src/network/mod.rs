//! Networks of binary constraints, and algorithms that make them arc consistent.
