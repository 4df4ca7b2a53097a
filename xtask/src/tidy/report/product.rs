//! The code that is delivered: packages under `crates`, without tests and helpers of tests.

use std::collections::BTreeSet;

use crate::tidy::Texts;
use crate::tidy::manifests::Package;
use crate::tidy::rust::{CrateSource, Function, Module, functions};
use crate::tidy::sources::lines_before_tests;

/// The packages with helpers of tests.
const TEST_HELPERS: [&str; 2] = ["observer", "testkit"];

pub(super) struct Product<'a> {
    texts: &'a Texts,
    pub(super) packages: Vec<(&'a Package, Vec<CrateSource<'a>>)>,
}

impl<'a> Product<'a> {
    pub(super) fn read(texts: &'a Texts, packages: &'a [Package]) -> Self {
        let delivered = |package: &&Package| {
            package.directory.starts_with("crates/") && !TEST_HELPERS.contains(&package.name.as_str())
        };
        let packages = packages.iter().filter(delivered).map(|package| {
            let roots = package.roots(texts).into_iter();
            (package, roots.map(|root| CrateSource::read(texts, root)).collect())
        });
        Self { texts, packages: packages.collect() }
    }

    /// Every module of a package.
    pub(super) fn modules_of(&self, package: &str) -> impl Iterator<Item = &Module<'a>> {
        let sources = self.packages.iter().filter(move |(known, _)| known.name == package);
        sources.flat_map(|(_, sources)| sources).flat_map(|source| &source.modules)
    }

    /// Every module, with the name of its package.
    pub(super) fn modules(&self) -> impl Iterator<Item = (&'a str, &Module<'a>)> {
        self.packages.iter().flat_map(|(package, _)| {
            let name = package.name.as_str();
            self.modules_of(name).map(move |module| (name, module))
        })
    }

    /// Every function, with its file.
    pub(super) fn functions(&self) -> impl Iterator<Item = (&str, Function<'a, '_>)> {
        self.modules().flat_map(|(_, module)| {
            functions(&module.tokens).into_iter().map(move |function| (module.file.as_str(), function))
        })
    }

    /// The files of a package below a directory, each up to its tests.
    pub(super) fn files_of(&self, package: &str, below: &str) -> impl Iterator<Item = &'a str> {
        let files: BTreeSet<_> = self.modules_of(package).map(|module| module.file.as_str()).collect();
        let files: Vec<_> = files.into_iter().filter(|file| file.starts_with(below)).collect();
        let texts: Vec<&'a str> =
            files.iter().filter_map(|file| self.texts.get(*file)).map(String::as_str).collect();
        texts.into_iter()
    }

    pub(super) fn lines_of(&self, package: &str, below: &str) -> usize {
        self.files_of(package, below).map(lines_before_tests).sum()
    }
}
