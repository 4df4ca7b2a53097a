//! Reloads the configuration of a running server (SIGHUP, `systemctl reload`).
//!
//! Adjustable settings take effect; changed settings that need a restart are logged; an invalid file changes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use forewarn_server::{Adjustable, ApiListener, ExtensionSettings, Service};
use toml::Value;

use super::config::{CONFIG_BYTES_MAX, Config};
use super::log::LevelHandle;
use super::read;

/// Settings that take effect without a restart; a table stands for all of its settings.
const ADJUSTABLE: [&str; 13] = [
    "metadata.first_answer",
    "metadata.oldest_edition",
    "metadata.host_names",
    "metadata.identity_directory",
    "metadata.limits",
    "metadata.connection",
    "api.host_names",
    "api.connection",
    "api.tls",
    "arm.host_names",
    "arm.connection",
    "arm.tls",
    "log.level",
];

/// Defaults that people write out: adding or removing such a line changes nothing.
const DEFAULTS: &str = "in_memory = false\n[log]\nformat = 'text'\nlevel = 'info'\n";

/// The configuration file of a running server, with its applied settings.
pub(super) struct ConfigReloader {
    file: PathBuf,
    /// The settings at the start of the server.
    started: SettingsMap,
    /// The settings of the last reload.
    applied: SettingsMap,
    volume: LevelHandle,
}

/// Settings by name, such as `metadata.limits.burst`. A list is one setting.
type SettingsMap = BTreeMap<String, Value>;

impl ConfigReloader {
    pub(super) fn new(file: PathBuf, text: &str, volume: LevelHandle) -> Result<Self> {
        let started = keys(text)?;
        Ok(Self { file, applied: started.clone(), started, volume })
    }

    /// Reloads the file and logs the result.
    pub(super) fn run(&mut self, service: &Service) {
        match self.read(service) {
            Ok(changed) => tracing::info!(changed = changed.join(" "), "configuration reloaded"),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "configuration not reloaded");
            }
        }
    }

    /// Applies the file. Returns the names of the changed settings that took effect.
    fn read(&mut self, service: &Service) -> Result<Vec<String>> {
        let text = read(&self.file, CONFIG_BYTES_MAX)?;
        let (config, new) = (Config::parse(&text)?, keys(&text)?);
        let adjustable = adjustable(&config)?;
        service.adjust(adjustable).context("cannot load the TLS certificate")?;
        self.volume.set(config.log.level);
        let (changed, _) = split(differences(&self.applied, &new), &self.started, &new);
        let (_, waiting) = split(differences(&self.started, &new), &self.started, &new);
        for setting in waiting {
            tracing::warn!(setting, "changed setting needs a restart");
        }
        self.applied = new;
        Ok(changed)
    }
}

/// The adjustable settings. All settings must be valid, also those that need a restart.
fn adjustable(config: &Config) -> Result<Adjustable> {
    config.metadata.listeners()?;
    config.driver.driver()?;
    config.audit.keep()?;
    config.webhooks.settings()?;
    config.realm()?;
    let certificates = config.api.listeners(config.data_dir()?.as_deref())?.into_iter().find_map(
        |listener| match listener {
            ApiListener::Tls(_, source) => Some(source),
            ApiListener::Open(_) | ApiListener::Tokens(_) | ApiListener::Unix(_) => None,
        },
    );
    let settings = config.metadata.settings()?;
    let arm = config.arm()?.map(|arm| ExtensionSettings {
        hosts: arm.hosts,
        certificates: arm.listen.map(|(_, source)| source),
    });
    Ok(Adjustable {
        settings,
        api_hosts: config.api.hosts(),
        api_limits: config.api.limits()?,
        extension_limits: config.arm_limits()?,
        certificates,
        extensions: vec![arm.unwrap_or_default()],
    })
}

/// Splits settings into those that take effect and those that need a restart.
fn split(names: Vec<String>, started: &SettingsMap, new: &SettingsMap) -> (Vec<String>, Vec<String>) {
    let has_tls = |keys: &SettingsMap| keys.keys().any(|key| key.starts_with("api.tls."));
    let tls_stays = has_tls(started) == has_tls(new);
    let has_arm = |keys: &SettingsMap| keys.contains_key("arm.listen");
    let arm_stays = has_arm(started) && has_arm(new);
    let takes_effect = |name: &String| {
        let below =
            |table: &str| name == table || name.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
        ADJUSTABLE.iter().any(|table| below(table))
            && (tls_stays || !below("api.tls"))
            && (arm_stays || !below("arm"))
    };
    names.into_iter().partition(takes_effect)
}

fn differences(one: &SettingsMap, other: &SettingsMap) -> Vec<String> {
    let names = one.keys().chain(other.keys()).collect::<std::collections::BTreeSet<_>>();
    names.into_iter().filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

/// The settings of a file, and the defaults that it does not mention.
fn keys(text: &str) -> Result<SettingsMap> {
    let mut keys = SettingsMap::new();
    for text in [DEFAULTS, text] {
        flatten("", Value::Table(toml::from_str(text)?), &mut keys);
    }
    Ok(keys)
}

fn flatten(name: &str, value: Value, keys: &mut SettingsMap) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                flatten(&name, value, keys);
            }
        }
        value @ (Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)) => {
            keys.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(one: &str, other: &str) -> (String, String) {
        let (one, other) = (keys(one).unwrap(), keys(other).unwrap());
        let (now, later) = split(differences(&one, &other), &one, &other);
        (now.join(" "), later.join(" "))
    }

    #[test]
    fn settings_that_need_a_restart_are_separated() {
        let one = "data_dir = 'a'\n[log]\nlevel = 'info'\n[metadata.limits]\nburst = 1\n[api]\nlisten = 'x'";
        let other = "data_dir = 'b'\n[log]\nlevel = 'warn'\nformat = 'json'\n[metadata]\nlimits.burst = 2\nthreads = 1";
        assert_eq!(
            changes(one, other),
            (
                "log.level metadata.limits.burst".to_owned(),
                "api.listen data_dir log.format metadata.threads".to_owned()
            )
        );
        assert_eq!(changes(one, one), (String::new(), String::new()));
    }

    #[test]
    fn a_default_that_is_written_out_is_no_change() {
        assert_eq!(changes("", DEFAULTS), (String::new(), String::new()));
        let needed = "data_dir = 'a'\n[metadata]\nlisten = [{ address = '127.0.0.1:80' }]\n[driver]\nkind = 'simulated'\n";
        let parsed = |text: &str| format!("{:?}", Config::parse(text).unwrap());
        let (with, without) =
            (format!("in_memory = false\n{needed}[log]\nformat = 'text'\nlevel = 'info'\n"), needed);
        assert_eq!(parsed(&with), parsed(without));
    }

    #[test]
    fn tls_can_be_changed_but_not_added_or_removed() {
        let with = |file: &str| format!("[api.tls]\ncertificate = '{file}'");
        assert_eq!(changes(&with("a"), &with("b")), ("api.tls.certificate".to_owned(), String::new()));
        assert_eq!(changes("", &with("b")), (String::new(), "api.tls.certificate".to_owned()));
        assert_eq!(changes(&with("a"), ""), (String::new(), "api.tls.certificate".to_owned()));
        let arm = |more: &str| format!("[arm]\nlisten = 'x'\n{more}");
        assert_eq!(
            changes(&arm(""), &arm("host_names = ['a']")),
            ("arm.host_names".to_owned(), String::new())
        );
        assert_eq!(
            changes("", &arm("host_names = ['a']")),
            (String::new(), "arm.host_names arm.listen".to_owned())
        );
    }
}
