//! Strips lines of scripts and styles of what only their readers need: indentation, comments, empty lines.
//!
//! It works line by line and knows no more of the languages than that. Comments are whole lines here, and a backtick in a
//! script begins or ends a template; `tests` keep the files of the dashboard to that.

/// The language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Script,
    Style,
    /// Markup and images: only indentation goes.
    Markup,
}

/// The place of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Code,
    Comment,
    /// A template of several lines: its spaces are part of the text.
    Template,
}

/// The text without what only its readers need. The order of lines stays.
pub(crate) fn strip(text: &str, language: Language) -> String {
    let mut stripped = String::with_capacity(text.len());
    let mut place = Place::Code;
    for line in text.lines() {
        let code = line.trim();
        let kept = match place {
            Place::Comment => "",
            Place::Template => line,
            Place::Code if is_comment(code, language) => "",
            Place::Code => code,
        };
        place = match place {
            Place::Code if kept.is_empty() && code.starts_with("/*") && !code.ends_with("*/") => {
                Place::Comment
            }
            Place::Comment if code.ends_with("*/") => Place::Code,
            Place::Code if turns(kept, language) => Place::Template,
            Place::Template if turns(kept, language) => Place::Code,
            same @ (Place::Code | Place::Comment | Place::Template) => same,
        };
        if !kept.is_empty() || place == Place::Template {
            stripped.push_str(kept);
            stripped.push('\n');
        }
    }
    stripped
}

fn is_comment(code: &str, language: Language) -> bool {
    match language {
        Language::Script => code.starts_with("//") || code.starts_with("/*"),
        Language::Style => code.starts_with("/*"),
        Language::Markup => false,
    }
}

/// Returns true if a template begins or ends in a line, and not both.
fn turns(line: &str, language: Language) -> bool {
    language == Language::Script && line.matches('`').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_indentation_and_empty_lines_go() {
        let text = "// A module.\n\n/** A function.\n *  It is long. */\nfunction f() {\n  // Why.\n  return 1; // one\n}\n";
        assert_eq!(strip(text, Language::Script), "function f() {\nreturn 1; // one\n}\n");
        let style = "/* A part. */\na {\n  b: c; /* why */\n}\n//x {}\n";
        assert_eq!(strip(style, Language::Style), "a {\nb: c; /* why */\n}\n//x {}\n");
        assert_eq!(strip("<p>\n  // text\n</p>", Language::Markup), "<p>\n// text\n</p>\n");
    }

    #[test]
    fn a_template_of_several_lines_stays_as_it_is() {
        let text = "  const story = `host h1\n\n  // at 1s\n`;\n  f(`${x}`);\n";
        assert_eq!(strip(text, Language::Script), "const story = `host h1\n\n  // at 1s\n`;\nf(`${x}`);\n");
    }
}
