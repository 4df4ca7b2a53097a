//! The body of a webhook: a CloudEvent, a text message, or a template of the administrator.

use forewarn_agent_core::Phase;
use serde_json::{Value, json};

use super::{Format, WebhookWork};
use crate::hooks::event::{EventVariable, VARIABLES, event_json, event_variables, moment_in};
use crate::hooks::{Job, uri};

/// Size limits of a template and of a body.
const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Validates the template in the settings.
pub(super) fn check_template(work: &WebhookWork) -> Result<(), String> {
    let only = |key: &str, set: bool, format: Format, format_name: &str| {
        let is_wrong = set && work.format != format;
        if is_wrong { Err(format!("`{key}` needs format = {format_name:?}")) } else { Ok(()) }
    };
    only("text", work.text.is_some(), Format::Text, "text")?;
    only("template", work.template.is_some(), Format::Template, "template")?;
    only("content_type", work.content_type.is_some(), Format::Template, "template")?;
    let text = match work.format {
        Format::CloudEvents => return Ok(()),
        Format::Text => work.text.as_deref().unwrap_or_default(),
        Format::Template => work.template.as_deref().ok_or(
            "format = \"template\" needs `template`\n  hint: template = '{\"event\": \"{{event.id}}\"}'",
        )?,
    };
    if text.len() > TEMPLATE_BYTES_MAX {
        return Err(format!("`template` is larger than {TEMPLATE_BYTES_MAX} bytes"));
    }
    // Quotes and backslashes, so that a placeholder outside of quotes is detected.
    let sample: Vec<_> = VARIABLES
        .map(|variable| EventVariable { variable, value: "a \"b\" \\".to_owned() })
        .into_iter()
        .collect();
    let filled = fill(text, &sample, escaping(work))?;
    if work.format == Format::Template && is_json(work) && serde_json::from_str::<Value>(&filled).is_err() {
        return Err("`template` does not yield JSON\n  hint: put placeholders between quotes: {\"id\": \"{{event.id}}\"}; for \
                    other formats, set content_type = \"text/plain\""
            .to_owned());
    }
    if work.content_type.as_ref().is_some_and(|kind| kind.bytes().any(|byte| !(b' '..=b'~').contains(&byte)))
    {
        return Err("`content_type` has invalid characters".to_owned());
    }
    Ok(())
}

/// The body for a job.
pub(super) fn render(work: &WebhookWork, job: &Job) -> Result<String, String> {
    let event_variables = event_variables(job);
    let body = match work.format {
        Format::CloudEvents => cloud_event(job).to_string(),
        Format::Text => {
            let text = match &work.text {
                Some(text) => fill(text, &event_variables, str::to_owned)?,
                None => sentence(job),
            };
            json!({ "text": text }).to_string()
        }
        Format::Template => {
            fill(work.template.as_deref().unwrap_or_default(), &event_variables, escaping(work))?
        }
    };
    if body.len() > BODY_BYTES_MAX {
        return Err(format!("the body is too large: {} bytes", body.len()));
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

/// Escapes a text for a JSON string, without the quotes.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// Replaces placeholders. Values are not expanded again.
fn fill(
    template: &str,
    event_variables: &[EventVariable],
    escape: fn(&str) -> String,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            return Err("unclosed placeholder: {{ without }}".to_owned());
        };
        let name = name.trim();
        let Some(variable) = event_variables.iter().find(|variable| placeholder(variable.variable) == name)
        else {
            let known = VARIABLES.map(placeholder).join(", ");
            return Err(format!("unknown placeholder {name:?}\n  hint: one of {known}"));
        };
        filled.push_str(&escape(&variable.value));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The placeholder of a variable: `event.type` for `EVENT_TYPE`.
fn placeholder(variable: &str) -> String {
    variable.replacen('_', ".", 1).to_ascii_lowercase()
}

/// A CloudEvents 1.0 event. Retries have the same id, so that receivers can detect duplicates.
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
        "data": { "machine": job.me, "phase": task.phase.as_str(), "event": event_json(&job.run.observed) },
    })
}

/// A text message for people.
fn sentence(job: &Job) -> String {
    let event_variables = event_variables(job);
    let value = |name: &str| {
        event_variables
            .iter()
            .find(|variable| variable.variable == name)
            .map_or("", |variable| variable.value.as_str())
    };
    let what = match job.run.task.phase {
        Phase::Scheduled => "is scheduled",
        Phase::Started => "has started",
        Phase::Completed => "has completed",
        Phase::Cancelled => "was cancelled",
        Phase::Undo => "is over; normal operation resumes",
    };
    let mut text = format!("{} of {} {what}", value("EVENT_TYPE"), value("EVENT_RESOURCES"));
    if job.run.task.phase == Phase::Scheduled && !value("EVENT_NOTBEFORE").is_empty() {
        text.push_str(&format!(", not before {}", value("EVENT_NOTBEFORE")));
    }
    text.push('.');
    if !value("EVENT_DESCRIPTION").is_empty() {
        text.push_str(&format!(" {}", value("EVENT_DESCRIPTION")));
    }
    text.push_str(&format!(" (reported by {}, event {})", value("FOREWARN_NAME"), value("EVENT_ID")));
    text
}
