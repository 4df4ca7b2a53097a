//! The line that is being completed: its words, without quotes, and the word under the cursor.

use std::ffi::OsString;

/// The words of a line, and the one that is being completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypedLine {
    pub(super) words: Vec<OsString>,
    pub(super) index: usize,
    /// The part of the current word that the shell does not replace: bash splits words at `=` and `:`.
    pub(super) kept: String,
}

impl TypedLine {
    /// A line whose words are whole. Without an index, the last word is the current one.
    pub(super) fn whole(mut words: Vec<OsString>, index: Option<usize>) -> Self {
        let index = index.unwrap_or(words.len().saturating_sub(1));
        // A shell may leave out an empty word at the end.
        if words.len() == index {
            words.push(OsString::new());
        }
        words.truncate(index + 1);
        Self { words, index, kept: String::new() }
    }

    /// A line of bash, up to the cursor, with the pieces into which bash has split it.
    pub(super) fn of_bash(pieces: &[OsString], index: usize, line: &str) -> Self {
        let mut words: Vec<Vec<String>> = Vec::new();
        let mut rest = line;
        for piece in pieces.iter().take(index + 1) {
            let piece = piece.to_string_lossy();
            let trimmed = rest.trim_start();
            let is_apart = trimmed.len() < rest.len();
            // The cursor may be inside the last piece.
            let piece = if piece.starts_with(trimmed) { trimmed } else { &*piece };
            match words.last_mut() {
                Some(word) if !is_apart => word.push(piece.to_owned()),
                Some(_) | None => words.push(vec![piece.to_owned()]),
            }
            rest = trimmed.strip_prefix(piece).unwrap_or(trimmed);
        }
        let kept = words.last().map(|word| kept(word)).unwrap_or_default();
        let words: Vec<_> = words.iter().map(|word| OsString::from(unquoted(&word.concat()))).collect();
        Self { index: words.len().saturating_sub(1), words, kept }
    }

    /// The word that is being completed.
    pub(super) fn current(&self) -> String {
        self.words.get(self.index).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// The pieces before the last one, and the last one if it is only a character at which bash splits words.
fn kept(pieces: &[String]) -> String {
    match pieces {
        [_, ..] if pieces.last().is_some_and(|last| last.chars().all(|c| matches!(c, '=' | ':'))) => {
            unquoted(&pieces.concat())
        }
        [before @ .., _] => unquoted(&before.concat()),
        [] => String::new(),
    }
}

/// A word without its quotes. A quote that is still open ends with the word.
fn unquoted(word: &str) -> String {
    let (mut text, mut quote) = (String::new(), None);
    let mut characters = word.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '\\') => text.extend(characters.next()),
            (None | Some(_), _) => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(pieces: &[&str], line: &str) -> (Vec<String>, String) {
        let pieces: Vec<_> = pieces.iter().map(OsString::from).collect();
        let typed = TypedLine::of_bash(&pieces, pieces.len() - 1, line);
        assert_eq!(typed.index, typed.words.len() - 1);
        (typed.words.iter().map(|word| word.to_string_lossy().into_owned()).collect(), typed.kept)
    }

    #[test]
    fn words_that_bash_has_split_are_joined() {
        let (words, kept) = bash(
            &["forewarn", "--api", "http", ":", "//127.0.0.1", ":", "1339", "vm", "show", "we"],
            "forewarn --api http://127.0.0.1:1339 vm show we",
        );
        assert_eq!(words, ["forewarn", "--api", "http://127.0.0.1:1339", "vm", "show", "we"]);
        assert_eq!(kept, "");
        let (words, kept) =
            bash(&["forewarn", "vm", "ls", "--tenant", "=", "we"], "forewarn vm ls --tenant=we");
        assert_eq!((words[3].as_str(), kept.as_str()), ("--tenant=we", "--tenant="));
        let (words, kept) = bash(&["forewarn", "vm", "ls", "--tenant", "="], "forewarn vm ls --tenant=");
        assert_eq!((words[3].as_str(), kept.as_str()), ("--tenant=", "--tenant="));
    }

    #[test]
    fn an_empty_word_at_the_end_is_a_word() {
        let (words, kept) = bash(&["forewarn", "vm", "show", ""], "forewarn vm show ");
        assert_eq!((words.len(), words[3].as_str(), kept.as_str()), (4, "", ""));
        let typed = TypedLine::whole(vec!["forewarn".into(), "vm".into()], Some(2));
        assert_eq!((typed.words.len(), typed.current().as_str()), (3, ""));
        assert_eq!(TypedLine::whole(Vec::new(), None).words.len(), 1);
    }

    #[test]
    fn only_what_is_before_the_cursor_counts() {
        let pieces = ["forewarn", "vm", "show", "web_0", "more"].map(OsString::from);
        let typed = TypedLine::of_bash(&pieces, 3, "forewarn vm show we");
        assert_eq!((typed.current().as_str(), typed.words.len()), ("we", 4));
    }

    #[test]
    fn quotes_are_removed() {
        assert_eq!(unquoted(r#"'a b'"c\"d"e\ f'g"#), "a bc\"de fg");
        assert_eq!(unquoted(r"'a\b'"), r"a\b");
    }
}
