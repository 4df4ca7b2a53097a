//! How long a connection waits, and for what.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::counts::Awaited;

/// One alarm for everything that a connection waits for. It is set anew only when it rings too early, or would ring too
/// late: a request that comes in time costs no timer.
pub(crate) struct Patience {
    pub(crate) since: Instant,
    pub(crate) awaited: Awaited,
    ends: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Patience {
    pub(crate) fn new(awaited: Awaited, span: Duration) -> Self {
        let since = Instant::now();
        let ends = since + span;
        Self { since, awaited, ends, alarm: Box::pin(tokio::time::sleep_until(ends)) }
    }

    /// Patience lasts that long from now on.
    pub(crate) fn give(&mut self, awaited: Awaited, span: Duration) {
        self.since = Instant::now();
        self.awaited = awaited;
        self.ends = self.since + span;
        if self.ends < self.alarm.deadline() {
            self.alarm.as_mut().reset(self.ends);
        }
    }

    /// Waits for something until patience ends.
    pub(crate) async fn during<T>(
        &mut self,
        something: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        tokio::pin!(something);
        loop {
            tokio::select! {
                biased;
                done = &mut something => return done,
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
