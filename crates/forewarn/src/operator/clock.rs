//! `forewarn clock`: the clock of the server.

use std::str::FromStr;

use anyhow::{Result, bail};
use clap::Subcommand;
use forewarn_control::{ClockChange, ClockView};
use forewarn_types::{Moment, Span, show_duration};

use super::clock_report::ClockReport;
use super::event_id::EventIdPrefix;
use super::sentences;
use super::session::Session;
use super::table::Table;
use crate::clock_speed::parse_speed;

const EXAMPLES: &str = "\
Examples:
  forewarn clock advance 15m            events that are due on the way start, each at its own time
  forewarn clock advance 9m50s";

const UNTIL_EXAMPLES: &str = "\
Examples:
  forewarn clock until 2026-01-01T00:15:00Z
  forewarn clock until 28512AF7             the earliest start of an event, by a unique prefix of its id";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the clock and the time until the next change
    Show,
    /// Freeze the clock; only `advance`, `until` and `next` move it
    Freeze,
    /// Advance the clock, and report the events that appeared, started or ended
    #[command(before_help = EXAMPLES)]
    Advance {
        /// Duration, such as 90s, 15m, 9m50s, 2h or 7d
        duration: Span,
    },
    /// Advance the clock to a time, or to the earliest start of an event
    #[command(before_help = UNTIL_EXAMPLES)]
    Until {
        /// Time (RFC 3339), or event id or a unique prefix: its NotBefore
        #[arg(value_name = "TIME|EVENT")]
        end: ClockTarget,
    },
    /// Advance the clock to the next change that a machine can see, and report it
    Next {
        /// Limit of the advance [default: none]
        #[arg(long, value_name = "DURATION")]
        within: Option<Span>,
    },
    /// Run the clock at a multiple of real time
    Scale {
        /// Speed: `frozen`, `real`, or a factor such as `60` or `60x`
        #[arg(value_name = "SPEED", value_parser = parse_speed)]
        speed: u32,
    },
}

/// The end of an advance: a time, or the earliest start of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClockTarget {
    Time(Moment),
    Event(EventIdPrefix),
}

/// A text that is neither a time nor the prefix of an event id.
#[derive(Debug, thiserror::Error)]
#[error(
    "invalid time or event: {0:?}\n  hint: write a time such as 2026-01-01T00:15:00Z, or an id of `forewarn event ls`"
)]
pub(crate) struct InvalidClockTarget(String);

/// Position of the first hyphen in an event id. A date has an earlier one.
const HYPHEN: usize = 8;

impl FromStr for ClockTarget {
    type Err = InvalidClockTarget;

    fn from_str(text: &str) -> Result<Self, InvalidClockTarget> {
        if let Ok(time) = text.parse() {
            return Ok(Self::Time(time));
        }
        let is_id = text.find('-').is_none_or(|hyphen| hyphen == HYPHEN);
        let event = is_id.then(|| text.parse().ok()).flatten();
        event.map(Self::Event).ok_or_else(|| InvalidClockTarget(text.to_owned()))
    }
}

impl ClockTarget {
    fn time(&self, session: &Session) -> Result<Moment> {
        match self {
            Self::Time(time) => Ok(*time),
            Self::Event(prefix) => {
                let event = prefix.resolve(session)?;
                match event.not_before {
                    Some(not_before) => Ok(not_before),
                    None => bail!("event {} has already started", event.id),
                }
            }
        }
    }
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Show => session.show("/v1/clock", |clock| Ok(facts(&clock))),
        Command::Freeze => set_speed(session, 0),
        Command::Scale { speed } => set_speed(session, *speed),
        Command::Advance { duration } => advance(session, &ClockChange::Advance { by: *duration }),
        Command::Until { end } => advance(session, &ClockChange::Until { at: end.time(session)? }),
        Command::Next { within } => advance(session, &ClockChange::Next { within: *within }),
    }
}

fn set_speed(session: &Session, speed: u32) -> Result<()> {
    let change = if speed == 0 { ClockChange::Freeze {} } else { ClockChange::Scale { speed } };
    session.send("/v1/clock", &change, |clock| Ok(facts(&clock)))
}

/// Sets the clock forward, and prints what the audit log has about events since.
fn advance(session: &Session, change: &ClockChange) -> Result<()> {
    let before = ClockReport::position(session)?;
    let clock = session.post("/v1/clock", change)?;
    let report = ClockReport::since(session, &before)?;
    let text = |clock: ClockView| Ok(format!("{}\n{}", facts(&clock), report.table(session.width())));
    session.present(report.with_clock(clock), text)
}

fn facts(clock: &ClockView) -> String {
    let speed = match clock.speed {
        0 => "frozen".to_owned(),
        speed => format!("{speed}x"),
    };
    let next = match clock.next_in {
        Some(span) => format!("in {}", show_duration(span.0)),
        None => "nothing is due".to_owned(),
    };
    Table::facts([
        ("now", sentences::date(clock.now)),
        ("clock", clock.kind.clone()),
        ("speed", speed),
        ("next", next),
    ])
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_shown_with_the_next_change() {
        let mut clock = ClockView {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            kind: "virtual".to_owned(),
            speed: 0,
            next_in: "15m".parse().ok(),
        };
        assert_eq!(
            facts(&clock),
            "now    2026-01-01 00:00:00Z\nclock  virtual\nspeed  frozen\nnext   in 15m\n"
        );
        (clock.speed, clock.next_in) = (60, None);
        assert!(facts(&clock).ends_with("speed  60x\nnext   nothing is due\n"));
    }

    #[test]
    fn an_advance_ends_at_a_time_or_an_event() {
        let target = |text: &str| text.parse::<ClockTarget>();
        assert!(matches!(target("2026-01-01T00:15:00Z"), Ok(ClockTarget::Time(_))));
        assert!(matches!(target("28512af7"), Ok(ClockTarget::Event(_))));
        assert!(matches!(target("28512AF7-C957-4500-9BC4-842D6FB531E4"), Ok(ClockTarget::Event(_))));
        for wrong in ["", "now", "15m", "2026-01-01", "2026-01-01T00:15:00"] {
            let problem = target(wrong).unwrap_err().to_string();
            assert!(problem.starts_with("invalid time or event: "), "{wrong}: {problem}");
        }
    }
}
