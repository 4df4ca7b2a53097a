//! Action names, as a driver program sees them: one name for one action, in every cluster and after every restore.
//!
//! The program (`hands`) remembers each name for ever. An action that comes under a name of another one would never happen.

use std::fs::{self, File};
use std::process::Command;

use crate::durable::site::Site;
use crate::program;
use forewarn_testkit::{TestServer, wait_until};

/// The file of effects: one line for each action that happened.
fn effects(site: &Site) -> Vec<String> {
    let text = fs::read_to_string(site.file("effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Replaces the data directory by one that is made from a backup.
fn restore(site: &Site, server: TestServer, backup: &str) -> TestServer {
    server.kill();
    fs::remove_dir_all(site.file("data")).unwrap();
    let mut import = Command::new(program());
    import.args(["store", "import"]).arg(site.file(backup)).arg(site.file("data"));
    let output = import.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    site.start()
}

fn back_up(site: &Site, server: &TestServer, name: &str) {
    server.run(&["backup", site.file(name).to_str().unwrap()]);
}

/// Makes a second cluster that looks like the first, and restarts a machine there.
fn restart_in_west(site: &Site, server: &TestServer) {
    server.run(&["cluster", "create", "west"]);
    server.run(&["--cluster", "west", "fleet", "apply", site.file("fleet.toml").to_str().unwrap()]);
    server.run(&["--cluster", "west", "vm", "restart", "front", "--wait"]);
}

/// promise: D2
#[test]
fn two_clusters_never_share_an_action_name() {
    let site = Site::new();
    site.bring_hands();
    let server = site.start();
    server.run(&["vm", "restart", "front", "--wait"]);
    restart_in_west(&site, &server);
    let effects = effects(&site);
    assert_eq!(effects.len(), 2, "each cluster restarted its machine: {effects:?}");
    let is_name = |name: &String| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(effects.iter().all(is_name), "{effects:?}");
}

/// promise: D2
#[test]
fn a_restored_backup_reuses_no_action_name_of_work_that_it_does_not_know() {
    let site = Site::new();
    site.bring_hands();
    let server = site.start();
    back_up(&site, &server, "backup");
    server.run(&["vm", "restart", "front", "--wait"]);
    restart_in_west(&site, &server);
    let server = restore(&site, server, "backup");
    server.run(&["brake", "off"]);
    server.run(&["vm", "restart", "front", "--wait"]);
    // The cluster that was made after the backup is not known there: another one gets its number.
    restart_in_west(&site, &server);
    let effects = effects(&site);
    assert_eq!(effects.len(), 4, "every restart happened: {effects:?}");
}

/// promise: D2
#[test]
fn a_restored_backup_repeats_the_action_names_of_work_that_it_knows() {
    let site = Site::new();
    site.bring_hands();
    File::create(site.file("hold-after")).unwrap();
    let mut server = site.start();
    server.run(&["vm", "restart", "front"]);
    wait_until("the effect", || (effects(&site).len() == 1).then_some(()));
    back_up(&site, &server, "backup");
    fs::remove_file(site.file("hold-after")).unwrap();
    // Restored twice: the second backup is of a restored server, where the action is still under way.
    for next in ["again", "unused"] {
        File::create(site.file("hold-after")).unwrap();
        let before = fs::read_to_string(site.file("at-after")).unwrap_or_default().len();
        server = restore(&site, server, "backup");
        wait_until("the action is ordered again", || {
            let ordered = fs::read_to_string(site.file("at-after")).unwrap_or_default().len();
            (ordered > before).then_some(())
        });
        back_up(&site, &server, next);
        fs::remove_file(site.file("hold-after")).unwrap();
        fs::rename(site.file(next), site.file("backup")).unwrap();
    }
    wait_until("the restart is over", || (server.json(&["vm", "show", "front"])["boots"] == 2).then_some(()));
    let effects = effects(&site);
    assert_eq!(effects.len(), 1, "the restart happened once: {effects:?}");
}
