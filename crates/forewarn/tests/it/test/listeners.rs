//! The address of the metadata endpoint, and programs that use nothing but an address.
//!
//! The guide in `endpoint::guide` has a program with the address 169.254.169.254.

use super::stories::run_story;
use super::{SHORT, conclusion, run};

const TWO: &str = "host h1 h2\nvm a on h1\nvm b on h2\n";

#[test]
fn a_request_without_the_path_of_a_machine_comes_from_that_of_the_command() {
    for options in ["", "--metadata-listen 127.0.0.1:0", "--event Reboot:a", "--event Reboot:b --vm b"] {
        let Some(passed) = run(options, "--bare") else { return };
        assert_eq!(passed.code, Some(0), "{options}: {passed:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fleet.toml");
    let fleet = "host = [{ name = 'h1' }, { name = 'h2' }]\n[[scale_set]]\nname = 'web'\n\
                 instance = [{ host = 'h1' }, { host = 'h2', update_domain = 1 }]\n";
    std::fs::write(&file, fleet).unwrap();
    let Some(passed) = run(&format!("--fleet {}", file.display()), "--bare") else { return };
    assert!(passed.out.contains("web_0 approved E1 (Reboot) "), "{passed:?}");
}

#[test]
fn in_a_story_it_comes_from_the_machine_of_the_only_run_command_or_from_the_first_one() {
    for (more, machine) in [("run command as b\nat 10s restart b\n", "b"), ("at 10s restart a\n", "a")] {
        let Some(passed) = run_story(&format!("{TWO}{more}"), SHORT, "--bare") else { return };
        assert_eq!(passed.code, Some(0), "{passed:?}");
        assert!(passed.out.contains(&format!("{machine} approved E1 (Reboot) ")), "{passed:?}");
    }
}

#[test]
fn an_unknown_caller_is_told_from_an_invalid_request() {
    let story = format!("{TWO}run command as a\nrun command as b\nat 10s restart a\n");
    let Some(failed) = run_story(&story, "--startup 3s", "--bare") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let words = "): the path must begin with that of FOREWARN_METADATA (/vm/a)\n";
    assert!(failed.out.contains("the endpoint answered requests with 403 ("), "{failed:?}");
    assert!(failed.out.contains(words) && !failed.out.contains("needs the header"), "{failed:?}");
    assert!(
        conclusion(&failed).starts_with("FAILED: the story failed in line 4: a has not polled"),
        "{failed:?}"
    );
    assert!(!failed.out.contains("nothing was tested"), "one failure is enough: {failed:?}");
}

#[test]
fn a_listener_beyond_loopback_has_to_be_allowed() {
    let Some(refused) = run("--metadata-listen 0.0.0.0:0", "") else { return };
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("0.0.0.0:0 is not loopback\n  hint: add --i-know-this-is-open"),
        "{refused:?}"
    );
    let Some(passed) = run("--metadata-listen 0.0.0.0:0 --i-know-this-is-open", "--bare") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
}
