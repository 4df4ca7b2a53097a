//! The manifest in `deploy/kubernetes`: its settings are valid, and its role has exactly the needed permissions.

use std::collections::BTreeSet;
use std::path::Path;

use super::KubernetesFixture;
use crate::config::Config;

const MANIFEST: &str = include_str!("../../../../../../deploy/kubernetes/daemonset.yaml");

/// The lines below one, as far as they are indented further.
fn block<'a>(text: &'a str, head: &str) -> Vec<&'a str> {
    let mut lines = text.lines().skip_while(|line| line.trim() != head);
    let depth = |line: &str| line.len() - line.trim_start().len();
    let outer = depth(lines.next().unwrap());
    lines.take_while(|line| line.trim().is_empty() || depth(line) > outer).collect()
}

#[test]
fn its_settings_are_settings() {
    let text = block(MANIFEST, "agent.toml: |").join("\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    std::fs::write(&file, format!("hooks = '{}'\n{text}", folder.path().display())).unwrap();
    let config = Config::load(Some(Path::new(&file))).unwrap();
    let names: Vec<_> = config.hooks.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["tell", "tell-started", "drain"]);
}

/// The words between quotes.
fn words(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

/// The permissions of the role, as `verb resource`.
fn allowed() -> BTreeSet<String> {
    let mut allowed = BTreeSet::new();
    let mut resources = Vec::new();
    for line in MANIFEST.lines().map(str::trim) {
        if line.starts_with("resources: [") {
            resources = words(line);
        } else if line.starts_with("verbs: [") {
            let pairs = words(line)
                .into_iter()
                .flat_map(|verb| resources.iter().map(move |what| format!("{verb} {what}")));
            allowed.extend(pairs);
        }
    }
    allowed
}

/// The permission that a request needs.
fn needed(request: &str) -> String {
    let (method, target) = request.split_once(' ').unwrap();
    let path = target.split('?').next().unwrap();
    let parts: Vec<_> = path.trim_matches('/').split('/').skip(2).collect();
    match (method, parts.as_slice()) {
        ("GET", ["nodes"]) => "list nodes",
        ("GET", ["nodes", _]) => "get nodes",
        ("PATCH", ["nodes", _]) => "patch nodes",
        ("PATCH", ["nodes", _, "status"]) => "patch nodes/status",
        ("GET", ["pods"]) => "list pods",
        ("POST", ["namespaces", _, "pods", _, "eviction"]) => "create pods/eviction",
        _ => panic!("unknown permission of the request: {request}"),
    }
    .to_owned()
}

/// promise: A7
#[tokio::test(flavor = "current_thread")]
async fn its_role_allows_what_is_done_and_nothing_else() {
    let fixture = KubernetesFixture::new().await;
    fixture.api.cluster().add_pod("web-0", "shop/front-1", Some("ReplicaSet"), 1);
    let work = fixture.work("at_once = 1");
    fixture.perform(&work).await.result.unwrap();
    fixture.undo(&work).await.unwrap();
    let needed: BTreeSet<_> =
        fixture.api.cluster().requests().iter().map(|request| needed(request)).collect();
    assert_eq!(needed, allowed());
}
