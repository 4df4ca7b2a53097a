//! Stories: read and played to their end, or stopped with a mistake that shows its line.

use forewarn_story::{LINES_MAX, STATEMENTS_MAX, format, parse, run};

/// Bytes of a story that is also played. One of them may ask for a lot of time.
const PLAYED_BYTES_MAX: usize = 4 * 1024;

/// Statements of a story that is also played, after repetitions.
const PLAYED_STATEMENTS_MAX: usize = 500;

pub(crate) fn examine(bytes: &[u8]) -> String {
    let Ok(text) = str::from_utf8(bytes) else { return "not text".to_owned() };
    let story = match parse(text) {
        Ok(story) => story,
        Err(mistake) => return first_line(&mistake.to_string()),
    };
    assert!(text.lines().count() <= LINES_MAX, "a story that is too long");
    assert!(story.statement_count() <= STATEMENTS_MAX, "a story that is too long after repetitions");
    let usual = format(text).expect("a story that can be read has a layout");
    assert_eq!(format(&usual).as_ref(), Ok(&usual), "a layout that is not usual");
    assert_eq!(parse(&usual).expect("a layout is a story").statement_count(), story.statement_count());
    if text.len() > PLAYED_BYTES_MAX || story.statement_count() > PLAYED_STATEMENTS_MAX {
        return "not played".to_owned();
    }
    match run(&story) {
        Ok(transcript) => {
            let again = run(&story).expect("what was played once can be played again");
            assert_eq!(transcript.to_string(), again.to_string(), "a story tells something else");
            "played".to_owned()
        }
        Err(mistake) => first_line(&mistake.to_string()),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
