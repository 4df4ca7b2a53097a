//! The speed of a virtual clock, as `forewarn dev --clock` and `forewarn clock scale` read it.

use forewarn_control::SPEED_MAX;

/// Parses a speed in virtual seconds per second: `frozen` (0), `real` (1), or a whole number such as `60` or `60x`.
pub(crate) fn parse_speed(text: &str) -> Result<u32, String> {
    match text {
        "frozen" => Ok(0),
        "real" => Ok(1),
        _ => {
            let number = text.strip_suffix('x').unwrap_or(text);
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            let speed = is_number.then(|| number.parse().ok()).flatten();
            speed.filter(|speed| (1..=SPEED_MAX).contains(speed)).ok_or_else(|| {
                format!(
                    "invalid speed: {text}\n  hint: write frozen, real, or a whole number from 1 to {SPEED_MAX}, \
                     such as 60 or 60x"
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_word_or_a_whole_number() {
        for (text, speed) in [
            ("frozen", 0),
            ("real", 1),
            ("1", 1),
            ("1x", 1),
            ("60", 60),
            ("60x", 60),
            ("1000000x", 1_000_000),
        ] {
            assert_eq!(parse_speed(text), Ok(speed), "{text}");
        }
        for wrong in ["", "x", "0", "0x", "0.5x", "-1", "+1", "60xx", "fast", "1000001", "99999999999"] {
            let problem = parse_speed(wrong).unwrap_err();
            assert!(
                problem.starts_with(&format!("invalid speed: {wrong}\n  hint: write frozen, real, ")),
                "{problem}"
            );
        }
    }
}
