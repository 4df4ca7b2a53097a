//! The table of packages in ARCHITECTURE.md, generated from the manifests.

use super::layers::layer_of;
use super::manifests::Package;
use super::{Problem, Texts};

pub(super) const DOCUMENT: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- packages: written by `cargo xtask tidy --write` from the manifests -->\n";
const END: &str = "<!-- end of packages -->\n";

pub(super) fn check(texts: &Texts, packages: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages.iter().filter(|package| package.description.is_empty()) {
        let manifest = format!("{}/Cargo.toml", package.directory);
        problems.push(Problem::new(&manifest, 0, "no `description`"));
    }
    let hint = "hint: cargo xtask tidy --write";
    match texts.get(DOCUMENT).map(|document| (document, rewritten(document, packages))) {
        None => problems.push(Problem::new(DOCUMENT, 0, "the file is missing")),
        Some((_, None)) => {
            let message = format!("no table of packages\n  hint: a line {BEGIN}  and a line {END}");
            problems.push(Problem::new(DOCUMENT, 0, message.trim_end()));
        }
        Some((document, Some(wanted))) if *document != wanted => {
            let place = document.lines().zip(wanted.lines()).take_while(|(is, should)| is == should).count();
            let message = format!("the table of packages is not what the manifests say\n  {hint}");
            problems.push(Problem::new(DOCUMENT, place, message));
        }
        Some(_) => {}
    }
    problems
}

/// The document with the current table. None if the document has no markers.
pub(super) fn rewritten(document: &str, packages: &[Package]) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", table(packages)))
}

/// Packages of lower layers come first.
fn table(packages: &[Package]) -> String {
    let mut packages: Vec<_> = packages.iter().collect();
    packages.sort_by_key(|package| (layer_of(&package.name), &package.name));
    let mut table = "| package | contents | depends on |\n|---|---|---|\n".to_owned();
    for Package { directory, description, dependencies, .. } in packages {
        let names: Vec<_> = dependencies.iter().map(|name| format!("`{name}`")).collect();
        let names = if names.is_empty() { "–".to_owned() } else { names.join(", ") };
        table.push_str(&format!("| `{directory}` | {description} | {names} |\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::manifests::packages;
    use super::*;

    fn texts(document: &str) -> Texts {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        Texts::from([
            file(DOCUMENT, document),
            file(
                "crates/control/Cargo.toml",
                "[package]\nname = \"a\"\ndescription = \"Rules.\"\n[dependencies]\nb = \"1\"\n",
            ),
            file("crates/url/Cargo.toml", "[package]\nname = \"b\"\ndescription = \"Addresses.\"\n"),
        ])
    }

    fn problems(texts: &Texts) -> Vec<String> {
        check(texts, &packages(texts).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_table_is_written_from_the_manifests() {
        let old = format!("# Map\n{BEGIN}old\n{END}\nMore.\n");
        let texts_before = texts(&old);
        let found = problems(&texts_before);
        assert!(found[0].starts_with("ARCHITECTURE.md:3: the table of packages is not"), "{found:?}");
        let new = rewritten(&old, &packages(&texts_before).unwrap()).unwrap();
        let expected = "| package | contents | depends on |\n|---|---|---|\n| `crates/url` | Addresses. | – |\n\
                        | `crates/control` | Rules. | `url` |\n";
        assert_eq!(new, format!("# Map\n{BEGIN}\n{expected}\n{END}\nMore.\n"));
        assert!(problems(&texts(&new)).is_empty());
    }

    #[test]
    fn a_document_without_a_table_and_a_package_without_a_description_are_problems() {
        let mut texts = texts("# Map\n");
        assert!(problems(&texts)[0].starts_with("ARCHITECTURE.md:1: no table of packages"));
        texts.remove(DOCUMENT);
        texts.insert("crates/url/Cargo.toml".to_owned(), "[package]\nname = \"b\"\n".to_owned());
        let expected =
            ["crates/url/Cargo.toml:1: no `description`", "ARCHITECTURE.md:1: the file is missing"];
        assert_eq!(problems(&texts), expected);
    }
}
