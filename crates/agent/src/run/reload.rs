//! Reading the settings again while the agent runs (SIGHUP, `systemctl reload`).
//!
//! Not while a hook runs or an approval is under way: what has begun ends by the settings with which it began. What is safe to
//! change takes effect; what is not is named in the log; settings with errors change nothing.

use forewarn_cli_support::log::Volume;
use forewarn_cli_support::notify::{News, notify};

use super::agent::Agent;
use crate::config::Config;

/// Whether the settings are to be read again.
pub(super) struct Reload {
    is_wanted: bool,
    volume: Volume,
}

impl Reload {
    pub(super) fn new(volume: Volume) -> Self {
        Self { is_wanted: false, volume }
    }

    /// Somebody wants it.
    pub(super) fn want(&mut self, agent: &Agent) {
        self.is_wanted = true;
        if !agent.is_idle() {
            tracing::info!("the settings are read again when no hook runs");
        }
    }

    /// Does it, if it is wanted and nothing is under way.
    pub(super) fn run_if_idle(&mut self, agent: &mut Agent) {
        if !self.is_wanted || !agent.is_idle() {
            return;
        }
        self.is_wanted = false;
        notify(News::Reloading);
        match Config::load(agent.config.file.as_deref()) {
            Ok(fresh) => self.take(agent, fresh),
            Err(problems) => {
                for problem in &problems {
                    let problem = forewarn_cli_support::visible::flat(&problem.to_string());
                    tracing::error!(problem, "the settings are wrong: nothing has changed");
                }
            }
        }
        notify(News::Ready);
    }

    fn take(&self, agent: &mut Agent, mut fresh: Config) {
        let old = &agent.config;
        if old.is_endpoint_given {
            fresh.endpoint.clone_from(&old.endpoint);
            fresh.is_endpoint_given = true;
        }
        for setting in fixed(old, &fresh) {
            tracing::warn!(setting, "a setting has changed that needs a restart of the agent");
        }
        fresh.endpoint.clone_from(&old.endpoint);
        fresh.name.clone_from(&old.name);
        fresh.state.clone_from(&old.state);
        (fresh.poll, fresh.long_poll, fresh.listen, fresh.format) =
            (old.poll, old.long_poll, old.listen, old.format);
        fresh.peers.places.clone_from(&old.peers.places);
        fresh.peers.key.clone_from(&old.peers.key);
        fresh.peers.key_file.clone_from(&old.peers.key_file);
        self.volume.set(fresh.level);
        let hooks = fresh.hooks.len();
        agent.change(fresh);
        tracing::info!(hooks, "the settings of the agent were read again");
    }
}

/// What has changed and does not take effect.
fn fixed(old: &Config, fresh: &Config) -> Vec<&'static str> {
    let changed = [
        ("endpoint", old.endpoint != fresh.endpoint),
        ("name", old.name != fresh.name),
        ("poll", old.poll != fresh.poll),
        ("long_poll", old.long_poll != fresh.long_poll),
        ("state", old.state != fresh.state),
        ("listen", old.listen != fresh.listen),
        ("log.format", old.format != fresh.format),
        ("peers.list", old.peers.places != fresh.peers.places),
        ("peers.key_file", old.peers.key_file != fresh.peers.key_file),
    ];
    changed.into_iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| name).collect()
}
