//! What is said while somebody waits: on a terminal one line that is drawn again, elsewhere a line for each change.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use super::visible::one_line;

/// Goes to the start of the line, and clears it.
const CLEAR: &str = "\r\x1b[K";

/// Columns of a terminal that does not say how many it has.
const COLUMNS_USUAL: usize = 80;

/// What is said while somebody waits.
pub(super) enum Progress<W> {
    /// A line for each change.
    Lines(W),
    /// One line, so wide at most.
    Drawn { out: W, columns: usize, is_drawn: bool },
}

impl Progress<io::Stderr> {
    /// On standard error: to whoever waits, not to what is printed.
    pub(super) fn new() -> Self {
        let out = io::stderr();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if !out.is_terminal() || is_dumb {
            return Self::Lines(out);
        }
        let size = rustix::termios::tcgetwinsize(&out).ok();
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Self::Drawn { out, columns: columns.unwrap_or(COLUMNS_USUAL), is_drawn: false }
    }
}

impl<W: Write> Progress<W> {
    /// Something worth a line of its own, whatever follows.
    pub(super) fn say(&mut self, text: &str) {
        match self {
            Self::Lines(out) => write(out, &format!("{text}\n")),
            Self::Drawn { out, is_drawn, .. } => {
                let clear = if std::mem::take(is_drawn) { CLEAR } else { "" };
                write(out, &format!("{clear}{text}\n"));
            }
        }
    }

    /// How it stands: `changes` are what is new of it, `now` is all of it in a few words.
    pub(super) fn stand(&mut self, changes: &[String], now: &str) {
        match self {
            Self::Lines(_) => changes.iter().for_each(|change| self.say(change)),
            Self::Drawn { out, columns, is_drawn } => {
                // The last column is left free: some terminals begin a new line after it.
                let line: String = one_line(now).chars().take(columns.saturating_sub(1)).collect();
                write(out, &format!("{CLEAR}{line}"));
                *is_drawn = true;
            }
        }
    }

    /// It is over: the line goes.
    pub(super) fn end(&mut self) {
        if let Self::Drawn { out, is_drawn, .. } = self
            && std::mem::take(is_drawn)
        {
            write(out, CLEAR);
        }
    }
}

/// Who does not want to read it does not have to.
fn write(out: &mut impl Write, text: &str) {
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// How much of it is over, and how the first of the rest stands: `1 of 3 over; Reboot of web_0: …; 1 more`.
pub(super) fn summary(over: usize, all: usize, rest: &[String]) -> String {
    let mut text = format!("{over} of {all} over");
    // Writing to a text cannot fail.
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

    fn told(mut progress: Progress<Vec<u8>>) -> String {
        progress.stand(&["a waits".to_owned(), "b waits".to_owned()], "0 of 2 over; a waits; 1 more");
        progress.say("advice");
        progress.stand(&[], "1 of 2 over; b waits");
        progress.end();
        progress.end();
        let (Progress::Lines(out) | Progress::Drawn { out, .. }) = progress;
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn elsewhere_each_change_has_its_line() {
        assert_eq!(told(Progress::Lines(Vec::new())), "a waits\nb waits\nadvice\n");
    }

    #[test]
    fn on_a_terminal_one_line_is_drawn_again() {
        let drawn = Progress::Drawn { out: Vec::new(), columns: 21, is_drawn: false };
        assert_eq!(
            told(drawn),
            "\r\x1b[K0 of 2 over; a waits\r\x1b[Kadvice\n\r\x1b[K1 of 2 over; b waits\r\x1b[K"
        );
    }

    #[test]
    fn a_summary_is_of_all_of_it() {
        let rest = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        assert_eq!(summary(1, 4, &rest), "1 of 4 over; a; 2 more");
        assert_eq!(summary(0, 1, &rest[..1]), "0 of 1 over; a");
        assert_eq!(summary(2, 3, &[]), "2 of 3 over");
    }
}
