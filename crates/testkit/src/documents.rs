//! Documents as they have to be, written down a second time: nothing here is taken from the code that is tested.

/// What one edition knows.
pub struct Edition {
    pub name: &'static str,
    /// What names of machines begin with, those of role instances apart.
    pub underline: &'static str,
    pub kinds: &'static [&'static str],
    /// How many of `Description`, `EventSource` and `DurationInSeconds` an event has.
    pub fields: usize,
}

const FIRST: &[&str] = &["Freeze", "Reboot", "Redeploy"];
const WITH_PREEMPT: &[&str] = &["Freeze", "Reboot", "Redeploy", "Preempt"];
const ALL: &[&str] = &["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"];

/// All that there are, oldest first.
pub const EDITIONS: [Edition; 7] = [
    Edition { name: "2017-03-01", underline: "_", kinds: FIRST, fields: 0 },
    Edition { name: "2017-08-01", underline: "", kinds: FIRST, fields: 0 },
    Edition { name: "2017-11-01", underline: "", kinds: WITH_PREEMPT, fields: 0 },
    Edition { name: "2019-01-01", underline: "", kinds: ALL, fields: 0 },
    Edition { name: "2019-04-01", underline: "", kinds: ALL, fields: 1 },
    Edition { name: "2019-08-01", underline: "", kinds: ALL, fields: 2 },
    Edition { name: "2020-07-01", underline: "", kinds: ALL, fields: 3 },
];

/// One event of a document.
#[derive(Clone)]
pub struct Event {
    pub id: String,
    /// When it is `Scheduled` for; empty once `Started`.
    pub not_before: &'static str,
    pub kind: &'static str,
    pub resources: &'static [&'static str],
    pub description: &'static str,
    pub source: &'static str,
    pub duration_seconds: i32,
}

/// The body of a document in an edition, byte for byte.
pub fn document(edition: &Edition, incarnation: u64, events: &[Event]) -> String {
    let known = events.iter().filter(|event| edition.kinds.contains(&event.kind));
    let events: Vec<_> = known.map(|event| event.body(edition)).collect();
    format!(r#"{{"DocumentIncarnation":{incarnation},"Events":[{}]}}"#, events.join(","))
}

impl Event {
    pub fn started(&self) -> Self {
        Self { not_before: "", ..self.clone() }
    }

    fn body(&self, edition: &Edition) -> String {
        let Self { id, not_before, kind, .. } = self;
        let status = if not_before.is_empty() { "Started" } else { "Scheduled" };
        let names: Vec<_> = self.resources.iter().map(|name| quoted(edition, name)).collect();
        let more = [
            format!(r#","Description":"{}""#, self.description),
            format!(r#","EventSource":"{}""#, self.source),
            format!(r#","DurationInSeconds":{}"#, self.duration_seconds),
        ];
        format!(r#"{{"EventId":"{id}","EventStatus":"{status}","EventType":"{kind}","#)
            + &format!(r#""ResourceType":"VirtualMachine","Resources":[{}],"#, names.join(","))
            + &format!(r#""NotBefore":"{not_before}"{}}}"#, more[..edition.fields].concat())
    }
}

fn quoted(edition: &Edition, name: &str) -> String {
    let is_role_instance = name.contains("_IN_");
    format!(r#""{}{name}""#, if is_role_instance { "" } else { edition.underline })
}

/// The documents of a transcript of a story, each after its time: everything that machines saw, without the statements.
#[must_use]
pub fn documents_of_transcript(transcript: &str) -> Vec<String> {
    let (mut time, mut seen) = ("", Vec::new());
    for line in transcript.lines().take_while(|line| *line != "in the end") {
        if line.starts_with("at ") {
            time = line;
        } else if line.starts_with("      ") && (line.contains(" sees ") || line.starts_with("        E")) {
            seen.push(format!("{time}: {}", line.trim()));
        }
    }
    seen
}
