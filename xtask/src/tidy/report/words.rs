//! Words that hide who acts.

use super::Measure;
use super::product::Product;
use crate::tidy::Texts;

const WORDS: [&str; 4] = ["told", "whoever", "somebody", "nobody"];

/// Occurrences in sources and in `docs/`, at most 99 in all.
pub(super) fn vague_words(texts: &Texts, product: &Product<'_>) -> Measure {
    let mut details = Vec::new();
    for (package, _) in &product.packages {
        let sources = product.files_of(&package.name, "").map(count);
        details.push((sources.sum::<usize>(), package.name.clone()));
    }
    let pages = texts.iter().filter(|(path, _)| path.starts_with("docs/") && path.ends_with(".md"));
    details.push((pages.map(|(_, text)| count(text)).sum(), "docs".to_owned()));
    details.retain(|(count, _)| *count > 0);
    details.sort_by(|a, b| b.cmp(a));
    let sum = details.iter().map(|(count, _)| count).sum();
    Measure {
        details: details.iter().map(|(count, name)| format!("{count:>6}  {name}")).collect(),
        ..Measure::new("told, whoever, somebody, nobody in src and docs", sum, Some(99))
    }
}

fn count(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| WORDS.iter().any(|vague| word.eq_ignore_ascii_case(vague))).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::manifests::packages;

    #[test]
    fn whole_words_count_in_sources_and_documentation() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file("crates/a/Cargo.toml", "[package]\nname = \"a\"\n"),
            file("crates/a/src/lib.rs", "//! Nobody is told.\nfn untold() {}\n"),
            file("docs/a.md", "whoever\n"),
            file("CHANGELOG.md", "somebody\n"),
        ]);
        let packages = packages(&texts).unwrap();
        let measure = vague_words(&texts, &Product::read(&texts, &packages));
        assert_eq!(
            (measure.value, measure.details),
            (3, vec!["     2  a".to_owned(), "     1  docs".to_owned()])
        );
    }
}
