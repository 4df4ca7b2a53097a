//! Every option of `forewarn dev` as an environment variable.

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::operator::{read, value};
use forewarn_testkit::{TestServer, clean_command};

#[test]
fn options_are_taken_from_variables_and_the_command_line_is_stronger() {
    let mut command = clean_command(crate::program());
    command.arg("dev").args(["--clock", "frozen"]);
    for (name, value) in [
        ("METADATA_LISTEN", "127.0.0.1:0"),
        ("API_LISTEN", "127.0.0.1:0"),
        ("ARM_LISTEN", "off"),
        ("CLOCK", "60x"),
        ("CLOCK_START", "2030-01-01T00:00:00Z"),
        ("FLEET", "none"),
        ("I_KNOW_THIS_IS_OPEN", "false"),
        // An empty variable counts as unset.
        ("SEED", ""),
        ("DEFAULT_VM", ""),
    ] {
        command.env(format!("FOREWARN_DEV_{name}"), value);
    }
    let server = TestServer::spawn(crate::program(), command);
    let clock = value(&read(server.api(), "/v1/clock").unwrap());
    assert_eq!((clock["now"].as_str(), clock["speed"].as_u64()), (Some("2030-01-01T00:00:00Z"), Some(0)));
    let hosts = value(&read(server.api(), "/v1/hosts").unwrap());
    assert_eq!(hosts["items"].as_array().map(Vec::len), Some(0));
}

#[test]
fn an_invalid_value_names_its_variable() {
    for (option, value) in [
        ("CLOCK", "fast"),
        ("API_LISTEN", "nowhere"),
        ("SEED", "x"),
        ("LIMITS", "some"),
        ("LOG_LEVEL", "all"),
        ("I_KNOW_THIS_IS_OPEN", "perhaps"),
    ] {
        let name = format!("FOREWARN_DEV_{option}");
        let mut command = clean_command(crate::program());
        let ran = run_with_input(command.arg("dev").env(&name, value), "");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(&name) && ran.err.contains(value), "{ran:?}");
    }
}

#[test]
fn a_flag_is_true_or_one() {
    for (value, is_allowed) in [("1", true), ("true", true), ("0", false), ("false", false)] {
        let mut command = clean_command(crate::program());
        command.args(["dev", "--metadata-listen", "0.0.0.0:0", "--api-listen", ":0", "--arm-listen", "off"]);
        command.args(["--event", "Reboot:nope"]).env("FOREWARN_DEV_I_KNOW_THIS_IS_OPEN", value);
        let ran = run_with_input(&mut command, "");
        // It ends in any case: a machine that does not exist is an invalid command line.
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let words = if is_allowed { "--event Reboot:nope: no such machine: nope" } else { "is not loopback" };
        assert!(ran.err.contains(words), "{value}: {ran:?}");
    }
}

#[test]
fn the_help_shows_the_variables_without_their_values() {
    let mut command = clean_command(crate::program());
    let ran = run_with_input(command.args(["dev", "--help"]).env("FOREWARN_DEV_SEED", "4711"), "");
    for name in ["FOREWARN_DEV_CLOCK", "FOREWARN_DEV_SEED", "FOREWARN_DEV_FLEET", "FOREWARN_DEV_LOG_LEVEL"] {
        assert!(ran.out.contains(&format!("[env: {name}]")), "{name}: {}", ran.out);
    }
    assert!(!ran.out.contains("4711"), "{}", ran.out);
}
