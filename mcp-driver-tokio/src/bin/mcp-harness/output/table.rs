//! Aligned columns.

use super::one_line;

/// Rows under their headings, two spaces between columns, every line with its newline. The last column
/// is not padded.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: Vec<[String; N]>) -> String {
    let rows: Vec<[String; N]> = std::iter::once(headings.map(str::to_owned))
        .chain(rows.into_iter().map(|row| row.map(|cell| one_line(&cell))))
        .collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let width = *width + 2;
            line.push_str(&format!("{cell:width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
