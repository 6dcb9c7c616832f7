//! Everything about revisions before 2026-07-28. Nothing outside this folder knows their words.
