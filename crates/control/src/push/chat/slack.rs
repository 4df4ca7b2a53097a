//! Messages for incoming webhooks of Slack: a fallback text for notifications, and a section block for each note.
//!
//! Limits and escapes: <https://docs.slack.dev/reference/block-kit/blocks/section-block>,
//! <https://docs.slack.dev/messaging/formatting-message-text>.

use serde_json::json;

use super::{ChatNote, LINE_BYTES_MAX, NoteLine, TITLE_BYTES_MAX};

/// Characters of the text of a section block.
#[cfg(test)]
pub(super) const SECTION_CHARS_MAX: usize = 3_000;

pub(super) fn body(notes: &[ChatNote]) -> String {
    let titles: Vec<_> = notes.iter().map(|note| escaped(&note.title, TITLE_BYTES_MAX)).collect();
    let section =
        |note: &ChatNote| json!({ "type": "section", "text": { "type": "mrkdwn", "text": text(note) } });
    let blocks: Vec<_> = notes.iter().map(section).collect();
    json!({ "text": titles.join("\n"), "blocks": blocks }).to_string()
}

fn text(note: &ChatNote) -> String {
    let title = format!("*{}*", escaped(&note.title, TITLE_BYTES_MAX));
    let lines = note.lines.iter().map(|NoteLine { text, command }| {
        let command = command.as_ref().map(|command| format!(" `{command}`")).unwrap_or_default();
        format!("\n{}{command}", escaped(text, LINE_BYTES_MAX))
    });
    std::iter::once(title).chain(lines).collect()
}

/// Escapes the three characters that have a meaning in every text of Slack. The result has at most `max` bytes.
fn escaped(text: &str, max: usize) -> String {
    const MORE: &str = "…";
    let mut out = String::new();
    for char in text.chars() {
        let before = out.len();
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
        if out.len() > max {
            out.truncate(before);
            while out.len() > max - MORE.len() {
                remove_last(&mut out);
            }
            out.push_str(MORE);
            break;
        }
    }
    out
}

/// Removes the last character, or the last escape as a whole.
fn remove_last(text: &mut String) {
    let escape = ["&amp;", "&lt;", "&gt;"].into_iter().find(|escape| text.ends_with(escape));
    match escape {
        Some(escape) => text.truncate(text.len() - escape.len()),
        None => drop(text.pop()),
    }
}
