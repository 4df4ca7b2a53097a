//! The command line: `--machines N --commands K`.

use forewarn_bench::rules_fleet::MACHINES_PER_BLOCK;

/// Fewer would meet their own last event again before its notice is over.
const MACHINES_MIN: u32 = 1_000;
const MACHINES_MAX: u32 = 10_000_000;
/// More would last a simulated day, after which every tenant is due to be asked whether it is still there.
const COMMANDS_MAX: u32 = 25_000;

/// How large a fleet, and how much is put to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) machines: u32,
    pub(crate) commands: u32,
}

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { machines: MACHINES_MIN, commands: 20_000 };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let value = words.next();
            match word.as_str() {
                "--machines" => arguments.machines = number(&word, value, MACHINES_MIN..=MACHINES_MAX)?,
                "--commands" => arguments.commands = number(&word, value, 1..=COMMANDS_MAX)?,
                _ => return Err(format!("unknown word: {word}\n  hint: core --machines N --commands K")),
            }
        }
        if !arguments.machines.is_multiple_of(MACHINES_PER_BLOCK) {
            let machines = arguments.machines;
            return Err(format!("not whole blocks: {machines}\n  hint: a multiple of {MACHINES_PER_BLOCK}"));
        }
        Ok(arguments)
    }

    pub(crate) fn blocks(self) -> u32 {
        self.machines / MACHINES_PER_BLOCK
    }
}

fn number(word: &str, value: Option<String>, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let value = value.unwrap_or_default();
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (first, last) = (range.start(), range.end());
        format!("not a value for {word}: {value:?}\n  hint: a number from {first} to {last}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(words.iter().map(ToString::to_string))
    }

    #[test]
    fn numbers_are_taken_within_their_limits() {
        let given = parse(&["--machines", "2000", "--commands", "7"]).unwrap();
        assert_eq!((given, given.blocks()), (Arguments { machines: 2_000, commands: 7 }, 20));
        for wrong in [["--machines", "5"], ["--machines", "1050"], ["--commands", "25001"], ["--what", "5"]] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&["--machines"]).unwrap_err().contains("hint: "));
    }
}
