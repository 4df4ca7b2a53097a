//! Requests: every change of the control plane. Requests are plain data.
//!
//! A request and its reply have a JSON form, for messages between servers: it holds everything, secrets too. Reading
//! it rejects anything that it does not describe exactly.

use forewarn_lifecycle::{Change, Command, HostId, MaintenanceId, Name, Now, Report, Target, Timestamp};
use forewarn_types::Span;
use forewarn_url::Url;
use serde::{Deserialize, Serialize};

use crate::command::{ClockChange, NamedCommand};
use crate::placement::ScaleSetCommand;
use crate::request_context::present;
use crate::resource_id::GroupId;
use crate::resources::{Body, Link, Operation};
use crate::shared::{
    Authorization, Filter, NewClaim, Progress, Role, Scope, TokenHash, UndeliveredMessages, WebhookFormat,
};
use crate::stream::{ClusterId, Stream};
use crate::view::Outcome;

pub use crate::request_context::{ForwardId, HostNames, ITSELF, IdempotencyKey, PermitCheck, RequestContext};

/// A request to one cluster, or to the state that clusters share. It is carried out completely or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// A request to one cluster.
    Cluster(ClusterId, ClusterRequest),
    /// A request to the state that clusters share.
    Shared(SharedRequest),
}

impl Request {
    /// The part of the state that the request is to. All records and audit entries of its decision belong to it.
    #[must_use]
    pub fn stream(&self) -> Stream {
        match self {
            Self::Cluster(id, _) => Stream::Cluster(*id),
            Self::Shared(_) => Stream::Shared,
        }
    }

    /// The key that makes the request safe to repeat, if it has one.
    #[must_use]
    pub fn once(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::Cluster(_, request) => request.once(),
            Self::Shared(request) => request.once(),
        }
    }

    /// Returns true if the request can be sent again after a lost answer: it is carried out once, or its repetition
    /// changes nothing.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Cluster(_, request) => request.is_repeatable(),
            Self::Shared(request) => request.once().is_some(),
        }
    }
}

/// A request to one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ClusterRequest {
    /// One command of the rules: from a VM, or because time has passed.
    Rules(Command),
    /// The result of an action, as reported by the hypervisor.
    Report {
        work: MaintenanceId,
        target: Target,
        report: Report,
        /// The reason of a failure: bounded, and harmless to show.
        #[serde(deserialize_with = "Option::deserialize")]
        reason: Option<String>,
    },
    /// The result of an action is unknown, and the hypervisor must not repeat it.
    Suspend {
        work: MaintenanceId,
        target: Target,
        /// The reason: bounded, and harmless to show.
        reason: String,
    },
    /// A person has to work on a host whose machines are aside: writes it, or reminds of it once the time has come. The
    /// first reminder comes after the interval.
    Remind {
        work: MaintenanceId,
        host: HostId,
        interval: Span,
    },
    Commands(CommandBatch),
    /// A change of a scale set as a whole; the commands that it takes depend on the state in which it is decided.
    ScaleSet {
        command: ScaleSetCommand,
        context: RequestContext,
    },
    /// Commands, resources to write, and an operation.
    Transaction {
        transaction: Transaction,
        context: RequestContext,
    },
    /// Removes the first resource that is marked for removal and has nothing left.
    Sweep,
    /// Messages of the cluster were delivered to webhooks, by number. Progress that would go back is ignored;
    /// progress of webhooks that no longer exist is forgotten. Other webhooks of the cluster without progress begin
    /// with the next entry of its audit log.
    AdvanceWebhooks(Vec<(u32, Progress)>),
    /// Closes a cluster, which must be empty: the first of two steps that remove it. A closed cluster accepts no
    /// other request; closing it again changes nothing.
    Close {
        /// The caller that removes the cluster.
        by: String,
        /// The key of its request, for the second step.
        #[serde(deserialize_with = "Option::deserialize")]
        once: Option<IdempotencyKey>,
    },
}

/// Commands of a request that is large.
pub(crate) const LARGE_COMMANDS_MIN: usize = 64;

impl ClusterRequest {
    /// Returns true if the decision takes long: its time grows with the number of commands.
    #[must_use]
    pub fn is_large(&self) -> bool {
        let commands = match self {
            Self::Commands(batch) => batch.commands.len(),
            Self::Transaction { transaction, .. } => transaction.commands.len(),
            // It becomes one command for each instance.
            Self::ScaleSet { .. } => LARGE_COMMANDS_MIN,
            Self::Rules(_)
            | Self::Report { .. }
            | Self::Suspend { .. }
            | Self::Remind { .. }
            | Self::Sweep
            | Self::AdvanceWebhooks(_)
            | Self::Close { .. } => 1,
        };
        commands >= LARGE_COMMANDS_MIN
    }

    /// The caller of a request of an operator, and its conditions.
    pub fn context_mut(&mut self) -> Option<&mut RequestContext> {
        match self {
            Self::Commands(CommandBatch { context, .. })
            | Self::ScaleSet { context, .. }
            | Self::Transaction { context, .. } => Some(context),
            Self::Rules(_)
            | Self::Report { .. }
            | Self::Suspend { .. }
            | Self::Remind { .. }
            | Self::Sweep
            | Self::AdvanceWebhooks(_)
            | Self::Close { .. } => None,
        }
    }

    fn once(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::Commands(CommandBatch { context, .. })
            | Self::ScaleSet { context, .. }
            | Self::Transaction { context, .. } => context.once.as_ref(),
            Self::Close { once, .. } => once.as_ref(),
            Self::Rules(_)
            | Self::Report { .. }
            | Self::Suspend { .. }
            | Self::Remind { .. }
            | Self::Sweep
            | Self::AdvanceWebhooks(_) => None,
        }
    }

    fn is_repeatable(&self) -> bool {
        match self {
            Self::Commands(CommandBatch { context, .. })
            | Self::ScaleSet { context, .. }
            | Self::Transaction { context, .. } => context.has_receipt(),
            // Those of machines.
            Self::Rules(command) => {
                matches!(command, Command::Approve { .. } | Command::Enrol(_) | Command::Polled(_))
            }
            Self::Report { .. }
            | Self::Suspend { .. }
            | Self::Remind { .. }
            | Self::Sweep
            | Self::AdvanceWebhooks(_)
            | Self::Close { .. } => true,
        }
    }
}

/// A request to the state that clusters share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum SharedRequest {
    /// A change of clusters, tokens or webhooks.
    Administer { change: Administration, context: RequestContext },
    /// A change of the virtual clock: an entry of the audit log, and a receipt. The driver then sets the clock.
    SetClock { order: ClockChange, context: RequestContext },
    /// Renews the receipt of a change of the virtual clock: receipts grow old on that clock.
    KeepReceipt { context: RequestContext },
    /// A webhook has confirmed that it wants messages.
    ConfirmWebhook {
        /// Number of the webhook.
        webhook: u32,
        /// Messages per minute that it accepts.
        #[serde(deserialize_with = "Option::deserialize")]
        per_minute: Option<u32>,
    },
    /// Gives resource groups to a cluster: all of them, or none. A cluster takes claims before it commits a request
    /// that needs them.
    TakeClaims { cluster: ClusterId, claims: Vec<NewClaim> },
    /// Takes resource groups from the cluster that has them, after it has committed that it no longer uses them.
    ReleaseClaims { cluster: ClusterId, groups: Vec<GroupId> },
    /// Removes a closed cluster: the second of two steps.
    RemoveClosed {
        cluster: ClusterId,
        /// The caller that removes it.
        by: String,
        /// The key of its request.
        #[serde(deserialize_with = "Option::deserialize")]
        once: Option<IdempotencyKey>,
        /// Its messages that webhooks may not have got yet.
        undelivered: UndeliveredMessages,
    },
    /// Messages of a removed cluster were delivered to webhooks, by number. Progress that would go back is ignored.
    AdvanceUndelivered { cluster: ClusterId, reports: Vec<(u32, Progress)> },
    /// All messages of a removed cluster were delivered to a webhook, by number.
    EndUndelivered { cluster: ClusterId, webhook: u32 },
}

impl SharedRequest {
    fn once(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::Administer { context, .. }
            | Self::SetClock { context, .. }
            | Self::KeepReceipt { context } => context.once.as_ref(),
            Self::RemoveClosed { once, .. } => once.as_ref(),
            Self::ConfirmWebhook { .. }
            | Self::TakeClaims { .. }
            | Self::ReleaseClaims { .. }
            | Self::AdvanceUndelivered { .. }
            | Self::EndUndelivered { .. } => None,
        }
    }
}

/// Commands by name: all of them are carried out, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandBatch {
    pub commands: Vec<NamedCommand>,
    pub context: RequestContext,
}

impl From<Vec<NamedCommand>> for CommandBatch {
    fn from(commands: Vec<NamedCommand>) -> Self {
        Self { commands, context: RequestContext::default() }
    }
}

/// Commands, resources to write, and an operation to wait for them: all in one commit, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// Commands, which come first.
    pub commands: Vec<NamedCommand>,
    /// Resources that are written after the commands.
    pub writes: Vec<ResourceWrite>,
    /// The request as the audit log shows it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub asked: Option<serde_json::Value>,
    /// Id of the resource of an operation, if the caller wants to follow one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub operation: Option<String>,
}

/// A change of a stored resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ResourceWrite {
    Put {
        /// Id of the resource.
        id: String,
        /// The object of the rules that it stands for, after the commands.
        #[serde(deserialize_with = "Option::deserialize")]
        link: Option<LinkTarget>,
        /// The body, as JSON.
        body: Body,
        /// Notes of the server, as JSON.
        notes: Body,
    },
    /// Removes a resource with everything below it.
    Remove(String),
    /// Removes a resource once nothing of it is left.
    Leave(String),
}

/// The object of the rules that a resource stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkTarget {
    /// An object that exists.
    Known(Link),
    /// A machine by name: `tenant/name`.
    Machine(String),
    /// A tenant by name.
    Tenant(String),
    /// A scale set by name.
    ScaleSet(String),
}

/// A change of clusters, tokens or webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Administration {
    CreateCluster(Name),
    RenameCluster {
        /// Its name until now.
        cluster: Name,
        /// Its name from now on.
        name: Name,
    },
    /// Removes an empty cluster. It is carried out in two steps: [`ClusterRequest::Close`], then
    /// [`SharedRequest::RemoveClosed`].
    RemoveCluster(Name),
    IssueToken {
        /// Its number, which must be the next one.
        number: u32,
        name: Name,
        /// The role of its holder.
        role: Role,
        /// The clusters and tenants that it is limited to.
        scope: Scope,
        /// SHA-256 of its text.
        hash: TokenHash,
        /// Time at which it expires.
        #[serde(deserialize_with = "Option::deserialize")]
        expires: Option<Timestamp>,
    },
    RevokeToken(Name),
    AddWebhook {
        name: Name,
        url: Url,
        /// The format of its messages.
        #[serde(alias = "schema")]
        format: WebhookFormat,
        /// The events that it gets.
        filter: Filter,
        /// Value of the header `Authorization`; for PagerDuty, the routing key.
        #[serde(deserialize_with = "Option::deserialize")]
        authorization: Option<Authorization>,
    },
    RemoveWebhook(Name),
}

/// The result of a request, sent once it is durable and published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Changes of the rules; none means that nothing had to change.
    Decided(DecidedChanges),
    /// The outcome of commands.
    Outcome(Outcome),
    /// The outcome of a transaction.
    Transacted(TransactionOutcome),
    /// The request was carried out before, under the same key.
    Repeated(Outcome),
    Done,
}

/// Changes of the rules that a request has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecidedChanges {
    pub changes: Vec<Change>,
    pub now: Now,
}

/// The result of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionOutcome {
    /// The outcome of the commands.
    pub outcome: Outcome,
    /// The operation, if one was wanted.
    #[serde(deserialize_with = "Option::deserialize")]
    pub operation: Option<Operation>,
}
