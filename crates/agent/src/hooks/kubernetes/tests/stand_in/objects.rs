//! The objects of the stand-in's cluster, and their changes.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::RecordedRequest;

/// Everything that there is.
#[derive(Default)]
pub(in super::super) struct Cluster {
    pub(super) version: u64,
    pub(super) nodes: BTreeMap<String, Value>,
    /// By namespace and name.
    pub(super) pods: BTreeMap<(String, String), StandInPod>,
    pub(super) budgets: Vec<Budget>,
    pub(super) daemon_sets: Vec<(String, String)>,
    /// Scripted error responses to requests whose method and target begin like this, in order.
    pub(super) faults: VecDeque<(&'static str, u16)>,
    /// A change by another client just before the next patch of a node.
    pub(super) meddling: VecDeque<Edit>,
    pub(in super::super) recorded: Vec<RecordedRequest>,
}

/// A change of an object.
pub(super) type Edit = Box<dyn FnOnce(&mut Value) + Send>;

/// A pod, and the number of reads until it is gone after its eviction.
pub(super) struct StandInPod {
    pub(super) object: Value,
    pub(super) lingers: u32,
}

/// A budget: so many of the pods with that label may go at the moment.
#[derive(Clone, Debug)]
pub(in super::super) struct Budget {
    pub(in super::super) namespace: String,
    pub(in super::super) app: String,
    pub(in super::super) allowed: u32,
    /// True if a pod that is gone is replaced elsewhere, so that the budget allows the next eviction.
    pub(in super::super) recovers: bool,
}

impl Cluster {
    pub(in super::super) fn add_node(&mut self, name: &str) {
        let version = self.next_version();
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "uid": format!("uid-of-{name}"),
                "resourceVersion": version,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": { "kubernetes.io/hostname": name },
                "annotations": { "node.alpha.kubernetes.io/ttl": "0" },
            },
            "spec": { "providerID": format!("stand-in:///{name}") },
            "status": {
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
                    "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
                "capacity": { "pods": "110" },
            },
        });
        self.nodes.insert(name.to_owned(), node);
    }

    pub(in super::super) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    pub(in super::super) fn node(&self, name: &str) -> &Value {
        &self.nodes[name]
    }

    /// Changes a node as another client would.
    pub(in super::super) fn edit_node(&mut self, name: &str, edit: impl FnOnce(&mut Value)) {
        let version = self.next_version();
        let node = self.nodes.get_mut(name).unwrap();
        edit(node);
        node["metadata"]["resourceVersion"] = json!(version);
    }

    /// A pod on a node: `namespace/name`, of an owner of that kind, if of any.
    pub(in super::super) fn add_pod(&mut self, node: &str, pod: &str, owner: Option<&str>, lingers: u32) {
        let (namespace, name) = pod.split_once('/').unwrap();
        let version = self.next_version();
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name, "namespace": namespace, "uid": format!("uid-of-{name}-{version}"), "resourceVersion": version,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": { "app": name.split('-').next().unwrap() },
            },
            "spec": {
                "nodeName": node, "terminationGracePeriodSeconds": 30,
                "containers": [{ "name": "main", "image": "example" }],
            },
            "status": { "phase": "Running" },
        });
        if let Some(kind) = owner {
            let owner = name.split('-').next().unwrap();
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "uid-of-owner", "controller": true,
            }]);
            if kind == "DaemonSet" {
                self.daemon_sets.push((namespace.to_owned(), owner.to_owned()));
            }
        }
        self.pods.insert((namespace.to_owned(), name.to_owned()), StandInPod { object, lingers });
    }

    pub(in super::super) fn edit_pod(&mut self, pod: &str, edit: impl FnOnce(&mut Value)) {
        let (namespace, name) = pod.split_once('/').unwrap();
        edit(&mut self.pods.get_mut(&(namespace.to_owned(), name.to_owned())).unwrap().object);
    }

    pub(in super::super) fn add_budget(&mut self, budget: Budget) {
        self.budgets.push(budget);
    }

    /// Lets so many more go.
    pub(in super::super) fn allow(&mut self, app: &str, more: u32) {
        self.budgets.iter_mut().filter(|budget| budget.app == app).for_each(|budget| budget.allowed += more);
    }

    /// The pods that are not terminating, as `namespace/name`.
    pub(in super::super) fn pods(&self) -> Vec<String> {
        self.pods.keys().map(|(namespace, name)| format!("{namespace}/{name}")).collect()
    }

    /// Returns an error once for requests that begin like this, for example `GET /api/v1/nodes/`.
    pub(in super::super) fn fail(&mut self, what: &'static str, status: u16) {
        self.faults.push_back((what, status));
    }

    /// Changes the node as another client would, just before its next patch.
    pub(in super::super) fn edit_before_next_patch(
        &mut self,
        edit: impl FnOnce(&mut Value) + Send + 'static,
    ) {
        self.meddling.push_back(Box::new(edit));
    }

    /// The recorded requests, as `METHOD target`.
    pub(in super::super) fn requests(&self) -> Vec<String> {
        self.recorded.iter().map(|request| format!("{} {}", request.method, request.target)).collect()
    }

    pub(super) fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Reads a pod: a terminating one is gone after a while, and its budget allows one more eviction.
    pub(super) fn touch_pod(&mut self, key: &(String, String)) {
        let Some(pod) = self.pods.get_mut(key) else { return };
        if pod.object["metadata"].get("deletionTimestamp").is_none() {
            return;
        }
        if pod.lingers > 0 {
            pod.lingers -= 1;
            return;
        }
        let (object, namespace) = (pod.object.clone(), key.0.clone());
        self.pods.remove(key);
        let app = object["metadata"]["labels"]["app"].clone();
        let budgets =
            self.budgets.iter_mut().filter(|budget| budget.namespace == namespace && app == *budget.app);
        budgets.filter(|budget| budget.recovers).for_each(|budget| budget.allowed += 1);
    }
}

pub(super) fn merge(target: &mut Value, patch: &Value) {
    apply(target, patch, &|_, _, _| false, "");
}

/// The merge of Kubernetes: lists of conditions and taints by their keys, everything else as RFC 7386 has it.
pub(super) fn strategic_merge(target: &mut Value, patch: &Value) {
    let by_key = |path: &str, target: &mut Value, patch: &Value| {
        let key = match path {
            "/status/conditions" => "type",
            "/spec/taints" => "key",
            _ => return false,
        };
        let (Some(wanted), true) = (patch.as_array(), target.is_array() || target.is_null()) else {
            return false;
        };
        let mut list = target.as_array().cloned().unwrap_or_default();
        for item in wanted {
            match list.iter_mut().find(|known| known[key] == item[key]) {
                Some(known) => merge(known, item),
                None => list.push(item.clone()),
            }
        }
        *target = Value::Array(list);
        true
    };
    apply(target, patch, &by_key, "");
}

type Special<'a> = &'a dyn Fn(&str, &mut Value, &Value) -> bool;

fn apply(target: &mut Value, patch: &Value, special: Special<'_>, path: &str) {
    if special(path, target, patch) {
        return;
    }
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let object = target.as_object_mut().unwrap();
    for (key, value) in fields {
        if value.is_null() {
            object.remove(key);
        } else {
            apply(object.entry(key.clone()).or_insert(Value::Null), value, special, &format!("{path}/{key}"));
        }
    }
}
