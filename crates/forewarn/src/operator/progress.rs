//! Progress output: on a terminal one line that is redrawn, elsewhere one line per change.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use super::visible::one_line;

/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// Columns of a terminal of unknown width.
const COLUMNS_DEFAULT: usize = 80;

pub(super) enum Progress<W> {
    /// One line per change.
    Lines(W),
    /// One line of at most `columns`, redrawn.
    Drawn { out: W, columns: usize, is_drawn: bool },
}

impl Progress<io::Stderr> {
    /// Progress on standard error, so that it does not mix with the result.
    pub(super) fn new() -> Self {
        let out = io::stderr();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if !out.is_terminal() || is_dumb {
            return Self::Lines(out);
        }
        let size = rustix::termios::tcgetwinsize(&out).ok();
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Self::Drawn { out, columns: columns.unwrap_or(COLUMNS_DEFAULT), is_drawn: false }
    }
}

impl<W: Write> Progress<W> {
    /// Prints a line that stays.
    pub(super) fn print(&mut self, text: &str) {
        match self {
            Self::Lines(out) => write(out, &format!("{text}\n")),
            Self::Drawn { out, is_drawn, .. } => {
                let clear = if std::mem::take(is_drawn) { CLEAR } else { "" };
                write(out, &format!("{clear}{text}\n"));
            }
        }
    }

    /// Shows the new state: `changes` on lines of their own, or `summary` in the redrawn line.
    pub(super) fn update(&mut self, changes: &[String], summary: &str) {
        match self {
            Self::Lines(_) => changes.iter().for_each(|change| self.print(change)),
            Self::Drawn { out, columns, is_drawn } => {
                // The last column stays free: some terminals start a new line after it.
                let line: String = one_line(summary).chars().take(columns.saturating_sub(1)).collect();
                write(out, &format!("{CLEAR}{line}"));
                *is_drawn = true;
            }
        }
    }

    /// Clears the redrawn line.
    pub(super) fn end(&mut self) {
        if let Self::Drawn { out, is_drawn, .. } = self
            && std::mem::take(is_drawn)
        {
            write(out, CLEAR);
        }
    }
}

/// Write errors are ignored: progress is not the result.
fn write(out: &mut impl Write, text: &str) {
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// The number of completed items, and the state of the first other one: `1 of 3 completed; Reboot of web_0: …; 1 more`.
pub(super) fn summary(completed: usize, all: usize, rest: &[String]) -> String {
    let mut text = format!("{completed} of {all} completed");
    // Writing to a string cannot fail.
    if let Some(first) = rest.first() {
        let _ = write!(text, "; {first}");
    }
    if rest.len() > 1 {
        let _ = write!(text, "; {} more", rest.len() - 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(mut progress: Progress<Vec<u8>>) -> String {
        progress.update(&["a waits".to_owned(), "b waits".to_owned()], "0 of 2; a waits; 1 more");
        progress.print("hint");
        progress.update(&[], "1 of 2; b waits");
        progress.end();
        progress.end();
        let (Progress::Lines(out) | Progress::Drawn { out, .. }) = progress;
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_a_terminal_each_change_has_its_line() {
        assert_eq!(output(Progress::Lines(Vec::new())), "a waits\nb waits\nhint\n");
    }

    #[test]
    fn on_a_terminal_one_line_is_drawn_again() {
        let drawn = Progress::Drawn { out: Vec::new(), columns: 16, is_drawn: false };
        assert_eq!(output(drawn), "\r\x1b[K0 of 2; a waits\r\x1b[Khint\n\r\x1b[K1 of 2; b waits\r\x1b[K");
    }

    #[test]
    fn a_summary_counts_all_items() {
        let rest = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        assert_eq!(summary(1, 4, &rest), "1 of 4 completed; a; 2 more");
        assert_eq!(summary(0, 1, &rest[..1]), "0 of 1 completed; a");
        assert_eq!(summary(2, 3, &[]), "2 of 3 completed");
    }
}
