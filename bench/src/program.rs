//! The shape of every program here: words in, one line of JSON out.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::process::ExitCode;

/// Runs a program and prints its line. Invalid arguments end it with 2, a failure with 1.
pub fn run<A, E: Display>(
    arguments: Result<A, String>,
    work: impl FnOnce(A) -> Result<String, E>,
) -> ExitCode {
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    match work(arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// An option and its value, as they were given.
#[derive(Clone, Copy, Debug)]
pub struct GivenOption<'a> {
    pub word: &'a str,
    pub value: &'a str,
    /// The usage of the program, for errors.
    pub hint: &'a str,
}

impl GivenOption<'_> {
    /// A number within a range.
    ///
    /// # Errors
    /// Fails if the value is no such number.
    pub fn number(self, range: RangeInclusive<u32>) -> Result<u32, String> {
        self.parsed(self.value.parse().ok().filter(|number| range.contains(number)))
    }

    /// A number within a range that is a multiple of another.
    ///
    /// # Errors
    /// Fails if the value is no such number.
    pub fn multiple(self, of: u32, range: RangeInclusive<u32>) -> Result<u32, String> {
        let number = self.number(range)?;
        self.parsed(Some(number).filter(|number| number.is_multiple_of(of)))
    }

    /// A value that was parsed.
    ///
    /// # Errors
    /// Fails without one.
    pub fn parsed<T>(self, parsed: Option<T>) -> Result<T, String> {
        let Self { word, value, hint } = self;
        parsed.ok_or_else(|| format!("not a value for {word}: {value:?}\n  hint: {hint}"))
    }

    /// The error of a word that the program does not know.
    #[must_use]
    pub fn unknown(self) -> String {
        format!("unknown word: {}\n  hint: {}", self.word, self.hint)
    }
}
