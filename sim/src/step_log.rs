//! The history of a simulation in words.

/// The steps of a simulation in words, if they are wanted.
#[derive(Debug, Default)]
pub(crate) struct StepLog {
    lines: Option<Vec<String>>,
}

impl StepLog {
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { lines: is_wanted.then(Vec::new) }
    }

    pub(crate) fn add(&mut self, now: u64, place: &str, step: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>8}.{:03} s  {place:<10}  {}", now / 1_000, now % 1_000, step()));
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}
