//! Names of types that occur twice in a package.

use std::collections::BTreeMap;

use super::Measure;
use super::product::Product;
use crate::tidy::manifests::Package;
use crate::tidy::rust::{Module, after_group};
use crate::tidy::{Problem, Texts};

/// Names that several modules may use: each command of a command line has its own.
const ALLOWED: [&str; 2] = ["Args", "Command"];

/// A name that several types of a package have.
struct Repeated {
    package: String,
    name: String,
    files: Vec<String>,
}

/// A problem for each name that occurs twice in a package.
pub(in crate::tidy) fn check(texts: &Texts, packages: &[Package]) -> Vec<Problem> {
    let repeated = repeated(&Product::read(texts, packages)).into_iter();
    let problems = repeated.map(|Repeated { name, files, .. }| {
        let message =
            format!("the type name {name} occurs {} times in its package: {}", files.len(), files.join(", "));
        Problem::new(&files[0], 0, message)
    });
    problems.collect()
}

/// The number of such names, over all packages.
pub(super) fn repeated_names(product: &Product<'_>) -> Measure {
    let details = repeated(product).into_iter();
    let details = details.map(|one| format!("{:>6}  {}: {}", one.files.len(), one.package, one.name));
    Measure::of_places("type names that occur twice in a package", details.collect(), 0)
}

fn repeated(product: &Product<'_>) -> Vec<Repeated> {
    let mut repeated = Vec::new();
    for (package, _) in &product.packages {
        let mut files = BTreeMap::<_, Vec<_>>::new();
        for module in product.modules_of(&package.name) {
            for name in type_names(module) {
                files.entry(name).or_default().push(module.file.clone());
            }
        }
        files.retain(|name, files| files.len() > 1 && !ALLOWED.contains(name));
        repeated.extend(files.into_iter().map(|(name, files)| Repeated {
            package: package.name.clone(),
            name: name.to_owned(),
            files,
        }));
    }
    repeated
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
    use crate::tidy::manifests::packages;

    #[test]
    fn a_name_that_occurs_twice_in_a_package_is_a_problem() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file("crates/a/Cargo.toml", "[package]\nname = \"a\"\n"),
            file("crates/a/src/lib.rs", "mod b;\npub struct Kind;\nenum Other { Kind }\nstruct Args;\n"),
            file("crates/a/src/b.rs", "pub(crate) enum Kind {}\ntrait Third { type Kind; }\nstruct Args;\n"),
            file("crates/c/Cargo.toml", "[package]\nname = \"c\"\n"),
            file("crates/c/src/lib.rs", "struct Kind;\n"),
        ]);
        let packages = packages(&texts).unwrap();
        let problems = check(&texts, &packages);
        assert_eq!(problems.len(), 1);
        let expected =
            "the type name Kind occurs 2 times in its package: crates/a/src/lib.rs, crates/a/src/b.rs";
        assert_eq!(problems[0].message, expected);
        let measure = repeated_names(&Product::read(&texts, &packages));
        assert_eq!((measure.value, measure.details), (1, vec!["     2  a: Kind".to_owned()]));
    }
}
