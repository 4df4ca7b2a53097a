//! Settings that are understood, and settings that are refused.

use super::*;
use forewarn_metadata::{ConnectionLimits, Limits};

const LEAST: &str = "
in_memory = true
[[metadata.listen]]
address = '169.254.169.254:80'
[api]
socket = '/run/forewarn/api.sock'
[hands]
kind = 'pretend'
";

#[test]
fn the_least_that_is_needed() {
    let config = Config::parse(LEAST).unwrap();
    let settings = config.metadata.settings().unwrap();
    assert_eq!(settings.limits, Some(Limits::default()));
    assert_eq!(settings.connections, ConnectionLimits::default());
    assert_eq!(settings.identity_token, IdentityToken::Off);
    assert_eq!(config.metadata.doors().unwrap()[0].1, Identity::Address);
    assert_eq!(config.api.doors(None).unwrap(), [ApiDoor::Unix("/run/forewarn/api.sock".into())]);
    assert!(config.data_dir().unwrap().is_none());
    assert_eq!(config.hands.hands().unwrap(), forewarn_server::Hypervisor::Simulated);
}

#[test]
fn the_trail_is_kept_for_a_day_at_least() {
    let keep = |text: &str| Config::parse(&format!("{LEAST}{text}")).unwrap().audit.keep();
    assert_eq!(keep("").unwrap(), TRAIL_KEEP);
    assert_eq!(keep("[audit]\nkeep = '30d'").unwrap(), Duration::from_hours(30 * 24));
    let wrong = keep("[audit]\nkeep = '1h'").unwrap_err().to_string();
    assert_eq!(wrong, "the trail is kept for a day at least: audit.keep = \"1h\"\n  hint: keep = \"400d\"");
}

#[test]
fn every_key_means_something() {
    for wrong in [
        LEAST.replace("[api]", "[api]\ncolour = 'red'"),
        LEAST.replace("[hands]", "[hands]\nfingers = 5"),
        LEAST.replace("[[metadata.listen]]", "[[metadata.listen]]\nport = 80"),
        format!("{LEAST}\n[metrics]\n"),
        LEAST.replace("pretend", "magic"),
    ] {
        assert!(Config::parse(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_door_is_whole_or_refused() {
    let doors = |listen: &str| {
        let text = LEAST.replace("address = '169.254.169.254:80'", listen);
        Config::parse(&text).unwrap().metadata.doors()
    };
    assert!(matches!(
        doors("address='1.2.3.4:80'\ninterface='tap0'\nmachine='m'").unwrap()[0].0,
        Door::Interface { .. }
    ));
    assert!(matches!(doors("socket='/s'\nmachine='m'").unwrap()[0].0, Door::Unix { mode: 0o660, .. }));
    for wrong in ["socket='/s'", "interface='tap0'", "address='1.2.3.4:80'\ninterface='tap0'", "machine='m'"]
    {
        assert!(doors(wrong).unwrap_err().to_string().contains("hint"), "{wrong}");
    }
}

#[test]
fn a_mode_is_written_in_octal() {
    let mode = |mode: &str| {
        let listen = format!("socket='/s'\nmachine='m'\nmode={mode}");
        Config::parse(&LEAST.replace("address = '169.254.169.254:80'", &listen))
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
fn a_limit_lets_somebody_through() {
    for key in ["requests_per_second", "burst", "connections", "in_flight", "waiting"] {
        let limits = |more: &str| {
            let text = format!("{LEAST}\n[metadata.limits]\n{key} = 0\n{more}");
            Config::parse(&text).unwrap().metadata.settings()
        };
        let problem = limits("").unwrap_err().to_string();
        assert!(problem.contains(&format!("metadata.limits.{key} = 0\n  hint: ")), "{problem}");
        assert!(limits("enabled = false").is_ok(), "{key}");
    }
}

#[test]
fn a_program_gets_some_time() {
    let hands = |time: &str| {
        let program = format!("program'\nprogram = '/p'\ntime_limit = '{time}");
        Config::parse(&LEAST.replace("pretend", &program)).unwrap().hands.hands()
    };
    assert!(hands("1s").is_ok());
    assert!(hands("0s").unwrap_err().to_string().contains("hint: "));
}

#[test]
fn the_api_is_a_socket_or_locked_or_both_and_never_seen_on_a_network() {
    let api = |text: &str| {
        Config::parse(&LEAST.replace("socket = '/run/forewarn/api.sock'", text)).unwrap().api.doors(None)
    };
    let first = |text: &str| api(text).map(|doors| doors[0].clone());
    assert!(matches!(first("listen = '127.0.0.1:1339'"), Ok(ApiDoor::Locked(_))));
    assert!(api("listen = '10.0.0.1:1339'").unwrap_err().to_string().contains("hint: [api.tls]"));
    let tls = "tls = { certificate = 'c', key = 'k' }";
    for address in ["10.0.0.1", "0.0.0.0", "127.0.0.1"] {
        assert!(matches!(first(&format!("listen = '{address}:1339'\n{tls}")), Ok(ApiDoor::Tls(..))));
    }
    assert!(api(&format!("socket = '/s'\n{tls}")).unwrap_err().to_string().contains("hint"));
    assert_eq!(api("").unwrap(), [ApiDoor::Unix("/run/forewarn/api.sock".into())]);
    let both = [ApiDoor::Locked("127.0.0.1:1339".parse().unwrap()), ApiDoor::Unix("/s".into())];
    assert_eq!(api("listen = '127.0.0.1:1339'\nsocket = '/s'").unwrap(), both);
}

#[test]
fn settings_are_read() {
    let text = LEAST.replace(
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
    let config = Config::parse(&format!("\u{feff}{LEAST}")).unwrap();
    assert_eq!(config.api.doors(None).unwrap(), [ApiDoor::Unix("/run/forewarn/api.sock".into())]);
}
