//! What an agent is told, as its file: written by a test as it would be written by hand, and completed with where everything is.

use std::fmt::Write;

/// Settings of an agent. `DIR` in them is the directory of that agent, `NOTE` the program that writes down that it was run.
#[derive(Clone, Debug, Default)]
pub struct AgentSettings {
    /// A file that says everything but where the endpoint is.
    whole: Option<String>,
    top: String,
    tables: String,
}

impl AgentSettings {
    /// A file that says everything but where the endpoint is.
    pub fn whole(text: String) -> Self {
        Self { whole: Some(text), ..Self::default() }
    }

    /// The same file, with something else in one place.
    pub fn changed(self, from: &str, to: &str) -> Self {
        let text = self.whole.expect("a whole file");
        assert!(text.contains(from), "not in the file: {from}");
        Self::whole(text.replace(from, to))
    }

    /// One hook, `drain`, with an undo, and notes of all other phases. Approves when it is alone.
    pub fn draining() -> Self {
        Self::default().hook("drain", "scheduled", "command = [NOTE]\nundo = [NOTE]").noting()
    }

    /// Notes of the phases that follow.
    pub fn noting(self) -> Self {
        ["started", "completed", "cancelled"]
            .into_iter()
            .fold(self, |settings, phase| settings.hook(&format!("note-{phase}"), phase, "command = [NOTE]"))
    }

    /// The first one named approves when all are ready.
    pub fn leading(self, peers: &str) -> Self {
        self.table("approval", "policy = \"leader\"")
            .table("peers", &format!("PEERS\nkey_file = \"DIR/key\"\n{peers}"))
    }

    /// A line that stands before all tables.
    pub fn line(mut self, text: &str) -> Self {
        writeln!(self.top, "{text}").unwrap();
        self
    }

    pub fn table(mut self, name: &str, text: &str) -> Self {
        writeln!(self.tables, "[{name}]\n{text}").unwrap();
        self
    }

    pub fn rule(mut self, text: &str) -> Self {
        writeln!(self.tables, "[[rule]]\n{text}").unwrap();
        self
    }

    pub fn hook(mut self, name: &str, phase: &str, text: &str) -> Self {
        writeln!(self.tables, "[[hook]]\nname = \"{name}\"\nphase = \"{phase}\"\n{text}").unwrap();
        self
    }

    /// Whether it waits for news, or asks once a second.
    pub fn waits_for_news(&self) -> bool {
        !self.top.contains("long_poll = false")
    }

    /// The file, for an agent that lives in that directory.
    pub fn text(&self, directory: &str, endpoint: &str, peers: &[String]) -> String {
        if let Some(whole) = &self.whole {
            return format!("endpoint = \"{endpoint}\"\npoll = \"1s\"\n{whole}").replace("DIR", directory);
        }
        let peers: Vec<_> = peers.iter().map(|peer| format!("{peer:?}")).collect();
        let text = format!(
            "endpoint = \"{endpoint}\"\npoll = \"1s\"\nstate = \"DIR/state.json\"\nhooks = \"DIR/hooks\"\n\
             event_log = \"DIR/events.jsonl\"\nlisten = \"0.0.0.0:9911\"\n{}[log]\nlevel = \"debug\"\n{}",
            self.top, self.tables
        );
        text.replace("NOTE", "\"DIR/note\", \"DIR/did\"")
            .replace("PEERS", &format!("list = [{}]", peers.join(", ")))
            .replace("DIR", directory)
    }
}
