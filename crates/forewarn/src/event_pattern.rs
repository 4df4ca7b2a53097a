//! Types and machines of events on the command line: `Reboot:web_0`, `Reboot`, `:web_0`, or any.

use std::fmt;
use std::str::FromStr;

use forewarn_types::EventKind;

/// A type, a machine, both or neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventPattern {
    /// None for any type.
    pub(crate) kind: Option<EventKind>,
    /// None for any machine.
    pub(crate) machine: Option<String>,
}

impl FromStr for EventPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, machine) = match text.split_once(':') {
            Some((_, "")) => return Err("the name of the machine is empty: write TYPE or TYPE:VM".to_owned()),
            Some((kind, machine)) => (kind, Some(machine.to_owned())),
            None => (text, None),
        };
        let found = EventKind::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(kind));
        if found.is_none() && !kind.is_empty() {
            return Err(not_a_type());
        }
        Ok(Self { kind: found, machine })
    }
}

/// The error for a word that is no type of event: it names the types.
pub(crate) fn not_a_type() -> String {
    format!("not an event type: {}", EventKind::ALL.map(EventKind::as_str).join(", "))
}

impl fmt::Display for EventPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(kind) => write!(out, "{} event", kind.as_str())?,
            None => out.write_str("event")?,
        }
        match &self.machine {
            Some(machine) => write!(out, " of {machine}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_a_type_a_machine_both_or_neither() {
        let pattern = |text: &str| text.parse::<EventPattern>().map(|pattern| pattern.to_string());
        assert_eq!(pattern("reboot:web_0").as_deref(), Ok("Reboot event of web_0"));
        assert_eq!(pattern("Freeze").as_deref(), Ok("Freeze event"));
        assert_eq!(pattern(":web/web_0").as_deref(), Ok("event of web/web_0"));
        assert_eq!(pattern("").as_deref(), Ok("event"));
        assert!(pattern("Thaw").unwrap_err().contains("Terminate"));
        assert!(pattern("Reboot:").is_err());
    }
}
