//! Rejected requests to change a resource, for the explanations that operators read.
//!
//! Requests that only read are not remembered, nor those whose sender may not know the resource or its cluster.

use axum::http::Method;
use forewarn_control::Permit;
use forewarn_control::resource_id::ResourceId;
use forewarn_explain::{RefusedView, UnknownMember};
use forewarn_server::RecentRejections;
use forewarn_types::Moment;

use super::compute::ComputeKind;
use super::request::ArmRequest;
use crate::{ApiVersion, ArmError, SCALE_SETS, unknown_member};

/// Characters of a message.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Characters of a code, and of an api-version as a client sent it.
const WORD_CHARS_MAX: usize = 80;

/// Codes of requests that reached no cluster, or more than one. They are in no explanation: that belongs to one
/// cluster.
const WITHOUT_CLUSTER: [&str; 3] =
    ["SubscriptionNotFound", "ResourceGroupNotFound", "AmbiguousResourceGroup"];

/// A request to change a resource, as it is remembered if it is rejected.
#[derive(Debug)]
pub(super) struct ChangeAttempt {
    resource: ResourceId,
    method: Method,
    by: String,
    api_version: Option<String>,
}

impl ChangeAttempt {
    /// Remembers that the request was rejected.
    pub(super) fn remember(self, rejections: &RecentRejections, refused: &ArmError, at: Moment) {
        let is_without_cluster = WITHOUT_CLUSTER.contains(&refused.code.as_ref());
        if !(400..500).contains(&refused.status) || is_without_cluster {
            return;
        }
        let view = RefusedView {
            at,
            by: self.by,
            method: self.method.to_string(),
            resource: self.resource.to_string(),
            api_version: self.api_version.map(|version| cut(&version, WORD_CHARS_MAX)),
            code: cut(&refused.code, WORD_CHARS_MAX),
            message: cut(&refused.message, MESSAGE_CHARS_MAX),
            unknown_member: unknown_member(&self.resource.kind(), &refused.message)
                .map(|(member, since)| UnknownMember { member: member.to_owned(), since: since.to_string() }),
        };
        rejections.remember(&self.resource, view);
    }

    /// The attempt of a request to change a machine, a scale set or an availability set that its sender may know.
    pub(super) fn of(request: &ArmRequest) -> Option<Self> {
        if request.method == Method::GET || request.method == Method::HEAD {
            return None;
        }
        let resource = resource(&request.path)?;
        let api_version = request.parameter("api-version").map(str::to_owned);
        Self::to(resource, request.method.clone(), &request.permit, api_version)
    }

    /// The attempt of a template to write a resource.
    pub(super) fn of_template(id: &ResourceId, permit: &Permit, version: ApiVersion) -> Option<Self> {
        let resource = ComputeKind::of(&id.kind()).map(|_| id.clone())?;
        Self::to(resource, Method::PUT, permit, Some(version.to_string()))
    }

    fn to(
        resource: ResourceId,
        method: Method,
        permit: &Permit,
        api_version: Option<String>,
    ) -> Option<Self> {
        let by = permit.by.clone();
        may_know(permit, &resource).then_some(Self { resource, method, by, api_version })
    }
}

/// The machine, instance, scale set or availability set of a path, which may go on with an action.
fn resource(path: &[String]) -> Option<ResourceId> {
    let whole = |segments: usize| ResourceId::parse(&path.get(..segments)?.join("/"));
    let id = whole(8).filter(|id| ComputeKind::of(&id.kind()).is_some())?;
    let is_instance = |id: &ResourceId| id.is(&format!("{SCALE_SETS}/virtualMachines"));
    Some(whole(10).filter(is_instance).unwrap_or(id))
}

/// A token that is limited to tenants may know only resources with their names.
fn may_know(permit: &Permit, resource: &ResourceId) -> bool {
    resource.parts.first().is_some_and(|(_, name)| permit.sees_named(name))
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_server::REJECTED_RESOURCES_MAX;

    const GROUP: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute";

    fn attempt(rest: &str) -> Option<ChangeAttempt> {
        let path: Vec<_> = format!("{GROUP}/{rest}").split('/').skip(1).map(str::to_owned).collect();
        let resource = resource(&path)?;
        Some(ChangeAttempt { resource, method: Method::PUT, by: "anyone".to_owned(), api_version: None })
    }

    /// promise: C6
    #[test]
    fn a_refusal_is_about_a_resource_whatever_was_to_be_done_to_it() {
        let about = |rest: &str| attempt(rest).map(|attempt| attempt.resource.to_string());
        let id = |rest: &str| Some(format!("{GROUP}/{rest}"));
        assert_eq!(about("virtualMachines/a/restart"), id("virtualMachines/a"));
        assert_eq!(about("virtualmachinescalesets/Web/delete"), id("virtualmachinescalesets/Web"));
        let instance = id("virtualMachineScaleSets/web/virtualMachines/3");
        assert_eq!(about("virtualMachineScaleSets/web/virtualMachines/3"), instance);
        assert_eq!(about("virtualMachineScaleSets/web/virtualMachines/3/restart"), instance);
        let set = id("virtualMachineScaleSets/web");
        assert_eq!(about("virtualMachineScaleSets/web/providers/Microsoft.Maintenance/scheduledevents"), set);
        assert_eq!(about("virtualMachines"), None);
        assert_eq!(about("disks/d"), None);
        assert_eq!(resource(&["subscriptions".to_owned()]), None);
    }

    /// promise: C6
    #[test]
    fn the_newest_refusal_of_each_of_the_newest_resources_is_remembered() {
        let rejections = RecentRejections::default();
        let refuse = |name: &str, status: u16, message: &str| {
            let attempt = attempt(&format!("virtualMachines/{name}")).unwrap();
            let (refused, at) =
                (ArmError::new(status, "Bad", message), "2026-01-01T00:00:00Z".parse().unwrap());
            attempt.remember(&rejections, &refused, at);
        };
        let messages = || {
            let all = rejections.of_groups(|group| group.name == "g");
            all.into_iter().map(|refused| refused.message).collect::<Vec<_>>()
        };
        refuse("a", 400, "first");
        refuse("A", 409, &"x".repeat(2 * MESSAGE_CHARS_MAX));
        assert_eq!(messages(), ["x".repeat(MESSAGE_CHARS_MAX)]);
        for (status, message) in [(500, "ours"), (503, "not now")] {
            refuse("a", status, message);
        }
        assert_eq!(messages().len(), 1);
        assert_eq!(messages()[0].len(), MESSAGE_CHARS_MAX, "what is not about the request does not count");
        for number in 0..REJECTED_RESOURCES_MAX {
            refuse(&format!("vm{number}"), 400, &number.to_string());
        }
        let messages = messages();
        assert_eq!(messages.len(), REJECTED_RESOURCES_MAX);
        assert!(messages.iter().all(|message| message.len() < MESSAGE_CHARS_MAX), "the oldest is forgotten");
        assert!(rejections.of_groups(|group| group.name != "g").is_empty());
    }
}
