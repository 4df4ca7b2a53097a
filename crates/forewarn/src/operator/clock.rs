//! `forewarn clock`: the clock of the server.

use anyhow::Result;
use clap::Subcommand;
use forewarn_control::{ClockChange, ClockView};
use forewarn_types::{Span, show_duration};

use super::sentences;
use super::session::Session;
use super::table::Table;

const EXAMPLES: &str = "\
Examples:
  forewarn clock advance 15m            events that are due on the way start, each at its own time
  forewarn clock advance 9m50s";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the clock and the time until the next change
    Show,
    /// Freeze the clock; only `advance` and `next` move it
    Freeze,
    /// Advance the clock
    #[command(before_help = EXAMPLES)]
    Advance {
        /// Duration, such as 90s, 15m, 9m50s, 2h or 7d
        duration: Span,
    },
    /// Advance the clock to the next change that a machine can see
    Next {
        /// Limit of the advance [default: none]
        #[arg(long, value_name = "DURATION")]
        within: Option<Span>,
    },
    /// Run the clock at a multiple of real time
    Scale {
        /// Speed, such as 1, 60 or 60x
        #[arg(value_name = "N", value_parser = speed)]
        speed: u32,
    },
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    let order = match *command {
        Command::Show => return session.show("/v1/clock", |clock| Ok(facts(&clock))),
        Command::Freeze => ClockChange::Freeze {},
        Command::Advance { duration } => ClockChange::Advance { by: duration },
        Command::Next { within } => ClockChange::Next { within },
        Command::Scale { speed } => ClockChange::Scale { speed },
    };
    session.send("/v1/clock", &order, |clock| Ok(facts(&clock)))
}

fn speed(text: &str) -> Result<u32, String> {
    match text.strip_suffix('x').unwrap_or(text).parse() {
        Ok(0) => Err("invalid speed: 0\n  hint: `forewarn clock freeze` freezes the clock".to_owned()),
        Ok(speed) => Ok(speed),
        Err(_) => Err(format!("invalid speed: {text:?}\n  hint: write 1, 60 or 60x")),
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
    fn a_speed_is_a_number() {
        assert_eq!(speed("60x"), Ok(60));
        assert_eq!(speed("1"), Ok(1));
        assert!(speed("0").unwrap_err().contains("clock freeze"));
        assert!(speed("fast").unwrap_err().contains("hint: "));
    }
}
