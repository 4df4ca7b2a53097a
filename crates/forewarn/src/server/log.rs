//! What a server says while it runs, on standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing::Level;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Detail {
    /// What went wrong.
    Error,
    /// And what may go wrong.
    Warn,
    /// And what the server does.
    #[default]
    Info,
    /// And how.
    Debug,
}

/// From now on, log lines look like that.
pub(super) fn start(format: Format, detail: Detail) {
    let level = match detail {
        Detail::Error => Level::ERROR,
        Detail::Warn => Level::WARN,
        Detail::Info => Level::INFO,
        Detail::Debug => Level::DEBUG,
    };
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines =
        tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false);
    // A line that cannot be written is lost. To say so in another one would end the thread that tried: the disk may be full.
    let lines = lines.log_internal_errors(false);
    match format {
        Format::Text => lines.with_ansi(colours).init(),
        Format::Json => lines.json().flatten_event(true).init(),
    }
}
