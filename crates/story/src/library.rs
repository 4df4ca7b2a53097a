//! The library: stories about what happens to machines in practice, built into the program.
//!
//! Each scenario is a page, `stories/library/NAME.md`: what happens, how a good program reacts, what to look at in the
//! verdict, and the story itself in a fenced block.

use std::fmt::Write as _;

use forewarn_control::similar;

/// A story of the library, with its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The name of the page, without extension.
    pub name: &'static str,
    /// The text of the page.
    pub page: &'static str,
}

/// Lists the pages by name.
macro_rules! scenarios {
    ($($name:literal),+ $(,)?) => {
        [$(Scenario { name: $name, page: include_str!(concat!("../../../stories/library/", $name, ".md")) }),+]
    };
}

/// Every scenario, in alphabetical order.
static LIBRARY: [Scenario; 33] = scenarios![
    "approved-by-a-peer",
    "automatic-approval",
    "availability-set-leader",
    "back-to-back",
    "brake",
    "cancelled-event",
    "clock-skew",
    "cloud-service",
    "day-of-silence",
    "degraded-host",
    "failed-host",
    "failed-operation",
    "forced-start",
    "freeze",
    "host-update",
    "kernel-update",
    "late-first-poll",
    "live-migration",
    "maintenance-mode",
    "maintenance-window",
    "many-events",
    "network-update",
    "notice-runs-out",
    "os-image-upgrade",
    "overlapping-events",
    "reboot-by-owner",
    "redeploy-by-owner",
    "rolling-model-upgrade",
    "rollout-paused",
    "scale-in",
    "spot-eviction",
    "spot-eviction-scale-set",
    "two-tenants",
];

/// The beginning of the block with the story, and its end.
const FENCE: (&str, &str) = ("```story", "```");

/// The line of a page that lists its events.
const EVENTS: &str = "Events: ";

impl Scenario {
    /// The title of the page: the scenario in one line.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.page.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
    }

    /// The types of the events that occur.
    #[must_use]
    pub fn events(&self) -> Vec<&'static str> {
        let list = self.page.lines().find_map(|line| line.strip_prefix(EVENTS)).unwrap_or_default();
        list.trim_end_matches('.').split(", ").filter(|event| !event.is_empty()).collect()
    }

    /// The story, without the page.
    #[must_use]
    pub fn story(&self) -> String {
        let story = story_of_page(self.page).unwrap_or_default();
        story.trim_start_matches('\n').to_owned()
    }

    /// The story with empty lines in place of the page before it, so that errors name lines of the page.
    #[must_use]
    pub fn story_in_place(&self) -> String {
        story_of_page(self.page).unwrap_or_default()
    }
}

/// Every scenario of the library, in alphabetical order.
#[must_use]
pub fn library() -> &'static [Scenario] {
    &LIBRARY
}

/// The scenario of that name.
///
/// # Errors
/// There is none; the text says so, with a hint.
pub fn scenario(name: &str) -> Result<&'static Scenario, String> {
    let found = LIBRARY.iter().find(|scenario| scenario.name == name);
    found.ok_or_else(|| format!("no such story in the library: {name}{}", hint(name)))
}

/// The story of a page: the text of its block, after as many empty lines as precede it in the page. None if the page has
/// no such block.
#[must_use]
pub fn story_of_page(page: &str) -> Option<String> {
    let mut story = String::new();
    let mut lines = page.lines();
    loop {
        story.push('\n');
        if lines.next()?.trim_end() == FENCE.0 {
            break;
        }
    }
    for line in lines.take_while(|line| line.trim_end() != FENCE.1) {
        let _ = writeln!(story, "{line}");
    }
    Some(story)
}

/// Names that are similar, or contain the word; or the command that lists all of them.
fn hint(name: &str) -> String {
    let names = || LIBRARY.iter().map(|scenario| scenario.name);
    let containing: Vec<_> =
        names().filter(|known| !name.is_empty() && known.contains(name)).take(HINTS_MAX).collect();
    match similar(name, names()) {
        Some(near) => format!("\n  hint: did you mean {near}?"),
        None if !containing.is_empty() => format!("\n  hint: did you mean {}?", containing.join(", or ")),
        None => "\n  hint: forewarn story ls lists them; a file needs its extension, or a path".to_owned(),
    }
}

/// Names in a hint.
const HINTS_MAX: usize = 5;

/// The table of `stories/library/README.md`.
#[must_use]
pub fn index() -> String {
    let mut table = String::from("| story | what happens | events |\n|---|---|---|\n");
    for scenario in &LIBRARY {
        let (name, title, events) = (scenario.name, scenario.title(), scenario.events().join(", "));
        let _ = writeln!(table, "| [{name}]({name}.md) | {title} | {events} |");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gives_its_story_at_its_place() {
        let page = "# T\n\nEvents: Freeze.\n\n```story\nhost h1\n```\nmore\n";
        assert_eq!(story_of_page(page).as_deref(), Some("\n\n\n\n\nhost h1\n"));
        assert_eq!(story_of_page("# T\n```text\nhost h1\n```\n"), None);
        let scenario =
            Scenario { name: "t", page: "# T\n\nEvents: Freeze, Reboot.\n\n```story\nhost h1\n```\n" };
        assert_eq!((scenario.title(), scenario.events()), ("T", vec!["Freeze", "Reboot"]));
        assert_eq!(scenario.story(), "host h1\n");
    }

    #[test]
    fn an_unknown_name_has_a_hint() {
        assert_eq!(scenario("freeze").unwrap().name, "freeze");
        let unknown = |name: &str| scenario(name).unwrap_err();
        assert!(unknown("freze").ends_with("hint: did you mean freeze?"));
        assert!(unknown("eviction").ends_with("did you mean spot-eviction, or spot-eviction-scale-set?"));
        assert!(unknown("").contains("forewarn story ls"));
    }
}
