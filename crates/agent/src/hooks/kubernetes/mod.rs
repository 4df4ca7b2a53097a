//! Cordons and drains the Kubernetes node that runs on this machine, and restores it.
//!
//! ```text
//!   scheduled: node condition ──▶ drain slot, if `at_once` is set ──▶ cordon ──▶ evictions until no pod is left
//!   undo:      uncordon, if this hook has cordoned it ──▶ release the drain slot ──▶ node condition
//! ```
//!
//! All state is stored on the node, so that a restarted agent continues where the previous one stopped: an annotation
//! marks a cordon of this hook, a label marks the drain slot. A node that was cordoned by someone else is not
//! uncordoned. Pods are removed by evictions, which disruption budgets may delay; nothing is ever deleted.
//!
//! Out of scope: watches, and pods of other nodes.

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
use super::time_limit::TimeLimit;
use super::{HookCall, check_path};

/// `kubernetes = { at_once = 1 }`: all other values have defaults in a pod with a service account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KubernetesWork {
    /// The name of the node [default: the variable `NODE_NAME`, then the name of this machine].
    #[serde(default)]
    pub(crate) node: Option<String>,
    /// The API server: `https://HOST:PORT` [default: from `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`]. A
    /// token is only sent over `https`.
    #[serde(default)]
    pub(crate) server: Option<String>,
    /// The token file of the service account. It is read for every request.
    #[serde(default = "default_token_file")]
    pub(crate) token_file: PathBuf,
    /// The file with the certificate authorities (PEM) of the API server.
    #[serde(default = "default_ca_file")]
    pub(crate) ca_file: PathBuf,
    /// True to set a condition `ScheduledEvent` on the node.
    #[serde(default = "enabled")]
    pub(crate) condition: bool,
    /// True to cordon the node: it gets no new pods.
    #[serde(default = "enabled")]
    pub(crate) cordon: bool,
    /// True to evict its pods. Pods of a `DaemonSet`, mirror pods and finished pods stay.
    #[serde(default = "enabled")]
    pub(crate) drain: bool,
    /// True to also evict pods without a controller: they are not created again.
    #[serde(default)]
    pub(crate) bare_pods: bool,
    /// The longest grace period of a pod; `None` for the pod's own. The time limit of the hook applies in any case.
    #[serde(default)]
    pub(crate) grace: Option<Span>,
    /// Number of nodes of the cluster that may be drained at once; `None` for no limit.
    #[serde(default)]
    pub(crate) at_once: Option<u32>,
    /// Remaining time at which the node stops waiting for a drain slot; at most half of the time limit.
    #[serde(default = "default_reserve")]
    pub(crate) reserve: Span,
}

fn default_token_file() -> PathBuf {
    PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount/token")
}

fn default_ca_file() -> PathBuf {
    PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
}

fn default_reserve() -> Span {
    Span(Duration::from_mins(2))
}

fn enabled() -> bool {
    true
}

/// Looks up an environment variable.
type Variables = fn(&str) -> Option<String>;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl KubernetesWork {
    pub(super) fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        errors.extend(self.node.as_ref().and_then(|node| check_name("node", node).err()));
        let server = self.server.as_ref().and_then(|server| Url::parse(server).err());
        errors.extend(server.map(|error| format!("invalid `server`: {error}")));
        for (name, path) in [("token_file", &self.token_file), ("ca_file", &self.ca_file)] {
            errors.extend(check_path(name, path).err());
        }
        if !self.condition && !self.cordon && !self.drain {
            errors.push(
                "`kubernetes` does nothing: `condition`, `cordon` and `drain` are all false".to_owned(),
            );
        }
        if self.drain && !self.cordon {
            errors.push("`drain` without `cordon`: evicted pods could return to the node".to_owned());
        }
        if self.at_once == Some(0) {
            errors.push(
                "`at_once` is 0: no node would ever be drained\n  hint: at_once = 1, or leave it out"
                    .to_owned(),
            );
        }
        errors
    }

    /// Performs the work. It can always be undone.
    pub(super) async fn perform(
        &self,
        call: &HookCall<'_>,
        time_limit: &TimeLimit,
        pending_condition: &mut String,
    ) -> Result<(), String> {
        match call.job.run.task.phase {
            Phase::Scheduled | Phase::Started => {}
            // The event has ended: restore the node.
            Phase::Completed | Phase::Cancelled | Phase::Undo => {
                return self.undo(call, pending_condition).await;
            }
        }
        let mut api = self.api(call, pending_condition, variable)?;
        let name = self.node_name(call, variable)?;
        if self.condition {
            node::set_condition(&mut api, &name, Some(call.job)).await?;
        }
        if let Some(at_once) = self.at_once.filter(|_| self.cordon) {
            let reserve = self.reserve_of(call.job.limit);
            node::take_slot(&mut api, &name, at_once, || time_limit.left() <= reserve).await?;
        }
        if self.cordon {
            node::cordon(&mut api, &name, &call.job.run.task.event.to_string()).await?;
        }
        if self.drain {
            drain::drain(&mut api, &name, self, time_limit).await?;
        }
        Ok(())
    }

    pub(super) async fn undo(
        &self,
        call: &HookCall<'_>,
        pending_condition: &mut String,
    ) -> Result<(), String> {
        let mut api = self.api(call, pending_condition, variable)?;
        let name = self.node_name(call, variable)?;
        if self.cordon {
            node::uncordon(&mut api, &name).await?;
        }
        if self.condition {
            node::set_condition(&mut api, &name, None).await?;
        }
        Ok(())
    }

    fn api<'a>(
        &self,
        call: &HookCall<'_>,
        pending_condition: &'a mut String,
        variables: Variables,
    ) -> Result<Api<'a>, String> {
        let server = self.server(variables)?;
        let trust = Trust::file(self.ca_file.clone());
        Ok(Api::new(server, trust, self.token_file.clone(), call.runtime, pending_condition))
    }

    /// The time reserved for the work itself.
    fn reserve_of(&self, limit: Duration) -> Duration {
        let Span(reserve) = self.reserve;
        reserve.min(limit / 2)
    }

    fn server(&self, variables: Variables) -> Result<Url, String> {
        let text = match &self.server {
            Some(server) => server.clone(),
            None => {
                let host = variables("KUBERNETES_SERVICE_HOST").ok_or(
                    "no API server: KUBERNETES_SERVICE_HOST is not set\n  hint: run in a pod, or set `server`",
                )?;
                let port = variables("KUBERNETES_SERVICE_PORT").unwrap_or_else(|| "443".to_owned());
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                format!("https://{host}:{port}")
            }
        };
        Url::parse(&text).map_err(|error| format!("invalid URL of the API server: {error}"))
    }

    fn node_name(&self, call: &HookCall<'_>, variables: Variables) -> Result<String, String> {
        let name = self.node.clone().or_else(|| variables("NODE_NAME"));
        let name = name.unwrap_or_else(|| call.job.me.to_ascii_lowercase());
        check_name("node", &name)?;
        Ok(name)
    }
}

/// Limit of the length of a name.
const NAME_CHARS_MAX: usize = 253;

/// Checks a Kubernetes name. Only valid names become part of a path.
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
        "invalid name of a {what}: {name:?}\n  hint: lower-case letters, digits, - and . as shown by `kubectl get nodes`"
    ))
}
