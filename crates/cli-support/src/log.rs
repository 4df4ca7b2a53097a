//! What a program says while it runs, on standard error.
//!
//! Where standard error is the journal of systemd, a line begins with its priority (`<6>`) and has neither time nor level: the
//! journal keeps both itself.
//!
//! With [`Format::Json`] every line is one object, panics and the last words of a program that fails included.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use serde::Deserialize;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Format as Lines, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::json_line::{JsonLine, object};
use crate::panic::log_panics;
use crate::visible::{is_invisible, json, log_line, visible};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// What went wrong.
    Error,
    /// And what may go wrong.
    Warn,
    /// And what the program does.
    #[default]
    Info,
    /// And how.
    Debug,
}

/// Finds the format that settings ask for, as `format` in their table `log`, also where something else is wrong with them.
#[must_use]
pub fn log_format(settings: &str) -> Format {
    #[derive(Default, Deserialize)]
    struct Log {
        #[serde(default)]
        format: Format,
    }
    let settings: toml::Table = settings.parse().unwrap_or_default();
    let log = settings.get("log").cloned().map(toml::Value::try_into::<Log>);
    log.and_then(Result::ok).unwrap_or_default().format
}

/// How much is said, to be changed while it is.
#[derive(Clone, Debug)]
pub struct Volume(reload::Handle<LevelFilter, Registry>);

impl Volume {
    /// From now on, that much.
    pub fn set(&self, detail: Detail) {
        // It is an error if nothing is logged any more: then it does not matter how much.
        drop(self.0.reload(LevelFilter::from(detail)));
    }
}

impl From<Detail> for LevelFilter {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::Error => Self::ERROR,
            Detail::Warn => Self::WARN,
            Detail::Info => Self::INFO,
            Detail::Debug => Self::DEBUG,
        }
    }
}

/// Set once the log has begun as JSON: nothing else may be written beside it.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes the last words of a program that fails to standard error: an event of a JSON log, else a line for people.
pub fn fail(program: &str, problem: &str) {
    if IS_JSON.load(Ordering::Relaxed) {
        tracing::error!(error = problem, "{program} cannot go on");
    } else {
        // A reader who has closed the pipe does not want to know.
        writeln!(std::io::stderr(), "{program}: {}", visible(problem)).ok();
    }
}

/// Writes to standard output, while a log may go to the same place: one object beside a JSON log, else a text for people.
/// It is not part of the log, and no level leaves it out.
pub fn print(text: &str, message: &str, members: &[(&str, &str)]) {
    let is_json = IS_JSON.load(Ordering::Relaxed);
    let text = if is_json { json(&object(message, members)) + "\n" } else { visible(text) };
    // A reader who has closed the pipe does not end a server.
    std::io::stdout().lock().write_all(text.as_bytes()).ok();
}

/// Starts the log of a process. Panics are part of it.
pub fn start(format: Format, detail: Detail) -> Volume {
    let (filter, handle) = reload::Layer::new(LevelFilter::from(detail));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let writer = move || VisibleLines { out: std::io::stderr(), format };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false);
    // A line that cannot be written is lost. To say so in another one would end the thread that tried: the disk may be full.
    let lines = lines.log_internal_errors(false);
    let all = tracing_subscriber::registry().with(filter);
    let kept = Lines::default().with_target(false).with_ansi(false).without_time();
    match (format, is_journal()) {
        (Format::Text, false) => all.with(lines.with_ansi(colours)).init(),
        (Format::Json, false) => all.with(lines.event_format(JsonLine)).init(),
        (Format::Text, true) => {
            all.with(lines.with_ansi(false).event_format(Ranked(kept.with_level(false)))).init();
        }
        (Format::Json, true) => all.with(lines.event_format(Ranked(JsonLine))).init(),
    }
    IS_JSON.store(format == Format::Json, Ordering::Relaxed);
    log_panics();
    Volume(handle)
}

/// Writes lines in which no character is invisible, wherever their texts come from. A line is written in one piece.
struct VisibleLines<W> {
    out: W,
    format: Format,
}

impl<W: io::Write> io::Write for VisibleLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Ok(line) = str::from_utf8(bytes) else { return self.out.write(bytes) };
        if !line.chars().any(is_invisible) {
            return self.out.write(bytes);
        }
        let shown = match self.format {
            Format::Text => log_line(line),
            Format::Json => json(line),
        };
        self.out.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether standard error is the stream that systemd says it has connected to its journal.
fn is_journal() -> bool {
    let Some(stream) = std::env::var("JOURNAL_STREAM").ok() else { return false };
    let Ok(stat) = rustix::fs::fstat(rustix::stdio::stderr()) else { return false };
    stream == format!("{}:{}", stat.st_dev, stat.st_ino)
}

/// Lines that begin with their priority.
struct Ranked<F>(F);

impl<S, N, F> FormatEvent<S, N> for Ranked<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        self.0.format_event(context, Writer::new(&mut text), event)?;
        let priority = priority(*event.metadata().level());
        text.lines().try_for_each(|line| writeln!(writer, "<{priority}>{line}"))
    }
}

/// The number by which syslog calls a level.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_found_in_settings_that_are_wrong_otherwise() {
        assert_eq!(log_format("log.format = 'json'\nwrong = 1"), Format::Json);
        assert_eq!(log_format("[log]\nformat = 'json'\nlevel = 'loud'"), Format::Json);
        for text in ["", "log = 1", "log.format = 'xml'", "log.format = 'json'\n = ", "log.level = 'info'"] {
            assert_eq!(log_format(text), Format::Text, "{text}");
        }
    }

    #[test]
    fn a_line_of_the_log_has_no_invisible_character() {
        let written = |format, line: &[u8]| {
            let mut lines = VisibleLines { out: Vec::new(), format };
            lines.write_all(line).unwrap();
            lines.out
        };
        assert_eq!(written(Format::Text, "a\u{202e}b\n".as_bytes()), b"a\\u{202e}b\n");
        assert_eq!(written(Format::Json, "{\"a\":\"\u{202e}\"}\n".as_bytes()), b"{\"a\":\"\\u202e\"}\n");
        assert_eq!(written(Format::Text, "größe\n".as_bytes()), "größe\n".as_bytes());
        assert_eq!(written(Format::Text, b"\xff\n"), b"\xff\n");
    }
}
