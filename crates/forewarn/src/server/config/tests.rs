//! Valid and invalid configurations.

use super::*;
use forewarn_metadata::{ConnectionLimits, Limits};

const MINIMAL: &str = "
in_memory = true
[[metadata.listen]]
address = '169.254.169.254:80'
[api]
socket = '/run/forewarn/api.sock'
[driver]
kind = 'simulated'
";

#[test]
fn a_minimal_configuration_is_valid() {
    let config = Config::parse(MINIMAL).unwrap();
    let settings = config.metadata.settings().unwrap();
    assert_eq!(settings.limits, Some(Limits::default()));
    assert_eq!(settings.connections, ConnectionLimits::default());
    assert_eq!(settings.identity_token, IdentityToken::Off);
    let cluster = Name::new("default").unwrap();
    assert_eq!(config.metadata.listeners().unwrap()[0].1, Identity::Address { cluster });
    assert_eq!(config.api.listeners(None).unwrap(), [ApiListener::Unix("/run/forewarn/api.sock".into())]);
    assert!(config.data_dir().unwrap().is_none());
    assert_eq!(config.driver.driver().unwrap(), forewarn_server::Hypervisor::simulated());
}

#[test]
fn the_audit_log_is_kept_for_a_day_at_least() {
    let keep = |text: &str| Config::parse(&format!("{MINIMAL}{text}")).unwrap().audit.keep();
    assert_eq!(keep("").unwrap(), AUDIT_RETENTION);
    assert_eq!(keep("[audit]\nkeep = '30d'").unwrap(), Duration::from_hours(30 * 24));
    let wrong = keep("[audit]\nkeep = '1h'").unwrap_err().to_string();
    assert_eq!(wrong, "audit.keep is shorter than a day: audit.keep = \"1h\"\n  hint: keep = \"400d\"");
}

#[test]
fn unknown_keys_are_rejected() {
    for wrong in [
        MINIMAL.replace("[api]", "[api]\ncolour = 'red'"),
        MINIMAL.replace("[driver]", "[driver]\nfingers = 5"),
        MINIMAL.replace("[[metadata.listen]]", "[[metadata.listen]]\nport = 80"),
        format!("{MINIMAL}\n[metrics]\n"),
        MINIMAL.replace("simulated", "magic"),
    ] {
        assert!(Config::parse(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_incomplete_listener_is_rejected() {
    let listeners = |listen: &str| {
        let text = MINIMAL.replace("address = '169.254.169.254:80'", listen);
        Config::parse(&text).unwrap().metadata.listeners()
    };
    assert!(matches!(
        listeners("address='1.2.3.4:80'\ninterface='tap0'\nmachine='m'").unwrap()[0].0,
        ListenAddress::Interface { .. }
    ));
    assert!(matches!(
        listeners("socket='/s'\nmachine='m'").unwrap()[0].0,
        ListenAddress::Unix { mode: 0o660, .. }
    ));
    for wrong in ["socket='/s'", "interface='tap0'", "address='1.2.3.4:80'\ninterface='tap0'", "machine='m'"]
    {
        assert!(listeners(wrong).unwrap_err().to_string().contains("hint"), "{wrong}");
    }
    let unnamed = listeners("address='1.2.3.4:80'\ninterface='tap0'").unwrap_err().to_string();
    assert!(unnamed.contains("needs a machine or a cluster\n  hint: cluster = \"default\" "), "{unnamed}");
}

/// promise: M3
#[test]
fn a_listener_names_the_cluster_whose_machines_it_identifies_by_address() {
    let listener = |listen: &str| {
        let text = MINIMAL.replace("address = '169.254.169.254:80'", listen);
        Ok::<_, anyhow::Error>(Config::parse(&text)?.metadata.listeners()?.remove(0))
    };
    let west = Identity::Address { cluster: Name::new("west").unwrap() };
    let (address, identity) = listener("address='1.2.3.4:80'\ncluster='west'").unwrap();
    assert!(matches!(address, ListenAddress::Tcp(_)));
    assert_eq!(identity, west);
    let (address, identity) = listener("address='1.2.3.4:80'\ninterface='br0'\ncluster='west'").unwrap();
    assert!(matches!(address, ListenAddress::Interface { .. }));
    assert_eq!(identity, west);
    for (wrong, error) in [
        ("address='1.2.3.4:80'\nmachine='m'\ncluster='west'", "cluster and machine exclude each other"),
        ("socket='/s'\ncluster='west'", "or a socket and a machine"),
        ("cluster='west'", "needs an address"),
        ("address='1.2.3.4:80'\ncluster='a/b'", "a name has only letters"),
        ("address='1.2.3.4:80'\ncluster=''", "a name must not be empty"),
    ] {
        let found = listener(wrong).unwrap_err().to_string();
        assert!(found.contains(error), "{wrong}: {found}");
    }
}

#[test]
fn a_mode_is_written_in_octal() {
    let mode = |mode: &str| {
        let listen = format!("socket='/s'\nmachine='m'\nmode={mode}");
        Config::parse(&MINIMAL.replace("address = '169.254.169.254:80'", &listen))
    };
    assert!(mode("0o600").is_ok());
    for (wrong, hint) in
        [("660", "0o660"), ("400", "0o400"), ("999", "0o660"), ("0o1777", "0o777"), ("0x1b0", "0o660")]
    {
        let problem = mode(wrong).unwrap_err().to_string();
        assert!(problem.contains(&format!("{wrong}\n  hint: ")) && problem.contains(hint), "{problem}");
    }
}

#[test]
fn a_limit_of_zero_is_rejected() {
    for key in ["requests_per_second", "burst", "connections", "in_flight", "waiting"] {
        let limits = |more: &str| {
            let text = format!("{MINIMAL}\n[metadata.limits]\n{key} = 0\n{more}");
            Config::parse(&text).unwrap().metadata.settings()
        };
        let problem = limits("").unwrap_err().to_string();
        assert!(problem.contains(&format!("metadata.limits.{key} = 0\n  hint: ")), "{problem}");
        assert!(limits("enabled = false").is_ok(), "{key}");
    }
}

#[test]
fn the_timeout_of_the_driver_is_not_zero() {
    let driver = |time: &str| {
        let program = format!("program'\nprogram = '/p'\ntime_limit = '{time}");
        Config::parse(&MINIMAL.replace("simulated", &program)).unwrap().driver.driver()
    };
    assert!(driver("1s").is_ok());
    assert!(driver("0s").unwrap_err().to_string().contains("hint: "));
}

#[test]
fn the_api_is_a_socket_or_loopback_and_needs_tls_elsewhere() {
    let api = |text: &str| {
        Config::parse(&MINIMAL.replace("socket = '/run/forewarn/api.sock'", text))
            .unwrap()
            .api
            .listeners(None)
    };
    let first = |text: &str| api(text).map(|listeners| listeners[0].clone());
    assert!(matches!(first("listen = '127.0.0.1:1339'"), Ok(ApiListener::Tokens(_))));
    assert!(api("listen = '10.0.0.1:1339'").unwrap_err().to_string().contains("hint: [api.tls]"));
    let tls = "tls = { certificate = 'c', key = 'k' }";
    for address in ["10.0.0.1", "0.0.0.0", "127.0.0.1"] {
        assert!(matches!(first(&format!("listen = '{address}:1339'\n{tls}")), Ok(ApiListener::Tls(..))));
    }
    assert!(api(&format!("socket = '/s'\n{tls}")).unwrap_err().to_string().contains("hint"));
    assert_eq!(api("").unwrap(), [ApiListener::Unix("/run/forewarn/api.sock".into())]);
    let both = [ApiListener::Tokens("127.0.0.1:1339".parse().unwrap()), ApiListener::Unix("/s".into())];
    assert_eq!(api("listen = '127.0.0.1:1339'\nsocket = '/s'").unwrap(), both);
}

#[test]
fn settings_are_read() {
    let text = MINIMAL.replace(
        "[api]",
        "[metadata]\nfirst_answer = '90s'\noldest_edition = '2017-08-01'\nhost_names = ['a.b']\n\
             identity_directory = 'd'\nlimits = { enabled = false }\n[api]",
    );
    let text = text.replace("[[metadata.listen]]\naddress = '169.254.169.254:80'\n", "");
    let text = text.replace("[metadata]", "[metadata]\nlisten = [{ address = '169.254.169.254:80' }]");
    let settings = Config::parse(&text).unwrap().metadata.settings().unwrap();
    assert_eq!(settings.first_answer, FirstAnswer::Delay(Duration::from_secs(90)));
    assert_eq!(settings.oldest_edition, Edition::V2017_08_01);
    assert_eq!(settings.limits, None);
}

#[test]
fn a_byte_order_mark_before_the_settings_is_skipped() {
    let config = Config::parse(&format!("\u{feff}{MINIMAL}")).unwrap();
    assert_eq!(config.api.listeners(None).unwrap(), [ApiListener::Unix("/run/forewarn/api.sock".into())]);
}
