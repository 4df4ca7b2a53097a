//! Suggestions for misspelt words of the language.

use forewarn_control::similar;

/// The known word that was probably meant: the same in other letters, or a similar one.
pub(crate) fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let same = known.iter().find(|known| known.eq_ignore_ascii_case(word)).copied();
    same.or_else(|| similar(word, known.iter().copied()))
}

/// A message, with a suggestion if a known word is similar.
pub(crate) fn suggesting(message: &str, word: &str, known: &[&str]) -> String {
    match meant(word, known) {
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_suggested_if_it_is_similar() {
        let words = ["Started", "Scheduled", "stopped", "gone"];
        assert_eq!(meant("started", &words), Some("Started"));
        assert_eq!(meant("stoped", &words), Some("stopped"));
        assert_eq!(meant("happy", &words), None);
        assert_eq!(suggesting("unknown", "gonne", &words), "unknown; did you mean `gone`?");
        assert_eq!(suggesting("unknown", "x", &words), "unknown");
    }
}
