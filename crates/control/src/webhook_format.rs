//! Formats of messages, and the properties of their receivers.

use std::fmt;

use forewarn_url::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of the messages of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookFormat {
    /// CloudEvents 1.0, as structured JSON.
    #[default]
    #[serde(alias = "CloudEvents")]
    CloudEvents,
    /// The schema of Event Grid.
    #[serde(alias = "EventGrid")]
    EventGrid,
    /// Incoming webhook of Slack.
    Slack,
    /// Workflow of Microsoft Teams that posts an Adaptive Card.
    Teams,
    /// Events API v2 of PagerDuty.
    PagerDuty,
    /// Plain text.
    Text,
}

/// The way in which a receiver confirms that it wants messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeMethod {
    /// `OPTIONS`, as in the webhooks of CloudEvents.
    Options,
    /// An event with a code that the receiver returns, as in Event Grid.
    ValidationEvent,
}

/// The address of PagerDuty for its service regions outside Europe.
const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";

/// Length of a routing key of PagerDuty.
const ROUTING_KEY_CHARS: usize = 32;

/// Events in one message of a chat: it limits the size of the message, and the number of messages.
const EVENTS_PER_CHAT_MESSAGE_MAX: usize = 5;

impl WebhookFormat {
    pub const ALL: [Self; 6] =
        [Self::CloudEvents, Self::EventGrid, Self::Slack, Self::Teams, Self::PagerDuty, Self::Text];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CloudEvents => "cloudevents",
            Self::EventGrid => "eventgrid",
            Self::Slack => "slack",
            Self::Teams => "teams",
            Self::PagerDuty => "pagerduty",
            Self::Text => "text",
        }
    }

    /// The handshake of the format. A chat has none: its URL or its key proves that it wants messages.
    #[must_use]
    pub const fn handshake(self) -> Option<HandshakeMethod> {
        match self {
            Self::CloudEvents => Some(HandshakeMethod::Options),
            Self::EventGrid => Some(HandshakeMethod::ValidationEvent),
            Self::Slack | Self::Teams | Self::PagerDuty | Self::Text => None,
        }
    }

    /// Messages per minute that a receiver without a handshake accepts, if its documentation sets a limit.
    #[must_use]
    pub const fn per_minute_max(self) -> Option<u32> {
        match self {
            // One per second.
            Self::Slack => Some(60),
            // Four per second.
            Self::Teams => Some(240),
            Self::CloudEvents | Self::EventGrid | Self::PagerDuty | Self::Text => None,
        }
    }

    /// Events that one message may have.
    #[must_use]
    pub const fn events_per_message_max(self) -> usize {
        match self {
            Self::Slack | Self::Teams | Self::Text => EVENTS_PER_CHAT_MESSAGE_MAX,
            Self::CloudEvents | Self::EventGrid | Self::PagerDuty => 1,
        }
    }

    /// The address of receivers that all have the same one.
    #[must_use]
    pub const fn default_url(self) -> Option<&'static str> {
        match self {
            Self::PagerDuty => Some(PAGERDUTY_URL),
            Self::CloudEvents | Self::EventGrid | Self::Slack | Self::Teams | Self::Text => None,
        }
    }

    /// Returns true if anyone who knows the URL can write into the chat: it has no other secret.
    #[must_use]
    pub const fn is_url_secret(self) -> bool {
        match self {
            Self::Slack | Self::Teams => true,
            Self::CloudEvents | Self::EventGrid | Self::PagerDuty | Self::Text => false,
        }
    }

    /// The URL as views and the audit log show it. The path of the URL of a chat is its secret.
    #[must_use]
    pub fn shown_url(self, url: &Url) -> String {
        match self.handshake() {
            Some(_) => url.redacted(),
            None => url.redacted_to_host(),
        }
    }

    /// Returns true if a text can be the routing key of PagerDuty.
    pub(crate) fn is_routing_key(text: &str) -> bool {
        text.len() == ROUTING_KEY_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }
}

impl fmt::Display for WebhookFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_the_same_words_everywhere() {
        for format in WebhookFormat::ALL {
            let json = format!("\"{format}\"");
            assert_eq!(serde_json::to_string(&format).unwrap(), json);
            assert_eq!(serde_json::from_str::<WebhookFormat>(&json).unwrap(), format);
        }
        let old: Vec<WebhookFormat> = serde_json::from_str(r#"["CloudEvents","EventGrid"]"#).unwrap();
        assert_eq!(old, [WebhookFormat::CloudEvents, WebhookFormat::EventGrid]);
    }

    /// promise: S4, W2
    #[test]
    fn the_path_of_a_chat_is_not_shown() {
        let url = Url::parse("https://hooks.slack.com:8443/services/T0/B0/s3cret?a=b").unwrap();
        for format in WebhookFormat::ALL {
            let shown = format.shown_url(&url);
            let expected = match format.handshake() {
                Some(_) => "https://hooks.slack.com:8443/services/T0/B0/s3cret?…",
                None => "https://hooks.slack.com:8443/…",
            };
            assert_eq!(shown, expected, "{format}");
        }
    }

    #[test]
    fn the_default_url_is_valid() {
        let urls = WebhookFormat::ALL.into_iter().filter_map(WebhookFormat::default_url);
        assert_eq!(urls.map(|url| Url::parse(url).unwrap().is_private()).collect::<Vec<_>>(), [true]);
    }
}
