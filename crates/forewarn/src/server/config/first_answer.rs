//! The first response to a tenant, as a word of the configuration and of the command line.

use forewarn_metadata::FirstAnswer;
use forewarn_types::parse_duration;

/// The longest delay: no client waits longer.
const DELAY_SECONDS_MAX: u64 = 3_600;

pub(in super::super) fn parse_first_answer(text: &str) -> Result<FirstAnswer, String> {
    match text {
        "now" => Ok(FirstAnswer::Now),
        "empty" => Ok(FirstAnswer::Empty),
        _ => {
            let span = parse_duration(text).filter(|span| span.as_secs() <= DELAY_SECONDS_MAX);
            span.map(FirstAnswer::Delay).ok_or_else(|| "write now, empty, or a time up to 1h".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_response_is_immediate_empty_or_delayed() {
        assert_eq!(parse_first_answer("now"), Ok(FirstAnswer::Now));
        assert_eq!(parse_first_answer("empty"), Ok(FirstAnswer::Empty));
        assert!(matches!(parse_first_answer("90s"), Ok(FirstAnswer::Delay(span)) if span.as_secs() == 90));
        assert!(parse_first_answer("2h").is_err());
    }
}
