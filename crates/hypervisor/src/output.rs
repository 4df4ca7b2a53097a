//! Standard error of driver programs, as log events that name the action.
//!
//! It is always read to its end, so that a program never blocks on it; the logged part is limited. One separate thread
//! reads for all programs, so that a program with much output takes no time from the driver.
//!
//! ```text
//!   program ──pipe──▶ thread `driver-output` ──▶ lines ──allowance of the action──▶ log
//!                                                  └──the rest──▶ counted, logged once
//! ```

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::request::DriverRequest;
use crate::text::sanitized;

/// Lines of standard error that are logged for one action, over all runs.
pub const OUTPUT_LINES_MAX: u64 = 200;

/// Bytes of standard error that are logged for one action, over all runs.
pub const OUTPUT_BYTES_MAX: u64 = 32 * 1024;

/// Bytes of one line that are logged.
pub const OUTPUT_LINE_BYTES_MAX: usize = 1024;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// An amount of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    lines: u64,
    bytes: u64,
}

/// The output of one action that may still be logged, shared by all runs for the action.
#[derive(Debug)]
pub struct OutputAllowance(Mutex<Amount>);

impl Default for OutputAllowance {
    fn default() -> Self {
        Self(Mutex::new(Amount { lines: OUTPUT_LINES_MAX, bytes: OUTPUT_BYTES_MAX }))
    }
}

impl OutputAllowance {
    /// Takes a line of that many bytes out of the allowance; false, if it is used up.
    fn take(&self, bytes: usize) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = left.lines.checked_sub(1).zip(left.bytes.checked_sub(bytes));
        match after {
            Some((lines, bytes)) => *left = Amount { lines, bytes },
            // The first line that does not fit ends the allowance: the log has a contiguous beginning.
            None => *left = Amount::default(),
        }
        after.is_some()
    }
}

/// Logs the output of a pipe up to its end. The returned receiver completes at the end.
pub(crate) fn relay(
    pipe: OwnedFd,
    request: &DriverRequest,
    allowance: &Arc<OutputAllowance>,
) -> oneshot::Receiver<()> {
    let (end, ended) = oneshot::channel::<()>();
    let mut lines = Lines::new(request.clone(), Arc::clone(allowance));
    let reading = async move {
        read(pipe, &mut lines).await;
        lines.finish();
        drop(end);
    };
    match reader() {
        Some(reader) => drop(reader.spawn(reading)),
        None => drop(tokio::spawn(reading)),
    }
    ended
}

/// The runtime of the reading thread; `None` if the system cannot start a thread.
fn reader() -> Option<&'static Handle> {
    static READER: OnceLock<Option<Handle>> = OnceLock::new();
    let start = || {
        let runtime = Builder::new_current_thread().enable_io().build().ok()?;
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new().name("driver-output".to_owned());
        thread.spawn(move || runtime.block_on(std::future::pending::<()>())).ok()?;
        Some(handle)
    };
    READER.get_or_init(start).as_ref()
}

async fn read(pipe: OwnedFd, lines: &mut Lines) {
    let mut pipe = match Receiver::from_owned_fd(pipe) {
        Ok(pipe) => pipe,
        Err(error) => return lines.cannot_read(&error),
    };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match pipe.read(&mut piece).await {
            Ok(0) => return,
            Ok(count) => lines.add(&piece[..count]),
            Err(error) => return lines.cannot_read(&error),
        }
    }
}

/// The output of one program, line by line.
struct Lines {
    request: DriverRequest,
    allowance: Arc<OutputAllowance>,
    /// The beginning of the line that is not complete yet.
    line: Vec<u8>,
    /// True if a part of that line was dropped already.
    is_cut: bool,
    dropped: Amount,
}

impl Lines {
    fn new(request: DriverRequest, allowance: Arc<OutputAllowance>) -> Self {
        Self { request, allowance, line: Vec::new(), is_cut: false, dropped: Amount::default() }
    }

    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_complete) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                Some(_) | None => (part, false),
            };
            let room = OUTPUT_LINE_BYTES_MAX.saturating_sub(self.line.len());
            let (kept, rest) = text.split_at(text.len().min(room));
            self.line.extend_from_slice(kept);
            if !rest.is_empty() {
                self.is_cut = true;
                self.drop_bytes(rest.len());
            }
            if is_complete {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let is_logged = self.line.is_empty() || self.allowance.take(self.line.len());
        if is_logged && !self.line.is_empty() {
            let DriverRequest { action, tenant, machine, host, verb, .. } = &self.request;
            let text = sanitized(&String::from_utf8_lossy(&self.line), 4 * OUTPUT_LINE_BYTES_MAX);
            let verb = verb.as_str();
            tracing::info!(
                action,
                tenant,
                machine,
                host,
                verb,
                text,
                "driver program wrote to standard error"
            );
        } else {
            self.drop_bytes(self.line.len());
        }
        if self.is_cut || !is_logged {
            self.dropped.lines += 1;
        }
        self.is_cut = false;
        self.line.clear();
    }

    fn drop_bytes(&mut self, count: usize) {
        self.dropped.bytes = self.dropped.bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }

    /// The program, and every other process that holds the pipe, has closed it.
    fn finish(&mut self) {
        if !self.line.is_empty() || self.is_cut {
            self.end_line();
        }
        let Amount { lines, bytes } = self.dropped;
        if lines > 0 {
            let DriverRequest { action, tenant, machine, host, verb, .. } = &self.request;
            let verb = verb.as_str();
            tracing::warn!(
                action,
                tenant,
                machine,
                host,
                verb,
                lines,
                bytes,
                "driver program wrote too much to standard error: the rest was dropped"
            );
        }
    }

    fn cannot_read(&self, error: &std::io::Error) {
        let DriverRequest { action, machine, host, .. } = &self.request;
        tracing::warn!(action, machine, host, %error, "cannot read the standard error of a driver program");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Verb;

    fn lines() -> Lines {
        let request = DriverRequest {
            action: "0a".to_owned(),
            verb: Verb::Stop,
            tenant: Some("web".to_owned()),
            machine: Some("web_0".to_owned()),
            host: "h1".to_owned(),
            to: None,
            cause: None,
            work: None,
            seconds: None,
            boots: Some(1),
        };
        Lines::new(request, Arc::default())
    }

    fn left(lines: &Lines) -> Amount {
        *lines.allowance.0.lock().unwrap()
    }

    /// promise: S6
    #[test]
    fn lines_are_found_wherever_the_pieces_end() {
        for size in 1..9 {
            let mut lines = lines();
            b"one\n\ntwo\nthree".chunks(size).for_each(|piece| lines.add(piece));
            lines.finish();
            let used = Amount { lines: OUTPUT_LINES_MAX - 3, bytes: OUTPUT_BYTES_MAX - 11 };
            assert_eq!((left(&lines), lines.dropped), (used, Amount::default()), "{size}");
        }
    }

    /// promise: S6
    #[test]
    fn dropped_output_is_counted() {
        let mut long = lines();
        long.add(&[b'x'; 10_000]);
        long.add(b"\n");
        long.finish();
        let kept = u64::try_from(OUTPUT_LINE_BYTES_MAX).unwrap();
        assert_eq!(long.dropped, Amount { lines: 1, bytes: 10_000 - kept });

        let mut many = lines();
        (0..OUTPUT_LINES_MAX + 7).for_each(|_| many.add(b"a line\n"));
        many.finish();
        assert_eq!(many.dropped, Amount { lines: 7, bytes: 42 });
        // The next run for the same action has no allowance left.
        let mut again = Lines { allowance: Arc::clone(&many.allowance), ..lines() };
        again.add(b"more");
        again.finish();
        assert_eq!(again.dropped, Amount { lines: 1, bytes: 4 });

        let mut large = lines();
        (0..40).for_each(|_| large.add(&[&[b'x'; 1_000][..], b"\n"].concat()));
        large.finish();
        assert_eq!(large.dropped, Amount { lines: 8, bytes: 8_000 });
    }
}
