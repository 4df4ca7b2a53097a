//! The packages with properties, whose tests a long run repeats with more cases.

use anyhow::{Context, Result};
use toml::Table;

use crate::tree::Tree;

/// The package that tests of properties need.
const LIBRARY: &str = "proptest";

/// The names of the packages whose tests need [`LIBRARY`], by path.
pub(crate) fn packages() -> Result<Vec<String>> {
    let tree = Tree::load()?;
    let mut names = Vec::new();
    for path in tree.paths().filter(|path| path.ends_with("/Cargo.toml")) {
        let text = tree.text(path)?.unwrap_or_default();
        names.extend(tested(&text).with_context(|| format!("cannot read: {path}"))?);
    }
    Ok(names)
}

/// The name in a manifest, if the tests of the package need [`LIBRARY`].
fn tested(manifest: &str) -> Result<Option<String>> {
    let table = manifest.parse::<Table>()?;
    let needs = table.get("dev-dependencies").is_some_and(|section| section.get(LIBRARY).is_some());
    let name = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
    Ok(name.filter(|_| needs).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_if_its_tests_need_the_library() {
        let manifest = |section: &str| format!("[package]\nname = \"a\"\n[{section}]\nproptest = \"1\"\n");
        assert_eq!(tested(&manifest("dev-dependencies")).unwrap().as_deref(), Some("a"));
        assert_eq!(tested(&manifest("dependencies")).unwrap(), None);
        assert_eq!(tested("[workspace]\n").unwrap(), None);
        assert!(tested("[package").is_err());
    }

    #[test]
    fn the_rules_and_the_program_have_properties() {
        let packages = packages().unwrap();
        for expected in ["forewarn", "forewarn-lifecycle", "forewarn-store"] {
            assert!(packages.iter().any(|package| package == expected), "{expected}: {packages:?}");
        }
    }
}
