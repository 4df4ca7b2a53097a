//! Selection of instances of a scale set: `{"instanceIds":["0","1"]}`, `["*"]`; all, if the list is absent.

use forewarn_lifecycle::{Cluster, MachineId, ScaleSet, ScaleSetId, Tenant};
use serde_json::Value;

use super::body::{at, shown, wrong};
use super::error::ArmError;
use super::refusals::not_found;
use forewarn_control::INSTANCES_MAX;

const IDS: &str = "instanceIds";

/// Selected instances of a scale set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceSelection {
    /// All of them, without being named.
    All(Vec<MachineId>),
    /// The named ones, each once, in the order of the request.
    These(Vec<MachineId>),
}

impl InstanceSelection {
    #[must_use]
    pub fn machines(&self) -> &[MachineId] {
        match self {
            Self::All(machines) | Self::These(machines) => machines,
        }
    }
}

/// The instances of a scale set, in the order of its placement groups.
pub(crate) fn instances_of(cluster: &Cluster, set: &ScaleSet) -> Vec<MachineId> {
    let groups = set.groups.iter().filter_map(|group| cluster.tenant(*group));
    groups.flat_map(Tenant::machines).copied().collect()
}

/// The instance with an id: a number, or the name of the machine.
#[must_use]
pub fn find_instance(cluster: &Cluster, set: &ScaleSet, id: &str) -> Option<MachineId> {
    let wanted = InstanceQuery::of(set, id);
    instances_of(cluster, set).into_iter().find(|machine| wanted.is(cluster, set, *machine))
}

/// The instances that a body names; all, if it has no list.
///
/// # Errors
/// Fails if one of them, or the scale set, does not exist.
pub fn read_instances(
    cluster: &Cluster,
    id: ScaleSetId,
    body: &Value,
) -> Result<InstanceSelection, ArmError> {
    let set = cluster.scale_set(id).ok_or_else(not_found)?;
    let all = instances_of(cluster, set);
    let Some(value) = at(body, IDS) else { return Ok(InstanceSelection::All(all)) };
    // Azure documents only that an omitted list means all. An empty one is more likely a selection that found nothing.
    let ids = value.as_array().filter(|ids| (1..=usize::from(INSTANCES_MAX)).contains(&ids.len()));
    let ids = ids.ok_or_else(|| wrong(IDS, value, "a list of 1 to 1000 instance ids"))?;
    let ids: Vec<_> = ids.iter().map(text).collect::<Result<_, _>>()?;
    if ids.iter().any(|id| id == "*") {
        return Ok(InstanceSelection::All(all));
    }
    let mut these = Vec::new();
    for id in ids {
        let wanted = InstanceQuery::of(set, &id);
        let found = all.iter().copied().find(|machine| wanted.is(cluster, set, *machine));
        let found = found.ok_or_else(|| unknown(&id))?;
        if !these.contains(&found) {
            these.push(found);
        }
    }
    Ok(InstanceSelection::These(these))
}

/// The instances that a body has to name.
///
/// # Errors
/// Fails if it names none, or one of them, or the scale set, does not exist.
pub fn read_named_instances(
    cluster: &Cluster,
    id: ScaleSetId,
    body: &Value,
) -> Result<InstanceSelection, ArmError> {
    let names = at(body, IDS).and_then(Value::as_array).is_some_and(|ids| !ids.is_empty());
    if !names && at(body, IDS).is_none_or(Value::is_array) {
        return Err(ArmError::invalid(IDS, format!("Required parameter '{IDS}' is missing (null).")));
    }
    read_instances(cluster, id, body)
}

/// An instance id of a request.
struct InstanceQuery<'a> {
    number: Option<u32>,
    name: &'a str,
}

impl<'a> InstanceQuery<'a> {
    fn of(set: &ScaleSet, id: &'a str) -> Self {
        // One number has one form.
        let number = |digits: &str| digits.parse().ok().filter(|number: &u32| number.to_string() == digits);
        let own = id.get(..set.name.as_str().len()).filter(|own| own.eq_ignore_ascii_case(set.name.as_str()));
        let behind = own.and_then(|own| id.strip_prefix(own)?.strip_prefix('_'));
        Self { number: number(id).or_else(|| behind.and_then(number)), name: id }
    }

    fn is(&self, cluster: &Cluster, set: &ScaleSet, machine: MachineId) -> bool {
        let Some(machine) = cluster.machine(machine) else { return false };
        match self.number {
            Some(number) => machine.name.instance_number(&set.name) == Some(number),
            None => machine.name.as_str().eq_ignore_ascii_case(self.name),
        }
    }
}

fn text(value: &Value) -> Result<String, ArmError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong(IDS, value, "an instance id"))
        }
    }
}

fn unknown(id: &str) -> ArmError {
    let message = format!(
        "The provided instanceId {} is not an active Virtual Machine Scale Set VM instanceId.",
        shown(&Value::from(id))
    );
    ArmError::invalid(IDS, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_testkit::TestCluster;
    use serde_json::json;

    fn fleet() -> (TestCluster, ScaleSetId) {
        let mut fleet = TestCluster::new(3);
        fleet.create(&json!({ "instances": 3 }));
        fleet.run_json(&json!({ "command": "admit_vm", "name": "solo", "host": "h1" }));
        let set = fleet.rules.scale_set_named("web").unwrap();
        (fleet, set)
    }

    fn names(fleet: &TestCluster, chosen: &InstanceSelection) -> Vec<String> {
        let name = |id: &MachineId| fleet.rules.machine(*id).unwrap().name.to_string();
        chosen.machines().iter().map(name).collect()
    }

    /// promise: Z3
    #[test]
    fn instances_are_numbers_names_or_all() {
        let (fleet, set) = fleet();
        let read = |ids: Value| read_instances(&fleet.rules, set, &json!({ "instanceIds": ids })).unwrap();
        for all in [json!(["*"]), json!(null), json!(["0", "*"])] {
            let chosen = read(all);
            assert!(matches!(chosen, InstanceSelection::All(_)));
            assert_eq!(names(&fleet, &chosen), ["web_0", "web_1", "web_2"]);
        }
        assert_eq!(names(&fleet, &read_instances(&fleet.rules, set, &Value::Null).unwrap()).len(), 3);
        for (ids, expected) in [
            (json!(["1", "0"]), vec!["web_1", "web_0"]),
            (json!([2]), vec!["web_2"]),
            (json!(["web_2", "WEB_2", "2"]), vec!["web_2"]),
        ] {
            let chosen = read(ids);
            assert!(matches!(chosen, InstanceSelection::These(_)));
            assert_eq!(names(&fleet, &chosen), expected);
        }
    }

    /// promise: Z3, Z6
    #[test]
    fn one_that_is_not_there_is_refused_as_azure_does() {
        let (fleet, set) = fleet();
        for id in ["7", "01", "+1", "web_01", "web", "solo", "", "web_", "éé_0"] {
            let error = read_instances(&fleet.rules, set, &json!({ "instanceIds": ["0", id] })).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some("instanceIds")), "{id}");
            let text = format!(
                "The provided instanceId {id} is not an active Virtual Machine Scale Set VM instanceId."
            );
            assert_eq!(error.message, text);
        }
        for wrong in
            [json!("0"), json!({}), json!([]), json!([null]), json!([["0"]]), json!(vec!["0"; 1_001])]
        {
            let error = read_instances(&fleet.rules, set, &json!({ "instanceIds": wrong })).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some("instanceIds")));
        }
        assert_eq!(read_instances(&fleet.rules, ScaleSetId(9), &json!({})).unwrap_err().status, 404);
    }

    #[test]
    fn some_actions_want_them_named() {
        let (fleet, set) = fleet();
        for none in [json!({}), json!(null), json!({ "instanceIds": [] }), json!({ "instanceIds": null })] {
            let error = read_named_instances(&fleet.rules, set, &none).unwrap_err();
            assert_eq!(error.message, "Required parameter 'instanceIds' is missing (null).");
        }
        let all = read_named_instances(&fleet.rules, set, &json!({ "instanceIds": ["*"] })).unwrap();
        assert_eq!(all.machines().len(), 3);
        let error = read_named_instances(&fleet.rules, set, &json!({ "instanceIds": "0" })).unwrap_err();
        assert!(error.message.contains("is not a list"), "{error}");
    }

    #[test]
    fn one_instance_is_found_by_its_id() {
        let (fleet, set) = fleet();
        let set = fleet.rules.scale_set(set).unwrap();
        assert_eq!(find_instance(&fleet.rules, set, "1"), find_instance(&fleet.rules, set, "web_1"));
        assert!(find_instance(&fleet.rules, set, "1").is_some());
        assert_eq!(find_instance(&fleet.rules, set, "3"), None);
    }
}
