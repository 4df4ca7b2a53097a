//! `forewarn story ls` and `story show`: the library.

use anyhow::{Result, anyhow};
use forewarn_cli_support::table::Table;
use forewarn_cli_support::visible::json;
use forewarn_story::library::{library, scenario};
use serde_json::{Value, json};

use crate::operator::{OutputFormat, print};

pub(super) fn list(output: OutputFormat) -> Result<()> {
    match output {
        OutputFormat::Table | OutputFormat::Wide => {
            let mut table = Table::new(&["name", "events", "what happens"]);
            for scenario in library() {
                let events = scenario.events().join(", ");
                table.row([scenario.name.to_owned(), events, scenario.title().to_owned()]);
            }
            print(&table.to_string())
        }
        OutputFormat::Json => {
            let item = |scenario: &forewarn_story::library::Scenario| json!({ "name": scenario.name, "title": scenario.title(), "events": scenario.events() });
            let items: Vec<Value> = library().iter().map(item).collect();
            print(&json(&format!("{:#}\n", json!({ "items": items }))))
        }
    }
}

/// Prints a page, or only its story.
pub(super) fn show(name: &str, only_story: bool, output: OutputFormat) -> Result<()> {
    let scenario = scenario(name).map_err(|unknown| anyhow!(unknown))?;
    match output {
        OutputFormat::Json => {
            let (title, events, story) = (scenario.title(), scenario.events(), scenario.story());
            let value = json!({
                "name": scenario.name, "title": title, "events": events, "story": story, "page": scenario.page
            });
            print(&json(&format!("{value:#}\n")))
        }
        OutputFormat::Table | OutputFormat::Wide if only_story => print(&scenario.story()),
        OutputFormat::Table | OutputFormat::Wide => print(scenario.page),
    }
}
