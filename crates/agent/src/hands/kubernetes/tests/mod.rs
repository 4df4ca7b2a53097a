//! Nodes that are drained and put back, against a stand-in for the API server. How faithful that is, it says itself.

mod drains;
mod kubectl;
mod manifest;
mod nodes;
mod stand_in;

use forewarn_agent_core::{Ending, Phase};
use tokio::sync::watch;

use self::stand_in::StandIn;
use super::KubernetesWork;
use crate::hands::samples::{go_on, hands, job};
use crate::hands::{Hands, Work};

/// A cluster with a node `web-0`, and an agent on it.
struct Place {
    api: StandIn,
    hands: Hands,
    _folder: tempfile::TempDir,
}

impl Place {
    async fn new() -> Self {
        let (hands, folder) = hands();
        let api = StandIn::new().await;
        api.cluster().add_node("web-0");
        Self { api, hands, _folder: folder }
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
        assert_eq!(work.check(), Ok(()));
        work
    }

    async fn perform(&self, work: &Work) -> Ending {
        self.perform_until(work, go_on()).await
    }

    async fn perform_until(&self, work: &Work, stop: watch::Receiver<bool>) -> Ending {
        work.perform(&job("drain", Phase::Scheduled), &self.hands, stop).await
    }

    async fn undo(&self, work: &Work) -> Result<(), String> {
        work.undo(&job("drain", Phase::Undo), &self.hands, go_on()).await.result
    }

    /// Waits until the API server was asked so, so often.
    async fn asked(&self, line: &str, times: usize) {
        let count = || self.api.cluster().requests().iter().filter(|asked| asked.starts_with(line)).count();
        crate::hands::samples::until(line, || (count() >= times).then_some(())).await;
    }
}

/// What nobody knows is empty; what is asked for in a pod is there.
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
    let check = |text: &str| toml::from_str::<KubernetesWork>(text).unwrap().check();
    assert_eq!(check(""), Ok(()));
    assert_eq!(check("at_once = 2\nreserve = '1m'\ngrace = '20s'\nbare_pods = true"), Ok(()));
    for (text, told) in [
        ("node = 'web_0'", "not the name of a node"),
        ("node = '../x'", "not the name of a node"),
        ("node = ''", "not the name"),
        ("server = '10.0.0.1'", "`server` is none"),
        ("token_file = 'token'", "`token_file` is not a whole path"),
        ("ca_file = 'ca'", "`ca_file`"),
        ("condition = false\ncordon = false\ndrain = false", "does nothing"),
        ("cordon = false", "`drain` without `cordon`"),
        ("at_once = 0", "hint: at_once = 1"),
    ] {
        let problem = check(text).unwrap_err();
        assert!(problem.contains(told), "{text}: {problem}");
    }
    assert!(toml::from_str::<KubernetesWork>("force = true").is_err());
}

#[test]
fn in_a_pod_nothing_has_to_be_said() {
    let work: KubernetesWork = toml::from_str("").unwrap();
    assert_eq!(work.server(in_a_pod).unwrap().shown(), "https://[fd00::1]:6443");
    assert!(work.server(|_| None).unwrap_err().contains("hint: run it in a pod"));
    let (hands, _folder) = hands();
    let mut job = job("drain", Phase::Scheduled);
    let name = |me: &str, variables| {
        job.me = me.to_owned();
        work.node_name(&super::Setting { job: &job, hands: &hands, earlier: None }, variables)
    };
    let mut name = name;
    assert_eq!(name("pool_0", in_a_pod), Ok("aks-pool-12345-vmss000000".to_owned()));
    assert_eq!(name("Web-0", |_| None), Ok("web-0".to_owned()));
    assert!(name("pool_0", |_| None).unwrap_err().contains("not the name of a node"));
}
