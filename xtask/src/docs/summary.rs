//! The table of contents, made from the index of the documentation.

use std::collections::BTreeSet;

use crate::markdown::{links, resolve};

/// The index, whose headings become parts of the site.
pub(super) const INDEX: &str = "docs/README.md";

/// The first page.
pub(super) const FRONT: &str = "README.md";

/// The title of the part with pages that the index does not list.
const REST: &str = "Repository";

/// A page of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The path from the root of the repository.
    pub(super) path: String,
    pub(super) title: String,
    /// The first page with a link to it.
    pub(super) found_on: String,
}

/// A line of the table of contents, or a heading between lines.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Part(String),
    /// A page, with its depth.
    Page(usize, String),
    /// A title without a page.
    Group(String),
}

/// The text of `SUMMARY.md`. A page that the index does not list is in the last part, below the page that leads to it.
pub(super) fn summary(index: &str, pages: &[Page]) -> String {
    let mut seen = BTreeSet::from([FRONT.to_owned(), INDEX.to_owned()]);
    let mut entries = entries(index, &mut seen);
    let listed: Vec<_> = entries.iter().filter_map(Entry::path).map(str::to_owned).collect();
    for path in listed.iter().rev() {
        let below = below(path, pages, &mut seen);
        let place = entries.iter().position(|entry| entry.path() == Some(path));
        if let (Some(place), false) = (place, below.is_empty()) {
            let depth = entries[place].depth() + 1;
            let below = below.into_iter().map(|path| Entry::Page(depth, path));
            entries.splice(place + 1..place + 1, below);
        }
    }
    entries.push(Entry::Part(REST.to_owned()));
    let rest = pages.iter().filter(|page| !seen.contains(&page.path));
    entries.extend(rest.map(|page| Entry::Page(0, page.path.clone())));
    let title = |path: &str| {
        let page = pages.iter().find(|page| page.path == path);
        page.map_or_else(|| path.to_owned(), |page| page.title.replace(['[', ']'], ""))
    };
    let line = |entry: &Entry| match entry {
        Entry::Part(name) => format!("\n# {name}\n\n"),
        Entry::Page(depth, path) => format!("{}- [{}]({path})\n", "  ".repeat(*depth), title(path)),
        Entry::Group(name) => format!("- [{name}]()\n"),
    };
    let front = [FRONT, INDEX].map(|path| format!("[{}]({path})\n", title(path))).concat();
    format!("# Summary\n\n{front}{}", entries.iter().map(line).collect::<String>())
}

impl Entry {
    fn path(&self) -> Option<&str> {
        match self {
            Self::Page(_, path) => Some(path),
            Self::Part(_) | Self::Group(_) => None,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Self::Page(depth, _) => *depth,
            Self::Part(_) | Self::Group(_) => 0,
        }
    }
}

/// The pages in the directory of a `README.md` that were found through it.
fn below(path: &str, pages: &[Page], seen: &mut BTreeSet<String>) -> Vec<String> {
    let Some(directory) = path.strip_suffix("README.md") else { return Vec::new() };
    let is_below = |page: &&Page| page.found_on == path && page.path.starts_with(directory);
    let found = pages.iter().filter(is_below).map(|page| page.path.clone());
    found.filter(|path| seen.insert(path.clone())).collect()
}

/// Headings of the second level and the links of bullets. A bullet with links behind a colon is a group of these.
fn entries(index: &str, seen: &mut BTreeSet<String>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for block in blocks(index) {
        if let Some(name) = block.strip_prefix("## ") {
            let name = name.split(':').next().unwrap_or(name);
            entries.push(Entry::Part(name.to_owned()));
            continue;
        }
        let Some(bullet) = block.strip_prefix("- ") else { continue };
        let (head, members) = split_group(bullet);
        let mut head_pages = pages_of(head, seen).into_iter();
        let members = pages_of(members, seen);
        match head_pages.next() {
            Some(first) => entries.push(Entry::Page(0, first)),
            None if members.is_empty() => {}
            None => {
                let name = head.split([',', ':']).next().unwrap_or(head).trim();
                entries.push(Entry::Group(name.to_owned()));
            }
        }
        entries.extend(members.into_iter().map(|path| Entry::Page(1, path)));
        entries.extend(head_pages.map(|path| Entry::Page(0, path)));
    }
    entries
}

/// Headings and bullets, each in one line.
fn blocks(index: &str) -> Vec<String> {
    let mut blocks = Vec::<String>::new();
    for line in index.lines() {
        match (line.strip_prefix("  "), blocks.last_mut()) {
            (Some(rest), Some(last)) => {
                last.push(' ');
                last.push_str(rest.trim_start());
            }
            (Some(_) | None, _) => blocks.push(line.to_owned()),
        }
    }
    blocks
}

/// The parts before and after the first colon that is not in the text of a link.
fn split_group(bullet: &str) -> (&str, &str) {
    let mut depth = 0_u32;
    for (place, c) in bullet.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => return bullet.split_at(place),
            _ => {}
        }
    }
    (bullet, "")
}

/// The pages that a text links to, each only once in the whole table.
fn pages_of(text: &str, seen: &mut BTreeSet<String>) -> Vec<String> {
    let paths = links(text).into_iter().filter_map(|(_, link)| resolve(INDEX, link.path));
    let pages = paths.filter(|path| path.ends_with(".md"));
    pages.filter(|path| seen.insert(path.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, title: &str, found_on: &str) -> Page {
        Page { path: path.to_owned(), title: title.to_owned(), found_on: found_on.to_owned() }
    }

    #[test]
    fn the_index_becomes_the_table_of_contents() {
        let index = "# Documentation\n\n## Guides: reach a goal\n\nFor all:\n\n- [CI: a test](guides/ci.md), and [cli](cli.md)\n\
            - [Recipes](recipes/README.md): [one](recipes/one.md),\n  [two](recipes/two.md)\n- [Start](../README.md#start)\n\n\
            ## Reference\n\n- Runbooks, one for each [alert](../rules.yml): [Down](down.md)\n- [Library](../lib/README.md)\n";
        let pages = [
            page("README.md", "Forewarn", ""),
            page("docs/README.md", "Documentation", "README.md"),
            page("docs/guides/ci.md", "In CI [x]", INDEX),
            page("docs/cli.md", "Command line", INDEX),
            page("docs/recipes/README.md", "Recipes", INDEX),
            page("docs/recipes/one.md", "One", INDEX),
            page("docs/recipes/two.md", "Two", INDEX),
            page("docs/down.md", "Down", INDEX),
            page("lib/README.md", "The library", INDEX),
            page("lib/a.md", "A", "lib/README.md"),
            page("CHANGELOG.md", "Changelog", "README.md"),
        ];
        let expected = "# Summary\n\n[Forewarn](README.md)\n[Documentation](docs/README.md)\n\n# Guides\n\n\
            - [In CI x](docs/guides/ci.md)\n- [Command line](docs/cli.md)\n- [Recipes](docs/recipes/README.md)\n  \
            - [One](docs/recipes/one.md)\n  - [Two](docs/recipes/two.md)\n\n# Reference\n\n- [Runbooks]()\n  \
            - [Down](docs/down.md)\n- [The library](lib/README.md)\n  - [A](lib/a.md)\n\n# Repository\n\n\
            - [Changelog](CHANGELOG.md)\n";
        assert_eq!(summary(index, &pages), expected);
    }
}
