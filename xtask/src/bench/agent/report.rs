//! The report of the agent benchmark, and its goals.

use std::time::Duration;

use crate::steps::Outcome;

const PROGRAM_MIB_MAX: f64 = 6.0;
const RESIDENT_MIB_MAX: f64 = 10.0;
const CORE_PERCENT_MAX: f64 = 0.1;
const P99_MILLISECONDS_MAX: f64 = 50.0;

pub(super) struct AgentReport {
    pub(super) setting: String,
    pub(super) program_bytes: u64,
    pub(super) rest: Rest,
    pub(super) latency: HookLatency,
}

/// An agent without events.
pub(super) struct Rest {
    pub(super) time: Duration,
    pub(super) polls: u64,
    /// CPU time.
    pub(super) busy: Duration,
    /// None where they cannot be counted.
    pub(super) instructions: Option<u64>,
    pub(super) resident_bytes: u64,
}

/// The time from the response with an event to the first line of its hook.
pub(super) struct HookLatency {
    pub(super) events: usize,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) max: Duration,
    /// After all events.
    pub(super) resident_bytes: u64,
}

impl HookLatency {
    /// None without times.
    pub(super) fn of(mut times: Vec<Duration>, resident_bytes: u64) -> Option<Self> {
        times.sort();
        let last = times.len().checked_sub(1)?;
        let at = |percent: usize| times[(times.len() * percent).div_ceil(100).saturating_sub(1).min(last)];
        Some(Self { events: times.len(), p50: at(50), p99: at(99), max: times[last], resident_bytes })
    }
}

/// A figure and its goal.
struct AgentGoal {
    what: String,
    value: f64,
    max: f64,
    unit: &'static str,
}

impl AgentGoal {
    fn is_met(&self) -> bool {
        self.value < self.max
    }

    fn line(&self) -> String {
        let met = if self.is_met() { "met" } else { "MISSED" };
        let Self { what, value, max, unit } = self;
        format!("- {what}: {value:.3} {unit} (goal: less than {max} {unit}): {met}")
    }
}

impl AgentReport {
    fn goals(&self) -> Vec<AgentGoal> {
        let Self { rest, latency, .. } = self;
        let goal = |what: &str, value, max, unit| AgentGoal { what: what.to_owned(), value, max, unit };
        vec![
            goal("size of the program", mib(self.program_bytes), PROGRAM_MIB_MAX, "MiB"),
            goal("resident memory at rest", mib(rest.resident_bytes), RESIDENT_MIB_MAX, "MiB"),
            goal("resident memory after the events", mib(latency.resident_bytes), RESIDENT_MIB_MAX, "MiB"),
            goal("share of a core at one poll a second", rest.percent(), CORE_PERCENT_MAX, "%"),
            goal(
                "announcement to the first line of a hook, p99",
                milliseconds(latency.p99),
                P99_MILLISECONDS_MAX,
                "ms",
            ),
        ]
    }

    pub(super) fn text(&self) -> String {
        let Self { setting, rest, latency, .. } = self;
        let microseconds = rest.busy.as_secs_f64() * 1e6 / precise(rest.polls);
        let instructions = rest.instructions.map_or_else(
            || "not counted here".to_owned(),
            |count| format!("{:.0}", precise(count) / precise(rest.polls)),
        );
        let head = format!(
            "Measured on: {setting}.\n\n\
             | at rest | polls | CPU µs per poll | instructions per poll |\n|---|---:|---:|---:|\n\
             | {:.0} s | {} | {microseconds:.0} | {instructions} |\n\n\
             | announcement to hook | events | p50 ms | p99 ms | max ms |\n|---|---:|---:|---:|---:|\n\
             | long poll | {} | {:.2} | {:.2} | {:.2} |\n\n",
            rest.time.as_secs_f64(),
            rest.polls,
            latency.events,
            milliseconds(latency.p50),
            milliseconds(latency.p99),
            milliseconds(latency.max),
        );
        head + &self.goals().iter().map(AgentGoal::line).collect::<Vec<_>>().join("\n")
    }

    /// Fails where a goal is missed.
    pub(super) fn judge(&self) -> Outcome {
        let missed: Vec<_> = self.goals().iter().filter(|goal| !goal.is_met()).map(AgentGoal::line).collect();
        if missed.is_empty() { Outcome::Passed } else { Outcome::Failed(missed.join("; ")) }
    }
}

impl Rest {
    fn percent(&self) -> f64 {
        self.busy.as_secs_f64() / self.time.as_secs_f64() * 100.0
    }
}

fn mib(bytes: u64) -> f64 {
    precise(bytes) / 1_048_576.0
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Exact for the numbers here.
fn precise(number: u64) -> f64 {
    let (high, low) = (number >> 32, number & u64::from(u32::MAX));
    let part = |half: u64| u32::try_from(half).map_or(f64::INFINITY, f64::from);
    part(high) * 4_294_967_296.0 + part(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(p99: u64) -> AgentReport {
        let times = (0..100).map(|number| Duration::from_millis(if number < 98 { 2 } else { p99 })).collect();
        let rest = Rest {
            time: Duration::from_secs(100),
            polls: 100,
            busy: Duration::from_millis(50),
            instructions: None,
            resident_bytes: 4 << 20,
        };
        let latency = HookLatency::of(times, 5 << 20).unwrap();
        AgentReport { setting: "A".to_owned(), program_bytes: 3 << 20, rest, latency }
    }

    #[test]
    fn figures_are_printed_and_judged() {
        assert_eq!(report(49).judge(), Outcome::Passed);
        assert!(
            matches!(report(50).judge(), Outcome::Failed(why) if why.contains("p99") && why.contains("MISSED"))
        );
        let text = report(49).text();
        assert!(text.contains("| 100 s | 100 | 500 | not counted here |"), "{text}");
        assert!(text.contains("| long poll | 100 | 2.00 | 49.00 | 49.00 |"), "{text}");
        assert!(text.contains("share of a core at one poll a second: 0.050 %"), "{text}");
    }

    #[test]
    fn without_times_there_is_no_latency() {
        assert!(HookLatency::of(Vec::new(), 0).is_none());
    }
}
