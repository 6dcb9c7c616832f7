//! What was measured, as a table or as JSON.

use std::fmt::Write as _;

/// One kind of work. All times are microseconds for one operation.
pub(crate) struct Row {
    pub(crate) work: &'static str,
    pub(crate) target: Target,
    pub(crate) ours: f64,
    pub(crate) rmcp: Option<f64>,
    pub(crate) floor: Option<f64>,
}

/// What a row has to reach.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// At most so many microseconds.
    Micros(f64),
    /// At most so many times the floor.
    OverFloor(f64),
    /// At least so many times as fast as rmcp.
    OverRmcp(f64),
}

impl Row {
    /// How many times as fast as rmcp.
    fn over_rmcp(&self) -> Option<f64> {
        Some(self.rmcp? / self.ours)
    }

    /// How many times the floor.
    fn over_floor(&self) -> Option<f64> {
        Some(self.ours / self.floor?)
    }

    fn meets_target(&self) -> bool {
        match self.target {
            Target::Micros(max) => self.ours <= max,
            Target::OverFloor(max) => self.over_floor().is_some_and(|ratio| ratio <= max),
            Target::OverRmcp(min) => self.over_rmcp().is_some_and(|ratio| ratio >= min),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Micros(max) => write!(f, "<= {max} us"),
            Self::OverFloor(max) => write!(f, "<= {max}x floor"),
            Self::OverRmcp(min) => write!(f, ">= {min}x rmcp"),
        }
    }
}

/// `{"rows":[{"work":…,"unit":"us","ours":…,"rmcp":…,"floor":…}]}`; `null` where a contender has no part.
pub(crate) fn json(rows: &[Row]) -> String {
    let rows: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| {
            serde_json::json!({
                "work": row.work,
                "unit": "us",
                "ours": rounded(row.ours),
                "rmcp": row.rmcp.map(rounded),
                "floor": row.floor.map(rounded),
            })
        })
        .collect();
    serde_json::json!({ "rows": rows }).to_string()
}

/// The same for people, with the ratios and whether the targets are met.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:20} {:>11} {:>11} {:>11} {:>8} {:>8}  {:14} met\n",
        "work (us each)", "ours", "rmcp", "floor", "rmcp/our", "our/flr", "target"
    );
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    for row in rows {
        let met = if row.meets_target() { "yes" } else { "NO" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:20} {:>11} {:>11} {:>11} {:>8} {:>8}  {:14} {met}",
            row.work,
            number(Some(row.ours), 3),
            number(row.rmcp, 3),
            number(row.floor, 3),
            number(row.over_rmcp(), 2),
            number(row.over_floor(), 2),
            row.target.to_string(),
        );
    }
    out
}

/// Nanoseconds are as far as the clock goes.
fn rounded(micros: f64) -> f64 {
    (micros * 1e3).round() / 1e3
}
