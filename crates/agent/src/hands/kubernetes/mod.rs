//! The node of a Kubernetes cluster that this machine is: cordoned, drained, and put back.
//!
//! ```text
//!   scheduled: node condition ──▶ turn, if only so many may be drained at once ──▶ cordon ──▶ evictions until no pod is left
//!   undo:      uncordon, if it was cordoned by this hook ──▶ turn given back ──▶ node condition
//! ```
//!
//! Everything that has to be known later is on the node itself, so an agent that is started again goes on where the one before it
//! was: an annotation says that it was cordoned here, a label that it has its turn. A node that somebody else has cordoned is not
//! uncordoned. Pods are asked to go by evictions, which budgets may refuse for a while; nothing is ever deleted.
//!
//! Deliberately absent: watches, and anything about pods of other nodes.

mod api;
mod drain;
mod node;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use forewarn_agent_core::Phase;
use forewarn_client::http::{Trust, Url};
use forewarn_types::Span;
use serde::Deserialize;

use self::api::Api;
use super::Setting;
use super::bounds::Bounds;

/// `kubernetes = { at_once = 1 }`: everything else is usual in a pod with a service account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KubernetesWork {
    /// The name of the node; otherwise the variable `NODE_NAME`, otherwise the name of this machine.
    #[serde(default)]
    pub(crate) node: Option<String>,
    /// The API server: `https://HOST:PORT`; otherwise that of the variables `KUBERNETES_SERVICE_HOST` and
    /// `KUBERNETES_SERVICE_PORT`. A token is only ever sent with `https`.
    #[serde(default)]
    pub(crate) server: Option<String>,
    /// The file with the token of the service account. It is read anew for every request.
    #[serde(default = "usual_token_file")]
    pub(crate) token_file: PathBuf,
    /// The file with the authorities (PEM) who vouch for the API server.
    #[serde(default = "usual_ca_file")]
    pub(crate) ca_file: PathBuf,
    /// Whether the node gets a condition `ScheduledEvent` that tells of the event.
    #[serde(default = "yes")]
    pub(crate) condition: bool,
    /// Whether the node is cordoned: it gets no new pods.
    #[serde(default = "yes")]
    pub(crate) cordon: bool,
    /// Whether its pods are evicted. Pods of a `DaemonSet`, mirror pods and finished ones stay.
    #[serde(default = "yes")]
    pub(crate) drain: bool,
    /// Whether pods that nothing would create anew are evicted, too: they do not come back.
    #[serde(default)]
    pub(crate) bare_pods: bool,
    /// The longest time that a pod gets to end; otherwise as long as it wants. In any case not longer than there is time.
    #[serde(default)]
    pub(crate) grace: Option<Span>,
    /// So many nodes of the cluster may be drained at once; this one waits for its turn.
    #[serde(default)]
    pub(crate) at_once: Option<u32>,
    /// With so little time left, or half of what there was if that is less, the turn is no longer waited for.
    #[serde(default = "usual_reserve")]
    pub(crate) reserve: Span,
}

fn usual_token_file() -> PathBuf {
    PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount/token")
}

fn usual_ca_file() -> PathBuf {
    PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
}

fn usual_reserve() -> Span {
    Span(Duration::from_mins(2))
}

fn yes() -> bool {
    true
}

/// A variable of the environment.
type Variables = fn(&str) -> Option<String>;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl KubernetesWork {
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(node) = &self.node {
            check_name("node", node)?;
        }
        if let Some(server) = &self.server {
            Url::parse(server).map_err(|problem| format!("`server` is none: {problem}"))?;
        }
        for (name, path) in [("token_file", &self.token_file), ("ca_file", &self.ca_file)] {
            if !path.is_absolute() {
                return Err(format!("`{name}` is not a whole path: {}", path.display()));
            }
        }
        if !self.condition && !self.cordon && !self.drain {
            return Err(
                "`kubernetes` does nothing: `condition`, `cordon` and `drain` are all false".to_owned()
            );
        }
        if self.drain && !self.cordon {
            return Err("`drain` without `cordon`: pods would come back at once".to_owned());
        }
        if self.at_once == Some(0) {
            return Err(
                "`at_once` is 0: no node would ever be drained\n  hint: at_once = 1, or leave it out"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Whether it leaves anything that can be undone: it always does.
    pub(super) async fn perform(
        &self,
        setting: &Setting<'_>,
        bounds: &Bounds,
        waits: &mut String,
    ) -> Result<(), String> {
        match setting.job.run.task.phase {
            Phase::Scheduled | Phase::Started => {}
            // What is over is put back.
            Phase::Completed | Phase::Cancelled | Phase::Undo => return self.undo(setting, waits).await,
        }
        let mut api = self.api(setting, waits, variable)?;
        let name = self.node_name(setting, variable)?;
        if self.condition {
            node::tell(&mut api, &name, Some(setting.job)).await?;
        }
        if let Some(at_once) = self.at_once.filter(|_| self.cordon) {
            let reserve = self.reserve_of(setting.job.limit);
            node::take_turn(&mut api, &name, at_once, || bounds.left() <= reserve).await?;
        }
        if self.cordon {
            node::cordon(&mut api, &name, &setting.job.run.task.event.to_string()).await?;
        }
        if self.drain {
            drain::drain(&mut api, &name, self, bounds).await?;
        }
        Ok(())
    }

    pub(super) async fn undo(&self, setting: &Setting<'_>, waits: &mut String) -> Result<(), String> {
        let mut api = self.api(setting, waits, variable)?;
        let name = self.node_name(setting, variable)?;
        if self.cordon {
            node::uncordon(&mut api, &name).await?;
        }
        if self.condition {
            node::tell(&mut api, &name, None).await?;
        }
        Ok(())
    }

    fn api<'a>(
        &self,
        setting: &Setting<'_>,
        waits: &'a mut String,
        variables: Variables,
    ) -> Result<Api<'a>, String> {
        let server = self.server(variables)?;
        let trust = Trust::file(self.ca_file.clone());
        Ok(Api::new(server, trust, self.token_file.clone(), setting.hands, waits))
    }

    /// The time that is kept for the work itself.
    fn reserve_of(&self, limit: Duration) -> Duration {
        let Span(reserve) = self.reserve;
        reserve.min(limit / 2)
    }

    fn server(&self, variables: Variables) -> Result<Url, String> {
        let text = match &self.server {
            Some(server) => server.clone(),
            None => {
                let host = variables("KUBERNETES_SERVICE_HOST").ok_or(
                    "there is no API server: KUBERNETES_SERVICE_HOST is not set\n  hint: run it in a pod, or set `server`",
                )?;
                let port = variables("KUBERNETES_SERVICE_PORT").unwrap_or_else(|| "443".to_owned());
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                format!("https://{host}:{port}")
            }
        };
        Url::parse(&text).map_err(|problem| format!("the API server is at no URL: {problem}"))
    }

    fn node_name(&self, setting: &Setting<'_>, variables: Variables) -> Result<String, String> {
        let name = self.node.clone().or_else(|| variables("NODE_NAME"));
        let name = name.unwrap_or_else(|| setting.job.me.to_ascii_lowercase());
        check_name("node", &name)?;
        Ok(name)
    }
}

/// Characters of a name.
const NAME_CHARS_MAX: usize = 253;

/// Whether it is a name as Kubernetes has them. Only those become part of a path.
fn check_name(what: &str, name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let is_name = !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.bytes().all(fits)
        && !name.starts_with(['-', '.'])
        && !name.ends_with(['-', '.']);
    if is_name {
        return Ok(());
    }
    Err(format!(
        "not the name of a {what}: {name:?}\n  hint: small letters, digits, - and . as `kubectl get nodes` shows them"
    ))
}
