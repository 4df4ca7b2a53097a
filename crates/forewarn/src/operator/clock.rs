//! `forewarn clock`: the clock of the server.

use anyhow::Result;
use clap::Subcommand;
use forewarn_control::{ClockOrder, ClockView};
use forewarn_types::{Span, show_duration};

use super::say;
use super::session::Session;
use super::table::Table;

const EXAMPLES: &str = "\
Examples:
  forewarn clock advance 15m            what is due on the way happens, each at its own moment
  forewarn clock advance 9m50s";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show what the clock shows.
    Show,
    /// Stop the clock: time passes only by `advance` and `next`.
    Freeze,
    /// Set the clock forward.
    #[command(after_help = EXAMPLES)]
    Advance {
        /// How far: 90s, 15m, 9m50s, 2h, 7d.
        duration: Span,
    },
    /// Set the clock forward to the next moment at which some machine sees a change.
    Next {
        /// But no farther than this.
        #[arg(long, value_name = "DURATION")]
        within: Option<Span>,
    },
    /// Let the clock run, so many times as fast as a real one.
    Scale {
        /// Seconds a second: 1, 60 or 60x.
        #[arg(value_name = "N", value_parser = speed)]
        speed: u32,
    },
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    let order = match *command {
        Command::Show => return session.show("/v1/clock", |clock| Ok(facts(&clock))),
        Command::Freeze => ClockOrder::Freeze {},
        Command::Advance { duration } => ClockOrder::Advance { by: duration },
        Command::Next { within } => ClockOrder::Next { within },
        Command::Scale { speed } => ClockOrder::Scale { speed },
    };
    session.ask("/v1/clock", &order, |clock| Ok(facts(&clock)))
}

fn speed(text: &str) -> Result<u32, String> {
    match text.strip_suffix('x').unwrap_or(text).parse() {
        Ok(0) => {
            Err("a clock that runs 0 times as fast stands still\n  hint: `forewarn clock freeze`".to_owned())
        }
        Ok(speed) => Ok(speed),
        Err(_) => Err(format!("not a number: {text:?}\n  hint: write 1, 60 or 60x")),
    }
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
        ("now", say::date(clock.now)),
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
    fn a_clock_says_what_it_does_and_what_comes() {
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
    fn a_speed_is_a_number() {
        assert_eq!(speed("60x"), Ok(60));
        assert_eq!(speed("1"), Ok(1));
        assert!(speed("0").unwrap_err().contains("clock freeze"));
        assert!(speed("fast").unwrap_err().contains("hint: "));
    }
}
