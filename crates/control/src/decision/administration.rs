//! Changes of clusters, tokens and webhooks.

use forewarn_lifecycle::Name;
use forewarn_types::Moment;
use serde_json::{Value, json};

use super::draft::Draft;
use super::receipts::empty_outcome;
use crate::error::ControlError;
use crate::request::{Administration, Reply, RequestContext, SharedRequest};
use crate::shared::{Command, Filter, SharedState, WebhookCommand, WebhookDefinition};
use crate::stream::{ClusterId, Stream};
use crate::view::Outcome;

impl Draft<'_> {
    pub(super) fn shared_request(&mut self, request: &SharedRequest) -> Result<Reply, ControlError> {
        match request {
            SharedRequest::Administer { change, context } => self.administer(change, context),
            SharedRequest::SetClock { order, context } => {
                self.check_token(context)?;
                if let Some(outcome) = self.receipt(Stream::Shared, context)? {
                    return Ok(Reply::Repeated(outcome));
                }
                let asked = serde_json::to_value(order).unwrap_or_default();
                self.audit_request(None, &context.by, &asked, None);
                self.keep_receipt(Stream::Shared, context, &empty_outcome(self.now()))?;
                Ok(Reply::Done)
            }
            SharedRequest::KeepReceipt { context } => {
                self.keep_receipt(Stream::Shared, context, &empty_outcome(self.now()))?;
                Ok(Reply::Done)
            }
            SharedRequest::ConfirmWebhook { webhook, per_minute } => {
                let (webhook, per_minute) = (*webhook, *per_minute);
                self.change_shared(&Command::Webhook(WebhookCommand::Confirm { webhook, per_minute }))?;
                Ok(Reply::Done)
            }
            SharedRequest::AdvanceWebhooks(progress) => {
                self.change_shared(&Command::Webhook(WebhookCommand::Advance(progress.clone())))?;
                Ok(Reply::Done)
            }
        }
    }

    fn administer(
        &mut self,
        change: &Administration,
        context: &RequestContext,
    ) -> Result<Reply, ControlError> {
        self.check_token(context)?;
        if let Some(outcome) = self.receipt(Stream::Shared, context)? {
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
        if let Command::RemoveCluster(cluster) = command
            && cluster != ClusterId::DEFAULT
        {
            self.check_empty(cluster)?;
        }
        let asked = command_json(&command, self.state.shared());
        let entry = self.audit_request(None, &context.by, &asked, None);
        let changes = self.change_shared(&command)?;
        let outcome = Outcome { changes, entry: Some(entry), ..empty_outcome(self.now()) };
        self.keep_receipt(Stream::Shared, context, &outcome)?;
        Ok(Reply::Outcome(outcome))
    }

    /// The command for the shared state.
    fn understood(&self, command: Administration, by: &str) -> Result<Command, ControlError> {
        let named =
            |name: &Name| self.state.shared().cluster_named(name.as_str()).ok_or(ControlError::NoSuchCluster);
        Ok(match command {
            Administration::CreateCluster(name) => {
                // The seed derives from a secret that an import replaces. The identity stays over an import, and the
                // server that was copied may have made a cluster of the same number from it.
                let first = self.rules(ClusterId::DEFAULT)?;
                let seed = first.seed_of_cluster(self.state.shared().next_cluster().0);
                let site = self.site_of_new_cluster(&name);
                Command::CreateCluster { name, seed, site }
            }
            Administration::RenameCluster { cluster, name } => {
                let cluster = named(&cluster)?;
                Command::RenameCluster { cluster, name }
            }
            Administration::RemoveCluster(cluster) => {
                let cluster = named(&cluster)?;
                Command::RemoveCluster(cluster)
            }
            Administration::IssueToken { number, name, role, scope, hash, expires } => {
                Command::IssueToken { number, name, role, scope, hash, expires, by: by.to_owned() }
            }
            Administration::RevokeToken(name) => Command::RevokeToken(name),
            Administration::AddWebhook { name, url, schema, filter, authorization } => {
                // It gets messages about events from now on.
                let (cursor, by) = (self.audit_end.number, by.to_owned());
                let new = WebhookDefinition { name, url, schema, filter, authorization, cursor, by };
                Command::Webhook(WebhookCommand::Add(Box::new(new)))
            }
            Administration::RemoveWebhook(name) => Command::Webhook(WebhookCommand::Remove(name)),
        })
    }

    /// Only an empty cluster can be removed.
    fn check_empty(&self, id: ClusterId) -> Result<(), ControlError> {
        let rules = self.rules(id)?;
        let is_empty = rules.hosts().next().is_none() && rules.tenants().next().is_none();
        let name = self.state.shared().cluster_name(id).map(ToString::to_string);
        if is_empty { Ok(()) } else { Err(ControlError::ClusterInUse(name.unwrap_or_default())) }
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
        Command::KeepReceipt(_) => Value::Null,
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
                "url": new.url.redacted(),
                "schema": new.schema.as_str(),
                "clusters": scope.clusters.named().filter_map(called).collect::<Vec<_>>(),
                "tenants": scope.tenants.named().map(Name::as_str).collect::<Vec<_>>(),
                "types": kinds.named().map(|kind| kind.as_str()).collect::<Vec<_>>(),
            })
        }
        WebhookCommand::Remove(name) => json!({ "command": "remove_webhook", "webhook": name.as_str() }),
        // Commands of the server itself.
        WebhookCommand::Confirm { .. } | WebhookCommand::Advance(_) => Value::Null,
    }
}
