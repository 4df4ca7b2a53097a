//! Messages for workflows of Microsoft Teams: an Adaptive Card in the envelope of a message.
//!
//! Text stands in runs of rich text: Teams reads Markdown in a `TextBlock`, but not in a `TextRun`, so nothing has to
//! be escaped. Formats and limits: <https://adaptivecards.io/explorer/>,
//! <https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook>.

use serde_json::{Value, json};

use super::{ChatNote, NoteLine};

/// Bytes of a message. The documented limit is 28 KB; rejections from 21 KB on were reported.
pub(super) const BODY_BYTES_MAX: usize = 20_000;

pub(super) fn body(notes: &[ChatNote]) -> String {
    let whole = message(notes);
    if whole.len() <= BODY_BYTES_MAX {
        return whole;
    }
    let titles: Vec<_> =
        notes.iter().map(|note| ChatNote { title: note.title.clone(), lines: Vec::new() }).collect();
    message(&titles)
}

fn message(notes: &[ChatNote]) -> String {
    let titles: Vec<_> = notes.iter().map(|note| note.title.as_str()).collect();
    let body: Vec<_> = notes.iter().enumerate().flat_map(|(number, note)| elements(number, note)).collect();
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": titles.join("\n"),
        "body": body,
    });
    let attachment = json!({
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": null,
        "content": card,
    });
    json!({ "type": "message", "attachments": [attachment] }).to_string()
}

/// The elements of a note; all but the first note begin with a separator.
fn elements(number: usize, note: &ChatNote) -> Vec<Value> {
    let title = json!({ "type": "TextRun", "text": note.title, "weight": "Bolder", "size": "Medium" });
    let title = json!({ "type": "RichTextBlock", "separator": number > 0, "inlines": [title] });
    let line = |NoteLine { text, command }: &NoteLine| {
        let text = json!({ "type": "TextRun", "text": text });
        let command = command.as_ref().map(
            |command| json!({ "type": "TextRun", "text": format!(" {command}"), "fontType": "Monospace" }),
        );
        let inlines: Vec<_> = std::iter::once(text).chain(command).collect();
        json!({ "type": "RichTextBlock", "spacing": "Small", "inlines": inlines })
    };
    std::iter::once(title).chain(note.lines.iter().map(line)).collect()
}
