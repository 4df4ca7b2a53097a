//! The packages of the workspace, as their manifests describe them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Texts;

/// A package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    /// The name of its directory: `server` in `crates/server`.
    pub(super) name: String,
    pub(super) directory: String,
    pub(super) description: String,
    /// Packages of the workspace that it depends on, also on some targets only; not those that only tests need.
    pub(super) dependencies: BTreeSet<String>,
}

/// Every package, by path.
pub(super) fn packages(texts: &Texts) -> Result<Vec<Package>> {
    let manifests = texts.iter().filter_map(|(path, text)| Some((path.strip_suffix("/Cargo.toml")?, text)));
    let tables = manifests.map(|(directory, text)| {
        let table = text.parse::<Table>().with_context(|| format!("cannot read: {directory}/Cargo.toml"))?;
        Ok((directory, table))
    });
    let tables = tables.collect::<Result<Vec<_>>>()?;
    let names: BTreeMap<_, _> = tables
        .iter()
        .filter_map(|(directory, table)| {
            Some((table.get("package")?.get("name")?.as_str()?, short(directory)))
        })
        .collect();
    Ok(tables.iter().map(|(directory, table)| package(directory, table, &names)).collect())
}

fn package(directory: &str, table: &Table, names: &BTreeMap<&str, &str>) -> Package {
    let description = table.get("package").and_then(|package| package.get("description"));
    let targets = table.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let sections = targets.filter_map(|target| target.get("dependencies")).chain(table.get("dependencies"));
    let dependencies = sections.filter_map(Value::as_table).flat_map(Table::keys);
    Package {
        name: short(directory).to_owned(),
        directory: directory.to_owned(),
        description: description.and_then(Value::as_str).unwrap_or_default().to_owned(),
        dependencies: dependencies
            .filter_map(|name| names.get(name.as_str()))
            .map(|name| (*name).to_owned())
            .collect(),
    }
}

fn short(directory: &str) -> &str {
    directory.rsplit('/').next().unwrap_or(directory)
}

impl Package {
    /// The root files of its library and its programs.
    pub(super) fn roots<'a>(&self, texts: &'a Texts) -> Vec<&'a str> {
        let known = [format!("{}/src/lib.rs", self.directory), format!("{}/src/main.rs", self.directory)];
        let programs = [format!("{}/src/bin/", self.directory), format!("{}/fuzz_targets/", self.directory)];
        let is_root = |path: &&String| {
            known.contains(path) || programs.iter().any(|directory| path.starts_with(directory))
        };
        texts.keys().filter(|path| path.ends_with(".rs")).filter(is_root).map(String::as_str).collect()
    }
}

/// The names of the packages that are compiled into one, without itself.
pub(super) fn compiled_into(packages: &[Package], name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![name.to_owned()];
    while let Some(name) = left.pop() {
        let package = packages.iter().find(|package| package.name == name);
        for next in package.iter().flat_map(|package| &package.dependencies) {
            if found.insert(next.clone()) {
                left.push(next.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_tells_what_a_package_depends_on() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file("Cargo.toml", "[workspace]\n"),
            file(
                "crates/a/Cargo.toml",
                "[package]\nname = \"forewarn-a\"\ndescription = \"A.\"\n[dependencies]\nforewarn-b.workspace = true\nserde = \"1\"\n\
                 [dev-dependencies]\nforewarn-c = { path = \"../c\" }\n[target.'cfg(x)'.dependencies]\nforewarn-d = {}\n",
            ),
            file(
                "crates/b/Cargo.toml",
                "[package]\nname = \"forewarn-b\"\n[dependencies]\nforewarn-c = \"0\"\n",
            ),
            file("crates/c/Cargo.toml", "[package]\nname = \"forewarn-c\"\n"),
            file("d/Cargo.toml", "[package]\nname = \"forewarn-d\"\n"),
            file("crates/a/src/lib.rs", ""),
            file("crates/a/src/x.rs", ""),
        ]);
        let packages = packages(&texts).unwrap();
        assert_eq!(packages.len(), 4);
        assert_eq!((packages[0].name.as_str(), packages[0].description.as_str()), ("a", "A."));
        assert_eq!(packages[0].dependencies, BTreeSet::from(["b".to_owned(), "d".to_owned()]));
        assert_eq!(packages[0].roots(&texts), ["crates/a/src/lib.rs"]);
        let all = ["b", "c", "d"].map(str::to_owned);
        assert_eq!(compiled_into(&packages, "a"), BTreeSet::from(all));
    }
}
