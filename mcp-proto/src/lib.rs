//! A Model Context Protocol client core without I/O.
