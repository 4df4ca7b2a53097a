//! The first words of doc comments.

use super::Measure;
use super::product::Product;

/// Words that make a question of a sentence.
const QUESTIONS: [&str; 9] = ["How", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why"];

/// The share of doc comments that begin with such a word.
pub(super) fn beginnings(product: &Product<'_>) -> Measure {
    let (mut all, mut questions) = (0, 0);
    for (package, _) in &product.packages {
        for text in product.files_of(&package.name, "") {
            let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
            let mut is_inside = false;
            for line in code.lines().map(str::trim_start) {
                let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
                if let Some(doc) = doc.filter(|_| !is_inside) {
                    let first = doc.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
                    all += 1;
                    questions += usize::from(first.is_some_and(|word| QUESTIONS.contains(&word)));
                }
                is_inside = doc.is_some();
            }
        }
    }
    let name = "doc comments that begin with what, who, how, …";
    Measure { unit: "%", ..Measure::new(name, percent(questions, all), Some(10)) }
}

fn percent(part: usize, whole: usize) -> usize {
    (part * 100 + whole / 2).checked_div(whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Texts;
    use crate::tidy::manifests::packages;

    #[test]
    fn only_the_first_line_of_a_comment_counts() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let source = "//! Files.\n//! What is kept.\n\n/// Whether it is.\nfn a() {}\n\n    /// A name.\nfn b() {}\n\
                      // Who\n\n/// How\n\n#[cfg(test)]\nmod tests {\n/// What\n}\n";
        let texts = Texts::from([
            file("crates/a/Cargo.toml", "[package]\nname = \"a\"\n"),
            file("crates/a/src/lib.rs", source),
        ]);
        let packages = packages(&texts).unwrap();
        assert_eq!(beginnings(&Product::read(&texts, &packages)).value, 50);
    }
}
