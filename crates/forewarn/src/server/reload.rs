//! Reading the settings again while a server runs (SIGHUP, `systemctl reload`).
//!
//! What is safe to change takes effect; what is not is named in the log; a file with errors changes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use forewarn_server::{Adjustable, ApiDoor, ExtensionSettings, Service};
use toml::Value;

use super::config::{CONFIG_BYTES_MAX, Config};
use super::log::Volume;
use super::read;

/// What takes effect without a restart; a table stands for everything in it.
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

/// The settings of a server that runs, and where they are read from.
pub(super) struct Reload {
    file: PathBuf,
    /// What the server was started with.
    started: Keys,
    /// What was last read.
    applied: Keys,
    volume: Volume,
}

/// Every setting by its name, such as `metadata.limits.burst`. A list is one setting.
type Keys = BTreeMap<String, Value>;

impl Reload {
    pub(super) fn new(file: PathBuf, text: &str, volume: Volume) -> Result<Self> {
        let started = keys(text)?;
        Ok(Self { file, applied: started.clone(), started, volume })
    }

    /// Reads the settings again, and says what came of it.
    pub(super) fn run(&mut self, service: &Service) {
        match self.read(service) {
            Ok(changed) => tracing::info!(changed = changed.join(" "), "the settings were read again"),
            Err(error) => {
                tracing::error!(
                    error = format!("{error:#}"),
                    "the settings were not read again: nothing has changed"
                );
            }
        }
    }

    /// The names of the settings that have changed and took effect.
    fn read(&mut self, service: &Service) -> Result<Vec<String>> {
        let text = read(&self.file, CONFIG_BYTES_MAX)?;
        let (config, new) = (Config::parse(&text)?, keys(&text)?);
        let adjustable = adjustable(&config)?;
        service.adjust(adjustable).context("the certificate")?;
        self.volume.set(config.log.level);
        let (changed, _) = sorted(differences(&self.applied, &new), &self.started, &new);
        let (_, waiting) = sorted(differences(&self.started, &new), &self.started, &new);
        for setting in waiting {
            tracing::warn!(setting, "a setting has changed that needs a restart");
        }
        self.applied = new;
        Ok(changed)
    }
}

/// What of the settings may change. All of them have to be right, also those that may not.
fn adjustable(config: &Config) -> Result<Adjustable> {
    config.metadata.doors()?;
    config.hands.hands()?;
    config.audit.keep()?;
    config.webhooks.settings()?;
    let certificates =
        config.api.doors(config.data_dir()?.as_deref())?.into_iter().find_map(|door| match door {
            ApiDoor::Tls(_, source) => Some(source),
            ApiDoor::Open(_) | ApiDoor::Locked(_) | ApiDoor::Unix(_) => None,
        });
    let settings = config.metadata.settings()?;
    let arm = config.arm()?.map(|arm| ExtensionSettings {
        host_names: arm.host_names,
        certificates: arm.listen.map(|(_, source)| source),
    });
    let api_host_names = config.api.host_names.clone();
    Ok(Adjustable {
        settings,
        api_host_names,
        api_limits: config.api.limits()?,
        extension_limits: config.arm_limits()?,
        certificates,
        extensions: vec![arm.unwrap_or_default()],
    })
}

/// Those that take effect, and those that need a restart.
fn sorted(names: Vec<String>, started: &Keys, new: &Keys) -> (Vec<String>, Vec<String>) {
    let has_tls = |keys: &Keys| keys.keys().any(|key| key.starts_with("api.tls."));
    let tls_stays = has_tls(started) == has_tls(new);
    let has_arm = |keys: &Keys| keys.contains_key("arm.listen");
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

fn differences(one: &Keys, other: &Keys) -> Vec<String> {
    let names = one.keys().chain(other.keys()).collect::<std::collections::BTreeSet<_>>();
    names.into_iter().filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

fn keys(text: &str) -> Result<Keys> {
    let mut keys = Keys::new();
    flatten("", Value::Table(toml::from_str(text)?), &mut keys);
    Ok(keys)
}

fn flatten(name: &str, value: Value, keys: &mut Keys) {
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

    fn told(one: &str, other: &str) -> (String, String) {
        let (one, other) = (keys(one).unwrap(), keys(other).unwrap());
        let (now, later) = sorted(differences(&one, &other), &one, &other);
        (now.join(" "), later.join(" "))
    }

    #[test]
    fn what_needs_a_restart_is_told_apart() {
        let one = "data_dir = 'a'\n[log]\nlevel = 'info'\n[metadata.limits]\nburst = 1\n[api]\nlisten = 'x'";
        let other = "data_dir = 'b'\n[log]\nlevel = 'warn'\nformat = 'json'\n[metadata]\nlimits.burst = 2\nthreads = 1";
        assert_eq!(
            told(one, other),
            (
                "log.level metadata.limits.burst".to_owned(),
                "api.listen data_dir log.format metadata.threads".to_owned()
            )
        );
        assert_eq!(told(one, one), (String::new(), String::new()));
    }

    #[test]
    fn tls_can_be_changed_and_neither_begun_nor_ended() {
        let with = |file: &str| format!("[api.tls]\ncertificate = '{file}'");
        assert_eq!(told(&with("a"), &with("b")), ("api.tls.certificate".to_owned(), String::new()));
        assert_eq!(told("", &with("b")), (String::new(), "api.tls.certificate".to_owned()));
        assert_eq!(told(&with("a"), ""), (String::new(), "api.tls.certificate".to_owned()));
        let arm = |more: &str| format!("[arm]\nlisten = 'x'\n{more}");
        assert_eq!(told(&arm(""), &arm("host_names = ['a']")), ("arm.host_names".to_owned(), String::new()));
        assert_eq!(
            told("", &arm("host_names = ['a']")),
            (String::new(), "arm.host_names arm.listen".to_owned())
        );
    }
}
