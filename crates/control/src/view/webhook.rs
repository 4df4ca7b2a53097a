//! Webhooks: request bodies and views.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::schema;
use crate::webhook_format::WebhookFormat;
use forewarn_types::{EventKind, Moment, list};

/// A new webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Name of the webhook.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// URL of the receiver: `https://HOST/PATH`, or `http://…`. The query is not shown again; of a chat, only scheme
    /// and host are shown. It may be absent for `pagerduty`: `https://events.pagerduty.com/v2/enqueue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::WebhookUrl>")]
    pub url: Option<String>,
    /// Format of the messages. Its former name, `schema`, is accepted too.
    #[serde(default, alias = "schema")]
    pub format: WebhookFormat,
    /// Clusters whose events are sent; all if absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::Name>>")]
    pub clusters: Option<Vec<String>>,
    /// Tenants whose events are sent; all if absent. The name of a scale set stands for all its placement groups.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::NewName>>")]
    pub tenants: Option<Vec<String>>,
    /// Types of events that are sent; all if absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<EventKind>>")]
    pub types: Option<Vec<EventKind>>,
    /// Value of the header `Authorization`, such as `Bearer …`; not for `pagerduty`. It is not shown again. It needs
    /// `https`, or an address of the computer on which the server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Authorization>")]
    pub authorization: Option<String>,
    /// Routing key of PagerDuty, which `pagerduty` needs: the integration key of a service. It is not shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RoutingKey>")]
    pub key: Option<String>,
}

/// A webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookView {
    /// Name of the webhook.
    pub name: String,
    /// URL of the receiver, without the query; of a chat, only scheme and host.
    pub url: String,
    /// Format of the messages.
    #[serde(alias = "schema")]
    pub format: WebhookFormat,
    /// Clusters whose events are sent; null for all.
    pub clusters: Option<Vec<String>>,
    /// Tenants whose events are sent; null for all.
    pub tenants: Option<Vec<String>>,
    /// Types of events that are sent; null for all.
    pub types: Option<Vec<EventKind>>,
    /// True if messages have a header `Authorization`. Its value is not shown.
    pub authorization: bool,
    /// True if messages have a routing key of PagerDuty. Its value is not shown.
    #[serde(default)]
    pub key: bool,
    /// State of the deliveries.
    pub state: WebhookState,
    /// The last error, while deliveries fail.
    pub error: Option<String>,
    /// Time since when deliveries fail, on the clock of the computer.
    pub failing_since: Option<Moment>,
    /// By cluster: number of the last entry of its audit log that was delivered, or excluded by the filter.
    pub last_entries: BTreeMap<String, u64>,
    /// Number of events that were delivered since the server started.
    pub delivered: u64,
    /// Number of events that were not delivered: attempts failed for a day, or the entries were removed.
    pub lost: u64,
    /// Time at which it was added.
    pub created: Moment,
    /// The caller that added it.
    pub by: String,
}

/// Result of a test delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookTest {
    /// True if the receiver accepted the message.
    pub delivered: bool,
    /// The error, if it did not.
    pub error: Option<String>,
    /// Duration in milliseconds.
    pub millis: u64,
}

/// A request for a test delivery. It has no members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookTestRequest {}

/// State of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookState {
    /// The receiver has not confirmed the subscription; the server keeps asking for it.
    Unconfirmed,
    /// Deliveries succeed.
    Healthy,
    /// Deliveries fail, and are retried.
    Failing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_webhook_needs_a_name_and_a_url_only() {
        let least = r#"{"name":"ops","url":"https://h/x"}"#;
        let read: NewWebhook = serde_json::from_str(least).unwrap();
        assert_eq!(
            (read.format, read.clusters, read.authorization),
            (WebhookFormat::CloudEvents, None, None)
        );
        let old: NewWebhook = serde_json::from_str(r#"{"name":"ops","schema":"eventgrid"}"#).unwrap();
        assert_eq!((old.format, old.url), (WebhookFormat::EventGrid, None));
        for wrong in [
            r#"{"url":"https://h/x"}"#,
            r#"{"name":"ops","url":"https://h","format":"xml"}"#,
            r#"{"name":"ops","url":"https://h","format":"slack","schema":"slack"}"#,
            r#"{"name":"ops","url":"https://h","types":["freeze"]}"#,
            r#"{"name":"ops","url":"https://h","secret":"s"}"#,
        ] {
            assert!(serde_json::from_str::<NewWebhook>(wrong).is_err(), "{wrong}");
        }
    }
}
