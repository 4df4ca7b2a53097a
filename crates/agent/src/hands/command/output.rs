//! What a program says, line by line to the log, and not more than anybody would read.

use forewarn_agent_core::Task;

use crate::hands::event::plain;
use crate::hands::process::{Listener, Pipe};

/// Lines and bytes of one program that are written to the log; the rest is counted.
pub(super) const LINES_MAX: u64 = 200;
pub(super) const BYTES_MAX: u64 = 64 * 1024;

/// A line that is longer is more than one.
pub(super) const LINE_BYTES_MAX: usize = 1_024;

/// What one program says.
pub(super) struct Output<'a> {
    task: &'a Task,
    /// Lines that have begun, of either pipe.
    begun: [Vec<u8>; 2],
    pub(super) written: Count,
    pub(super) left_out: Count,
}

/// So many lines, so many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: usize) {
        self.lines += 1;
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}

impl Listener for Output<'_> {
    fn hear(&mut self, pipe: Pipe, bytes: &[u8]) {
        let which = place(pipe);
        for byte in bytes {
            if *byte == b'\n' {
                self.end_line(which);
                continue;
            }
            self.begun[which].push(*byte);
            if self.begun[which].len() >= LINE_BYTES_MAX {
                self.end_line(which);
            }
        }
    }
}

impl<'a> Output<'a> {
    pub(super) fn new(task: &'a Task) -> Self {
        Self { task, begun: Default::default(), written: Count::default(), left_out: Count::default() }
    }

    /// It says nothing more.
    pub(super) fn finish(&mut self) {
        for pipe in [Pipe::Output, Pipe::Errors] {
            if !self.begun[place(pipe)].is_empty() {
                self.end_line(place(pipe));
            }
        }
        let Count { lines, bytes } = self.left_out;
        if lines > 0 {
            tracing::warn!(hook = %self.task.hook, event = %self.task.event, lines, bytes, "a hook has said more than is written here");
        }
    }

    fn end_line(&mut self, which: usize) {
        let line = std::mem::take(&mut self.begun[which]);
        if self.written.lines >= LINES_MAX || self.written.bytes >= BYTES_MAX {
            self.left_out.add(line.len());
            return;
        }
        self.written.add(line.len());
        let text = plain(&String::from_utf8_lossy(&line));
        tracing::info!(hook = %self.task.hook, event = %self.task.event, phase = self.task.phase.as_str(), text = text.trim_end(), "a hook says");
    }
}

const fn place(pipe: Pipe) -> usize {
    match pipe {
        Pipe::Output => 0,
        Pipe::Errors => 1,
    }
}
