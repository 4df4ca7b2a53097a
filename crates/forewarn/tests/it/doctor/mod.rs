//! `forewarn doctor` against faults that were planted: each is found, and has a remedy.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod disks;
mod engine;
mod place;
mod running;

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use self::place::Place;
use forewarn_testkit::tls::Authority;

fn chmod(path: &str, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// promise: X2
#[test]
fn where_nothing_is_wrong_nothing_is_found() {
    let place = Place::new();
    let said = place.doctor(&place.settings());
    assert_eq!((said.code, said.findings().len()), (Some(0), 0), "{said:?}");
    assert!(said.checks().contains(&"journal".to_owned()), "{said:?}");
    let table = place.doctor_table(&place.settings());
    assert!(table.starts_with("CHECK           RESULT   DETAILS\n"), "{table}");
}

/// promise: X2
#[test]
fn a_port_that_is_taken_is_found_with_whoever_has_it() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (was, check) in [("address", "metadata"), ("api.listen", "api")] {
        let (was, is) = (format!("{was} = '127.0.0.1:0'"), format!("{was} = '{address}'"));
        let said = place.doctor(&place.settings().replace(&was, &is));
        let own = std::process::id().to_string();
        said.expect(check, &format!("{address} is in use by "), &own);
    }
}

/// promise: X2
#[test]
fn an_address_that_no_interface_has_is_found() {
    let place = Place::new();
    let said = place.doctor(&place.settings().replace("address = '127.0.0.1:0'", "address = '192.0.2.7:80'"));
    said.expect("metadata", "no interface has the address 192.0.2.7", "ip addr add 192.0.2.7/32 dev ");
}

/// promise: X2
#[test]
fn an_interface_that_is_missing_is_found() {
    let place = Place::new();
    let settings = place.settings().replace("machine = 'solo'", "machine = 'solo'\ninterface = 'no-such0'");
    place.doctor(&settings).expect("metadata", "no such network interface: no-such0", "ip link");
}

/// promise: X2
#[test]
fn a_port_that_needs_a_privilege_is_found() {
    let place = Place::new();
    let Some(nobody) = place.nobody() else { return };
    let settings = place.settings().replace("address = '127.0.0.1:0'", "address = '127.0.0.1:81'");
    let said = nobody.doctor(&settings.replace(&place.path("data"), &place.path("of-nobody/data")));
    said.expect("metadata", "the current user may not listen on port 81", "setcap cap_net_bind_service=+ep ");
}

/// promise: X2
#[test]
fn a_data_directory_of_somebody_else_is_found() {
    let place = Place::new();
    let Some(nobody) = place.nobody() else { return };
    chmod(&place.path("data"), 0o755);
    nobody.doctor(&place.settings()).expect(
        "data directory",
        "the current user cannot write to ",
        "chown -R ",
    );
    place.hide_data();
    let said = nobody.doctor(&place.settings());
    said.expect("data directory", "cannot read ", "install -d -m 0700 ");
}

#[test]
fn a_data_directory_that_others_may_read_is_found() {
    let place = Place::new();
    chmod(&place.path("data"), 0o755);
    let said = place.doctor(&place.settings());
    said.expect("data directory", "other users have access to ", "chmod 0700 ");
}

#[test]
fn a_data_directory_in_memory_is_found() {
    let memory = "/dev/shm";
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.contains(" /dev/shm tmpfs ")) {
        eprintln!("skipped: no memory is mounted at {memory}");
        return;
    }
    let directory = tempfile::tempdir_in(memory).unwrap();
    chmod(&directory.path().display().to_string(), 0o700);
    let place = Place::new();
    let settings = place.settings().replace(&place.path("data"), &directory.path().display().to_string());
    place.doctor(&settings).expect("file system", "is in memory (tmpfs)", "data_dir = ");
}

/// promise: X2
#[test]
fn a_data_directory_that_is_locked_is_found_with_whoever_has_it() {
    let place = Place::new();
    let lock = File::create(place.path("data/lock")).unwrap();
    lock.lock().unwrap();
    let said = place.doctor(&place.settings());
    said.expect("lock", " is locked by ", &format!("kill {}", std::process::id()));
}

/// promise: X2
#[test]
fn a_journal_that_is_damaged_is_found_and_left_as_it_is() {
    let place = Place::new();
    place.serve_once();
    assert_eq!(place.doctor(&place.settings()).code, Some(0));
    let journal = place.path("data/journal.db");
    let mut bytes = fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[100..middle].fill(0xa5);
    fs::write(&journal, &bytes).unwrap();
    let said = place.doctor(&place.settings());
    said.expect("journal", "", "forewarn store import ");
    assert_eq!(fs::read(&journal).unwrap(), bytes, "a look changes nothing");
}

#[test]
fn a_journal_that_has_lost_commits_or_is_missing_is_found() {
    let place = Place::new();
    place.serve_once();
    fs::remove_file(place.path("data/journal.reach")).unwrap();
    let said = place.doctor(&place.settings());
    said.expect("journal", "cannot tell whether the journal is complete", "forewarn store accept-loss ");
    fs::remove_file(place.path("data/journal.db")).unwrap();
    let said = place.doctor(&place.settings());
    said.expect("journal", "missing from a data directory that was in use", "forewarn store import ");
}

/// promise: X2
#[test]
fn certificates_that_will_not_do_are_found() {
    let place = Place::new();
    let ours = Authority::new("ours");
    let settings = place.with_tls();
    let check = |certificate: &str, key: &str, words: &str, remedy: &str| {
        fs::write(place.path("certificate.pem"), certificate).unwrap();
        fs::write(place.path("key.pem"), key).unwrap();
        chmod(&place.path("key.pem"), 0o600);
        place.doctor(&settings).expect("certificate", words, remedy);
    };
    let (leaf, other) = (ours.leaf(&["localhost"]), ours.leaf(&["localhost"]));
    check(&leaf.certificate, &other.key, "the key does not match the certificate", "use the key of");
    check("nothing", &leaf.key, "no certificate in ", "PEM");
    let old = ours.expired_leaf(&["localhost"]);
    check(&old.certificate, &old.key, "the certificate has expired", "systemctl reload forewarn");
    let soon = ours.leaf_for(&["localhost"], Duration::from_hours(72));
    check(&soon.certificate, &soon.key, "the certificate expires in ", "systemctl reload forewarn");
    fs::remove_file(place.path("certificate.pem")).unwrap();
    place.doctor(&settings).expect("certificate", "cannot read the certificate", "ls -l ");
}

#[test]
fn a_key_that_anybody_may_read_is_found() {
    let place = Place::new();
    let leaf = Authority::new("ours").leaf(&["localhost"]);
    fs::write(place.path("certificate.pem"), &leaf.certificate).unwrap();
    fs::write(place.path("key.pem"), &leaf.key).unwrap();
    chmod(&place.path("key.pem"), 0o644);
    place.doctor(&place.with_tls()).expect("key", "every user can read the private key", "chmod 0640 ");
}

/// promise: X2
#[test]
fn hands_that_cannot_be_started_are_found() {
    let place = Place::new();
    chmod(&place.path("hands"), 0o644);
    place.doctor(&place.settings()).expect("driver", "driver program is not executable: ", "chmod +x ");
    fs::remove_file(place.path("hands")).unwrap();
    place.doctor(&place.settings()).expect("driver", "driver program not found: ", "forewarn serve --check");
}

#[test]
fn a_fleet_and_settings_that_are_none_are_found() {
    let place = Place::new();
    let bad = place.settings().replace("burst = 20", "burst = 0");
    place.doctor(&bad).expect("settings", "limit of zero: ", "at least 1");
    place.doctor("nonsense").expect("settings", "invalid configuration: ", "forewarn serve --check");
    fs::write(place.path("fleet.toml"), "vm = [{ name = 'solo', host = 'h2' }]").unwrap();
    place.doctor(&place.settings()).expect("fleet", "no such host: h2", "");
}

/// promise: X2
#[test]
fn a_clock_that_nothing_keeps_right_is_found() {
    let place = Place::new();
    place.program("timedatectl", "echo no");
    let said = place.doctor(&place.settings());
    said.expect("clock sync", "the clock is not synchronised", "timedatectl set-ntp true");
    place.program("timedatectl", "echo yes");
    assert_eq!(place.doctor(&place.settings()).code, Some(0));
}

#[test]
fn a_clock_that_is_behind_its_data_is_found() {
    let place = Place::new();
    let file = File::create(place.path("data/later")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_hours(2)).unwrap();
    place.doctor(&place.settings()).expect("clock", "before the latest change in the data directory", "date");
}

#[test]
fn too_few_open_files_are_found() {
    let place = Place::new();
    let said = place.doctor_after("ulimit -n 512", &place.settings());
    said.expect("open files", "the limit of open files of this shell is 512", "LimitNOFILE=");
}
