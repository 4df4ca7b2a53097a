//! A JSON log in memory, for tests.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::layer::SubscriberExt;

use crate::json_line::JsonLine;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs something, and gives the lines that it logs.
pub(crate) fn lines(act: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    let writer = log.clone();
    let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(layer.event_format(JsonLine));
    tracing::subscriber::with_default(subscriber, act);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}
