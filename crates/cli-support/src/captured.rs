//! A JSON log in memory, for tests.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::layer::SubscriberExt;

use crate::json_line::JsonLine;

#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a closure, and returns the lines that it logs.
pub(crate) fn lines(act: impl FnOnce()) -> Vec<String> {
    let log = CapturedLog::default();
    let writer = log.clone();
    let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(layer.event_format(JsonLine));
    tracing::subscriber::with_default(subscriber, act);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}
