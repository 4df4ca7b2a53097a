//! The built site: every link leads to a file and an element of it, nothing is loaded from another host, and the search
//! finds every page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use crate::markdown::resolve;
use crate::tree::walked;

/// The problems of a site with these pages.
pub(super) fn site(directory: &Path, pages: &[String]) -> Result<Vec<String>> {
    let mut files = BTreeMap::new();
    for path in walked(directory)? {
        let bytes = std::fs::read(directory.join(&path)).with_context(|| format!("cannot read: {path}"))?;
        files.insert(path, String::from_utf8(bytes).unwrap_or_default());
    }
    Ok(problems(&files, pages))
}

fn problems(files: &BTreeMap<String, String>, pages: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    let ids: BTreeMap<_, _> = files.iter().map(|(path, text)| (path.as_str(), ids(path, text))).collect();
    for (path, text) in files {
        let found = match path.rsplit('.').next() {
            Some("html") => page_problems(path, text, &ids),
            Some("css") => style_problems(text),
            Some(_) | None => Vec::new(),
        };
        problems.extend(found.into_iter().map(|problem| format!("{path}: {problem}")));
    }
    let index = files.iter().find(|(path, _)| path.starts_with("searchindex") && path.ends_with(".js"));
    for page in pages {
        if !files.contains_key(page) {
            problems.push(format!("{page}: the page is missing"));
        } else if !index.is_some_and(|(_, index)| index.contains(&format!("\"{page}#"))) {
            problems.push(format!("{page}: the search does not find it"));
        }
    }
    problems
}

/// The elements of a page that a link may name.
fn ids<'a>(path: &str, text: &'a str) -> BTreeSet<&'a str> {
    if path.ends_with(".html") { values(text, " id=\"").collect() } else { BTreeSet::new() }
}

/// The values of an attribute.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
}

fn page_problems(path: &str, text: &str, ids: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut problems = Vec::new();
    for tag in text.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let is_link = tag.starts_with("a ");
        for target in values(tag, " href=\"").chain(values(tag, " src=\"")) {
            if target.contains("://") || target.starts_with("//") {
                if !is_link {
                    problems.push(format!("loads from another host: {target}"));
                }
            } else if !target.starts_with("mailto:")
                && !target.starts_with("data:")
                && let Some(problem) = link_problem(path, target, ids)
            {
                problems.push(problem);
            }
        }
    }
    problems
}

fn link_problem(path: &str, target: &str, ids: &BTreeMap<&str, BTreeSet<&str>>) -> Option<String> {
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let file = file.split('?').next().unwrap_or(file);
    let found = resolve(path, file).and_then(|file| ids.get(file.as_str()).map(|ids| (file, ids)));
    match found {
        None => Some(format!("leads nowhere: {target}")),
        Some((file, ids)) if file.ends_with(".html") && !fragment.is_empty() && !ids.contains(fragment) => {
            Some(format!("no such element: {target}"))
        }
        Some(_) => None,
    }
}

fn style_problems(text: &str) -> Vec<String> {
    let urls = text.split("url(").skip(1).filter_map(|rest| rest.split(')').next());
    let imports = text.split("@import").skip(1).filter_map(|rest| rest.split(';').next());
    let is_foreign = |target: &&str| {
        let target = target.trim().trim_matches(['"', '\'']);
        !target.starts_with("data:") && (target.contains("://") || target.starts_with("//"))
    };
    let foreign = urls.chain(imports).filter(is_foreign);
    foreign.map(|target| format!("loads from another host: {}", target.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str, style: &str) -> Vec<String> {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let files = BTreeMap::from([
            file("index.html", page),
            file("docs/a.html", "<h1 id=\"top\"></h1><a href=\"../index.html\">x</a>"),
            file("general.css", style),
            file("searchindex-1.js", "[\"index.html#a\",\"docs/a.html#top\"]"),
        ]);
        problems(&files, &["index.html".to_owned(), "docs/a.html".to_owned()])
    }

    #[test]
    fn links_lead_to_files_and_their_elements() {
        let good = "<a href=\"docs/a.html#top\">a</a> <a class=\"x\" href=\"https://a.example\">w</a> <a href=\"#b\"><p id=\"b\">\
                    <link rel=\"stylesheet\" href=\"general.css\"><a href=\"docs/a.html?highlight=x\">";
        assert!(
            found(
                good,
                "a { b: url(../fonts/c.woff2); c: url('data:image/svg+xml,<svg xmlns=\"http://x\">') }"
            )
            .is_empty()
        );
        let bad = "<a href=\"b.html\"> <a href=\"docs/a.html#end\"> <img src=\"c.svg\">";
        let expected = ["leads nowhere: b.html", "no such element: docs/a.html#end", "leads nowhere: c.svg"];
        assert_eq!(found(bad, ""), expected.map(|problem| format!("index.html: {problem}")));
    }

    #[test]
    fn nothing_is_loaded_from_another_host() {
        let page = "<script src=\"https://a.example/x.js\"></script><link href=\"//a.example/y.css\">";
        let style = "@import \"https://a.example/z.css\"; a { b: url('http://a.example/f.woff') }";
        let found = found(page, style);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().all(|problem| problem.contains("loads from another host")), "{found:?}");
    }

    #[test]
    fn every_page_exists_and_is_found() {
        let pages = ["index.html".to_owned(), "b.html".to_owned()];
        let files = BTreeMap::from([("index.html".to_owned(), String::new())]);
        let expected = ["index.html: the search does not find it", "b.html: the page is missing"];
        assert_eq!(problems(&files, &pages), expected);
    }
}
