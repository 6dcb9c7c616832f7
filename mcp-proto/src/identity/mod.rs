//! Canonical JSON, derived ids and the request `_meta` (R4–R8).
