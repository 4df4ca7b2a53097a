//! Options of the step on each host, common to `forewarn host` and `forewarn rollout`.

use anyhow::{Result, bail};
use clap::Args;
use forewarn_control::HostWorkEntry;
use forewarn_types::Span;

/// The step on each host.
#[derive(Args, Clone, Debug)]
pub(super) struct StepArgs {
    /// Work on each host, for the driver and for people, such as "kernel 6.12.9"
    #[arg(long, value_name = "TEXT")]
    pub(super) work: Option<String>,
    /// Take no step on the hosts themselves; work only on their machines
    #[arg(long, conflicts_with = "work")]
    pub(super) no_work: bool,
    /// Announced length of the interruption [default: 9s for an update]
    #[arg(long, value_name = "DURATION")]
    pub(super) duration: Option<Span>,
}

/// Words that `rollout --work` took before `--kind` did.
const KINDS: [&str; 4] = ["update", "reboot", "migrate", "network"];

impl StepArgs {
    pub(super) fn entry(self, hosts: Vec<String>) -> HostWorkEntry {
        let Self { work, no_work, duration } = self;
        HostWorkEntry { hosts, work, no_work, duration }
    }

    /// Rejects a kind of work as the text about it, unless the kind is given, too.
    pub(super) fn check_kind(&self, is_kind_given: bool) -> Result<()> {
        if let Some(kind) = self.work.as_deref().filter(|work| !is_kind_given && KINDS.contains(work)) {
            bail!(
                "`--work` is a text about the work\n  hint: `--kind {kind}` chooses the kind of work; \
                 `--kind {kind} --work {kind}` does so with that text"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_work_is_not_its_text() {
        let of = |work: &str| StepArgs { work: Some(work.to_owned()), no_work: false, duration: None };
        assert!(of("reboot").check_kind(false).unwrap_err().to_string().contains("--kind reboot"));
        assert!(of("reboot").check_kind(true).is_ok());
        assert!(of("kernel 6.12.9").check_kind(false).is_ok());
    }
}
