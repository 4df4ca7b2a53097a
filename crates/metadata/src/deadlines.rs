//! Deadlines of a connection.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::counts::Awaited;

/// One timer for every wait of a connection. It is reset only if it fires too early or would fire too late, so a
/// request that arrives in time costs no timer.
pub(crate) struct IoDeadline {
    pub(crate) since: Instant,
    pub(crate) awaited: Awaited,
    ends: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl IoDeadline {
    pub(crate) fn new(awaited: Awaited, span: Duration) -> Self {
        let since = Instant::now();
        let ends = since + span;
        Self { since, awaited, ends, alarm: Box::pin(tokio::time::sleep_until(ends)) }
    }

    /// Sets the deadline to `span` from now.
    pub(crate) fn set(&mut self, awaited: Awaited, span: Duration) {
        self.since = Instant::now();
        self.awaited = awaited;
        self.ends = self.since + span;
        if self.ends < self.alarm.deadline() {
            self.alarm.as_mut().reset(self.ends);
        }
    }

    /// Runs an operation until the deadline.
    pub(crate) async fn run<T>(&mut self, operation: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::pin!(operation);
        loop {
            tokio::select! {
                biased;
                done = &mut operation => return done,
                () = self.alarm.as_mut() => {
                    if Instant::now() >= self.ends {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    self.alarm.as_mut().reset(self.ends);
                }
            }
        }
    }
}
