//! Applying changes: the only code that changes a shared state. It cannot fail: a change of an object that was removed
//! does nothing.

use std::sync::Arc;

use forewarn_lifecycle::{Name, Now, Seed};

use crate::command::Site;
use crate::effect::Effect;
use crate::receipts::ReceiptRoom;
use crate::shared::change::Change;
use crate::shared::claim::NewClaim;
use crate::shared::state::SharedState;
use crate::shared::token::{Reach, Token};
use crate::stream::ClusterId;

impl SharedState {
    /// Applies a change. Replay ignores the effects.
    pub fn apply(&mut self, now: Now, change: &Change) -> Vec<Effect> {
        match change {
            Change::ClusterCreated { cluster, name, seed, site } => {
                self.cluster_created(*cluster, name, (*seed, site));
                return vec![Effect::ClusterCreated(*cluster)];
            }
            Change::ClusterRenamed { cluster, name } => {
                self.cluster_renamed(*cluster, name);
                return vec![Effect::ClusterChanged(*cluster)];
            }
            Change::ClusterRemoved(cluster) => {
                self.cluster_removed(*cluster);
                return vec![Effect::ClusterGone(*cluster)];
            }
            Change::TokenIssued(token) => self.token_issued(token),
            Change::TokenRevoked(number) => self.token_revoked(*number),
            Change::ReceiptKept(new) => self.receipts.keep(ReceiptRoom::SHARED, now.steady, new),
            Change::Webhook(change) => self.apply_to_webhook(now, change),
            Change::Clock => {}
            Change::Booted(boot) => self.boot = Some(*boot),
            Change::Positioned(position) => self.position = Some(*position),
            Change::ClaimsTaken { cluster, claims } => self.claims_taken(*cluster, claims),
            Change::ClaimsReleased { cluster, groups } => {
                groups.iter().for_each(|group| self.release_claim(*cluster, &group.key()));
            }
        }
        Vec::new()
    }

    pub(crate) fn cluster_created(&mut self, id: ClusterId, name: &Name, (seed, site): (Seed, &Site)) {
        self.clusters.insert(id, name.clone());
        self.cluster_names.insert(name.clone(), id);
        self.next.cluster = self.next.cluster.max(id.0.saturating_add(1));
        self.origins.insert(id, Arc::new((seed, site.clone())));
        self.take_claim(id, NewClaim::of_site(site));
    }

    fn cluster_renamed(&mut self, id: ClusterId, name: &Name) {
        let Some(known) = self.clusters.get_mut(&id) else { return };
        let before = std::mem::replace(known, name.clone());
        self.cluster_names.remove(&before);
        self.cluster_names.insert(name.clone(), id);
    }

    /// No token may become valid for more clusters: a token that was limited to this cluster is revoked.
    fn cluster_removed(&mut self, id: ClusterId) {
        let Some(name) = self.clusters.remove(&id) else { return };
        self.cluster_names.remove(&name);
        self.origins.remove(&id);
        self.release_all_claims(id);
        let limited = self.tokens().filter(|token| token.scope.clusters.named().any(|named| *named == id));
        let limited: Vec<_> = limited.map(|token| token.number).collect();
        for number in limited {
            if let Some(token) = self.tokens.get_mut(&number)
                && let Reach::Only(some) = &mut Arc::make_mut(token).scope.clusters
                && some.remove(&id)
                && some.is_empty()
            {
                self.token_revoked(number);
            }
        }
    }

    fn claims_taken(&mut self, cluster: ClusterId, claims: &[NewClaim]) {
        if self.clusters.contains_key(&cluster) {
            claims.iter().for_each(|claim| self.take_claim(cluster, claim.clone()));
        }
    }

    fn token_issued(&mut self, token: &Token) {
        self.token_names.insert(token.name.clone(), token.number);
        self.tokens.insert(token.number, Arc::new(token.clone()));
        self.next.token = self.next.token.max(token.number.saturating_add(1));
    }

    fn token_revoked(&mut self, number: u32) {
        if let Some(token) = self.tokens.remove(&number)
            && self.token_names.get(&token.name) == Some(&number)
        {
            self.token_names.remove(&token.name);
        }
    }
}
