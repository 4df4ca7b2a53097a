//! `cargo xtask tidy --report`: measures of the code, each with its goal.

mod closures;
mod docs;
mod integration;
mod product;
mod state_writers;
pub(super) mod types;
mod words;

use std::collections::BTreeMap;

use serde_json::json;

use super::Texts;
use super::cycles::cycles;
use super::manifests::{Package, compiled_into};

use product::Product;

/// A number that is to become smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Measure {
    name: &'static str,
    value: usize,
    unit: &'static str,
    /// At most this; none, if it is only for information.
    goal: Option<usize>,
    /// The places that were counted, or the parts of the sum.
    details: Vec<String>,
}

impl Measure {
    fn new(name: &'static str, value: usize, goal: Option<usize>) -> Self {
        Self { name, value, unit: "", goal, details: Vec::new() }
    }

    /// Counts places.
    fn of_places(name: &'static str, places: Vec<String>, goal: usize) -> Self {
        Self { details: places, ..Self::new(name, 0, Some(goal)) }.counted()
    }

    fn counted(self) -> Self {
        Self { value: self.details.len(), ..self }
    }

    fn verdict(&self) -> &'static str {
        match self.goal {
            None => "–",
            Some(goal) if self.value <= goal => "ok",
            Some(_) => "over",
        }
    }

    fn goal_text(&self) -> String {
        self.goal.map_or_else(|| "–".to_owned(), |goal| goal.to_string())
    }
}

/// For people: a table, and below it what was counted.
pub(super) fn text(texts: &Texts, packages: &[Package]) -> String {
    render(&measures(texts, packages))
}

/// For programs.
pub(super) fn json(texts: &Texts, packages: &[Package]) -> String {
    let measures = measures(texts, packages).into_iter().map(|measure| {
        json!({
            "measure": measure.name, "value": measure.value, "unit": measure.unit, "goal": measure.goal,
            "verdict": measure.verdict(), "details": measure.details,
        })
    });
    format!("{:#}", json!({ "measures": measures.collect::<Vec<_>>() }))
}

fn render(measures: &[Measure]) -> String {
    let mut lines = vec![format!("{:<58} {:>8} {:>8}  verdict", "measure", "value", "goal")];
    for measure in measures {
        let value = format!("{}{}", measure.value, measure.unit);
        lines.push(format!(
            "{:<58} {value:>8} {:>8}  {}",
            measure.name,
            measure.goal_text(),
            measure.verdict()
        ));
    }
    for measure in measures.iter().filter(|measure| !measure.details.is_empty()) {
        lines.push(format!("\n{}", measure.name));
        lines.extend(measure.details.iter().map(|detail| format!("  {detail}")));
    }
    lines.join("\n")
}

fn measures(texts: &Texts, packages: &[Package]) -> Vec<Measure> {
    let product = Product::read(texts, packages);
    let mut measures = sizes(&product, packages);
    measures.push(module_cycles(texts, packages));
    measures.extend(driver(&product));
    measures.push(Measure::of_places(
        "functions that write durable state",
        state_writers::state_writers(&product),
        1,
    ));
    measures.push(Measure::of_places("closures sent to the driver", closures::closures(&product), 0));
    measures.push(Measure::of_places("places that look names up", closures::look_ups(&product), 1));
    measures.push(types::repeated_names(&product));
    measures.push(docs::beginnings(&product));
    measures.push(words::vague_words(texts, &product));
    let specification = texts.get("SPECIFICATION.md").map_or(0, String::len);
    measures.push(Measure::new("bytes of SPECIFICATION.md", specification, Some(40_000)));
    measures.push(integration::programs(texts, packages));
    measures.push(integration::harness_lines(texts));
    measures
}

/// Lines of packages, without tests.
fn sizes(product: &Product<'_>, packages: &[Package]) -> Vec<Measure> {
    let lines: BTreeMap<_, _> = product
        .packages
        .iter()
        .map(|(package, _)| (package.name.as_str(), product.lines_of(&package.name, "")))
        .collect();
    let parts = |names: &mut dyn Iterator<Item = &str>| -> (usize, Vec<String>) {
        let mut known: Vec<_> = names.filter_map(|name| Some((*lines.get(name)?, name.to_owned()))).collect();
        known.sort_by(|a, b| b.cmp(a));
        let sum = known.iter().map(|(lines, _)| lines).sum();
        (sum, known.iter().map(|(lines, name)| format!("{lines:>6}  {name}")).collect())
    };
    let (all, details) = parts(&mut lines.keys().copied());
    let largest = lines.values().copied().max().unwrap_or_default();
    let (agent, agent_details) = parts(&mut compiled_into(packages, "agent").iter().map(String::as_str));
    vec![
        Measure { details, ..Measure::new("lines of product code", all, Some(71_000)) },
        Measure::new("lines of the largest package", largest, Some(13_000)),
        Measure {
            details: agent_details,
            ..Measure::new("lines compiled into the agent besides its own", agent, Some(13_000))
        },
    ]
}

fn module_cycles(texts: &Texts, packages: &[Package]) -> Measure {
    let cycles = cycles(texts, packages);
    let details = cycles.iter().map(|cycle| {
        let modules: Vec<_> = cycle.modules.iter().map(String::as_str).collect();
        format!("{}: {}", cycle.folder, modules.join(" "))
    });
    Measure { details: details.collect(), ..Measure::new("module cycles", 0, Some(0)) }.counted()
}

fn driver(product: &Product<'_>) -> [Measure; 2] {
    const DRIVER: &str = "crates/server/src/driver";
    let functions = product.functions().filter(|(file, _)| file.starts_with(DRIVER)).count();
    [
        Measure::new("functions of the driver", functions, Some(45)),
        Measure::new("lines of the driver", product.lines_of("server", DRIVER), Some(800)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::manifests::packages;
    use super::*;

    fn texts() -> Texts {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        Texts::from([
            file(
                "crates/agent/Cargo.toml",
                "[package]\nname = \"forewarn-agent\"\n[dependencies]\nforewarn-url = \"0\"\n",
            ),
            file("crates/agent/src/main.rs", "fn main() {}\n"),
            file("crates/url/Cargo.toml", "[package]\nname = \"forewarn-url\"\n"),
            file("crates/url/src/lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod tests {\n}\n"),
            file("crates/url/src/a.rs", "use crate::b::B;\npub struct A;\n"),
            file("crates/url/src/b.rs", "use crate::a::A;\npub struct B;\n"),
            file("crates/server/Cargo.toml", "[package]\nname = \"forewarn-server\"\n"),
            file("crates/server/src/lib.rs", "mod driver;\n"),
            file("crates/server/src/driver/mod.rs", "#[cfg(test)]\nmod tests;\nfn a() {}\n"),
            file("crates/server/src/driver/tests.rs", "fn b() {}\nfn c() {}\n"),
        ])
    }

    #[test]
    fn tests_are_not_measured() {
        let texts = texts();
        let measures = measures(&texts, &packages(&texts).unwrap());
        let values: Vec<_> = measures.iter().map(|measure| (measure.name, measure.value)).collect();
        let expected = [
            ("lines of product code", 11),
            ("lines of the largest package", 6),
            ("lines compiled into the agent besides its own", 6),
            ("module cycles", 1),
            ("functions of the driver", 1),
            ("lines of the driver", 3),
        ];
        assert_eq!(values[..6], expected);
        assert_eq!(measures[3].details, ["url: a b"]);
    }

    #[test]
    fn a_measure_has_a_verdict() {
        let texts = texts();
        let packages = packages(&texts).unwrap();
        let table = text(&texts, &packages);
        assert!(
            table
                .contains("lines of the driver                                               3      800  ok"),
            "{table}"
        );
        assert!(
            table.contains(
                "module cycles                                                     1        0  over"
            ),
            "{table}"
        );
        let parsed: serde_json::Value = serde_json::from_str(&json(&texts, &packages)).unwrap();
        assert_eq!(parsed["measures"][3]["verdict"], "over");
        assert_eq!(parsed["measures"][3]["details"][0], "url: a b");
    }
}
