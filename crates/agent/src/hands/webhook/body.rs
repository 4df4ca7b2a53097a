//! What is sent: a CloudEvent, a sentence, or a body of the administrator's own.

use forewarn_agent_core::Phase;
use serde_json::{Value, json};

use super::{Format, WebhookWork};
use crate::hands::event::{Fact, VARIABLES, event_json, facts, moment_in};
use crate::hands::{Job, uri};

/// Bytes of a template, and of what it becomes.
const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Whether a template can be filled in. For settings, before there is an event.
pub(super) fn check_template(work: &WebhookWork) -> Result<(), String> {
    let only = |key: &str, set: bool, format: Format, word: &str| {
        let is_wrong = set && work.format != format;
        if is_wrong { Err(format!("`{key}` is for format = {word:?}")) } else { Ok(()) }
    };
    only("text", work.text.is_some(), Format::Text, "text")?;
    only("template", work.template.is_some(), Format::Template, "template")?;
    only("content_type", work.content_type.is_some(), Format::Template, "template")?;
    let text = match work.format {
        Format::CloudEvents => return Ok(()),
        Format::Text => work.text.as_deref().unwrap_or_default(),
        Format::Template => work.template.as_deref().ok_or(
            "format = \"template\" needs a `template`\n  hint: template = '{\"event\": \"{{event.id}}\"}'",
        )?,
    };
    if text.len() > TEMPLATE_BYTES_MAX {
        return Err(format!("a template has at most {TEMPLATE_BYTES_MAX} bytes"));
    }
    // Quotes and backslashes, so that a placeholder outside of quotes is seen for what it is.
    let sample: Vec<_> =
        VARIABLES.map(|variable| Fact { variable, value: "a \"b\" \\".to_owned() }).into_iter().collect();
    let filled = fill(text, &sample, escaping(work))?;
    if work.format == Format::Template && is_json(work) && serde_json::from_str::<Value>(&filled).is_err() {
        return Err("`template` does not become JSON\n  hint: placeholders stand between quotes: {\"id\": \"{{event.id}}\"}; for \
                    something else than JSON, say so: content_type = \"text/plain\""
            .to_owned());
    }
    if work.content_type.as_ref().is_some_and(|kind| kind.bytes().any(|byte| !(b' '..=b'~').contains(&byte)))
    {
        return Err("`content_type` has characters that no content type has".to_owned());
    }
    Ok(())
}

/// What is sent for a job.
pub(super) fn render(work: &WebhookWork, job: &Job) -> Result<String, String> {
    let facts = facts(job);
    let body = match work.format {
        Format::CloudEvents => cloud_event(job).to_string(),
        Format::Text => {
            let text = match &work.text {
                Some(text) => fill(text, &facts, str::to_owned)?,
                None => sentence(job),
            };
            json!({ "text": text }).to_string()
        }
        Format::Template => fill(work.template.as_deref().unwrap_or_default(), &facts, escaping(work))?,
    };
    if body.len() > BODY_BYTES_MAX {
        return Err(format!("there is too much to say: {} bytes", body.len()));
    }
    Ok(body)
}

fn is_json(work: &WebhookWork) -> bool {
    let kind = work.content_type().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

fn escaping(work: &WebhookWork) -> fn(&str) -> String {
    match work.format {
        Format::Template if is_json(work) => escaped,
        Format::Template | Format::CloudEvents | Format::Text => str::to_owned,
    }
}

/// A text as it stands between the quotes of JSON.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// Replaces placeholders. What is put in is never looked at again, whatever it looks like.
fn fill(template: &str, facts: &[Fact], escape: fn(&str) -> String) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            return Err("a placeholder is not closed: {{ without }}".to_owned());
        };
        let name = name.trim();
        let Some(fact) = facts.iter().find(|fact| placeholder(fact.variable) == name) else {
            let known = VARIABLES.map(placeholder).join(", ");
            return Err(format!("there is no placeholder {name:?}\n  hint: one of {known}"));
        };
        filled.push_str(&escape(&fact.value));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// What `EVENT_TYPE` is called in a template: `event.type`.
fn placeholder(variable: &str) -> String {
    variable.replacen('_', ".", 1).to_ascii_lowercase()
}

/// CloudEvents 1.0. The id is the same however often it is sent: who gets it twice knows.
fn cloud_event(job: &Job) -> Value {
    let task = &job.run.task;
    json!({
        "specversion": "1.0",
        "id": format!("{}/{}/{}", task.event, task.phase.as_str(), task.hook),
        "source": format!("/forewarn-agent/{}", uri::part(&job.me)),
        "type": format!("dev.forewarn.agent.{}", task.phase.as_str()),
        "subject": task.event.to_string(),
        "time": moment_in(std::time::Duration::ZERO),
        "datacontenttype": "application/json",
        "data": { "machine": job.me, "phase": task.phase.as_str(), "event": event_json(&job.run.seen) },
    })
}

/// What a person would want to read.
fn sentence(job: &Job) -> String {
    let facts = facts(job);
    let value =
        |name: &str| facts.iter().find(|fact| fact.variable == name).map_or("", |fact| fact.value.as_str());
    let what = match job.run.task.phase {
        Phase::Scheduled => "is scheduled",
        Phase::Started => "has started",
        Phase::Completed => "is over",
        Phase::Cancelled => "was cancelled",
        Phase::Undo => "is behind us; back to work",
    };
    let mut text = format!("{} of {} {what}", value("EVENT_TYPE"), value("EVENT_RESOURCES"));
    if job.run.task.phase == Phase::Scheduled && !value("EVENT_NOTBEFORE").is_empty() {
        text.push_str(&format!(", not before {}", value("EVENT_NOTBEFORE")));
    }
    text.push('.');
    if !value("EVENT_DESCRIPTION").is_empty() {
        text.push_str(&format!(" {}", value("EVENT_DESCRIPTION")));
    }
    text.push_str(&format!(" (told by {}, event {})", value("FOREWARN_NAME"), value("EVENT_ID")));
    text
}
