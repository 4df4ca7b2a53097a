//! The direction of dependencies between packages.

use super::Problem;
use super::exceptions::{Exceptions, Known};
use super::manifests::{Package, compiled_into};

/// Every package, lowest layer first. A package depends on packages of lower layers only; those that only its tests
/// need are free.
pub(super) const LAYERS: [&[&str]; 11] = [
    &["types", "url", "processes", "cli-support", "reports", "dashboard"],
    &["lifecycle", "imds", "http-client", "ownership", "etcd"],
    &["control", "hypervisor", "metadata", "agent-core", "client", "conformance"],
    &["store", "peers", "verdict", "explain"],
    &["story", "agent", "realm"],
    &["server"],
    &["azure"],
    &["forewarn"],
    &["bench", "fuzz", "xtask"],
    // Helpers for tests: a dependency of tests only.
    &["observer", "testkit"],
    // A tool of developers, which observes.
    &["sim"],
];

/// Packages that must not be compiled into another, not even by way of a third.
const NEVER: [(&str, &str); 8] = [
    ("agent", "azure"),
    ("agent", "control"),
    ("agent", "lifecycle"),
    ("agent", "metadata"),
    ("agent", "server"),
    ("agent", "store"),
    // A poll reads published documents, and nothing else.
    ("metadata", "lifecycle"),
    ("server", "azure"),
];

pub(super) fn check(packages: &[Package], exceptions: &mut Exceptions) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages {
        let manifest = format!("{}/Cargo.toml", package.directory);
        let Some(layer) = layer_of(&package.name) else {
            let hint = "hint: add it to LAYERS in xtask/src/tidy/layers.rs";
            problems.push(Problem::new(
                &manifest,
                0,
                format!("a package in no layer: {}\n  {hint}", package.name),
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let known = Known::Dependency { from: package.name.clone(), to: dependency.clone() };
            let goes_down = layer_of(dependency).is_some_and(|below| below < layer);
            if !goes_down && !exceptions.permits(&known) {
                let message =
                    format!("a dependency that goes to no lower layer: {} -> {dependency}", package.name);
                problems.push(Problem::new(&manifest, 0, message));
            }
        }
    }
    for (from, to) in NEVER {
        let known = Known::Reach { from: from.to_owned(), to: to.to_owned() };
        if compiled_into(packages, from).contains(to) && !exceptions.permits(&known) {
            let manifest = format!("crates/{from}/Cargo.toml");
            problems.push(Problem::new(&manifest, 0, format!("{to} must not be compiled into {from}")));
        }
    }
    problems
}

/// The layer of a package, counted from the lowest.
pub(super) fn layer_of(package: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&package))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            directory: format!("crates/{name}"),
            description: String::new(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(),
        }
    }

    fn problems(packages: &[Package], exceptions: &str) -> Vec<String> {
        let mut exceptions = Exceptions::parse(exceptions);
        let mut problems = check(packages, &mut exceptions);
        problems.extend(exceptions.unused());
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_dependency_goes_to_a_lower_layer() {
        let packages = [package("url", &[]), package("control", &["url"]), package("store", &["control"])];
        assert!(problems(&packages, "").is_empty());
        let packages =
            [package("control", &["store"]), package("store", &["story"]), package("story", &["testkit"])];
        let found = problems(&packages, "dependency: control -> store\n");
        let message = "a dependency that goes to no lower layer";
        let expected = [
            format!("crates/store/Cargo.toml:1: {message}: store -> story"),
            format!("crates/story/Cargo.toml:1: {message}: story -> testkit"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_package_is_not_compiled_into_another_by_way_of_a_third() {
        let packages = [
            package("agent", &["agent-core"]),
            package("agent-core", &["lifecycle"]),
            package("lifecycle", &[]),
        ];
        let expected = "crates/agent/Cargo.toml:1: lifecycle must not be compiled into agent";
        assert_eq!(problems(&packages, ""), [expected]);
        assert!(problems(&packages, "reach: agent -> lifecycle\n").is_empty());
    }

    #[test]
    fn every_package_has_a_layer() {
        assert!(
            problems(&[package("new", &[])], "")[0]
                .starts_with("crates/new/Cargo.toml:1: a package in no layer: new")
        );
    }
}
