//! `[engine]` and `[server]`: one of several servers on one etcd.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use forewarn_etcd::{ClientCertificate, EtcdClient, EtcdLogin, EtcdSettings, Url};
use forewarn_peers::check_server_name;
use forewarn_server::{Engine, EtcdEngine, Keyspace, REALM_SPEED_MAX, RealmPlan};
use forewarn_types::{Name, TcpAddress};
use serde::Deserialize;

use super::{Config, DriverTable};

/// The default prefix of keys in etcd.
const PREFIX: &str = "/forewarn/1/";

/// `[engine]`: etcd, which has the log of all servers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EngineTable {
    endpoints: Vec<String>,
    prefix: Option<String>,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    clock_speed: Option<u32>,
}

/// `[server]`: the place of this server among others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    name: Name,
    listen: TcpAddress,
    advertise: Option<String>,
    zone: Option<String>,
}

/// Without the endpoints: a URL may contain a password.
impl fmt::Debug for EngineTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EngineTable").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Config {
    /// The place of this server among others. None without `[engine]`. Files are read now, so that an error appears at
    /// the start.
    pub(in super::super) fn realm(&self) -> Result<Option<RealmPlan>> {
        let (engine, server) = match (&self.engine, &self.server) {
            (None, None) => return Ok(None),
            (Some(engine), Some(server)) => (engine, server),
            (Some(_), None) => bail!(
                "engine without server\n  hint: [server] with name = \"a\" and listen = \"10.0.0.5:1341\"; without [engine] a server is alone"
            ),
            (None, Some(_)) => bail!(
                "server without engine\n  hint: [engine] with endpoints = [\"https://etcd-1:2379\"]; without [server] a server is alone"
            ),
        };
        if self.data_dir()?.is_none() {
            bail!(
                "engine needs a data directory, for a copy of the log\n  hint: data_dir = \"/var/lib/forewarn\" instead of in_memory"
            );
        }
        self.driver.check_shared()?;
        server.check()?;
        Ok(Some(RealmPlan {
            name: server.name.clone(),
            engine: engine.client()?,
            keys: engine.keys()?,
            listen: server.listen.0,
            advertise: server.advertise.clone(),
            zone: server.zone.clone(),
            clock_speed: engine.speed()?,
        }))
    }
}

impl EngineTable {
    fn client(&self) -> Result<Engine> {
        let mut settings = EtcdSettings::new(self.urls()?);
        settings.authorities.clone_from(&self.ca);
        settings.certificate = self.certificate()?;
        settings.login = self.login()?;
        Ok(Engine::Etcd(EtcdEngine::new(EtcdClient::new(settings).context("engine")?)))
    }

    fn urls(&self) -> Result<Vec<Url>> {
        let url = |(at, text): (usize, &String)| {
            // The text may contain a password.
            let Ok(url) = Url::parse(text) else {
                bail!(
                    "not a URL: entry {} of engine.endpoints\n  hint: endpoints = [\"https://etcd-1:2379\"]; a user belongs to engine.user",
                    at + 1
                )
            };
            Ok(url)
        };
        self.endpoints.iter().enumerate().map(url).collect()
    }

    fn certificate(&self) -> Result<Option<ClientCertificate>> {
        match (self.certificate.clone(), self.key.clone()) {
            (Some(certificate), Some(key)) => Ok(Some(ClientCertificate { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) | (None, Some(_)) => bail!(
                "engine.certificate and engine.key need each other\n  \
                 hint: certificate = \"/etc/forewarn/tls/etcd.pem\" and key = \"/etc/forewarn/tls/etcd-key.pem\""
            ),
        }
    }

    fn login(&self) -> Result<Option<EtcdLogin>> {
        let (user, file) = match (&self.user, &self.password_file) {
            (Some(user), Some(file)) => (user, file),
            (None, None) => return Ok(None),
            (Some(_), None) | (None, Some(_)) => bail!(
                "engine.user and engine.password_file need each other\n  \
                 hint: user = \"forewarn\" and password_file = \"/etc/forewarn/etcd.password\""
            ),
        };
        let text = fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read engine.password_file: {}", file.display()))?;
        let password = text.trim_end_matches(['\r', '\n']);
        if password.is_empty() {
            bail!(
                "empty file: engine.password_file = {:?}\n  hint: it contains the password, and nothing else",
                file
            );
        }
        Ok(Some(EtcdLogin::new(user.as_str(), password)))
    }

    fn speed(&self) -> Result<Option<u32>> {
        match self.clock_speed {
            Some(wrong) if !(1..=REALM_SPEED_MAX).contains(&wrong) => bail!(
                "invalid engine.clock_speed: {wrong}\n  hint: a whole number from 1 to {REALM_SPEED_MAX}; only tests need one"
            ),
            speed => Ok(speed),
        }
    }

    fn keys(&self) -> Result<Keyspace> {
        let prefix = self.prefix.as_deref().unwrap_or(PREFIX);
        let keys = Keyspace::new(prefix).ok();
        keys.with_context(|| {
            format!("invalid engine.prefix: {prefix:?}\n  hint: it begins and ends with a slash, as in prefix = \"{PREFIX}\"")
        })
    }
}

impl ServerTable {
    fn check(&self) -> Result<()> {
        check_server_name(&self.name).context("invalid server.name")?;
        let TcpAddress(listen) = self.listen;
        if self.advertise.is_none() && listen.ip().is_unspecified() {
            bail!(
                "other servers cannot reach server.listen = {listen}\n  hint: advertise = \"10.0.0.5:{}\", the address for other servers",
                listen.port()
            );
        }
        let is_address = |text: &str| {
            let (host, port) = text.rsplit_once(':').unwrap_or_default();
            !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
        };
        match self.advertise.as_deref().filter(|text| !is_address(text)) {
            Some(wrong) => bail!(
                "invalid server.advertise: {wrong:?}\n  hint: a host and a port, as in advertise = \"a.internal:1341\""
            ),
            None => Ok(()),
        }
    }
}

impl DriverTable {
    /// A program may run on two servers for a moment.
    fn check_shared(&self) -> Result<()> {
        match self {
            Self::Simulated { .. } | Self::Program { shared: true, .. } => Ok(()),
            Self::Program { shared: false, .. } => bail!(
                "driver.shared is not set: a server that has lost a cluster may still be running the program\n  \
                 hint: shared = true, once the program can be run on two servers at the same time"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: &str =
        "data_dir = '/data'\ndriver.kind = 'simulated'\n[[metadata.listen]]\naddress = '1.2.3.4:80'\n";
    const ENGINE: &str = "[engine]\nendpoints = ['http://127.0.0.1:2379', 'http://127.0.0.2:2379']\n";
    const SERVER: &str = "[server]\nname = 'a'\nlisten = '10.0.0.5:1341'\n";

    fn realm(text: &str) -> Result<Option<RealmPlan>> {
        Config::parse(text).unwrap().realm()
    }

    fn problem(text: &str) -> String {
        format!("{:#}", realm(text).expect_err(text))
    }

    #[test]
    fn a_server_is_alone_without_an_engine() {
        assert!(realm(ALONE).unwrap().is_none());
        let program = ALONE.replace("'simulated'", "'program'\ndriver.program = '/p'\ndriver.shared = true");
        assert!(realm(&program).unwrap().is_none());
    }

    #[test]
    fn the_defaults_of_a_realm() {
        let plan = realm(&format!("{ALONE}{ENGINE}{SERVER}")).unwrap().unwrap();
        assert_eq!((plan.name.as_str(), plan.keys.prefix()), ("a", PREFIX));
        assert_eq!(
            (plan.listen.to_string().as_str(), plan.advertise, plan.zone),
            ("10.0.0.5:1341", None, None)
        );
    }

    #[test]
    fn wrong_settings_are_rejected_with_a_hint() {
        let both = format!("{ALONE}{ENGINE}{SERVER}");
        for (wrong, expected) in [
            (format!("{ALONE}{ENGINE}"), "engine without server"),
            (format!("{ALONE}{SERVER}"), "server without engine"),
            (both.replace("data_dir = '/data'", "in_memory = true"), "engine needs a data directory"),
            (both.replace("'a'", "'A.b'"), "invalid server.name"),
            (both.replace("10.0.0.5", "0.0.0.0"), "other servers cannot reach server.listen"),
            (format!("{both}advertise = 'host'\n"), "invalid server.advertise"),
            (both.replace("[server]", "prefix = 'x'\n[server]"), "invalid engine.prefix"),
            (both.replace("[server]", "key = '/k'\n[server]"), "engine.certificate and engine.key"),
            (both.replace("[server]", "user = 'u'\n[server]"), "engine.user and engine.password_file"),
            (both.replace("'simulated'", "'program'\ndriver.program = '/p'"), "driver.shared is not set"),
        ] {
            let problem = problem(&wrong);
            assert!(problem.contains(expected) && problem.contains("\n  hint: "), "{expected}: {problem}");
        }
        for speed in [0, 1_001] {
            let problem = problem(&both.replace("[server]", &format!("clock_speed = {speed}\n[server]")));
            assert!(problem.contains(&format!("invalid engine.clock_speed: {speed}\n  hint: ")), "{problem}");
        }
        for unknown in
            [format!("{both}colour = 'red'\n"), both.replace("[server]", "colour = 'red'\n[server]")]
        {
            assert!(Config::parse(&unknown).is_err());
        }
    }

    #[test]
    fn a_driver_program_is_shared_if_it_says_so() {
        let shared = ALONE.replace("'simulated'", "'program'\ndriver.program = '/p'\ndriver.shared = true");
        assert!(realm(&format!("{shared}{ENGINE}{SERVER}")).unwrap().is_some());
    }

    /// promise: S4
    #[test]
    fn secrets_are_not_displayed() {
        let files = tempfile::tempdir().unwrap();
        let file = files.path().join("password");
        fs::write(&file, "s3cret\n").unwrap();
        let login = format!("user = 'u'\npassword_file = '{}'\n[server]", file.display());
        let text = format!("{ALONE}{ENGINE}{SERVER}").replace("[server]", &login);
        let shown = format!("{:?} {:?}", Config::parse(&text).unwrap(), realm(&text).unwrap().unwrap());
        assert!(!shown.contains("s3cret"), "{shown}");
        let in_url =
            format!("{ALONE}{ENGINE}{SERVER}").replace("http://127.0.0.2", "http://u:s3cret@127.0.0.2");
        let shown = format!("{:?} {}", Config::parse(&in_url).unwrap(), problem(&in_url));
        assert!(!shown.contains("s3cret") && shown.contains("entry 2"), "{shown}");
        fs::write(&file, "\n").unwrap();
        assert!(problem(&text).starts_with("empty file: "), "{}", problem(&text));
    }
}
