//! Tables with aligned columns. A table that is too wide leaves out columns; no cell is ever truncated.

use std::fmt;
use std::num::NonZeroUsize;

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
    /// Columns that may be left out, the least important first.
    optional: Vec<usize>,
}

/// The width of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// The usual columns, as far as they fit into this number of characters.
    Fit(usize),
    /// All columns.
    Wide,
}

impl Width {
    /// The width where that of the terminal is unknown.
    pub const USUAL: Self = Self::Fit(80);

    /// The width of standard output: the variable `COLUMNS`, else that of the terminal, else the usual one.
    #[must_use]
    pub fn of_output() -> Self {
        let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<NonZeroUsize>().ok());
        let terminal = || {
            let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
            NonZeroUsize::new(size.ws_col.into())
        };
        set.or_else(terminal).map_or(Self::USUAL, |columns| Self::Fit(columns.get()))
    }
}

impl Table {
    /// A table with a header line.
    pub fn new(width: Width, headings: &[&str]) -> Self {
        Self::with_more(width, headings, &[])
    }

    /// A table with a header line, which has more columns if the table is wide.
    pub fn with_more(width: Width, headings: &[&str], more: &[&str]) -> Self {
        let more = match width {
            Width::Fit(_) => &[],
            Width::Wide => more,
        };
        let headings = headings.iter().chain(more).map(|heading| heading.to_uppercase()).collect();
        Self { rows: vec![headings], width, optional: Vec::new() }
    }

    /// The table without these columns if it is too wide, the first of them first. Other columns always stay.
    #[must_use]
    pub fn dropping(mut self, headings: &[&str]) -> Self {
        let columns = self.rows.first().map(Vec::as_slice).unwrap_or_default();
        let position = |heading: &&str| columns.iter().position(|column| *column == heading.to_uppercase());
        self.optional = headings.iter().filter_map(position).collect();
        self
    }

    /// A table of names and values, one pair per line.
    pub fn facts(facts: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let mut table = Self::without_header();
        for (name, value) in facts {
            table.row([name.to_owned(), value]);
        }
        table
    }

    fn without_header() -> Self {
        Self { rows: Vec::new(), width: Width::Wide, optional: Vec::new() }
    }

    /// Adds a row. An empty cell becomes `-`.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let shown = |cell: String| if cell.is_empty() { EMPTY_CELL.to_owned() } else { one_line(&cell) };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Adds a row, with more cells if the table is wide.
    pub fn row_with_more<const N: usize, const M: usize>(&mut self, cells: [String; N], more: [String; M]) {
        match self.width {
            Width::Fit(_) => self.row(cells),
            Width::Wide => self.row(cells.into_iter().chain(more)),
        }
    }

    /// A table of names and values. A name with several values has one per line.
    pub fn long_facts(facts: impl IntoIterator<Item = (&'static str, Vec<String>)>) -> Self {
        let mut table = Self::without_header();
        for (name, values) in facts {
            let mut values = values.into_iter();
            table.row([name.to_owned(), values.next().unwrap_or_default()]);
            table.rows.extend(values.map(|value| vec![String::new(), one_line(&value)]));
        }
        table
    }

    /// Characters of the widest cell of a column.
    fn chars(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// Columns to show, with their characters. The more important of the optional columns come first, and each is
    /// shown if it still fits.
    fn columns(&self) -> Vec<(usize, usize)> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let all: Vec<_> = (0..count).map(|column| (column, self.chars(column))).collect();
        let Width::Fit(max) = self.width else { return all };
        let needed = |(_, chars): &(usize, usize)| GAP + chars;
        let is_optional = |column: usize| self.optional.contains(&column);
        let mut shown: Vec<_> = all.iter().copied().filter(|(column, _)| !is_optional(*column)).collect();
        let mut used: usize = shown.iter().map(needed).sum();
        let optional = self.optional.iter().rev().filter_map(|column| all.get(*column));
        for column in optional {
            if used + needed(column) <= max + GAP {
                used += needed(column);
                shown.push(*column);
            }
        }
        shown.sort_unstable();
        shown
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns();
        for row in &self.rows {
            let mut line = String::new();
            for (column, chars) in &columns {
                let (cell, width) = (row.get(*column).map_or("", String::as_str), chars + GAP);
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
        let mut table = Table::new(Width::USUAL, &["name", "host", "power"]);
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
        assert_eq!(shown(Width::USUAL), "NAME\na\n");
        assert_eq!(shown(Width::Wide), "NAME  BOOTS\na     7\n");
    }

    fn wide_row(width: Width) -> Table {
        let mut table = Table::new(width, &["name", "tenant", "kind", "why"])
            .dropping(&["why", "kind", "tenant", "gone"]);
        table.row([
            "a-long-name".to_owned(),
            "web".to_owned(),
            "Reboot".to_owned(),
            "by the owner".to_owned(),
        ]);
        table
    }

    #[test]
    fn a_table_that_is_too_wide_leaves_out_the_least_important_columns() {
        let header = |width| wide_row(width).to_string().lines().next().unwrap().to_owned();
        assert_eq!(header(Width::Fit(41)), "NAME         TENANT  KIND    WHY");
        assert_eq!(header(Width::Fit(40)), "NAME         TENANT  KIND");
        assert_eq!(header(Width::Fit(26)), "NAME         TENANT", "the kind does not fit");
        assert_eq!(header(Width::Fit(5)), "NAME", "a name is always there, and complete");
        assert!(wide_row(Width::Fit(5)).to_string().contains("a-long-name"));
        assert_eq!(header(Width::Wide), header(Width::Fit(41)));
    }

    #[test]
    fn a_column_that_fits_stays_where_a_more_important_one_does_not() {
        let mut table =
            Table::new(Width::Fit(20), &["name", "zone", "machines"]).dropping(&["zone", "machines"]);
        table.row(["h1".to_owned(), "1".to_owned(), "web/web_0, web/web_1".to_owned()]);
        assert_eq!(table.to_string(), "NAME  ZONE\nh1    1\n");
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
        assert_eq!(Table::new(Width::USUAL, &["id", "not before"]).to_string(), "ID  NOT BEFORE\n");
    }
}
