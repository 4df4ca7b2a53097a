//! Strict checks of messages to chats, as their services document them, and the answers that these give.

use serde_json::{Value, json};

use crate::json_schema::JsonSchema;

/// A service that a receiver stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatService {
    Slack,
    Teams,
    PagerDuty,
    /// A receiver of plain text.
    Text,
}

/// A request to a service.
#[derive(Clone, Copy, Debug)]
pub struct ChatRequest<'a> {
    /// The request line.
    pub line: &'a str,
    pub content_type: Option<&'a str>,
    pub body: &'a str,
}

/// Bytes of a message that Teams accepts: 28 KB; and PagerDuty: 512 KB.
const TEAMS_BYTES_MAX: usize = 28 * 1024;
const PAGERDUTY_BYTES_MAX: usize = 512 * 1024;

impl ChatService {
    pub const ALL: [Self; 4] = [Self::Slack, Self::Teams, Self::PagerDuty, Self::Text];

    /// The word of the format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::Teams => "teams",
            Self::PagerDuty => "pagerduty",
            Self::Text => "text",
        }
    }

    /// The answer to a request: status line with header fields, and body.
    pub fn answer(self, request: ChatRequest<'_>) -> (String, String) {
        let (status, body) = match (self, self.check(request)) {
            (Self::Slack, Ok(())) => ("200 OK", "ok".to_owned()),
            (Self::Slack, Err(_)) => ("400 Bad Request", "invalid_payload".to_owned()),
            (Self::Teams, Ok(())) => ("202 Accepted", String::new()),
            (Self::PagerDuty, Ok(())) => {
                ("202 Accepted", json!({ "status": "success", "message": "Event processed" }).to_string())
            }
            (Self::Text, Ok(())) => ("200 OK", String::new()),
            (Self::Teams | Self::PagerDuty | Self::Text, Err(why)) => ("400 Bad Request", why),
        };
        (status.to_owned(), body)
    }

    /// Checks a request against the documentation of the service.
    pub fn check(self, request: ChatRequest<'_>) -> Result<(), String> {
        if !request.line.starts_with("POST ") {
            return Err(format!("not a POST: {}", request.line));
        }
        let wanted = if self == Self::Text { "text/plain" } else { "application/json" };
        let content_type = request.content_type.unwrap_or_default();
        if content_type != format!("{wanted}; charset=utf-8") {
            return Err(format!("content type: {content_type}"));
        }
        self.check_body(request.body)
    }

    /// Checks the body of a request.
    pub fn check_body(self, body: &str) -> Result<(), String> {
        let bytes_max = match self {
            Self::Teams => TEAMS_BYTES_MAX,
            Self::Slack | Self::PagerDuty | Self::Text => PAGERDUTY_BYTES_MAX,
        };
        if body.len() > bytes_max {
            return Err(format!("{} bytes", body.len()));
        }
        let schema = match self {
            Self::Slack => include_str!("slack.schema.json"),
            Self::Teams => include_str!("teams.schema.json"),
            Self::PagerDuty => include_str!("pagerduty.schema.json"),
            Self::Text => return check_text(body),
        };
        let value: Value = serde_json::from_str(body).map_err(|why| why.to_string())?;
        JsonSchema::parse(schema).check(&value)
    }

    /// All words of a message that a reader sees.
    pub fn text(self, body: &str) -> String {
        match self {
            Self::Text => body.to_owned(),
            Self::Slack | Self::Teams | Self::PagerDuty => {
                let mut words = Vec::new();
                collect(&serde_json::from_str(body).unwrap(), &mut words);
                words.join("\n")
            }
        }
    }
}

/// A few lines, the last one ended.
fn check_text(body: &str) -> Result<(), String> {
    let is_short = body.lines().count() <= 50 && body.lines().all(|line| line.chars().count() <= 1_000);
    let is_text = !body.chars().any(|char| char.is_control() && char != '\n');
    if !body.is_empty() && body.ends_with('\n') && is_short && is_text {
        Ok(())
    } else {
        Err(format!("not a few lines: {body:?}"))
    }
}

fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(members) => members.values().for_each(|member| collect(member, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slack() -> Value {
        json!({ "text": "a &amp; b", "blocks": [{ "type": "section", "text": { "type": "mrkdwn", "text": "*a*" } }] })
    }

    fn teams() -> Value {
        let run = json!({ "type": "TextRun", "text": "a", "weight": "Bolder", "size": "Medium", "fontType": "Monospace" });
        let block =
            json!({ "type": "RichTextBlock", "separator": false, "spacing": "Small", "inlines": [run] });
        let card = json!({
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard", "version": "1.4", "fallbackText": "a", "body": [block],
        });
        let attachment = json!({
            "contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card,
        });
        json!({ "type": "message", "attachments": [attachment] })
    }

    fn trigger() -> Value {
        json!({
            "routing_key": "0123456789abcdef0123456789abcdef", "event_action": "trigger", "dedup_key": "d",
            "client": "c",
            "payload": {
                "summary": "s", "source": "h", "severity": "info", "timestamp": "2026-01-01T00:00:00Z",
                "component": "c", "group": "g", "class": "k", "custom_details": {},
            },
        })
    }

    fn resolve() -> Value {
        json!({ "routing_key": "0123456789abcdef0123456789abcdef", "event_action": "resolve", "dedup_key": "d" })
    }

    /// The message with one member replaced, or removed.
    fn with(mut message: Value, pointer: &str, member: Option<Value>) -> Value {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = message.pointer_mut(parent).unwrap();
        match (parent, member) {
            (Value::Object(members), Some(member)) => drop(members.insert(name.to_owned(), member)),
            (Value::Object(members), None) => drop(members.remove(name).unwrap()),
            (Value::Array(items), Some(member)) => items[name.parse::<usize>().unwrap()] = member,
            (other, _) => panic!("{other}"),
        }
        message
    }

    fn rejects(service: ChatService, message: Value, pointer: &str, member: Option<Value>) {
        let wrong = with(message, pointer, member);
        assert!(service.check_body(&wrong.to_string()).is_err(), "{service:?} {pointer}: {wrong}");
    }

    #[test]
    fn correct_messages_are_accepted() {
        let all = [
            (ChatService::Slack, slack()),
            (ChatService::Teams, teams()),
            (ChatService::PagerDuty, trigger()),
            (ChatService::PagerDuty, resolve()),
        ];
        for (service, message) in all {
            assert_eq!(service.check_body(&message.to_string()), Ok(()), "{service:?}");
        }
        assert_eq!(ChatService::Text.check_body("a\n  b\n"), Ok(()));
    }

    #[test]
    fn every_rule_of_slack_is_checked() {
        let text = |length: usize| Some(Value::from("x".repeat(length)));
        let in_block = "/blocks/0/text/text";
        for (pointer, member) in [
            ("/text", None),
            ("/text", text(0)),
            ("/text", text(4_001)),
            ("/text", Some("a & b".into())),
            ("/blocks", None),
            ("/blocks", Some(json!([]))),
            ("/blocks", Some(vec![slack()["blocks"][0].clone(); 51].into())),
            ("/blocks/0/type", Some("paragraph".into())),
            ("/blocks/0/text/type", Some("markdown".into())),
            ("/blocks/0/text", None),
            (in_block, text(0)),
            (in_block, text(3_001)),
            (in_block, Some("<!channel>".into())),
            (in_block, Some("&nbsp;".into())),
            ("/more", Some(1.into())),
        ] {
            rejects(ChatService::Slack, slack(), pointer, member);
        }
        assert!(ChatService::Slack.check_body("not JSON").is_err());
    }

    #[test]
    fn every_rule_of_teams_is_checked() {
        let card = "/attachments/0/content";
        let block = format!("{card}/body/0");
        for (pointer, member) in [
            ("/type", Some("text".into())),
            ("/attachments", Some(json!([]))),
            ("/attachments", None),
            ("/attachments/0/contentType", Some("application/json".into())),
            ("/attachments/0/contentUrl", Some("https://h".into())),
            (&format!("{card}/$schema"), None),
            (&format!("{card}/type"), Some("MessageCard".into())),
            (&format!("{card}/version"), Some("9".into())),
            (&format!("{card}/body"), Some(json!([]))),
            (&format!("{card}/text"), Some("x".into())),
            (&format!("{block}/type"), Some("TextBlock".into())),
            (&format!("{block}/separator"), Some("no".into())),
            (&format!("{block}/spacing"), Some("tiny".into())),
            (&format!("{block}/inlines"), Some(json!([]))),
            (&format!("{block}/inlines/0/text"), None),
            (&format!("{block}/inlines/0/text"), Some("".into())),
            (&format!("{block}/inlines/0/weight"), Some("bold".into())),
            (&format!("{block}/inlines/0/text"), Some("x".repeat(TEAMS_BYTES_MAX).into())),
        ] {
            rejects(ChatService::Teams, teams(), pointer, member);
        }
    }

    #[test]
    fn every_rule_of_pagerduty_is_checked() {
        let text = |length: usize| Some(Value::from("x".repeat(length)));
        for (pointer, member) in [
            ("/routing_key", None),
            ("/routing_key", text(31)),
            ("/routing_key", text(33)),
            ("/event_action", Some("open".into())),
            ("/event_action", Some("resolve".into())),
            ("/dedup_key", text(256)),
            ("/payload", None),
            ("/payload/summary", text(0)),
            ("/payload/summary", text(1_025)),
            ("/payload/source", None),
            ("/payload/severity", Some("fatal".into())),
            ("/payload/timestamp", Some("yesterday".into())),
            ("/payload/custom_details", Some("none".into())),
            ("/payload/more", Some(1.into())),
        ] {
            rejects(ChatService::PagerDuty, trigger(), pointer, member);
        }
        rejects(ChatService::PagerDuty, resolve(), "/dedup_key", None);
        rejects(ChatService::PagerDuty, resolve(), "/event_action", Some("trigger".into()));
        rejects(ChatService::PagerDuty, resolve(), "/payload", Some(json!({})));
    }

    #[test]
    fn text_is_a_few_lines() {
        for wrong in ["", "a", "a\u{7}\n", &format!("{}\n", "x".repeat(1_001)), &"x\n".repeat(51)] {
            assert!(ChatService::Text.check_body(wrong).is_err(), "{wrong:?}");
        }
    }
}
