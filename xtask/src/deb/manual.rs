//! Manual pages of section 5, made from the reference: Markdown becomes the macros of man(7).
//!
//! The reference uses headings, paragraphs, lists, tables, code blocks, code spans, emphasis and links; a page has all of
//! their text. A link shows its text, or the page that the reference becomes.

use std::fmt::Write as _;

/// A manual page, and the document that it is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReferencePage {
    /// The name of the page, without its section.
    pub(super) name: &'static str,
    /// The line of the section NAME.
    pub(super) purpose: &'static str,
    pub(super) document: &'static str,
}

/// Documents that are manual pages themselves.
const PAGES: [(&str, &str); 4] = [
    ("configuration.md", "serve.toml(5)"),
    ("fleet.md", "fleet.toml(5)"),
    ("cli.md", "forewarn(1)"),
    ("agent.md", "forewarn-agent(1)"),
];

/// The block of lines that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Paragraph,
    Code,
    Table,
}

impl ReferencePage {
    /// The file in a directory of manual pages.
    pub(super) fn file(&self) -> String {
        format!("man5/{}.5", self.name)
    }

    /// The page, from the text of its document.
    pub(super) fn render(&self, markdown: &str) -> String {
        let Self { name, purpose, .. } = self;
        let mut page = format!(
            ".TH \"{name}\" 5 \"\" Forewarn \"File formats\"\n.SH NAME\n{name} \\- {purpose}\n.SH DESCRIPTION\n"
        );
        let mut block = Block::Paragraph;
        // The title is the section NAME.
        for line in markdown.lines().skip_while(|line| line.starts_with("# ") || line.is_empty()) {
            block = write_line(&mut page, line, block);
        }
        page.push_str(
            ".SH FILES\nPages named here, such as store.md, are in /usr/share/doc/forewarn/docs.\n",
        );
        page.push_str(".SH SEE ALSO\n.BR forewarn (1),\n.BR forewarn\\-serve (1)");
        for other in ["serve.toml", "fleet.toml"].iter().filter(|other| *other != name) {
            page.push_str(&format!(",\n.BR {other} (5)"));
        }
        page.push('\n');
        page
    }
}

/// Writes a line, and returns the block that it leaves open. Writing to a string cannot fail.
fn write_line(page: &mut String, line: &str, block: Block) -> Block {
    match block {
        Block::Code if line.starts_with("```") => page.push_str(".RE\n.fi\n"),
        Block::Code => {
            let _ = writeln!(page, "{}", protected(&escaped(line)));
            return Block::Code;
        }
        Block::Paragraph if line.starts_with("```") => {
            page.push_str(".PP\n.nf\n.RS 4\n");
            return Block::Code;
        }
        // The head of a table, and the line below it.
        Block::Paragraph if line.starts_with("| ") => {
            let names: Vec<_> = cells(line).into_iter().map(|cell| inline(&cell)).collect();
            let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
            if !names.is_empty() {
                let _ = writeln!(page, ".PP\n{}:", protected(&names.join(", ")));
            }
            return Block::Table;
        }
        Block::Table if line.starts_with("|---") => return Block::Table,
        Block::Table if line.starts_with('|') => {
            let cells = cells(line);
            let (first, rest) = cells.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
            let rest: Vec<_> = rest.iter().map(|cell| inline(cell)).collect();
            let _ = writeln!(page, ".TP\n{}\n{}", protected(&inline(first)), protected(&rest.join("; ")));
            return Block::Table;
        }
        Block::Paragraph | Block::Table => write_text(page, line),
    }
    Block::Paragraph
}

fn write_text(page: &mut String, line: &str) {
    let number = line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok());
    let _ = if let Some(heading) = line.strip_prefix("## ") {
        writeln!(page, ".SH \"{}\"", escaped(&heading.replace('`', "")).to_uppercase())
    } else if let Some(heading) = line.strip_prefix("### ") {
        writeln!(page, ".SS \"{}\"", inline(heading))
    } else if let Some(item) = line.strip_prefix("- ") {
        writeln!(page, ".IP \\(bu 2\n{}", protected(&inline(item)))
    } else if let Some((number, item)) = number {
        writeln!(page, ".IP {number}. 4\n{}", protected(&inline(item)))
    } else if line.is_empty() {
        writeln!(page, ".PP")
    } else {
        writeln!(page, "{}", protected(&inline(line.trim_start())))
    };
}

/// The cells of a row. `\|` does not end a cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').replace("\\|", "\u{1}");
    let row = row.strip_suffix('|').unwrap_or(&row);
    row.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// Text with code spans in bold, emphasis in italics, and links as their text.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 1 {
            let _ = write!(out, "\\fB{}\\fR", escaped(part));
        } else {
            out.push_str(&emphasised(&escaped(&without_targets(part))));
        }
    }
    out
}

/// Text in which a link is its text, or the name of the page that it leads to.
fn without_targets(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some((before, rest)) = out.split_once("](") {
        let (target, after) = rest.split_once(')').unwrap_or((rest, ""));
        let (before, label) = before.rsplit_once('[').unwrap_or(("", before));
        let file = target.split('#').next().unwrap_or_default();
        let page = PAGES.iter().find(|(document, _)| file == *document);
        let shown = match page {
            Some((document, page)) if label == *document => (*page).to_owned(),
            Some((_, page)) => format!("{label} ({page})"),
            None => label.to_owned(),
        };
        out = format!("{before}{shown}{after}");
    }
    out
}

/// `*word*` in italics.
fn emphasised(text: &str) -> String {
    let parts: Vec<_> = text.split('*').collect();
    if parts.len() % 2 == 0 {
        return text.to_owned();
    }
    let parts = parts.iter().enumerate();
    parts
        .map(|(place, part)| if place % 2 == 1 { format!("\\fI{part}\\fR") } else { (*part).to_owned() })
        .collect()
}

/// Text without characters that have a meaning for man(7), or that not every terminal has.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        let _ = match letter {
            '\\' => write!(out, "\\e"),
            '-' => write!(out, "\\-"),
            '…' => write!(out, "..."),
            letter if letter.is_ascii() => write!(out, "{letter}"),
            letter => write!(out, "\\[u{:04X}]", u32::from(letter)),
        };
    }
    out
}

/// A line that is not read as a macro.
fn protected(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::deb::list::PACKAGES;
    use crate::tree;

    const PAGE: ReferencePage = ReferencePage { name: "x.toml", purpose: "settings", document: "x.md" };

    fn rendered(markdown: &str) -> String {
        let page = PAGE.render(&format!("# X\n\n{markdown}"));
        let body = page.split_once(".SH DESCRIPTION\n").unwrap().1;
        body.split_once(".SH FILES").unwrap().0.to_owned()
    }

    #[test]
    fn markdown_becomes_macros() {
        assert_eq!(rendered("a `b-c` *d*\n"), "a \\fBb\\-c\\fR \\fId\\fR\n");
        assert_eq!(rendered("## How\n"), ".SH \"HOW\"\n");
        assert_eq!(
            rendered("```toml\n.x = \"\\n…\"\n```\n"),
            ".PP\n.nf\n.RS 4\n\\&.x = \"\\en...\"\n.RE\n.fi\n"
        );
        assert_eq!(
            rendered("| a | b |\n|---|---|\n| `x\\|y` | z |\n\nt"),
            ".PP\na, b:\n.TP\n\\fBx|y\\fR\nz\n.PP\nt\n"
        );
        assert_eq!(rendered("- one\n  more\n1. two\n"), ".IP \\(bu 2\none\nmore\n.IP 1. 4\ntwo\n");
        assert_eq!(
            rendered("see [fleet.md](fleet.md#x), [this](fleet.md) and [that](y.md)"),
            "see fleet.toml(5), this (fleet.toml(5)) and that\n"
        );
    }

    /// Words of a text, without punctuation.
    fn words(text: &str) -> BTreeSet<String> {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    }

    #[test]
    fn every_word_of_the_reference_is_on_its_page() {
        let root = tree::root().unwrap();
        let pages: Vec<_> = PACKAGES.iter().flat_map(|package| package.references).collect();
        assert_eq!(pages.iter().map(|page| page.name).collect::<Vec<_>>(), ["serve.toml", "fleet.toml"]);
        for page in pages {
            let markdown = std::fs::read_to_string(root.join(page.document)).unwrap();
            let text = page.render(&markdown);
            let plain = text.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "");
            let found = words(&plain.replace("\\e", "\\"));
            let shown: String = markdown.lines().skip(1).map(|line| without_targets(line) + "\n").collect();
            let shown: String = shown
                .lines()
                .filter(|line| !line.starts_with("```"))
                .map(|line| format!("{line}\n"))
                .collect();
            let missing: Vec<_> = words(&shown).difference(&found).cloned().collect();
            assert!(missing.is_empty(), "not in {}(5): {missing:?}", page.name);
        }
    }
}
