//! The usual layout of a story: blocks are indented, words are one space apart, statements after a time begin at the same
//! column. Comments stay, and so does the meaning.

use forewarn_types::without_mark;

use crate::LINE_BYTES_MAX;
use crate::error::StoryError;
use crate::line_reader::{LineReader, Token};
use crate::parse::{BLOCK_WORDS, END_WORD, parse};

/// The column of a statement after a time, and of the second word if it is aligned with such statements; from 0.
const STATEMENT_COLUMN: usize = 8;

/// Columns by which a block indents its lines.
const INDENT: usize = 2;

/// Writes a story in the usual layout. A layout that is already usual stays as it is.
///
/// ```
/// let text = "repeat 2 times\nadvance   1m # so\nat   +5s     poll all\nend";
/// let usual = "repeat 2 times\n  advance 1m  # so\n  at +5s  poll all\nend\n";
/// assert_eq!(forewarn_story::format(text).unwrap(), usual);
/// ```
///
/// # Errors
/// The story is invalid; the error points at the word.
pub fn format(text: &str) -> Result<String, StoryError> {
    parse(text)?;
    let mut formatted = String::with_capacity(text.len());
    let (mut depth, mut blank) = (0_usize, false);
    for written in without_mark(text).lines() {
        let line = LineReader::new(1, written);
        let first = line.peek();
        if first.is_some_and(|word| word.text == END_WORD) {
            depth = depth.saturating_sub(1);
        }
        let laid_out = lay_out(&line, written);
        if laid_out.is_empty() {
            blank = !formatted.is_empty();
            continue;
        }
        if std::mem::take(&mut blank) {
            formatted.push('\n');
        }
        let indented = format!("{}{laid_out}", " ".repeat(INDENT * depth));
        // The layout must not make a line too long.
        formatted.push_str(if indented.len() > LINE_BYTES_MAX { written.trim_end() } else { &indented });
        formatted.push('\n');
        if first.is_some_and(|word| BLOCK_WORDS.contains(&word.text)) {
            depth += 1;
        }
    }
    Ok(formatted)
}

/// A line without its indentation.
fn lay_out(line: &LineReader<'_>, written: &str) -> String {
    let words: Vec<_> = line.words().collect();
    let Some(first) = words.first() else { return written.trim().to_owned() };
    let mut text = first.text.to_owned();
    for (index, pair) in words.windows(2).enumerate() {
        let [before, word] = pair else { continue };
        let gap = &written[before.start + before.text.len()..word.start];
        let width = text.chars().count();
        text.push_str(&match gap.contains(',') {
            true => ", ".to_owned(),
            false => " ".repeat(space(index, width, gap.chars().count(), first)),
        });
        text.push_str(word.text);
    }
    let end = words.last().map_or(0, |last| last.start + last.text.len());
    if let Some(comment) = written[end..].find('#') {
        text.push_str("  ");
        text.push_str(written[end + comment..].trim_end());
    }
    text
}

/// The space after the word with that index, which ends at that column. It leads to the column of statements after a
/// time, and after a verb that is aligned with times; elsewhere it is one.
fn space(index: usize, width: usize, written: usize, first: &Token<'_>) -> usize {
    let aligned = STATEMENT_COLUMN.saturating_sub(width).max(1);
    let is_time = first.text == "at" && index == 1;
    let is_verb = first.text != "at" && index == 0;
    match (is_time, is_verb) {
        (true, _) => aligned,
        (_, true) if written == aligned => aligned,
        (false, _) => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The words and the comment of each line that has any.
    fn content(text: &str) -> Vec<(Vec<String>, String)> {
        let of_line = |written: &str| {
            let line = LineReader::new(1, written);
            let words: Vec<_> = line.words().map(|word| word.text.to_owned()).collect();
            let end = line.words().last().map_or(0, |last| last.start + last.text.len());
            let comment = written[end..].find('#').map_or("", |place| &written[end + place..]);
            (words, comment.trim_end().to_owned())
        };
        let lines = without_mark(text).lines().map(of_line);
        lines.filter(|(words, comment)| !(words.is_empty() && comment.is_empty())).collect()
    }

    fn stories() -> Vec<String> {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stories");
        let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "story"));
        files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }

    #[test]
    fn the_stories_of_the_repository_have_the_usual_layout() {
        let stories = stories();
        assert!(stories.len() > 50);
        for text in stories {
            assert_eq!(format(&text).unwrap(), text);
        }
    }

    #[test]
    fn a_layout_is_usual() {
        let text = "\u{feff}\n\n# head \n\nhost   h1 , h2\n\n\nfor  n in 0..2#two\n\n#inner\nvm v$n on\th1\nrepeat 2 times\nat 5s\t poll all\n\
                    at 5s poll all\nat 1h30m10s  poll all\nexpect  v0 nothing , v0  enrolled,\nadvance    1s\nend\n  end\n\n";
        let usual = "# head\n\nhost h1, h2\n\nfor n in 0..2  #two\n\n  #inner\n  vm v$n on h1\n  repeat 2 times\n    at 5s   poll all\n    \
                     at 5s   poll all\n    at 1h30m10s poll all\n    expect  v0 nothing, v0 enrolled\n    advance 1s\n  end\nend\n";
        assert_eq!(format(text).unwrap(), usual);
        assert!(format("hots h1\n").unwrap_err().message.contains("did you mean `host`?"));
        let long = format!("repeat 1 times\nhost {}\nend\n", "h ".repeat(246));
        assert_eq!(format(&long).unwrap().lines().nth(1).unwrap().len(), 498);
        let longer = format!("repeat 1 times\nhost   {}h\nend\n", "h ".repeat(246));
        assert!(parse(&format(&longer).unwrap()).is_ok());
    }

    fn line() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "at",
            "5s",
            "+1m",
            "host",
            "h1",
            "poll",
            "all",
            "expect",
            "a",
            "Started",
            "repeat",
            "2",
            "times",
            "end",
            "for",
            "x",
            "in",
            "0..2",
            "let",
            "=",
            "$x",
            "run",
            "\"a  , # b\"",
            "as",
            "advance",
            "1s",
            "# c  d",
            "é",
        ]);
        let gap = prop::sample::select(vec![" ", "  ", "\t", ", ", " ,", "   ", "\u{a0}"]);
        prop::collection::vec((part, gap), 0..7)
            .prop_map(|parts| parts.into_iter().flat_map(|(part, gap)| [part, gap]).collect())
    }

    fn good_line() -> impl Strategy<Value = String> {
        prop::sample::select(vec![
            "repeat 2 times",
            "for x in 0..2",
            "end",
            "  at 5s   poll all",
            "at  +5s poll   all",
            "host  h$x # so",
            "host h1,h2",
            "let x =  1",
            "expect   a Started ,b nothing",
            "run \"a  , # b\"   as  h1 #c",
            "",
            "  # c",
            "advance\t1s",
        ])
        .prop_map(str::to_owned)
    }

    proptest! {
        /// promise: X1
        #[test]
        fn a_layout_keeps_the_meaning_and_is_stable(lines in prop::collection::vec(prop_oneof![3 => good_line(), 1 => line()], 0..12)) {
            let mut text = "let x = 1\n".to_owned();
            for line in lines {
                let longer = format!("{text}{line}\n");
                let closed = format!("{longer}{}", "end\n".repeat(8));
                // A block that has begun is complete with one of these.
                let complete = (0..=8).map(|ends| &closed[..longer.len() + 4 * ends]).find(|text| parse(text).is_ok());
                if let Some(complete) = complete {
                    let formatted = format(complete).unwrap();
                    prop_assert_eq!(content(&formatted), content(complete));
                    prop_assert_eq!(format(&formatted).unwrap(), formatted);
                    text = longer;
                }
            }
        }
    }
}
