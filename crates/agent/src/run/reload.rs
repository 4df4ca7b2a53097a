//! Reloads the settings while the agent runs (SIGHUP, `systemctl reload`).
//!
//! A reload waits until no hook runs and no approval is in flight, so that started work ends with the settings it began
//! with. Safe changes take effect; others are named in the log; invalid settings change nothing.

use forewarn_cli_support::log::LevelHandle;
use forewarn_cli_support::notify::{Notification, notify};

use super::agent::Agent;
use crate::config::Config;

/// The state of a requested reload.
pub(super) struct Reload {
    is_wanted: bool,
    volume: LevelHandle,
}

impl Reload {
    pub(super) fn new(volume: LevelHandle) -> Self {
        Self { is_wanted: false, volume }
    }

    pub(super) fn request(&mut self, agent: &Agent) {
        self.is_wanted = true;
        if !agent.is_idle() {
            tracing::info!("reload postponed until no hook runs");
        }
    }

    /// Reloads if requested and nothing is in flight.
    pub(super) fn run_if_idle(&mut self, agent: &mut Agent) {
        if !self.is_wanted || !agent.is_idle() {
            return;
        }
        self.is_wanted = false;
        notify(Notification::Reloading);
        match Config::load(agent.config.file.as_deref()) {
            Ok(new) => self.apply(agent, new),
            Err(errors) => {
                for error in &errors {
                    let error = forewarn_cli_support::visible::flat(&error.to_string());
                    tracing::error!(error, "invalid agent settings: nothing changed");
                }
            }
        }
        notify(Notification::Ready);
    }

    fn apply(&self, agent: &mut Agent, new: Config) {
        let old = &agent.config;
        let mut new = new.with(old.given.clone());
        for setting in restart_needed(old, &new) {
            tracing::warn!(setting, "changed setting needs a restart of the agent");
        }
        new.endpoint.clone_from(&old.endpoint);
        new.name.clone_from(&old.name);
        new.state.clone_from(&old.state);
        (new.poll, new.long_poll, new.listen, new.format) = (old.poll, old.long_poll, old.listen, old.format);
        new.peers.discovery.clone_from(&old.peers.discovery);
        new.peers.key.clone_from(&old.peers.key);
        new.peers.key_file.clone_from(&old.peers.key_file);
        self.volume.set(new.level);
        let hooks = new.hooks.len();
        agent.change(new);
        tracing::info!(hooks, "agent settings reloaded");
    }
}

/// The changed settings that do not take effect.
fn restart_needed(old: &Config, new: &Config) -> Vec<&'static str> {
    let changed = [
        ("endpoint", old.endpoint != new.endpoint),
        ("name", old.name != new.name),
        ("poll", old.poll != new.poll),
        ("long_poll", old.long_poll != new.long_poll),
        ("state", old.state != new.state),
        ("listen", old.listen != new.listen),
        ("log.format", old.format != new.format),
        ("peers.list", old.peers.discovery != new.peers.discovery),
        ("peers.key_file", old.peers.key_file != new.peers.key_file),
    ];
    changed.into_iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| name).collect()
}
