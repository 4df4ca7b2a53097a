//! The log of a program, on standard error.
//!
//! If standard error is the systemd journal, a line begins with its priority (`<6>`) and has neither time nor level:
//! the journal stores both itself.
//!
//! With [`Format::Json`] every line is one object, including panics and the final error of a failing program.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use serde::Deserialize;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Format as LineFormat, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::json_line::{JsonLine, object};
use crate::panic::log_panics;
use crate::visible::{is_invisible, json, log_line, visible};

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Plain text
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// The log level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Errors
    Error,
    /// Errors and warnings
    Warn,
    /// Also normal operation
    #[default]
    Info,
    /// Also details
    Debug,
}

/// The format in settings (`format` in the table `log`), even if other settings are invalid.
#[must_use]
pub fn log_format(settings: &str) -> Format {
    #[derive(Default, Deserialize)]
    struct LogSettings {
        #[serde(default)]
        format: Format,
    }
    let settings: toml::Table = settings.parse().unwrap_or_default();
    let log = settings.get("log").cloned().map(toml::Value::try_into::<LogSettings>);
    log.and_then(Result::ok).unwrap_or_default().format
}

/// A handle to change the log level of a running program.
#[derive(Clone, Debug)]
pub struct LevelHandle(reload::Handle<LevelFilter, Registry>);

impl LevelHandle {
    /// Sets the log level.
    pub fn set(&self, detail: Detail) {
        // Fails only if there is no log any more, and then the level does not matter.
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

/// True once the log has started as JSON: then standard error has JSON lines only.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes the final error of a failing program to standard error: an event of a JSON log, otherwise plain text.
pub fn fail(program: &str, error: &str) {
    if IS_JSON.load(Ordering::Relaxed) {
        tracing::error!(program, error, "program failed");
    } else {
        // Ignores a closed pipe.
        writeln!(std::io::stderr(), "{program}: {}", visible(error)).ok();
    }
}

/// Writes to standard output, which a log may share: one object if the log is JSON, otherwise plain text. It is not
/// part of the log and has no level.
pub fn print(text: &str, message: &str, members: &[(&str, &str)]) {
    let is_json = IS_JSON.load(Ordering::Relaxed);
    let text = if is_json { json(&object(message, members)) + "\n" } else { visible(text) };
    // Ignores a closed pipe: it must not stop a server.
    std::io::stdout().lock().write_all(text.as_bytes()).ok();
}

/// Starts the log of a process. Panics are part of it.
pub fn start(format: Format, detail: Detail) -> LevelHandle {
    let (filter, handle) = reload::Layer::new(LevelFilter::from(detail));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let writer = move || VisibleLines { out: std::io::stderr(), format };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false);
    // Drops a line that cannot be written, for example to a full disk. Reporting it would panic the logging thread.
    let lines = lines.log_internal_errors(false);
    let all = tracing_subscriber::registry().with(filter);
    let plain = LineFormat::default().with_target(false).with_ansi(false).without_time();
    match (format, is_journal()) {
        (Format::Text, false) => all.with(lines.with_ansi(colours)).init(),
        (Format::Json, false) => all.with(lines.event_format(JsonLine)).init(),
        (Format::Text, true) => {
            all.with(lines.with_ansi(false).event_format(Ranked(plain.with_level(false)))).init();
        }
        (Format::Json, true) => all.with(lines.event_format(Ranked(JsonLine))).init(),
    }
    IS_JSON.store(format == Format::Json, Ordering::Relaxed);
    log_panics();
    LevelHandle(handle)
}

/// A writer that escapes invisible characters. A line is written in one piece.
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
        let escaped = match self.format {
            Format::Text => log_line(line),
            Format::Json => json(line),
        };
        self.out.write_all(escaped.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns true if standard error is connected to the systemd journal.
fn is_journal() -> bool {
    let Some(stream) = std::env::var("JOURNAL_STREAM").ok() else { return false };
    let Ok(stat) = rustix::fs::fstat(rustix::stdio::stderr()) else { return false };
    stream == format!("{}:{}", stat.st_dev, stat.st_ino)
}

/// A format whose lines begin with their priority.
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

/// The syslog number of a level.
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
    fn the_format_is_found_in_invalid_settings() {
        assert_eq!(log_format("log.format = 'json'\nwrong = 1"), Format::Json);
        assert_eq!(log_format("[log]\nformat = 'json'\nlevel = 'loud'"), Format::Json);
        for text in ["", "log = 1", "log.format = 'xml'", "log.format = 'json'\n = ", "log.level = 'info'"] {
            assert_eq!(log_format(text), Format::Text, "{text}");
        }
    }

    /// promise: S6
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
