//! The progress of a rollout in numbers and in a sentence.

use forewarn_control::RolloutView;

/// The number of hosts with completed work.
pub(super) fn worked_on(view: &RolloutView) -> usize {
    view.done.len() + view.failed.len()
}

/// The number of all hosts of the rollout.
pub(super) fn all(view: &RolloutView) -> usize {
    worked_on(view) + view.skipped.len() + view.current_hosts.len() + view.waiting.len()
}

/// `9 of 20 hosts`.
pub(super) fn progress(view: &RolloutView) -> String {
    format!("{} of {} hosts", worked_on(view), all(view))
}

/// The state of a rollout in a sentence, with a hint if the rollout waits for an operator.
pub(super) fn sentence(view: &RolloutView) -> String {
    let needs_operator = ["paused", "paused-by-failures", "waits-for-confirmation", "waits-for-health"];
    let hint = if needs_operator.contains(&view.state.as_str()) {
        format!("\nhint: forewarn rollout show {0}, then forewarn rollout resume {0}", view.id)
    } else {
        String::new()
    };
    format!("Rollout {}: {}; {}{hint}", view.id, progress(view), view.text)
}
