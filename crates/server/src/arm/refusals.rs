//! What clients of Azure were refused: so that somebody who asks why something is not as they wanted it is told.
//!
//! Of each resource the newest refusal is remembered, of so many resources; nothing of it is written down, and a server that starts
//! again has forgotten it. Requests that only look do not count, and neither do those of whoever may not
//! know of the resource, or of the cluster that it is in.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::http::Method;
use forewarn_azure::{ApiVersion, ArmError, SCALE_SETS, unknown_member};
use forewarn_control::resource_id::{GroupId, ResourceId};
use forewarn_control::{RefusedView, UnknownMember};
use forewarn_imds::Moment;

use super::call::Call;
use super::compute::Kind;
use crate::operator::Permit;

/// Resources of which a refusal is remembered. Where there are more, the oldest refusal is forgotten.
const RESOURCES_MAX: usize = 256;

/// Characters of a message, of a code, and of what a client takes for an api-version.
const MESSAGE_CHARS_MAX: usize = 1_000;
const WORD_CHARS_MAX: usize = 80;

/// What is refused where whoever asks has reached no cluster, or not one: it is not told in another's explanation.
const NOWHERE: [&str; 3] = ["SubscriptionNotFound", "ResourceGroupNotFound", "AmbiguousResourceGroup"];

/// Refusals, of each resource the newest.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// By the key of the resource, with a number that is larger for whatever came later.
    all: BTreeMap<String, (u64, RefusedView)>,
    count: u64,
}

/// A request to change something, as far as it is remembered if it is refused.
#[derive(Debug)]
pub(super) struct Attempt {
    resource: ResourceId,
    method: Method,
    by: String,
    api_version: Option<String>,
}

impl Refusals {
    /// A request was refused.
    pub(super) fn remember(&self, attempt: Attempt, refused: &ArmError, at: Moment) {
        let is_of_a_place = NOWHERE.contains(&refused.code.as_ref());
        if !(400..500).contains(&refused.status) || is_of_a_place {
            return;
        }
        let view = RefusedView {
            at,
            by: attempt.by,
            method: attempt.method.to_string(),
            resource: attempt.resource.to_string(),
            api_version: attempt.api_version.map(|version| cut(&version, WORD_CHARS_MAX)),
            code: cut(&refused.code, WORD_CHARS_MAX),
            message: cut(&refused.message, MESSAGE_CHARS_MAX),
            unknown_member: unknown_member(&attempt.resource.kind(), &refused.message)
                .map(|(member, since)| UnknownMember { member: member.to_owned(), since: since.to_string() }),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.count += 1;
        let count = kept.count;
        kept.all.insert(attempt.resource.key(), (count, view));
        if kept.all.len() > RESOURCES_MAX {
            let oldest = kept.all.iter().min_by_key(|(_, (count, _))| *count).map(|(key, _)| key.clone());
            oldest.and_then(|key| kept.all.remove(&key));
        }
    }

    /// What was refused of resources in such groups.
    pub(crate) fn of_groups(&self, is_wanted: impl Fn(&GroupId) -> bool) -> Vec<RefusedView> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = kept.all.values().map(|(_, refused)| refused);
        let wanted =
            all.filter(|refused| ResourceId::parse(&refused.resource).is_some_and(|id| is_wanted(&id.group)));
        wanted.cloned().collect()
    }
}

impl Attempt {
    /// What a request is about, if it would change a machine, a scale set or an availability set that its sender may know of.
    pub(super) fn of(call: &Call) -> Option<Self> {
        if call.method == Method::GET || call.method == Method::HEAD {
            return None;
        }
        let resource = resource(&call.path)?;
        let api_version = call.parameter("api-version").map(str::to_owned);
        Self::to(resource, call.method.clone(), &call.permit, api_version)
    }

    /// The same, where a template is what asks.
    pub(super) fn of_template(id: &ResourceId, permit: &Permit, version: ApiVersion) -> Option<Self> {
        let resource = Kind::of(&id.kind()).map(|_| id.clone())?;
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

/// The machine, instance, scale set or availability set that a path is about, or an action on it.
fn resource(path: &[String]) -> Option<ResourceId> {
    let whole = |segments: usize| ResourceId::parse(&path.get(..segments)?.join("/"));
    let id = whole(8).filter(|id| Kind::of(&id.kind()).is_some())?;
    let is_instance = |id: &ResourceId| id.is(&format!("{SCALE_SETS}/virtualMachines"));
    Some(whole(10).filter(is_instance).unwrap_or(id))
}

/// Whoever is limited to some tenants knows them by name, and nothing else.
fn may_know(permit: &Permit, resource: &ResourceId) -> bool {
    resource.parts.first().is_some_and(|(_, name)| permit.sees_named(name))
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute";

    fn attempt(rest: &str) -> Option<Attempt> {
        let path: Vec<_> = format!("{GROUP}/{rest}").split('/').skip(1).map(str::to_owned).collect();
        let resource = resource(&path)?;
        Some(Attempt { resource, method: Method::PUT, by: "anyone".to_owned(), api_version: None })
    }

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

    #[test]
    fn the_newest_refusal_of_each_of_the_newest_resources_is_remembered() {
        let refusals = Refusals::default();
        let refuse = |name: &str, status: u16, message: &str| {
            let attempt = attempt(&format!("virtualMachines/{name}")).unwrap();
            refusals.remember(
                attempt,
                &ArmError::new(status, "Bad", message),
                "2026-01-01T00:00:00Z".parse().unwrap(),
            );
        };
        let messages = || {
            let all = refusals.of_groups(|group| group.name == "g");
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
        for number in 0..RESOURCES_MAX {
            refuse(&format!("vm{number}"), 400, &number.to_string());
        }
        let messages = messages();
        assert_eq!(messages.len(), RESOURCES_MAX);
        assert!(messages.iter().all(|message| message.len() < MESSAGE_CHARS_MAX), "the oldest is forgotten");
        assert!(refusals.of_groups(|group| group.name != "g").is_empty());
    }
}
