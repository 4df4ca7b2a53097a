//! `forewarn story ls` and `story show`: the library.

use anyhow::{Result, anyhow};
use forewarn_cli_support::table::Table;
use forewarn_story::library::{Scenario, library, scenario};
use serde_json::{Value, json};

use crate::operator::{OutputFormat, names, print, print_data};

pub(super) fn list(output: OutputFormat) -> Result<()> {
    match output {
        OutputFormat::Text(width) => {
            let mut table = Table::new(width, &["name", "events", "what happens"]).dropping(&["events"]);
            for scenario in library() {
                let events = scenario.events().join(", ");
                table.row([scenario.name.to_owned(), events, scenario.title().to_owned()]);
            }
            print(&table.to_string())
        }
        OutputFormat::Data(format) => {
            let item = |scenario: &Scenario| json!({ "name": scenario.name, "title": scenario.title(), "events": scenario.events() });
            let items: Vec<Value> = library().iter().map(item).collect();
            print_data(format, &json!({ "items": items }), names)
        }
    }
}

/// Prints a page, or only its story.
pub(super) fn show(name: &str, only_story: bool, output: OutputFormat) -> Result<()> {
    let scenario = scenario(name).map_err(|unknown| anyhow!(unknown))?;
    match output {
        OutputFormat::Data(format) => {
            let (title, events, story) = (scenario.title(), scenario.events(), scenario.story());
            let value = json!({
                "name": scenario.name, "title": title, "events": events, "story": story, "page": scenario.page
            });
            print_data(format, &value, names)
        }
        OutputFormat::Text(_) if only_story => print(&scenario.story()),
        OutputFormat::Text(_) => print(scenario.page),
    }
}
