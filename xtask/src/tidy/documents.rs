//! Documents: links lead to tracked files and their headings, and no text names a path of the machine on which it was written.

use std::path::Path;

use super::{Problem, Texts};
use crate::markdown::{Link, anchors, links, resolve};

/// Directories that exist on every computer, so a document may name them.
const ON_EVERY_MACHINE: [&str; 14] = [
    "/", "/app", "/builds", "/home", "/mnt", "/opt", "/root", "/run", "/src", "/srv", "/tmp", "/usr",
    "/usr/src", "/var",
];

/// The paths of this computer: of the repository and of its parent directory.
pub(super) fn machine_paths(root: &Path) -> Vec<String> {
    let own = root.ancestors().take(2).map(|path| path.to_string_lossy().into_owned());
    own.filter(|path| !ON_EVERY_MACHINE.contains(&path.as_str())).collect()
}

pub(super) fn check_machine_paths(path: &str, text: &str, machine_paths: &[String]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (place, line) in text.lines().enumerate() {
        if let Some(found) = machine_paths.iter().find(|wanted| names_path(line, wanted)) {
            problems.push(Problem::new(path, place, format!("a path of the developer's machine: {found}")));
        }
    }
    problems
}

/// True if the line has that path as a whole, not as a part of another path.
fn names_path(line: &str, wanted: &str) -> bool {
    let is_part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    line.match_indices(wanted).any(|(at, _)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + wanted.len()..].chars().next());
        !before.is_some_and(is_part_of_name) && !after.is_some_and(|c| is_part_of_name(c) && c != '.')
    })
}

/// Links to files of the repository lead to one that git tracks, and to a heading of it.
pub(super) fn check_links(
    path: &str,
    texts: &Texts,
    is_tracked: impl Fn(&str) -> bool,
    is_on_disk: impl Fn(&str) -> bool,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let text = texts.get(path).map_or("", String::as_str);
    for (place, Link { path: target, fragment }) in links(text) {
        let message = match resolve(path, target) {
            Some(file) if is_tracked(&file) => match texts.get(&file).filter(|_| file.ends_with(".md")) {
                Some(page) if !fragment.is_empty() && !anchors(page).iter().any(|one| one == fragment) => {
                    format!("no such heading in {file}: #{fragment}")
                }
                Some(_) | None => continue,
            },
            Some(file) if is_on_disk(&file) => {
                format!("leads to a file that git does not track: {target}\n  hint: git add")
            }
            Some(_) | None => format!("leads nowhere: {target}"),
        };
        problems.push(Problem::new(path, place, message));
    }
    problems
}

/// Source files that the architecture names in backticks exist: `driver/mod.rs`, or `metadata/serve.rs` with the crate.
pub(super) fn check_source_names(path: &str, text: &str, files: &[&str]) -> Vec<Problem> {
    let exists = |name: &str| {
        let in_crate = name.split_once('/').map(|(package, rest)| format!("crates/{package}/src/{rest}"));
        files.iter().any(|file| {
            file.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'))
                || in_crate.as_deref() == Some(*file)
        })
    };
    let mut problems = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let names = line.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs"));
        for name in names.filter(|name| !name.contains(' ') && !exists(name)) {
            problems.push(Problem::new(path, place, format!("no such source file: {name}")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_this_machine_is_found_and_others_are_not() {
        let own = machine_paths(Path::new("/disk/forewarn"));
        assert_eq!(own, ["/disk/forewarn", "/disk"]);
        assert_eq!(machine_paths(Path::new("/home/forewarn")), ["/home/forewarn"]);
        let text = "see /disk/notes\n`/disk/forewarn`.\n/diskette and a/disk and /my-disk/x\n";
        let lines: Vec<_> = check_machine_paths("a.md", text, &own).iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 2]);
    }

    fn problems_of(text: &str) -> Vec<String> {
        let is_tracked = |path: &str| ["docs/a.md", "docs/b.md", "README.md", "docs"].contains(&path);
        let is_on_disk = |path: &str| path == "docs/new.md";
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([file("docs/b.md", text), file("README.md", "# Top\n")]);
        let problems = check_links("docs/b.md", &texts, is_tracked, is_on_disk);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let good =
            "[a](a.md) [r](../README.md#top \"title\") [d](.) [w](https://a.example/x) [h](#here)\n# Here\n";
        assert!(problems_of(good).is_empty());
        assert_eq!(problems_of("x\n[a](c.md)"), ["docs/b.md:2: leads nowhere: c.md"]);
        assert_eq!(problems_of("[a](../../a.md)"), ["docs/b.md:1: leads nowhere: ../../a.md"]);
        assert!(problems_of("[a](new.md)")[0].contains("git does not track: new.md"));
        assert_eq!(problems_of("[a](../README.md#end)"), ["docs/b.md:1: no such heading in README.md: #end"]);
        assert_eq!(
            problems_of("[a](#there)\n# Here\n"),
            ["docs/b.md:1: no such heading in docs/b.md: #there"]
        );
    }

    #[test]
    fn source_files_are_named_as_they_are() {
        let files = ["crates/a/src/b/c.rs", "crates/a/src/lib.rs"];
        let check = |text: &str| check_source_names("a.md", text, &files);
        assert!(check("`c.rs`, `b/c.rs`, `a/b/c.rs` and `a/lib.rs`, but `no file`").is_empty());
        let problems: Vec<_> = check("\n`d.rs` `xc.rs`").iter().map(ToString::to_string).collect();
        assert_eq!(problems, ["a.md:2: no such source file: d.rs", "a.md:2: no such source file: xc.rs"]);
    }

    #[test]
    fn code_has_no_links() {
        assert!(problems_of("`[a](c.md)` and\n```text\n[a](c.md)\n```\n").is_empty());
    }
}
