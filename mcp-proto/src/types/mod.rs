//! The protocol's data types.
