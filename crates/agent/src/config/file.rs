//! The settings file: its TOML schema. Unknown keys are errors.
//!
//! Validation beyond the schema is in [`super`].

use std::path::PathBuf;

use forewarn_agent_core::{Approval, Condition, Failure, Phase, Treatment};
use forewarn_cli_support::log::{Detail, Format};
use forewarn_types::Span;
use serde::Deserialize;
use toml::Spanned;

use crate::hooks::{KubernetesWork, SignalWork, SystemdWork, TouchWork, WaitWork, WebhookWork};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) endpoint: Option<Spanned<String>>,
    pub(super) name: Option<Spanned<String>>,
    pub(super) poll: Option<Spanned<Span>>,
    pub(super) long_poll: Option<bool>,
    pub(super) state: Option<PathBuf>,
    pub(super) hooks: Option<PathBuf>,
    pub(super) hook_limit: Option<Spanned<Span>>,
    pub(super) spare: Option<Spanned<Span>>,
    pub(super) event_log: Option<PathBuf>,
    pub(super) listen: Option<Spanned<toml::Value>>,
    pub(super) log: LogTable,
    pub(super) approval: ApprovalTable,
    pub(super) peers: Option<Spanned<PeersTable>>,
    pub(super) rule: Vec<Spanned<RuleTable>>,
    pub(super) hook: Vec<Spanned<HookTable>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogTable {
    pub(super) format: Format,
    pub(super) level: Detail,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ApprovalTable {
    pub(super) policy: Option<Spanned<Approval>>,
    pub(super) on_failure: Failure,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PeersTable {
    pub(super) list: Option<Vec<Spanned<String>>>,
    pub(super) dns: Option<Spanned<String>>,
    pub(super) members: Option<bool>,
    pub(super) suffix: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) key_file: Option<Spanned<PathBuf>>,
    pub(super) silent_after: Option<Spanned<Span>>,
    pub(super) silence: Option<SilenceWord>,
    pub(super) go_on_when_left: Option<Span>,
    pub(super) at_once: Option<Spanned<u32>>,
    pub(super) reserve: Option<Span>,
}

/// The effect of a silent peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SilenceWord {
    Wait,
    GoOn,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RuleTable {
    pub(super) when: Condition,
    pub(super) treatment: Treatment,
    pub(super) approval: Option<Approval>,
    pub(super) on_failure: Option<Failure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HookTable {
    pub(super) name: Option<String>,
    pub(super) phase: Option<Phase>,
    pub(super) when: Condition,
    pub(super) order: Option<u32>,
    pub(super) limit: Option<Span>,
    pub(super) retries: u32,
    pub(super) even_late: bool,
    pub(super) command: Option<Vec<String>>,
    pub(super) undo: Option<Vec<String>>,
    pub(super) systemd: Option<SystemdWork>,
    pub(super) webhook: Option<WebhookWork>,
    pub(super) kubernetes: Option<KubernetesWork>,
    pub(super) touch: Option<TouchWork>,
    pub(super) signal: Option<SignalWork>,
    pub(super) wait: Option<WaitWork>,
}
