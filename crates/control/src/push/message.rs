//! Push messages as JSON: CloudEvents 1.0 (structured), and the schema of Event Grid. Members and their order are
//! those that Azure sends for `MaintenanceResources`; members that only Forewarn has are in the member `forewarn` of
//! the data.

use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::host::{HOST_EVENT_TYPE, HostData, HostPush};
use crate::audit::notice::{Notice, NoticeStatus};
use crate::resource_id::GroupId;
use crate::{AuditEntry, FailureView, Site};
use forewarn_imds::print_date;
use forewarn_types::Moment;

/// Type of every push message about an event.
pub const EVENT_TYPE: &str = "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted";

/// Type of the event that validates a webhook in the schema of Event Grid.
pub const VALIDATION_TYPE: &str = "Microsoft.EventGrid.SubscriptionValidationEvent";

/// Edition of the document whose members an event has.
const API_VERSION: &str = "2020-07-01";
const COMPUTE: &str = "Microsoft.Compute";

/// Maximum size of a validation response that is parsed.
pub const VALIDATION_BYTES_MAX: usize = 64 * 1024;

/// A message to a webhook about one event or one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// Stable over retries, and unique to this message.
    pub id: String,
    /// Time of the change.
    pub at: Moment,
    /// Location and resource group of the machines.
    pub site: Site,
    /// Name of the cluster, unless commands without `--cluster` mean it.
    pub cluster: Option<String>,
    pub content: PushContent,
}

/// The object of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushContent {
    /// The state of an event after the change.
    Event(Notice),
    /// The state of a step on a host.
    Host(HostPush),
    /// A test of the webhook with this name.
    Test {
        /// A made-up event, for receivers that expect one.
        event: Notice,
        webhook: String,
    },
}

/// The messages about an audit entry: one for each event, and one for a host. `site` is the site of the cluster.
#[must_use]
pub fn pushes(entry: &AuditEntry, site: &Site) -> Vec<Push> {
    let cluster = (entry.cluster_number > 0).then(|| entry.cluster.clone());
    let push = |id, content| Push { id, at: entry.at, site: site.clone(), cluster: cluster.clone(), content };
    let events = entry.notices.iter();
    let events = events.map(|notice| push(push_id(&entry.hash, notice), PushContent::Event(notice.clone())));
    // An entry has one host at most.
    let host = HostPush::of(entry).map(|host| {
        let id = id(&[&entry.hash, "host", host.notice.status.as_str()]);
        push(id, PushContent::Host(host))
    });
    events.chain(host).collect()
}

/// A message that tests that deliveries arrive.
#[must_use]
pub fn sample(webhook: &str, unique: &str, at: Moment, site: &Site) -> Push {
    let notice = Notice {
        event: "00000000-0000-0000-0000-000000000000".to_owned(),
        status: NoticeStatus::Scheduled,
        kind: "Freeze".to_owned(),
        source: "User".to_owned(),
        description: format!("This is a test of the webhook {webhook}. Nothing happens."),
        duration: 0,
        not_before: Some(at),
        tenant: "forewarn-test".to_owned(),
        resource: "virtualMachines/forewarn-test".to_owned(),
        resources: vec!["forewarn-test".to_owned()],
        failures: Vec::new(),
    };
    let (id, webhook) = (push_id(unique, &notice), webhook.to_owned());
    let content = PushContent::Test { event: notice, webhook };
    Push { id, at, site: site.clone(), cluster: None, content }
}

impl Push {
    /// CloudEvents 1.0, for `Content-Type: application/cloudevents+json`.
    #[must_use]
    pub fn cloud_event(&self) -> String {
        let event = CloudEvent {
            specversion: "1.0",
            id: &self.id,
            source: self.topic(),
            kind: self.kind(),
            subject: self.subject(),
            time: self.at,
            datacontenttype: "application/json",
            data: self.data(),
        };
        serde_json::to_string(&event).expect("texts and numbers are JSON, and keys are texts")
    }

    fn kind(&self) -> &'static str {
        match self.content {
            PushContent::Event(_) | PushContent::Test { .. } => EVENT_TYPE,
            PushContent::Host(_) => HOST_EVENT_TYPE,
        }
    }

    /// The schema of Event Grid: a list with one event.
    #[must_use]
    pub fn event_grid(&self) -> String {
        let event = GridEvent {
            id: &self.id,
            topic: self.topic(),
            subject: self.subject(),
            data: self.data(),
            kind: self.kind(),
            data_version: "1",
            metadata_version: "1",
            event_time: self.at,
        };
        serde_json::to_string(&[event]).expect("texts and numbers are JSON, and keys are texts")
    }

    fn topic(&self) -> String {
        topic(&self.site)
    }

    /// Id of the resource that the machines belong to, or the host.
    fn subject(&self) -> String {
        match &self.content {
            PushContent::Event(notice) | PushContent::Test { event: notice, .. } => self.resource_of(notice),
            PushContent::Host(host) => host.subject(),
        }
    }

    fn resource_of(&self, notice: &Notice) -> String {
        let resource = &notice.resource;
        if resource.starts_with('/') {
            return resource.clone();
        }
        let Site { subscription, resource_group, .. } = &self.site;
        let group = GroupId { subscription: subscription.clone(), name: resource_group.clone() };
        let (kind, name) = resource.split_once('/').unwrap_or(("virtualMachines", resource));
        group.resource(COMPUTE, kind, name).to_string()
    }

    fn data(&self) -> Data<'_> {
        match &self.content {
            PushContent::Event(notice) | PushContent::Test { event: notice, .. } => {
                Data::Event(self.event_data(notice))
            }
            PushContent::Host(host) => Data::Host(host.data()),
        }
    }

    fn event_data<'a>(&'a self, notice: &'a Notice) -> EventData<'a> {
        let Notice { event, status, kind, source, description, duration, not_before, resources, .. } = notice;
        let subject = self.resource_of(notice);
        let properties = Properties {
            event_id: event,
            event_status: status.as_str(),
            event_type: kind,
            resource_type: "VirtualMachine",
            resources,
            not_before: not_before.map(|Moment(at)| print_date(at)).unwrap_or_default(),
            description,
            event_source: source,
            duration_in_seconds: *duration,
        };
        EventData {
            resource_info: ResourceInfo {
                id: format!("{subject}/providers/Microsoft.Maintenance/scheduledevents/{event}"),
                name: event,
                kind: "microsoft.maintenance/scheduledevents",
                location: &self.site.location,
                tags: json!({}),
                properties,
            },
            operational_info: OperationalInfo { resource_event_time: self.at },
            api_version: API_VERSION,
            forewarn: Extension::of(&notice.failures),
        }
    }
}

/// The event that validates a webhook in the schema of Event Grid: a list of one. The receiver must return the code.
#[must_use]
pub fn validation(code: &str, at: Moment, site: &Site) -> String {
    let event = json!([{
        "id": id(&["validation", code]),
        "topic": topic(site),
        "subject": "",
        "data": { "validationCode": code },
        "eventType": VALIDATION_TYPE,
        "eventTime": at.to_string(),
        "metadataVersion": "1",
        "dataVersion": "1",
    }]);
    event.to_string()
}

/// Returns true if a response returns the validation code.
#[must_use]
pub fn is_validated(answer: &[u8], code: &str) -> bool {
    let body = serde_json::from_slice::<serde_json::Value>(answer).unwrap_or_default();
    answer.len() <= VALIDATION_BYTES_MAX && body["validationResponse"] == code
}

/// Topic of the messages: the subscription.
fn topic(site: &Site) -> String {
    format!("/subscriptions/{}", site.subscription)
}

/// An audit entry is unique, and has each event and status once.
fn push_id(entry: &str, notice: &Notice) -> String {
    id(&[entry, &notice.event, notice.status.as_str()])
}

/// An id derived from texts, in the form of a UUID of version 8 (custom content).
fn id(of: &[&str]) -> String {
    let hash =
        of.iter().fold(Sha256::new(), |hash, text| hash.chain_update(text).chain_update([0])).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |range: std::ops::Range<usize>| {
        bytes[range].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)].join("-")
}

#[derive(Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: &'a str,
    source: String,
    #[serde(rename = "type")]
    kind: &'static str,
    subject: String,
    time: Moment,
    datacontenttype: &'static str,
    data: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GridEvent<'a> {
    id: &'a str,
    topic: String,
    subject: String,
    data: Data<'a>,
    #[serde(rename = "eventType")]
    kind: &'static str,
    data_version: &'static str,
    metadata_version: &'static str,
    event_time: Moment,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Event(EventData<'a>),
    Host(HostData<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventData<'a> {
    resource_info: ResourceInfo<'a>,
    operational_info: OperationalInfo,
    api_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    forewarn: Option<Extension<'a>>,
}

/// Members that only Forewarn has. They are kept apart, so that they never collide with those of Azure.
#[derive(Serialize)]
struct Extension<'a> {
    failures: &'a [FailureView],
}

impl<'a> Extension<'a> {
    /// None if it would be empty.
    fn of(failures: &'a [FailureView]) -> Option<Self> {
        (!failures.is_empty()).then_some(Self { failures })
    }
}

#[derive(Serialize)]
struct ResourceInfo<'a> {
    id: String,
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    location: &'a str,
    tags: serde_json::Value,
    properties: Properties<'a>,
}

/// The members of an event in a document, in their order.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Properties<'a> {
    event_id: &'a str,
    event_status: &'static str,
    event_type: &'a str,
    resource_type: &'static str,
    resources: &'a [String],
    not_before: String,
    description: &'a str,
    event_source: &'a str,
    duration_in_seconds: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationalInfo {
    resource_event_time: Moment,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_that_of_nothing_else() {
        assert_eq!(id(&["a", "b"]), id(&["a", "b"]));
        assert_ne!(id(&["a", "b"]), id(&["ab", ""]));
        let text = id(&["a"]);
        assert_eq!((text.len(), &text[14..15], text.matches('-').count()), (36, "8", 4));
    }

    #[test]
    fn a_validation_response_must_return_the_code() {
        assert!(is_validated(br#"{"validationResponse":"c"}"#, "c"));
        for wrong in
            [&b""[..], b"c", b"\"c\"", br#"{"validationResponse":"d"}"#, br#"[{"validationResponse":"c"}]"#]
        {
            assert!(!is_validated(wrong, "c"), "{wrong:?}");
        }
        let mut long = br#"{"validationResponse":"c"}"#.to_vec();
        long.resize(VALIDATION_BYTES_MAX + 1, b' ');
        assert!(!is_validated(&long, "c"));
    }
}
