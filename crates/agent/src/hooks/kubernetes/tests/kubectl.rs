//! Real `kubectl` against the stand-in: what it takes for an API server is good enough for an agent.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::KubernetesFixture;
use super::stand_in::{Budget, TOKEN};
use crate::hooks::fixtures::until;

async fn kubectl(fixture: &KubernetesFixture, arguments: &[&str]) -> Output {
    let home = fixture.api.folder.path();
    let mut command = tokio::process::Command::new("kubectl");
    command
        .arg(format!("--server={}", fixture.api.url()))
        .arg(format!("--token={TOKEN}"))
        .arg(format!("--certificate-authority={}", fixture.api.ca_file().display()))
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("KUBECONFIG", Path::new("/dev/null"))
        .kill_on_drop(true);
    let output =
        tokio::time::timeout(crate::hooks::fixtures::TIMEOUT, command.output()).await.unwrap().unwrap();
    println!("kubectl {}\n{}{}", arguments.join(" "), text(&output.stdout), text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn succeeds(fixture: &KubernetesFixture, arguments: &[&str]) -> String {
    let output = kubectl(fixture, arguments).await;
    assert!(output.status.success(), "kubectl {}: {}", arguments.join(" "), text(&output.stderr));
    text(&output.stdout)
}

/// True if kubectl reports an empty node; older versions say "evicted".
fn is_drained(output: &str, how: &str) -> bool {
    ["drained", "evicted"].iter().any(|word| output.contains(&format!("node/web-0 {word}{how}")))
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs kubectl; `cargo xtask agent` runs it"]
async fn kubectl_takes_the_stand_in_for_an_api_server() {
    let fixture = KubernetesFixture::new().await;
    {
        let mut cluster = fixture.api.cluster();
        cluster.add_pod("web-0", "shop/front-1", Some("ReplicaSet"), 2);
        cluster.add_pod("web-0", "shop/front-2", Some("ReplicaSet"), 0);
        cluster.add_pod("web-0", "kube-system/proxy-1", Some("DaemonSet"), 0);
        cluster.add_budget(Budget {
            namespace: "shop".to_owned(),
            app: "front".to_owned(),
            allowed: 1,
            recovers: true,
        });
    }
    let node: Value =
        serde_json::from_str(&succeeds(&fixture, &["get", "node", "web-0", "-o", "json"]).await).unwrap();
    assert_eq!(node["metadata"]["name"], "web-0");
    let missing = kubectl(&fixture, &["get", "node", "web-9"]).await;
    assert!(text(&missing.stderr).contains("nodes \"web-9\" not found"));
    // Our own cordon is one that kubectl sees, and the other way round.
    let work = fixture.work("drain = false");
    fixture.perform(&work).await.result.unwrap();
    assert!(succeeds(&fixture, &["cordon", "web-0"]).await.contains("node/web-0 already cordoned"));
    fixture.undo(&work).await.unwrap();
    assert!(succeeds(&fixture, &["cordon", "web-0"]).await.contains("node/web-0 cordoned"));
    fixture.perform(&work).await.result.unwrap();
    fixture.undo(&work).await.unwrap();
    assert_eq!(fixture.api.cluster().node("web-0")["spec"]["unschedulable"], json!(true), "it is theirs");
    // Draining: daemons are looked at, a budget is waited for, pods are waited for.
    let refused = kubectl(&fixture, &["drain", "web-0", "--dry-run=server"]).await;
    assert!(text(&refused.stderr).contains("cannot delete DaemonSet-managed Pods"));
    let dry = succeeds(&fixture, &["drain", "web-0", "--ignore-daemonsets", "--dry-run=client"]).await;
    assert!(is_drained(&dry, " (dry run)"), "{dry}");
    assert_eq!(fixture.api.cluster().pods().len(), 3);
    let drained = succeeds(&fixture, &["drain", "web-0", "--ignore-daemonsets", "--timeout=50s"]).await;
    assert!(drained.contains("pod/front-1 evicted") && is_drained(&drained, ""), "{drained}");
    until("only the daemon is left", || {
        (fixture.api.cluster().pods() == ["kube-system/proxy-1"]).then_some(())
    })
    .await;
    assert!(succeeds(&fixture, &["uncordon", "web-0"]).await.contains("node/web-0 uncordoned"));
    assert!(fixture.api.cluster().node("web-0")["spec"].get("unschedulable").is_none());
    let label = succeeds(&fixture, &["get", "nodes", "-l", "forewarn.dev/turn", "-o", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&label).unwrap()["items"], json!([]));
}
