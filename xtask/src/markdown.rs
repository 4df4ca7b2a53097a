//! Links and headings of Markdown files, as far as checks and the documentation site need them.

use std::collections::BTreeMap;

/// A link: `[text](path#fragment "title")`. One of path and fragment may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    pub(crate) path: &'a str,
    pub(crate) fragment: &'a str,
}

/// The links within a repository of each line, with the line counted from 0; none in code.
pub(crate) fn links(text: &str) -> Vec<(usize, Link<'_>)> {
    let mut links = Vec::new();
    // A span of code may continue on the next line of a paragraph.
    let mut in_span = false;
    for (place, line) in prose(text) {
        in_span &= !line.trim().is_empty();
        let outside_code = line.split('`').skip(usize::from(in_span)).step_by(2);
        links.extend(outside_code.flat_map(links_of).map(|link| (place, link)));
        in_span ^= line.matches('`').count() % 2 == 1;
    }
    links
}

/// The lines outside of blocks of code. A block ends with at least as many backticks as it has begun with.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = 0;
    text.lines().enumerate().filter(move |(_, line)| {
        let line = line.trim_start();
        let rest = line.trim_start_matches('`');
        let ticks = line.len() - rest.len();
        let was_in_code = fence > 0;
        if !was_in_code && ticks >= 3 && !rest.contains('`') {
            fence = ticks;
        } else if was_in_code && ticks >= fence && rest.trim().is_empty() {
            fence = 0;
            return false;
        }
        fence == 0
    })
}

fn links_of(text: &str) -> impl Iterator<Item = Link<'_>> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets.filter(|target| is_local(target)).map(|target| {
        let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
        Link { path, fragment }
    })
}

fn is_local(target: &str) -> bool {
    !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")
}

/// The path of a link from the root. None if it leads out of the repository.
pub(crate) fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<_> = from.split('/').collect();
    if target.is_empty() {
        return Some(from.to_owned());
    }
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The title of a page: its first heading.
pub(crate) fn title(text: &str) -> Option<&str> {
    prose(text).find_map(|(_, line)| line.strip_prefix("# "))
}

/// The ids of the headings, as hosts of repositories and mdBook make them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    let headings = prose(text).filter_map(|(_, line)| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then(|| heading.strip_prefix(' ')).flatten()
    });
    let mut anchors = Vec::new();
    for heading in headings {
        let name = anchor(heading);
        let count = counts.entry(name.clone()).or_default();
        anchors.push(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    anchors
}

/// `Where *it* is: here` becomes `where-it-is-here`.
fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c),
        _ => None,
    };
    heading.trim().to_lowercase().chars().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_those_outside_of_code() {
        let text = "[a](b.md#c \"title\") `[x](y)` [`d`](e/) [w](https://a.example) [h](#here)\n```text\n[n](m)\n```\n![p](q.svg)\n`a [x](y)\nb` [r](s)\n`\n\n[t](u)\n";
        let link = |path, fragment| Link { path, fragment };
        let expected = [
            (0, link("b.md", "c")),
            (0, link("e/", "")),
            (0, link("", "here")),
            (4, link("q.svg", "")),
            (6, link("s", "")),
            (9, link("u", "")),
        ];
        assert_eq!(links(text), expected);
    }

    #[test]
    fn a_link_is_followed_from_its_page() {
        assert_eq!(resolve("docs/a.md", "../b/c.md").as_deref(), Some("b/c.md"));
        assert_eq!(resolve("docs/a.md", "d/").as_deref(), Some("docs/d"));
        assert_eq!(resolve("docs/a.md", "").as_deref(), Some("docs/a.md"));
        assert_eq!(resolve("docs/a.md", "../../x"), None);
    }

    #[test]
    fn headings_have_ids_and_a_page_has_a_title() {
        let text =
            "# The `a`, _b_\n````sh\n# no heading\n```text\n```\n# no\n````\n## Same\n### Same\n#5 is none\n";
        assert_eq!(title(text), Some("The `a`, _b_"));
        assert_eq!(anchors(text), ["the-a-_b_", "same", "same-1"]);
    }
}
