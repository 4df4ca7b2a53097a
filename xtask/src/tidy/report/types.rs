//! Names of types that several modules of a package use.

use std::collections::BTreeMap;

use super::Measure;
use super::product::Product;
use crate::tidy::rust::{Module, after_group};

/// The share of types whose name another type of the same package has, over all packages; and of each package.
pub(super) fn shared_names(product: &Product<'_>) -> Measure {
    let (mut all, mut shared) = (0, 0);
    let mut details = Vec::new();
    for (package, _) in &product.packages {
        let mut names = BTreeMap::<_, usize>::new();
        for name in product.modules_of(&package.name).flat_map(type_names) {
            *names.entry(name).or_default() += 1;
        }
        let types: usize = names.values().sum();
        let repeated: usize = names.values().filter(|count| **count > 1).sum();
        if repeated > 0 {
            details.push(format!(
                "{:>3}%  {}: {repeated} of {types}",
                percent(repeated, types),
                package.name
            ));
        }
        all += types;
        shared += repeated;
    }
    Measure {
        unit: "%",
        details,
        ..Measure::new("types that share their name in a package", percent(shared, all), None)
    }
}

pub(super) fn percent(part: usize, whole: usize) -> usize {
    (part * 100 + whole / 2).checked_div(whole).unwrap_or_default()
}

/// The structs, enums and traits of a module.
fn type_names<'a>(module: &Module<'a>) -> Vec<&'a str> {
    let tokens = &module.tokens;
    let mut names = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if matches!(tokens[at].text, "struct" | "enum" | "union" | "trait") {
            names.extend(tokens.get(at + 1).filter(|name| name.is_word()).map(|name| name.text));
        }
        at = if tokens[at].opens() { after_group(tokens, at) } else { at + 1 };
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Texts;
    use crate::tidy::manifests::packages;

    #[test]
    fn shared_names_are_counted_per_package() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file("crates/a/Cargo.toml", "[package]\nname = \"a\"\n"),
            file("crates/a/src/lib.rs", "mod b;\npub struct Kind;\nenum Other { Kind }\n"),
            file("crates/a/src/b.rs", "pub(crate) enum Kind {}\ntrait Third { type Kind; }\n"),
            file("crates/c/Cargo.toml", "[package]\nname = \"c\"\n"),
            file("crates/c/src/lib.rs", "struct Kind;\n"),
        ]);
        let packages = packages(&texts).unwrap();
        let measure = shared_names(&Product::read(&texts, &packages));
        assert_eq!((measure.value, measure.details), (40, vec![" 50%  a: 2 of 4".to_owned()]));
    }
}
