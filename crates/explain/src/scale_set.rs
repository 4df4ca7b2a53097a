//! Explanation of a scale set: the notice of deletion of its instances, and common problems with it.

use forewarn_control::resource_id::SCALE_SETS;
use forewarn_control::view::deletion::length;
use forewarn_control::view::describe::join_names;
use forewarn_control::{ScaleSetSummary, event_view, instances, scale_set_summary};
use forewarn_lifecycle::{EnrolmentRule, EventKind, Priority, ScaleSet, ScaleSetId, Tenant};
use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExplanationContext, RefusedView, Resource, UpcomingView, notification};

/// Explanation of a scale set: the notice of deletion of its instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScaleSetExplanation {
    /// Name of the scale set.
    pub name: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Time of this explanation.
    pub now: Moment,
    /// Notice of deletion and number of instances, in sentences.
    pub summary: String,
    /// Summary of the scale set; null if it does not exist.
    pub scale_set: Option<ScaleSetSummary>,
    /// True if all its tenants are enrolled: their machines get notice of events.
    pub enrolled: bool,
    /// True if the setting `enrolment` enrols them, with or without polls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enrolled_by_setting: bool,
    /// Work that is announced or under way.
    pub coming: Vec<UpcomingView>,
    /// Refused requests of Azure clients about it since the server started: the newest of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedView>,
    /// Unusual facts, with advice.
    pub hints: Vec<String>,
}

/// Explains a scale set. A scale set that does not exist is explained by refused requests about it; None if there are
/// none.
#[must_use]
pub fn explain_scale_set(context: &ExplanationContext<'_>, name: &str) -> Option<ScaleSetExplanation> {
    let found = context.cluster.scale_set_named(name);
    match found.and_then(|id| Some((id, context.cluster.scale_set(id)?))) {
        Some((id, set)) => Some(context.existing_set(id, set)),
        None => context.missing_set(name),
    }
}

impl ExplanationContext<'_> {
    fn existing_set(&self, id: ScaleSetId, set: &ScaleSet) -> ScaleSetExplanation {
        let tenants: Vec<_> = set.groups.iter().filter_map(|group| self.cluster.tenant(*group)).collect();
        let refused = self.refused([Resource::ScaleSet(id)]);
        let view = scale_set_summary(self.cluster, id);
        ScaleSetExplanation {
            name: set.name.to_string(),
            cluster: self.name.to_owned(),
            now: Moment(self.now.wall),
            summary: self.set_summary(set, view.as_ref()),
            scale_set: view,
            enrolled: tenants.iter().all(|tenant| tenant.is_enrolled()),
            enrolled_by_setting: self.cluster.settings().enrolment == EnrolmentRule::Always,
            coming: self.set_coming(set),
            hints: self.set_hints(set, &tenants, &refused),
            refused,
        }
    }

    fn missing_set(&self, name: &str) -> Option<ScaleSetExplanation> {
        let refused = self.refused_if(|id| id.is(SCALE_SETS) && id.name().eq_ignore_ascii_case(name));
        (!refused.is_empty()).then(|| ScaleSetExplanation {
            name: name.to_owned(),
            cluster: self.name.to_owned(),
            now: Moment(self.now.wall),
            summary: "There is no such scale set, and a request about it was refused".to_owned(),
            scale_set: None,
            enrolled: false,
            enrolled_by_setting: false,
            coming: Vec::new(),
            hints: notification::causes(&refused).collect(),
            refused,
        })
    }

    fn set_summary(&self, set: &ScaleSet, view: Option<&ScaleSetSummary>) -> String {
        let mut text = format!("Model {} has {}", set.model_version, length(set.model.terminate));
        if let Some(view) = view {
            let how = match view.outdated {
                0 => "with this model".to_owned(),
                older => format!("{older} with an older model"),
            };
            text.push_str(&match view.capacity + view.leaving {
                0 => ". There are no instances".to_owned(),
                1 => format!(". There is 1 instance, {how}"),
                all => format!(". There are {all} instances, {how}"),
            });
        }
        text
    }

    fn set_coming(&self, set: &ScaleSet) -> Vec<UpcomingView> {
        let groups = set.groups.iter().filter_map(|id| Some((*id, self.cluster.tenant(*id)?)));
        let events = groups.flat_map(|(id, tenant)| tenant.events().iter().map(move |event| (id, event)));
        let all = events.map(|(id, event)| {
            let view = event_view(self.cluster, id, event, self.viewer.may_see);
            let machines = join_names(&view.resources);
            let text = format!("{} of {machines} ({}): {}", view.kind, view.cause, view.progress);
            UpcomingView { event: Some(view.id), text, not_before: view.not_before, error: None }
        });
        all.collect()
    }

    fn set_hints(&self, set: &ScaleSet, tenants: &[&Tenant], refused: &[RefusedView]) -> Vec<String> {
        let mut all: Vec<_> = tenants.iter().filter_map(|tenant| self.not_enrolled(tenant)).collect();
        all.extend(self.no_notice_in_model(set));
        let machines: Vec<_> = instances(self.cluster, set).into_iter().map(|(_, id)| id).collect();
        all.extend(self.older_models(machines.iter().copied()));
        let polls: Vec<_> = machines.iter().filter_map(|id| self.poll_view(*id, None)).collect();
        all.extend(notification::outdated_versions(&polls, EventKind::Terminate));
        all.extend(notification::causes(refused));
        all
    }

    fn no_notice_in_model(&self, set: &ScaleSet) -> Option<String> {
        if set.model.terminate.is_some() {
            return None;
        }
        let (version, name) = (set.model_version, &set.name);
        Some(match set.priority {
            Priority::Spot(_) => {
                "its instances are spot machines, which have no notice of deletion".to_owned()
            }
            Priority::Regular => format!(
                "model {version} has no notice of deletion: a delete causes no Terminate event; enable: `forewarn scaleset set {name} --terminate-notification on`, or `az vmss update --resource-group {} --name {name} --enable-terminate-notification true --terminate-notification-time 5`",
                self.group_of(set)?
            ),
        })
    }
}
