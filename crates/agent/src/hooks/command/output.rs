//! The output of a program: logged line by line, up to a limit.

use forewarn_agent_core::Task;

use crate::hooks::event::plain;
use crate::hooks::process::{OutputSink, Pipe};

/// Limits of the logged output of one program. The rest is counted.
pub(super) const LINES_MAX: u64 = 200;
pub(super) const BYTES_MAX: u64 = 64 * 1024;

/// Limit of a line. Longer lines are split.
pub(super) const LINE_BYTES_MAX: usize = 1_024;

/// Logs the output of one program.
pub(super) struct OutputLog<'a> {
    task: &'a Task,
    /// Incomplete lines of both pipes.
    partial: [Vec<u8>; 2],
    pub(super) logged: OutputCount,
    pub(super) dropped: OutputCount,
}

/// A number of lines and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutputCount {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl OutputCount {
    fn add(&mut self, bytes: usize) {
        self.lines += 1;
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}

impl OutputSink for OutputLog<'_> {
    fn write_output(&mut self, pipe: Pipe, bytes: &[u8]) {
        let pipe_index = index_of(pipe);
        for byte in bytes {
            if *byte == b'\n' {
                self.end_line(pipe_index);
                continue;
            }
            self.partial[pipe_index].push(*byte);
            if self.partial[pipe_index].len() >= LINE_BYTES_MAX {
                self.end_line(pipe_index);
            }
        }
    }
}

impl<'a> OutputLog<'a> {
    pub(super) fn new(task: &'a Task) -> Self {
        Self {
            task,
            partial: Default::default(),
            logged: OutputCount::default(),
            dropped: OutputCount::default(),
        }
    }

    /// Logs incomplete lines, and the amount of output that was dropped.
    pub(super) fn finish(&mut self) {
        for pipe in [Pipe::Output, Pipe::Errors] {
            if !self.partial[index_of(pipe)].is_empty() {
                self.end_line(index_of(pipe));
            }
        }
        let OutputCount { lines, bytes } = self.dropped;
        if lines > 0 {
            tracing::warn!(hook = %self.task.hook, event = %self.task.event, lines, bytes, "hook output truncated");
        }
    }

    fn end_line(&mut self, pipe_index: usize) {
        let line = std::mem::take(&mut self.partial[pipe_index]);
        if self.logged.lines >= LINES_MAX || self.logged.bytes >= BYTES_MAX {
            self.dropped.add(line.len());
            return;
        }
        self.logged.add(line.len());
        let text = plain(&String::from_utf8_lossy(&line));
        tracing::info!(hook = %self.task.hook, event = %self.task.event, phase = self.task.phase.as_str(), text = text.trim_end(), "hook output");
    }
}

const fn index_of(pipe: Pipe) -> usize {
    match pipe {
        Pipe::Output => 0,
        Pipe::Errors => 1,
    }
}
