//! Draining and restoring of nodes, against a stand-in for the API server.

mod drains;
mod kubectl;
mod manifest;
mod nodes;
mod stand_in;

use forewarn_agent_core::{HookOutcome, Phase};
use tokio::sync::watch;

use self::stand_in::StandIn;
use super::KubernetesWork;
use crate::hooks::fixtures::{self, job, never_stop, runtime};
use crate::hooks::{HookRuntime, Work};

/// A cluster with a node `web-0`, and an agent on it.
struct KubernetesFixture {
    api: StandIn,
    runtime: HookRuntime,
    _folder: tempfile::TempDir,
}

impl KubernetesFixture {
    async fn new() -> Self {
        let (runtime, folder) = runtime();
        let api = StandIn::new().await;
        api.cluster().add_node("web-0");
        Self { api, runtime, _folder: folder }
    }

    fn work(&self, settings: &str) -> Work {
        self.work_on("web-0", settings)
    }

    fn work_on(&self, node: &str, settings: &str) -> Work {
        let (url, token, ca) = (self.api.url(), self.api.token_file(), self.api.ca_file());
        let fixed = format!(
            "node = '{node}'\nserver = '{url}'\ntoken_file = '{}'\nca_file = '{}'\n",
            token.display(),
            ca.display()
        );
        let work = Work::Kubernetes(toml::from_str(&format!("{fixed}{settings}")).unwrap());
        assert_eq!(work.errors(), [""; 0]);
        work
    }

    async fn perform(&self, work: &Work) -> HookOutcome {
        self.perform_until(work, never_stop()).await
    }

    async fn perform_until(&self, work: &Work, stop: watch::Receiver<bool>) -> HookOutcome {
        work.perform(&job("drain", Phase::Scheduled), &self.runtime, stop).await
    }

    async fn undo(&self, work: &Work) -> Result<(), String> {
        work.undo(&job("drain", Phase::Undo), &self.runtime, never_stop()).await.result
    }

    /// Waits for a number of requests that begin with `line`.
    async fn wait_for_requests(&self, line: &str, times: usize) {
        let count =
            || self.api.cluster().requests().iter().filter(|requests| requests.starts_with(line)).count();
        crate::hooks::fixtures::until(line, || (count() >= times).then_some(())).await;
    }
}

/// The environment of a pod.
fn in_a_pod(name: &str) -> Option<String> {
    let value = match name {
        "KUBERNETES_SERVICE_HOST" => "fd00::1",
        "KUBERNETES_SERVICE_PORT" => "6443",
        "NODE_NAME" => "aks-pool-12345-vmss000000",
        _ => return None,
    };
    Some(value.to_owned())
}

#[test]
fn settings_are_checked() {
    let check = |text: &str| fixtures::all_or_none(&toml::from_str::<KubernetesWork>(text).unwrap().errors());
    assert_eq!(check(""), Ok(()));
    assert_eq!(check("at_once = 2\nreserve = '1m'\ngrace = '20s'\nbare_pods = true"), Ok(()));
    for (text, expected) in [
        ("node = 'web_0'", "invalid name of a node"),
        ("node = '../x'", "invalid name of a node"),
        ("node = ''", "invalid name of a node"),
        ("server = '10.0.0.1'", "invalid `server`"),
        ("token_file = 'token'", "`token_file` is not an absolute path"),
        ("ca_file = 'ca'", "`ca_file`"),
        ("condition = false\ncordon = false\ndrain = false", "does nothing"),
        ("cordon = false", "`drain` without `cordon`"),
        ("at_once = 0", "hint: at_once = 1"),
    ] {
        let error = check(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(toml::from_str::<KubernetesWork>("force = true").is_err());
}

#[test]
fn in_a_pod_nothing_has_to_be_said() {
    let work: KubernetesWork = toml::from_str("").unwrap();
    assert_eq!(work.server(in_a_pod).unwrap().redacted(), "https://[fd00::1]:6443");
    assert!(work.server(|_| None).unwrap_err().contains("hint: run in a pod"));
    let (runtime, _folder) = runtime();
    let mut job = job("drain", Phase::Scheduled);
    let name = |me: &str, variables| {
        job.me = me.to_owned();
        work.node_name(&super::HookCall { job: &job, runtime: &runtime, earlier: None }, variables)
    };
    let mut name = name;
    assert_eq!(name("pool_0", in_a_pod), Ok("aks-pool-12345-vmss000000".to_owned()));
    assert_eq!(name("Web-0", |_| None), Ok("web-0".to_owned()));
    assert!(name("pool_0", |_| None).unwrap_err().contains("invalid name of a node"));
}
