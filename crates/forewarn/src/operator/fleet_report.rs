//! The differences that `fleet apply` prints, and the error if some of them were not applied.

use anyhow::{Result, bail};
use forewarn_control::{DifferenceState, DifferenceView};

/// Differences that were counted while they were printed.
#[derive(Default)]
pub(super) struct DifferenceCounts {
    all: usize,
    skipped: usize,
    surplus: usize,
}

impl DifferenceCounts {
    pub(super) fn add(&mut self, differences: &[DifferenceView]) {
        let count = |state| differences.iter().filter(|one| one.state == state).count();
        self.all += differences.len();
        self.skipped += count(DifferenceState::Skipped);
        self.surplus += count(DifferenceState::Surplus);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Fails if differences were not applied.
    pub(super) fn check(&self) -> Result<()> {
        let Self { all, skipped, surplus } = self;
        if *skipped > 0 {
            bail!(
                "{} of {all} differences not applied: the file has machines on other hosts than the fleet\n  hint: if \
                 they were moved outside of Forewarn, `forewarn fleet apply --moves` records it; `forewarn vm \
                 redeploy` moves a machine",
                skipped + surplus
            );
        }
        if *surplus > 0 {
            bail!(
                "{surplus} of {all} differences not applied: scale sets have more instances than in the file\n  hint: \
                 `forewarn fleet apply --prune` deletes them, --forget forgets them, with everything else that is not \
                 in the file; `forewarn scaleset scale` removes instances of one scale set"
            );
        }
        Ok(())
    }
}

/// Printed if there are no differences.
pub(super) const SAME: &str = "The fleet already matches the file.\n";

pub(super) fn lines(differences: &[DifferenceView]) -> String {
    if differences.is_empty() {
        return SAME.to_owned();
    }
    let line = |difference: &DifferenceView| {
        let state = match difference.state {
            DifferenceState::Done | DifferenceState::Planned => "",
            DifferenceState::Later => {
                "  (pending: apply the file again when the announced events are completed)"
            }
            DifferenceState::Skipped => "  (not applied: --moves records it)",
            DifferenceState::Surplus => "  (not applied: --prune deletes the surplus, --forget forgets it)",
        };
        format!("{}{state}\n", difference.text)
    };
    differences.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use forewarn_control::FleetReport;

    use super::*;

    #[test]
    fn differences_are_printed_one_per_line() {
        let json = r#"{"differences":[{"text":"+ host h3","state":"done"},{"text":"- host h1","state":"later"},
              {"text":"~ solo: host h1 -> h2","state":"skipped"},{"text":"~ web: instances 3 -> 2","state":"surplus"}]}"#;
        let report: FleetReport = serde_json::from_str(json).unwrap();
        assert_eq!(
            lines(&report.differences),
            "+ host h3\n- host h1  (pending: apply the file again when the announced events are completed)\n\
             ~ solo: host h1 -> h2  (not applied: --moves records it)\n\
             ~ web: instances 3 -> 2  (not applied: --prune deletes the surplus, --forget forgets it)\n"
        );
        assert_eq!(lines(&[]), "The fleet already matches the file.\n");
    }
}
