//! Webhooks: what is asked for, and what is shown of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::schema;
use forewarn_types::{EventKind, Moment, list};

/// A webhook that is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// What people call it.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Where it is told: `https://HOST/PATH`, or `http://…`. What stands behind `?` is not shown again.
    #[schemars(with = "schema::WebhookUrl")]
    pub url: String,
    /// In which form.
    #[serde(default)]
    pub schema: SchemaWord,
    /// In which clusters; in all, if not said.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::Name>>")]
    pub clusters: Option<Vec<String>>,
    /// Of which tenants of them; of all, if not said. The name of a scale set stands for all its placement groups.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::NewName>>")]
    pub tenants: Option<Vec<String>>,
    /// Of which types of events; of all, if not said.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<EventKind>>")]
    pub types: Option<Vec<EventKind>>,
    /// What is sent as `Authorization`, such as `Bearer …`. It is not shown again. It needs `https`, or an address of the
    /// computer on which the server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Authorization>")]
    pub authorization: Option<String>,
}

/// A webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookView {
    /// What people call it.
    pub name: String,
    /// Where it is told, without what stands behind `?`.
    pub url: String,
    /// In which form.
    pub schema: SchemaWord,
    /// In which clusters; in all, if there is no list.
    pub clusters: Option<Vec<String>>,
    /// Of which tenants of them; of all, if there is no list.
    pub tenants: Option<Vec<String>>,
    /// Of which types of events; of all, if there is no list.
    pub types: Option<Vec<EventKind>>,
    /// Whether something is sent as `Authorization`. Nobody is shown what.
    pub authorization: bool,
    /// How it is with it.
    pub state: WebhookState,
    /// The last problem with it, while there is one.
    pub problem: Option<String>,
    /// Since when it does not take what it is told, on the clock of the computer.
    pub failing_since: Option<Moment>,
    /// The number of the last entry of the trail that it was told of, or that was not for it.
    pub told: u64,
    /// How many events it was told of since the server started.
    pub delivered: u64,
    /// How many events it was not told of: it did not take them for a day, or they were not kept for long enough.
    pub lost: u64,
    /// When it was added.
    pub created: Moment,
    /// Who added it.
    pub by: String,
}

/// What came of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookTest {
    /// Whether the webhook took it.
    pub delivered: bool,
    /// What went wrong, if it did not.
    pub problem: Option<String>,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// A request for a test: nothing more is said about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestOrder {}

/// The form in which events are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SchemaWord {
    /// CloudEvents 1.0, as structured JSON.
    #[default]
    CloudEvents,
    /// That of Event Grid.
    EventGrid,
}

/// How it is with a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookState {
    /// It has not said yet that it wants to be told; it is asked again and again.
    Unconfirmed,
    /// It takes what it is told.
    Well,
    /// It does not; it is tried again and again.
    Failing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_to_be_says_no_more_than_it_has_to() {
        let least = r#"{"name":"ops","url":"https://h/x"}"#;
        let read: NewWebhook = serde_json::from_str(least).unwrap();
        assert_eq!((read.schema, read.clusters, read.authorization), (SchemaWord::CloudEvents, None, None));
        for wrong in [
            r#"{"name":"ops"}"#,
            r#"{"name":"ops","url":"https://h","schema":"xml"}"#,
            r#"{"name":"ops","url":"https://h","types":["freeze"]}"#,
            r#"{"name":"ops","url":"https://h","secret":"s"}"#,
        ] {
            assert!(serde_json::from_str::<NewWebhook>(wrong).is_err(), "{wrong}");
        }
    }
}
