//! Changes of clusters, tokens and webhooks.

use forewarn_lifecycle::{Name, Now};
use forewarn_types::Moment;
use serde_json::{Value, json};

use super::draft::{SharedDraft, check_revision, check_token};
use super::receipts::{empty_outcome, shared_receipt};
use crate::error::ControlError;
use crate::limits::WEBHOOKS_MAX;
use crate::refusal::Refusal;
use crate::request::{Administration, IdempotencyKey, Reply, RequestContext, SharedRequest};
use crate::shared::{Command, Filter, SharedState, UndeliveredMessages, WebhookCommand, WebhookDefinition};
use crate::stream::ClusterId;
use crate::view::Outcome;

/// A request to remove a cluster, as the shared state sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterRemoval {
    /// The cluster is to be closed, and then removed.
    Close(ClusterId),
    /// The request was carried out before, under the same key.
    Repeated(Outcome),
}

impl SharedState {
    /// Checks a request to remove a cluster before the cluster is closed: its token, its receipt, the cluster and the
    /// revision, which is that of the shared state.
    ///
    /// # Errors
    /// Fails if the request is refused.
    pub fn check_removal(
        &self,
        now: Now,
        revision: u64,
        cluster: &Name,
        context: &RequestContext,
    ) -> Result<ClusterRemoval, ControlError> {
        check_token(self, now, context)?;
        if let Some(outcome) = shared_receipt(self, now, context)? {
            return Ok(ClusterRemoval::Repeated(outcome));
        }
        let cluster = self.cluster_named(cluster.as_str()).ok_or(ControlError::NoSuchCluster)?;
        check_revision(revision, context)?;
        if cluster == ClusterId::DEFAULT {
            return Err(Refusal::DefaultCluster.into());
        }
        Ok(ClusterRemoval::Close(cluster))
    }
}

impl SharedDraft<'_> {
    pub(super) fn request(&mut self, request: &SharedRequest) -> Result<Reply, ControlError> {
        match request {
            SharedRequest::Administer { change, context } => return self.administer(change, context),
            SharedRequest::SetClock { order, context } => {
                check_token(&self.state, self.now(), context)?;
                if let Some(outcome) = self.receipt(context)? {
                    return Ok(Reply::Repeated(outcome));
                }
                let asked = serde_json::to_value(order).unwrap_or_default();
                self.audit_request(&context.by, &asked);
                self.keep_receipt(&context.by, context.once.as_ref(), &empty_outcome(self.now()))?;
            }
            SharedRequest::KeepReceipt { context } => {
                self.keep_receipt(&context.by, context.once.as_ref(), &empty_outcome(self.now()))?;
            }
            SharedRequest::ConfirmWebhook { webhook, per_minute } => {
                let (webhook, per_minute) = (*webhook, *per_minute);
                self.change(&Command::Webhook(WebhookCommand::Confirm { webhook, per_minute }))?;
            }
            SharedRequest::TakeClaims { cluster, claims } => {
                let (cluster, claims) = (*cluster, claims.clone());
                self.change(&Command::TakeClaims { cluster, claims }).map_err(take_error)?;
            }
            SharedRequest::ReleaseClaims { cluster, groups } => {
                let (cluster, groups) = (*cluster, groups.clone());
                self.change(&Command::ReleaseClaims { cluster, groups })?;
            }
            SharedRequest::RemoveClosed { cluster, by, once, undelivered } => {
                return self.remove_closed(*cluster, (by, once.as_ref()), undelivered);
            }
            SharedRequest::AdvanceUndelivered { cluster, reports } => {
                Refusal::check(reports.len(), WEBHOOKS_MAX, "webhooks")?;
                for (webhook, progress) in reports {
                    let (cluster, webhook, progress) = (*cluster, *webhook, *progress);
                    let advance = WebhookCommand::AdvanceUndelivered { cluster, webhook, progress };
                    self.change(&Command::Webhook(advance))?;
                }
            }
            SharedRequest::EndUndelivered { cluster, webhook } => {
                let (cluster, webhook) = (*cluster, *webhook);
                self.change(&Command::Webhook(WebhookCommand::EndUndelivered { cluster, webhook }))?;
            }
        }
        Ok(Reply::Done)
    }

    fn administer(
        &mut self,
        change: &Administration,
        context: &RequestContext,
    ) -> Result<Reply, ControlError> {
        check_token(&self.state, self.now(), context)?;
        if let Some(outcome) = self.receipt(context)? {
            return match change {
                Administration::IssueToken { name, .. } => Err(ControlError::ShownOnce(name.clone())),
                Administration::CreateCluster(_)
                | Administration::RenameCluster { .. }
                | Administration::RemoveCluster(_)
                | Administration::RevokeToken(_)
                | Administration::AddWebhook { .. }
                | Administration::RemoveWebhook(_) => Ok(Reply::Repeated(outcome)),
            };
        }
        let command = self.understood(change.clone(), &context.by)?;
        self.check_revision(context)?;
        self.carry_out(&command, &context.by, context.once.as_ref())
    }

    /// Removes a cluster, which is closed. Its messages are still delivered.
    fn remove_closed(
        &mut self,
        cluster: ClusterId,
        (by, once): (&str, Option<&IdempotencyKey>),
        undelivered: &UndeliveredMessages,
    ) -> Result<Reply, ControlError> {
        let context = RequestContext { by: by.to_owned(), once: once.cloned(), ..RequestContext::default() };
        if self.state.cluster_name(cluster).is_none() {
            let former = self.receipt(&context)?;
            return former.map(Reply::Repeated).ok_or(ControlError::NoSuchCluster);
        }
        // The cluster goes even if the key was used for another request since.
        let once = if self.receipt(&context).is_ok_and(|former| former.is_none()) { once } else { None };
        let reply = self.carry_out(&Command::RemoveCluster(cluster), by, once)?;
        let messages = undelivered.clone();
        self.change(&Command::Webhook(WebhookCommand::KeepUndelivered { cluster, messages }))?;
        Ok(reply)
    }

    /// Carries out a command, with an entry of the audit log and a receipt.
    fn carry_out(
        &mut self,
        command: &Command,
        by: &str,
        once: Option<&IdempotencyKey>,
    ) -> Result<Reply, ControlError> {
        let asked = command_json(command, &self.state);
        let entry = self.audit_request(by, &asked);
        let changes = self.change(command)?;
        let outcome = Outcome { changes, entry: Some(entry), ..empty_outcome(self.now()) };
        self.keep_receipt(by, once, &outcome)?;
        Ok(Reply::Outcome(outcome))
    }

    /// The command for the shared state.
    fn understood(&self, command: Administration, by: &str) -> Result<Command, ControlError> {
        let named = |name: &Name| self.state.cluster_named(name.as_str()).ok_or(ControlError::NoSuchCluster);
        Ok(match command {
            Administration::CreateCluster(name) => {
                // The seed derives from a secret that an import replaces. The identity stays over an import, and the
                // server that was copied may have made a cluster of the same number from it.
                let (seed, site) = (self.state.next_seed(), self.site_of_new_cluster(&name));
                Command::CreateCluster { name, seed, site }
            }
            Administration::RenameCluster { cluster, name } => {
                let cluster = named(&cluster)?;
                Command::RenameCluster { cluster, name }
            }
            // The cluster must be closed first: the caller turns the request into two.
            Administration::RemoveCluster(_) => return Err(ControlError::Unavailable),
            Administration::IssueToken { number, name, role, scope, hash, expires } => {
                Command::IssueToken { number, name, role, scope, hash, expires, by: by.to_owned() }
            }
            Administration::RevokeToken(name) => Command::RevokeToken(name),
            Administration::AddWebhook { name, url, format, filter, authorization } => {
                let by = by.to_owned();
                let new = WebhookDefinition { name, url, format, filter, authorization, by };
                Command::Webhook(WebhookCommand::Add(Box::new(new)))
            }
            Administration::RemoveWebhook(name) => Command::Webhook(WebhookCommand::Remove(name)),
        })
    }
}

fn take_error(refusal: Refusal) -> ControlError {
    if let Refusal::GroupTaken(group) = refusal {
        ControlError::GroupTaken(group)
    } else if let Refusal::NoSuchCluster(_) = refusal {
        ControlError::NoSuchCluster
    } else {
        refusal.into()
    }
}

/// The command as the audit log stores it: without hashes and secrets.
fn command_json(command: &Command, shared: &SharedState) -> Value {
    let called = |cluster: &ClusterId| shared.cluster_name(*cluster).map(Name::as_str);
    match command {
        Command::CreateCluster { name, .. } => {
            json!({ "command": "create_cluster", "cluster": name.as_str() })
        }
        Command::RenameCluster { cluster, name } => {
            json!({ "command": "rename_cluster", "cluster": called(cluster), "name": name.as_str() })
        }
        Command::RemoveCluster(cluster) => {
            json!({ "command": "remove_cluster", "cluster": called(cluster) })
        }
        Command::IssueToken { name, role, scope, expires, .. } => json!({
            "command": "issue_token",
            "token": name.as_str(),
            "role": role.as_str(),
            "clusters": scope.clusters.named().filter_map(called).collect::<Vec<_>>(),
            "tenants": scope.tenants.named().map(Name::as_str).collect::<Vec<_>>(),
            "expires": expires.map(|at| Moment(at).to_string()),
        }),
        Command::RevokeToken(name) => json!({ "command": "revoke_token", "token": name.as_str() }),
        Command::Webhook(command) => webhook_command_json(command, called),
        // Commands of the server itself.
        Command::KeepReceipt(_) | Command::TakeClaims { .. } | Command::ReleaseClaims { .. } => Value::Null,
    }
}

/// The same for commands about webhooks.
fn webhook_command_json<'a>(
    command: &WebhookCommand,
    called: impl Fn(&ClusterId) -> Option<&'a str>,
) -> Value {
    match command {
        WebhookCommand::Add(new) => {
            let Filter { scope, kinds } = &new.filter;
            json!({
                "command": "add_webhook",
                "webhook": new.name.as_str(),
                "url": new.format.shown_url(&new.url),
                "format": new.format.as_str(),
                "clusters": scope.clusters.named().filter_map(called).collect::<Vec<_>>(),
                "tenants": scope.tenants.named().map(Name::as_str).collect::<Vec<_>>(),
                "types": kinds.named().map(|kind| kind.as_str()).collect::<Vec<_>>(),
            })
        }
        WebhookCommand::Remove(name) => json!({ "command": "remove_webhook", "webhook": name.as_str() }),
        WebhookCommand::Confirm { .. }
        | WebhookCommand::KeepUndelivered { .. }
        | WebhookCommand::AdvanceUndelivered { .. }
        | WebhookCommand::EndUndelivered { .. } => Value::Null,
    }
}
