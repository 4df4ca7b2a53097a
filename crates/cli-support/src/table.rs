//! Tables with aligned columns. Nothing is ever truncated.

use std::fmt;

use crate::visible::one_line;

/// Blanks between two columns.
const GAP: usize = 2;

/// The text of an empty cell, so that a line has as many words as columns.
const EMPTY_CELL: &str = "-";

/// Maximum number of names that are all listed.
const NAMES_MAX: usize = 8;

/// Number of names that are listed if there are more.
const NAMES_SHOWN: usize = 3;

pub struct Table {
    rows: Vec<Vec<String>>,
    width: Width,
}

/// The set of columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Usual,
    Wide,
}

impl Table {
    /// A table with a header line.
    pub fn new(headings: &[&str]) -> Self {
        Self::with_more(Width::Usual, headings, &[])
    }

    /// A table with a header line, which has more columns if the table is wide.
    pub fn with_more(width: Width, headings: &[&str], more: &[&str]) -> Self {
        let more = match width {
            Width::Usual => &[],
            Width::Wide => more,
        };
        let headings = headings.iter().chain(more).map(|heading| heading.to_uppercase()).collect();
        Self { rows: vec![headings], width }
    }

    /// A table of names and values, one pair per line.
    pub fn facts(facts: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let mut table = Self { rows: Vec::new(), width: Width::Usual };
        for (name, value) in facts {
            table.row([name.to_owned(), value]);
        }
        table
    }

    /// Adds a row. An empty cell becomes `-`.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let shown = |cell: String| if cell.is_empty() { EMPTY_CELL.to_owned() } else { one_line(&cell) };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Adds a row, with more cells if the table is wide.
    pub fn row_with_more<const N: usize, const M: usize>(&mut self, cells: [String; N], more: [String; M]) {
        match self.width {
            Width::Usual => self.row(cells),
            Width::Wide => self.row(cells.into_iter().chain(more)),
        }
    }

    /// A table of names and values. A name with several values has one per line.
    pub fn long_facts(facts: impl IntoIterator<Item = (&'static str, Vec<String>)>) -> Self {
        let mut table = Self { rows: Vec::new(), width: Width::Usual };
        for (name, values) in facts {
            let mut values = values.into_iter();
            table.row([name.to_owned(), values.next().unwrap_or_default()]);
            table.rows.extend(values.map(|value| vec![String::new(), one_line(&value)]));
        }
        table
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<_> = (0..columns).map(|column| self.width(column) + GAP).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:<width$}"));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A list of names for a sentence; of many, the first few.
pub fn some<T: AsRef<str>>(names: &[T]) -> String {
    if names.len() <= NAMES_MAX {
        return listed(names);
    }
    format!("{}, … and {} more", listed(&names[..NAMES_SHOWN]), names.len() - NAMES_SHOWN)
}

/// Items separated by commas, for one cell.
pub fn listed<T: AsRef<str>>(things: impl IntoIterator<Item = T>) -> String {
    let things: Vec<_> = things.into_iter().collect();
    let words: Vec<_> = things.iter().map(AsRef::as_ref).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", "host", "power"]);
        table.row(["web_0".to_owned(), "h1".to_owned(), "running".to_owned()]);
        table.row(["FrontEnd_IN_0".to_owned(), String::new(), "stopped".to_owned()]);
        table.row(["größe".to_owned(), "h10".to_owned(), String::new()]);
        let shown = table.to_string();
        assert_eq!(
            shown,
            "NAME           HOST  POWER\n\
             web_0          h1    running\n\
             FrontEnd_IN_0  -     stopped\n\
             größe          h10   -\n"
        );
    }

    #[test]
    fn a_wide_table_has_more_columns() {
        let shown = |width| {
            let mut table = Table::with_more(width, &["name"], &["boots"]);
            table.row_with_more(["a".to_owned()], ["7".to_owned()]);
            table.to_string()
        };
        assert_eq!(shown(Width::Usual), "NAME\na\n");
        assert_eq!(shown(Width::Wide), "NAME  BOOTS\na     7\n");
    }

    #[test]
    fn a_cell_stays_on_its_line() {
        let table = Table::facts([("tags", "a=\u{1b}[2J\nb".to_owned())]);
        assert_eq!(table.to_string(), "tags  a=\\u{1b}[2J\\nb\n");
    }

    #[test]
    fn a_long_list_of_names_is_shortened() {
        let names: Vec<_> = (1..=200).map(|n| format!("h{n}")).collect();
        assert_eq!(some(&names), "h1, h2, h3, … and 197 more");
        assert_eq!(some(&names[..8]), "h1, h2, h3, h4, h5, h6, h7, h8");
    }

    #[test]
    fn facts_have_no_heading() {
        let table = Table::facts([("name", "solo".to_owned()), ("update domain", "0".to_owned())]);
        assert_eq!(table.to_string(), "name           solo\nupdate domain  0\n");
    }

    #[test]
    fn a_fact_may_have_several_lines() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let table =
            Table::long_facts([("id", lines(&["3"])), ("terms", lines(&["a", "b"])), ("done", lines(&[]))]);
        assert_eq!(table.to_string(), "id     3\nterms  a\n       b\ndone   -\n");
    }

    #[test]
    fn a_table_without_rows_has_its_header() {
        assert_eq!(Table::new(&["id", "not before"]).to_string(), "ID  NOT BEFORE\n");
    }
}
