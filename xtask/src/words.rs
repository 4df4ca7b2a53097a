//! The command line, read word by word.

use std::fmt;

/// The words that are not read yet.
pub(crate) struct Words(Vec<String>);

/// An invalid command line.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn new(problem: &str) -> Self {
        Self(problem.to_owned())
    }

    pub(crate) fn unknown(word: &str) -> Self {
        Self(format!("unknown word: {word}\n  hint: `cargo xtask` alone lists the commands"))
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

impl Words {
    pub(crate) fn new(words: impl IntoIterator<Item = String>) -> Self {
        let mut words: Vec<_> = words.into_iter().collect();
        words.reverse();
        Self(words)
    }

    /// True if one of the words is an option for help, as in `bench streams --help`.
    pub(crate) fn ask_for_help(&self) -> bool {
        self.0.iter().any(|word| matches!(word.as_str(), "--help" | "-h"))
    }

    /// Removes an option that may be anywhere. True if it was there.
    pub(crate) fn take_option(&mut self, option: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|word| word != option);
        self.0.len() < before
    }

    /// Rejects a word that is left over.
    pub(crate) fn done(mut self) -> anyhow::Result<()> {
        self.next().map_or(Ok(()), |word| Err(Usage::unknown(&word).into()))
    }

    /// The value after an option.
    pub(crate) fn value<T>(
        &mut self,
        option: &str,
        parse: impl Fn(&str) -> Option<T>,
        hint: &str,
    ) -> Result<T, Usage> {
        let value = self.next().unwrap_or_default();
        parse(&value).ok_or_else(|| Usage(format!("not a value for {option}: {value:?}\n  hint: {hint}")))
    }
}

impl Iterator for Words {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.0.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words {
        Words::new(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_come_in_order_and_none_is_left_over() {
        let mut given = words("bench core");
        assert_eq!(given.next().as_deref(), Some("bench"));
        let problem = given.done().unwrap_err();
        assert!(problem.is::<Usage>());
        assert!(problem.to_string().starts_with("unknown word: core\n  hint: "));
        assert!(words("").done().is_ok());
    }

    #[test]
    fn an_option_may_be_anywhere() {
        let mut line = words("--no-install test --long");
        assert!(line.take_option("--no-install") && !line.take_option("--no-install"));
        assert_eq!(line.collect::<Vec<_>>(), ["test", "--long"]);
    }

    #[test]
    fn help_may_follow_a_command() {
        assert!(words("bench streams --help").ask_for_help() && words("-h").ask_for_help());
        assert!(!words("bench streams --save").ask_for_help());
    }

    #[test]
    fn a_value_must_be_there_and_be_one() {
        let number = |text: &str| text.parse::<u32>().ok();
        assert_eq!(words("7").value("--jobs", number, "a number").unwrap(), 7);
        assert!(words("x").value("--jobs", number, "a number").unwrap_err().0.contains("--jobs: \"x\""));
        assert!(words("").value("--jobs", number, "a number").is_err());
    }
}
