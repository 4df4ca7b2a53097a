//! What is done to the server as a whole: clusters, tokens; and receipts, so that nothing is done twice.

use forewarn_control::Outcome;
use forewarn_control::shared::{
    Answer, Catalogue, Change, ClusterId, Command, Filter, NewWebhook, Refusal, WebhookChange, WebhookCommand,
};
use forewarn_imds::{Moment, kind_word};
use forewarn_lifecycle::{Name, Now};
use forewarn_store::{Entry, Record};
use serde_json::{Value, json};

use super::Driver;
use crate::engine::{Administration, Once, Problem, Terms};
use crate::roster::Roster;

impl Driver {
    /// Does something to the server as a whole.
    pub(super) fn administer(
        &mut self,
        command: Administration,
        mut terms: Terms,
    ) -> Result<Outcome, Problem> {
        let now = self.clock.now();
        self.check_token(now, &terms)?;
        if let Some(answer) = self.receipt(now, &terms)? {
            return match command {
                Administration::IssueToken { name, .. } => Err(Problem::ShownOnce(name)),
                Administration::CreateCluster(_)
                | Administration::RenameCluster { .. }
                | Administration::RemoveCluster(_)
                | Administration::RevokeToken(_)
                | Administration::AddWebhook { .. }
                | Administration::RemoveWebhook(_) => Ok(answer),
            };
        }
        let (about, command) = self.understood(command, &terms.by)?;
        self.check(about, terms.only_if.take())?;
        if let Command::RemoveCluster(cluster) = command
            && cluster != ClusterId::DEFAULT
        {
            self.check_empty(cluster)?;
        }
        let told = told(&command, &self.kept.catalogue);
        let mark = self.tell_command(now, None, &terms.by, &told);
        let entry = self.chain.number;
        let next = self.kept.catalogue.next_cluster();
        let changes = self.catalogue(now, &command).inspect_err(|_| self.untell(&mark))?;
        if self.kept.catalogue.next_cluster() != next {
            self.found_site(now, next);
        }
        self.told();
        let outcome = Outcome { changes, entry: Some(entry), ..nothing(now) };
        self.keep_receipt(now, &terms, &outcome)?;
        Ok(outcome)
    }

    /// The command for the catalogue, and the cluster that it is about: the first, if it is about none.
    fn understood(&self, command: Administration, by: &str) -> Result<(ClusterId, Command), Problem> {
        let named =
            |name: &Name| self.kept.catalogue.cluster_named(name.as_str()).ok_or(Problem::NoSuchCluster);
        Ok(match command {
            Administration::CreateCluster(name) => {
                // Made of the secret that an import replaces: the identity stays, and a cluster of the same number may
                // have been made of it by the server that the import is a copy of.
                let first = &self.estate(ClusterId::DEFAULT)?.cluster;
                let seed = first.seed_of_cluster(self.kept.catalogue.next_cluster().0);
                (ClusterId::DEFAULT, Command::CreateCluster { name, seed })
            }
            Administration::RenameCluster { cluster, name } => {
                let cluster = named(&cluster)?;
                (cluster, Command::RenameCluster { cluster, name })
            }
            Administration::RemoveCluster(cluster) => {
                let cluster = named(&cluster)?;
                (cluster, Command::RemoveCluster(cluster))
            }
            Administration::IssueToken { number, name, role, scope, hash, expires } => {
                let by = by.to_owned();
                let issue = Command::IssueToken { number, name, role, scope, hash, expires, by };
                (ClusterId::DEFAULT, issue)
            }
            Administration::RevokeToken(name) => (ClusterId::DEFAULT, Command::RevokeToken(name)),
            Administration::AddWebhook { name, url, schema, filter, authorization } => {
                // It is told of what happens from now on.
                let (cursor, by) = (self.chain.number, by.to_owned());
                let new = NewWebhook { name, url, schema, filter, authorization, cursor, by };
                (ClusterId::DEFAULT, Command::Webhook(WebhookCommand::Add(Box::new(new))))
            }
            Administration::RemoveWebhook(name) => {
                (ClusterId::DEFAULT, Command::Webhook(WebhookCommand::Remove(name)))
            }
        })
    }

    /// Decides and evolves the catalogue. Says how much has changed.
    pub(super) fn catalogue(&mut self, now: Now, command: &Command) -> Result<usize, Refusal> {
        let changes = self.kept.catalogue.decide(now, command)?;
        for change in &changes {
            self.kept.apply_to_catalogue(now, change);
            self.batch.records.push(Record { now, entry: Entry::Catalogue(change.clone()) });
        }
        Ok(changes.len())
    }

    /// Takes note of something about webhooks that nobody has asked for: the trail does not tell of it.
    pub(super) fn report(&mut self, command: &WebhookCommand) -> Result<(), Problem> {
        self.catalogue(self.clock.now(), &Command::Webhook(command.clone()))?;
        Ok(())
    }

    /// A cluster goes with nothing in it.
    fn check_empty(&self, id: ClusterId) -> Result<(), Problem> {
        let cluster = &self.estate(id)?.cluster;
        let is_empty = cluster.hosts().next().is_none() && cluster.tenants().next().is_none();
        let name = self.kept.catalogue.cluster_name(id).map(ToString::to_string);
        if is_empty { Ok(()) } else { Err(Problem::ClusterInUse(name.unwrap_or_default())) }
    }

    /// What was answered when the same was asked for under the same key.
    pub(super) fn receipt(&self, now: Now, terms: &Terms) -> Result<Option<Outcome>, Problem> {
        let Some(Once { key, fingerprint }) = &terms.once else { return Ok(None) };
        let Some(receipt) = self.kept.catalogue.receipt(&terms.by, key, now) else { return Ok(None) };
        if receipt.fingerprint != *fingerprint {
            return Err(Refusal::KeyUsed(key.clone()).into());
        }
        Ok(Some(serde_json::from_slice(&receipt.answer.0).unwrap_or_else(|_| nothing(now))))
    }

    /// Keeps what is answered, if whoever asks may ask again.
    pub(super) fn keep_receipt(&mut self, now: Now, terms: &Terms, outcome: &Outcome) -> Result<(), Problem> {
        let Some(Once { key, fingerprint }) = terms.once.clone() else { return Ok(()) };
        let bytes = |outcome: &Outcome| serde_json::to_vec(outcome).unwrap_or_default();
        let mut answer = bytes(outcome);
        if answer.len() > forewarn_control::shared::limits::ANSWER_BYTES_MAX {
            // It made more events than can be listed twice: who asks again is told how many changes there were.
            answer = bytes(&Outcome { events: Vec::new(), untold: Vec::new(), ..outcome.clone() });
        }
        let answer = Answer(answer.into());
        self.catalogue(now, &Command::KeepReceipt { by: terms.by.clone(), key, fingerprint, answer })?;
        Ok(())
    }

    /// Keeps what can be seen of the server as what has become durable.
    pub(super) fn follow_catalogue(&mut self, change: &Change) {
        match change {
            Change::ClusterCreated { cluster, .. } => self.show(*cluster),
            Change::ClusterRenamed { cluster, .. } => self.list_all(*cluster),
            Change::ClusterRemoved(cluster) => drop(self.wards.remove(cluster)),
            Change::TokenIssued(_) | Change::TokenRevoked(_) => {}
            Change::Webhook(
                WebhookChange::Added(_) | WebhookChange::Removed(_) | WebhookChange::Confirmed { .. },
            ) => {}
            Change::ReceiptKept { .. }
            | Change::Filed(_)
            | Change::Webhook(WebhookChange::Advanced { .. }) => return,
        }
        self.heralds.show(Roster::of(&self.kept.catalogue));
    }
}

/// A command as it is kept. Hashes and secrets are nobody's business.
fn told(command: &Command, catalogue: &Catalogue) -> Value {
    let called = |cluster: &ClusterId| catalogue.cluster_name(*cluster).map(Name::as_str);
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
        Command::Webhook(command) => told_of_webhook(command, called),
        Command::KeepReceipt { .. } | Command::File(_) => Value::Null,
    }
}

/// The same of what is done with webhooks.
fn told_of_webhook<'a>(command: &WebhookCommand, called: impl Fn(&ClusterId) -> Option<&'a str>) -> Value {
    match command {
        WebhookCommand::Add(new) => {
            let Filter { scope, kinds } = &new.filter;
            json!({
                "command": "add_webhook",
                "webhook": new.name.as_str(),
                "url": new.url.shown(),
                "schema": new.schema.as_str(),
                "clusters": scope.clusters.named().filter_map(called).collect::<Vec<_>>(),
                "tenants": scope.tenants.named().map(Name::as_str).collect::<Vec<_>>(),
                "types": kinds.named().map(|kind| kind_word(*kind)).collect::<Vec<_>>(),
            })
        }
        WebhookCommand::Remove(name) => json!({ "command": "remove_webhook", "webhook": name.as_str() }),
        // Nobody asks for these.
        WebhookCommand::Confirm { .. } | WebhookCommand::Advance(_) => Value::Null,
    }
}

/// Nothing has come of it.
pub(super) fn nothing(now: Now) -> Outcome {
    let (events, untold, work, rollouts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Outcome { now: Moment(now.wall), changes: 0, events, untold, work, rollouts, entry: None }
}
