//! Bounds on everything that a server can make grow (R1).

/// Every bound of one peer. Nothing that arrives from a server may exceed these; what happens then is
/// a typed [`Cause::Limit`](crate::error::Cause::Limit) or a [`Violation`](crate::Violation), never growth.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest line on a byte stream, in bytes without its newline. Default 16 MiB.
    pub line_bytes: usize,
    /// Longest HTTP body or SSE event, in bytes. Default 16 MiB.
    pub body_bytes: usize,
    /// Deepest nesting of arrays and objects in one message. Default 128.
    pub depth: usize,
    /// Requests of one peer that may await their response at once. Default 256.
    pub in_flight: usize,
    /// Operations of one peer that may wait for a place in flight. Default 4,096.
    pub queued: usize,
    /// Notifications kept for an application that does not fetch them. Default 1,024, and fewer when they
    /// are larger than `line_bytes` together: the server is not read then.
    pub notifications: usize,
    /// Tools (or resources, prompts, …) of one list, all pages together. Default 10,000.
    pub items: usize,
    /// Pages of one list. Default 1,000.
    pub pages: usize,
    /// Rounds of one multi round-trip request. Default 10.
    pub input_rounds: u32,
    /// Bytes of standard error kept for diagnosis, the newest. Default 8 KiB.
    pub stderr_tail_bytes: usize,
    /// Bytes of standard output that was no message, kept for diagnosis. Default 4 KiB.
    pub noise_tail_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 16 << 20,
            body_bytes: 16 << 20,
            depth: 128,
            in_flight: 256,
            queued: 4_096,
            notifications: 1_024,
            items: 10_000,
            pages: 1_000,
            input_rounds: 10,
            stderr_tail_bytes: 8 << 10,
            noise_tail_bytes: 4 << 10,
        }
    }
}
