//! The contents of the site: the front page, the index, and everything that their links lead to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::create;
use super::summary::{FRONT, INDEX, Page, summary};
use crate::markdown::{links, resolve, title};
use crate::tree::Tree;

/// The name of the page of a directory.
const DIRECTORY_PAGE: &str = "README.md";
const INDEX_PAGE: &str = "index.md";

/// Everything that mdBook reads, except its settings.
pub(super) struct Source {
    /// In the order in which they were found.
    pages: Vec<Page>,
    /// The bytes of pages and other files, by path.
    files: BTreeMap<String, Vec<u8>>,
}

impl Source {
    /// Follows the links from the front page and the index.
    pub(super) fn collect(tree: &Tree) -> Result<Self> {
        let mut source = Self { pages: Vec::new(), files: BTreeMap::new() };
        let mut found = BTreeSet::from([FRONT.to_owned(), INDEX.to_owned()]);
        let mut left =
            VecDeque::from([(FRONT.to_owned(), String::new()), (INDEX.to_owned(), FRONT.to_owned())]);
        while let Some((path, found_on)) = left.pop_front() {
            let bytes = match read(tree, &path)? {
                Some(bytes) => bytes,
                None if path.ends_with(DIRECTORY_PAGE) => directory_page(tree, &path).into_bytes(),
                None => bail!("{found_on} links to a file that git does not track: {path}"),
            };
            if let Some(text) = std::str::from_utf8(&bytes).ok().filter(|_| path.ends_with(".md")) {
                let targets = links(text).into_iter().filter_map(|(_, link)| resolve(&path, link.path));
                for target in targets.map(|target| file_of(tree, &target)) {
                    if found.insert(target.clone()) {
                        left.push_back((target, path.clone()));
                    }
                }
                let title = title(text).unwrap_or(&path).to_owned();
                source.pages.push(Page { path: path.clone(), title, found_on });
            }
            source.files.insert(path, bytes);
        }
        let index = source.files.get(INDEX).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let summary = summary(index.unwrap_or_default(), &source.pages);
        source.files.insert("SUMMARY.md".to_owned(), summary.into_bytes());
        source.link_directories(tree);
        Ok(source)
    }

    /// Has links to directories and to their pages lead to `index.md`, which is what mdBook makes of `README.md`.
    fn link_directories(&mut self, tree: &Tree) {
        for page in &self.pages {
            let Some(text) = self.files.get(&page.path).and_then(|bytes| std::str::from_utf8(bytes).ok())
            else {
                continue;
            };
            let mut linked = text.to_owned();
            let targets: BTreeSet<_> = links(text).into_iter().map(|(_, link)| link.path).collect();
            for target in targets.into_iter().filter(|target| !target.is_empty()) {
                let Some(path) = resolve(&page.path, target) else { continue };
                let is_directory = file_of(tree, &path) != path;
                let directory = match target.strip_suffix(DIRECTORY_PAGE) {
                    Some(directory) => directory.to_owned(),
                    None if is_directory => format!("{}/", target.trim_end_matches('/')),
                    None => continue,
                };
                for end in [')', '#'] {
                    let (old, new) = (format!("]({target}{end}"), format!("]({directory}{INDEX_PAGE}{end}"));
                    linked = linked.replace(&old, &new);
                }
            }
            self.files.insert(page.path.clone(), linked.into_bytes());
        }
    }

    /// Writes all files into a directory.
    pub(super) fn write(&self, directory: &Path) -> Result<()> {
        for (path, bytes) in &self.files {
            let file = directory.join(path);
            file.parent().map_or(Ok(()), create)?;
            std::fs::write(&file, bytes).with_context(|| format!("cannot write: {}", file.display()))?;
        }
        Ok(())
    }

    /// The paths of the pages on the site.
    pub(super) fn page_urls(&self) -> Vec<String> {
        let url = |page: &Page| match page.path.strip_suffix(DIRECTORY_PAGE) {
            Some(directory) if directory.is_empty() || directory.ends_with('/') => {
                format!("{directory}index.html")
            }
            Some(_) | None => page.path.replace(".md", ".html"),
        };
        self.pages.iter().map(url).collect()
    }
}

fn read(tree: &Tree, path: &str) -> Result<Option<Vec<u8>>> {
    if !tree.has_file(path) {
        return Ok(None);
    }
    let bytes = std::fs::read(tree.root().join(path)).with_context(|| format!("cannot read: {path}"))?;
    Ok(Some(bytes))
}

/// The file itself, or the page of a directory.
fn file_of(tree: &Tree, path: &str) -> String {
    let is_file = tree.has_file(path);
    let is_directory = !is_file && tree.has(path);
    match (is_directory, path.is_empty()) {
        (true, true) => DIRECTORY_PAGE.to_owned(),
        (true, false) => format!("{path}/{DIRECTORY_PAGE}"),
        (false, _) => path.to_owned(),
    }
}

/// A list of the files in a directory without a page of its own. Only those directly in it are part of the site.
fn directory_page(tree: &Tree, path: &str) -> String {
    let directory = path.trim_end_matches(DIRECTORY_PAGE);
    let files = tree.paths().filter_map(|path| path.strip_prefix(directory));
    let line = |file: &str| match file.contains('/') {
        true => format!("- `{file}`\n"),
        false => format!("- [{file}]({file})\n"),
    };
    format!("# {}\n\n{}", directory.trim_end_matches('/'), files.map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_has_every_page_of_the_documentation_and_what_links_lead_to() {
        let tree = Tree::load().unwrap();
        let source = Source::collect(&tree).unwrap();
        let summary = std::str::from_utf8(&source.files["SUMMARY.md"]).unwrap();
        for path in tree.paths().filter(|path| path.starts_with("docs/") && path.ends_with(".md")) {
            assert_eq!(summary.matches(&format!("]({path})\n")).count(), 1, "{path}");
        }
        for page in &source.pages {
            assert_eq!(summary.matches(&format!("]({})\n", page.path)).count(), 1, "{}", page.path);
        }
        for path in ["stories/library/README.md", "deploy/monitoring/forewarn.rules.yml"] {
            assert!(source.files.contains_key(path), "{path}");
        }
        let urls = source.page_urls();
        for url in ["index.html", "docs/index.html", "docs/guides/serve.html"] {
            assert!(urls.iter().any(|page| page == url), "{url}");
        }
    }
}
