//! Prose in Markdown: lines of a readable width, and an index that links every page of the documentation.

use super::{Problem, Texts};

/// Characters of a line of prose. Tables, code and generated blocks are exempt.
const LINE_CHARS_MAX: usize = 120;

const INDEX: &str = "docs/README.md";

pub(super) fn check(texts: &Texts) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in texts.iter().filter(|(path, _)| path.ends_with(".md")) {
        problems.extend(check_width(path, text));
    }
    problems.extend(check_index(texts));
    problems
}

fn check_width(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (mut in_code, mut is_generated) = (false, false);
    for (place, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if line.starts_with("<!-- ") {
            is_generated = line.ends_with(":begin -->");
        }
        let width = line.chars().count();
        if !in_code
            && !is_generated
            && width > LINE_CHARS_MAX
            && !line.trim_start().starts_with('|')
            && is_breakable(line)
        {
            let message = format!("{width} characters\n  hint: at most {LINE_CHARS_MAX}");
            problems.push(Problem::new(path, place, message));
        }
    }
    problems
}

/// True if a break at a space outside a code span makes the line shorter.
fn is_breakable(line: &str) -> bool {
    let indent = line.len() - line.trim_start().len();
    let mut in_span = false;
    line.char_indices().skip(indent + 2).any(|(_, c)| {
        in_span ^= c == '`';
        c == ' ' && !in_span
    })
}

/// Every page below `docs/` is linked from the index.
fn check_index(texts: &Texts) -> Vec<Problem> {
    let pages = texts.keys().filter(|path| path.starts_with("docs/") && path.ends_with(".md"));
    let pages: Vec<_> = pages.filter(|path| *path != INDEX).collect();
    let Some(index) = texts.get(INDEX) else {
        return if pages.is_empty() {
            Vec::new()
        } else {
            vec![Problem::new(INDEX, 0, "the file is missing")]
        };
    };
    let is_linked = |page: &str| index.contains(&format!("]({})", page.trim_start_matches("docs/")));
    let missing = pages.iter().filter(|page| !is_linked(page));
    missing.map(|page| Problem::new(INDEX, 0, format!("no link to {page}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check_width("a.md", text).iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn prose_has_a_width_and_tables_and_code_do_not() {
        let long = "word ".repeat(30);
        assert_eq!(lines(&format!("short\n{long}\n")), [2]);
        assert!(lines(&format!("| {long} |\n```text\n{long}\n```\n")).is_empty());
        assert_eq!(lines(&format!("```text\n```\n{long}\n")), [3]);
        assert_eq!(lines(&format!("<!-- a:begin -->\n{long}\n<!-- a:end -->\n{long}\n")), [4]);
    }

    #[test]
    fn a_line_that_cannot_be_broken_may_be_long() {
        assert!(lines(&"x".repeat(200)).is_empty());
        assert!(lines(&format!("- `{}`", "word ".repeat(30))).is_empty());
        assert_eq!(lines(&format!("- a `{}`", "x".repeat(130))), [1]);
    }

    #[test]
    fn every_page_is_in_the_index() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let pages = [file("docs/guides/a.md", "# A\n"), file("README.md", "# R\n")];
        let mut texts = Texts::from(pages);
        assert_eq!(check(&texts)[0].to_string(), "docs/README.md:1: the file is missing");
        texts.insert(INDEX.to_owned(), "[other](guides/b.md)\n".to_owned());
        assert_eq!(check(&texts)[0].to_string(), "docs/README.md:1: no link to docs/guides/a.md");
        texts.insert(INDEX.to_owned(), "[A](guides/a.md)\n".to_owned());
        assert!(check(&texts).is_empty());
    }
}
