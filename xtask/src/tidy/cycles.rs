//! Cycles of imports between the modules of a crate.
//!
//! Every folder of a crate, its root included, has a graph of its own: the nodes are the modules of that folder, each
//! with everything below it. A reference from a module to another is an edge in the graph of their deepest common
//! folder. The `mod.rs` of a folder is no node of that folder's graph: it may re-export its children, and they may use
//! what it defines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::exceptions::{Exceptions, Known};
use super::manifests::Package;
use super::rust::{CrateSource, references};
use super::{Problem, Texts};

/// The modules of one folder that import each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    pub(super) package: String,
    /// `server` for the modules at the root of a crate, `server::arm` for those of a folder.
    pub(super) folder: String,
    pub(super) modules: BTreeSet<String>,
    /// A shortest way around, edge by edge.
    shortest: Vec<Edge>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
    file: String,
    /// Counted from 0.
    line: usize,
}

/// The edges of one folder, by the modules at their ends. Of several, the first in the order of files is kept.
type Graph = BTreeMap<String, BTreeMap<String, Edge>>;

pub(super) fn check(texts: &Texts, packages: &[Package], exceptions: &mut Exceptions) -> Vec<Problem> {
    let cycles = cycles(texts, packages);
    let unknown = cycles.iter().filter(|cycle| !exceptions.permits(&cycle.known()));
    unknown.map(Cycle::problem).collect()
}

/// The cycles of all packages.
pub(super) fn cycles(texts: &Texts, packages: &[Package]) -> Vec<Cycle> {
    let mut cycles = Vec::new();
    for package in packages {
        for root in package.roots(texts) {
            let source = CrateSource::read(texts, root);
            for (folder, graph) in graphs(&source) {
                let folder = [package.name.as_str()].into_iter().chain(folder).collect::<Vec<_>>().join("::");
                let rings = rings(&graph).into_iter();
                cycles.extend(rings.map(|modules| {
                    let shortest = shortest(&graph, &modules);
                    Cycle { package: package.name.clone(), folder: folder.clone(), modules, shortest }
                }));
            }
        }
    }
    cycles
}

impl Cycle {
    fn known(&self) -> Known {
        Known::Cycle { folder: self.folder.clone(), modules: self.modules.clone() }
    }

    fn problem(&self) -> Problem {
        let mut message = format!("modules of {} import each other", self.folder);
        for Edge { from, to, file, line } in &self.shortest {
            message.push_str(&format!("\n  {from} -> {to}: {file}:{}", line + 1));
        }
        if self.modules.len() > self.shortest.len() {
            message.push_str(&format!("\n  all of them: {}", join(&self.modules)));
        }
        let (file, line) = self.shortest.first().map_or(("", 0), |edge| (edge.file.as_str(), edge.line));
        Problem::new(file, line, message)
    }
}

fn join(modules: &BTreeSet<String>) -> String {
    modules.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// The graph of each folder, by the names of the modules above.
fn graphs<'a>(source: &CrateSource<'a>) -> BTreeMap<Vec<&'a str>, Graph> {
    let mut graphs = BTreeMap::<_, Graph>::new();
    for reference in references(source) {
        let (from, to) = (source.path(reference.from), source.path(reference.to));
        let common = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
        let (Some(here), Some(there)) = (from.get(common), to.get(common)) else { continue };
        let edge = Edge {
            from: (*here).to_owned(),
            to: (*there).to_owned(),
            file: source.modules[reference.from].file.clone(),
            line: reference.line,
        };
        let graph = graphs.entry(from[..common].to_vec()).or_default();
        graph.entry(edge.from.clone()).or_default().entry(edge.to.clone()).or_insert(edge);
    }
    graphs
}

/// The sets of modules of which each reaches each other.
fn rings(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<_, _> = graph.keys().map(|module| (module, reached(graph, module))).collect();
    let mut rings = Vec::<BTreeSet<String>>::new();
    for (module, others) in &reached {
        let back = |other: &&String| reached.get(other).is_some_and(|others| others.contains(*module));
        let ring: BTreeSet<String> = others.iter().filter(back).cloned().collect();
        if ring.contains(*module) && !rings.contains(&ring) {
            rings.push(ring);
        }
    }
    rings
}

/// Every module that a way leads to.
fn reached(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut left = vec![from];
    while let Some(module) = left.pop() {
        for next in graph.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(next.clone()) {
                left.push(next);
            }
        }
    }
    reached
}

/// A shortest way from a module of the ring back to itself.
fn shortest(graph: &Graph, ring: &BTreeSet<String>) -> Vec<Edge> {
    let ways = ring.iter().filter_map(|module| way_back(graph, module));
    ways.min_by_key(Vec::len).unwrap_or_default()
}

fn way_back(graph: &Graph, start: &str) -> Option<Vec<Edge>> {
    let mut seen = BTreeSet::new();
    let mut ways = VecDeque::from([(start, Vec::new())]);
    while let Some((module, way)) = ways.pop_front() {
        for (next, edge) in graph.get(module).into_iter().flatten() {
            let mut longer = way.clone();
            longer.push(edge.clone());
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                ways.push_back((next, longer));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)], exceptions: &str) -> Vec<String> {
        let manifest = ("crates/a/Cargo.toml".to_owned(), "[package]\nname = \"forewarn-a\"\n".to_owned());
        let sources = files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), (*text).to_owned()));
        let texts: Texts = sources.chain([manifest]).collect();
        let packages = super::super::manifests::packages(&texts).unwrap();
        let mut exceptions = Exceptions::parse(exceptions);
        let mut problems = check(&texts, &packages, &mut exceptions);
        problems.extend(exceptions.unused());
        problems.iter().map(ToString::to_string).collect()
    }

    const RING: [(&str, &str); 4] = [
        ("lib.rs", "mod b;\nmod c;\nmod d;\npub use b::B;\n"),
        ("b.rs", "use crate::c::C;\npub struct B;\n"),
        ("c.rs", "\nuse crate::d::D;\npub struct C;\n"),
        ("d.rs", "pub struct D;\nfn f() -> crate::B {}\n"),
    ];

    #[test]
    fn a_cycle_is_shown_edge_by_edge() {
        let expected = "crates/a/src/b.rs:1: modules of a import each other\n  b -> c: crates/a/src/b.rs:1\n  \
                        c -> d: crates/a/src/c.rs:2\n  d -> b: crates/a/src/d.rs:2";
        assert_eq!(problems(&RING, ""), [expected]);
    }

    #[test]
    fn a_known_cycle_is_no_problem_until_it_has_gone() {
        assert!(problems(&RING, "cycle: a: b c d\n").is_empty());
        let changed = problems(&RING, "# Known.\ncycle: a: b c\n");
        assert_eq!(changed.len(), 2, "{changed:?}");
        assert!(changed[1].starts_with("xtask/exceptions.txt:2: no longer needed: cycle: a: b c"));
    }

    #[test]
    fn the_shortest_of_several_ways_is_shown_and_all_modules_are_named() {
        let mut files = RING.to_vec();
        files[3].1 = "pub struct D;\nfn f() -> crate::B { super::c::C }\n";
        let found = problems(&files, "");
        assert!(found[0].contains("\n  c -> d: "), "{found:?}");
        assert!(found[0].ends_with("\n  d -> c: crates/a/src/d.rs:2\n  all of them: b c d"), "{found:?}");
    }

    #[test]
    fn a_folder_has_a_graph_of_its_own_and_its_mod_file_is_not_in_it() {
        let mut files = vec![
            ("lib.rs", "mod e;"),
            ("e/mod.rs", "mod f;\nmod g;\npub use f::F;\npub struct E(g::G);\n"),
            ("e/f.rs", "use super::E;\npub struct F(super::g::G);\n"),
            ("e/g.rs", "pub struct G(super::E);\n#[cfg(test)]\nmod tests { use super::super::F; }\n"),
        ];
        assert!(problems(&files, "").is_empty());
        files[3].1 = "use super::F;\npub struct G(F);\n";
        assert!(problems(&files, "")[0].contains("modules of a::e import each other\n  f -> g: "));
    }
}
