//! The steps that are possible in a state of the model.

use forewarn_ownership::Term;

use super::server::{NoticeState, Role};
use super::world::World;
use super::{OwnerChanges, RealmAction, RealmModel};

impl World {
    pub(super) fn actions(&self, model: &RealmModel, actions: &mut Vec<RealmAction>) {
        if self.tick < model.bounds.ticks {
            actions.push(RealmAction::Tick);
        }
        for copy in self.network.distinct() {
            actions.extend([RealmAction::Execute { copy }, RealmAction::ExecuteSilently { copy }]);
            actions.push(RealmAction::Lose { copy });
            if self.rejections < model.bounds.rejections {
                actions.push(RealmAction::Reject { copy });
            }
        }
        let room = self.network.copies().len() < model.bounds.copies;
        for server in 0..2 {
            if room {
                self.sending_actions(model, server, actions);
            }
            if self.orders[server] {
                actions.push(RealmAction::CarryOut { server });
            }
            if self.was_moved_to(server) {
                actions.push(RealmAction::Accept { server });
            }
        }
    }

    /// Steps after which one more copy is on its way.
    fn sending_actions(&self, model: &RealmModel, server: usize, actions: &mut Vec<RealmAction>) {
        let one = &self.servers[server];
        if one.in_flight().is_some() {
            actions.push(RealmAction::Repeat { server });
            return;
        }
        let may_change = self.engine.head.term.0 <= model.bounds.owner_changes;
        match &one.role {
            Role::Owner(driver) => {
                let now = driver.clock.at(one.uptime(self.tick));
                let choices = driver.choices(now, self.write);
                actions.extend(choices.into_iter().map(|choice| RealmAction::Begin { server, choice }));
                let moves = model.bounds.ways == OwnerChanges::TakeoversAndMoves;
                if moves && may_change && driver.notice != NoticeState::TooLate {
                    actions.push(RealmAction::BeginMove { server });
                }
            }
            Role::Standby | Role::Fenced(_) => {
                if may_change {
                    actions.push(RealmAction::BeginTakeover { server });
                }
            }
            Role::TakingOver { .. } => {}
        }
    }

    fn was_moved_to(&self, server: usize) -> bool {
        let one = &self.servers[server];
        let head_is_moved = self.engine.owner.server == one.name && self.engine.head.term > Term(1);
        let idle = matches!(one.role, Role::Standby | Role::Fenced(_));
        let was_here = match &one.role {
            Role::Fenced(known) => *known >= self.engine.head.term,
            Role::Standby | Role::TakingOver { .. } | Role::Owner(_) => false,
        };
        head_is_moved && idle && !was_here
    }
}
