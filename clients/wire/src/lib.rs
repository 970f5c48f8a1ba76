//! The frames and documents that the broker and its clients exchange.
