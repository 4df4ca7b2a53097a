//! What a server says while it runs, on standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

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

/// How much is said, to be changed while it is.
#[derive(Clone, Debug)]
pub(super) struct Volume(reload::Handle<LevelFilter, Registry>);

impl Volume {
    /// From now on, that much.
    pub(super) fn set(&self, detail: Detail) {
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

/// From now on, log lines look like that.
pub(super) fn start(format: Format, detail: Detail) -> Volume {
    let (filter, handle) = reload::Layer::new(LevelFilter::from(detail));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    // A line that cannot be written is lost. To say so in another one would end the thread that tried: the disk may be full.
    let lines = lines.log_internal_errors(false);
    let all = tracing_subscriber::registry().with(filter);
    match format {
        Format::Text => all.with(lines.with_ansi(colours)).init(),
        Format::Json => all.with(lines.json().flatten_event(true)).init(),
    }
    Volume(handle)
}
