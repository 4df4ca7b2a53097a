//! `forewarn rollout` and `forewarn brake`: what keeps work from spreading.

use anyhow::Result;
use clap::Subcommand;
use forewarn_wire::operator::{NamedCommand, RolloutView};

use super::ask::{self, Errand};
use super::session::Session;
use super::table::{Table, listed};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List rollouts that are not over.
    Ls,
    /// End a rollout: what has not started is taken back, and no further host follows.
    Cancel {
        /// Its number.
        id: u64,
    },
}

#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Brake {
    /// Nothing starts; what is announced waits.
    On,
    /// What has waited starts.
    Off,
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match *command {
        Command::Ls => session.list("/v1/rollouts", |rollouts: Vec<RolloutView>| Ok(table(&rollouts))),
        Command::Cancel { id } => {
            let errand = Errand::new(
                format!("cancellation of rollout {id}"),
                NamedCommand::CancelRollout { rollout: id },
            );
            ask::one(session, &errand).map(drop)
        }
    }
}

pub(super) fn brake(session: &Session, brake: Brake) -> Result<()> {
    let errand = match brake {
        Brake::On => Errand::new("brake on: nothing starts", NamedCommand::BrakeOn {}),
        Brake::Off => Errand::new("brake off", NamedCommand::BrakeOff {}),
    };
    ask::one(session, &errand).map(drop)
}

fn table(rollouts: &[RolloutView]) -> String {
    let mut table = Table::new(&["id", "work", "now", "waiting"]);
    for rollout in rollouts {
        table.row([
            rollout.id.to_string(),
            rollout.work.clone(),
            rollout.current.map(|work| format!("work {work}")).unwrap_or_default(),
            listed(&rollout.waiting),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollouts_are_listed_with_the_hosts_that_wait() {
        let json = r#"[{"id":3,"work":"update","waiting":["h3","h4"],"current":7}]"#;
        let rollouts: Vec<RolloutView> = serde_json::from_str(json).unwrap();
        assert_eq!(table(&rollouts), "ID  WORK    NOW     WAITING\n3   update  work 7  h3, h4\n");
    }
}
