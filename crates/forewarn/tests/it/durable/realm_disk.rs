//! A server of a realm whose disk is full: another server gets its clusters, and it goes on by itself when it can.

use std::fs;

use forewarn_testkit::{SOLO_FLEET, ServeDir, TestServer, wait_until};

use super::disk::SmallDisk;
use crate::realm::site::{RealmSite, SERVERS};

/// Failed attempts to open the journal, in which the server had time to read what it lacks several times.
const ATTEMPTS: usize = 6;

fn count(server: &TestServer, message: &str) -> usize {
    server.log().matches(message).count()
}

/// promise: D3
#[test]
#[ignore = "needs root; `cargo xtask test` runs it"]
fn an_owner_whose_disk_is_full_is_replaced_and_goes_on_when_it_can() {
    let places: Vec<_> = (0..SERVERS).map(|_| ServeDir::new(crate::program(), SOLO_FLEET)).collect();
    let disk_of = |place: &ServeDir| {
        fs::create_dir(place.file("data")).unwrap();
        SmallDisk::mount_at(place.file("data"))
    };
    let disks: Vec<_> = places.iter().map(disk_of).collect();
    let Some(mut site) = RealmSite::start_on(places) else { return };
    let full = site.owner();
    site.create_host(full, "before");
    disks[full].fill_but(0);
    let other = (full + 1) % SERVERS;
    let mut written = 0;
    let mut write = |site: &mut RealmSite| {
        site.create_host(other, &format!("during-{written}"));
        written += 1;
    };
    wait_until("another server owns the cluster", || {
        write(&mut site);
        (site.owner() != full).then_some(())
    });
    site.server(full).wait_for_log("cannot reopen the journal");
    write(&mut site);
    // It stays so, and the server does not read again and again what it cannot write.
    let copied = count(site.server(full), "cannot copy a batch of the log");
    wait_until("the server has tried several times", || {
        (count(site.server(full), "cannot reopen the journal") >= ATTEMPTS).then_some(())
    });
    write(&mut site);
    assert_ne!(site.owner(), full, "it has taken the cluster back");
    let again = count(site.server(full), "cannot copy a batch of the log") - copied;
    assert!(again <= 1, "it has read what it cannot write {again} times");
    let recovered = count(site.server(full), "journal recovered");
    disks[full].make_room();
    wait_until("the server can write again", || {
        (count(site.server(full), "journal recovered") > recovered).then_some(())
    });
    wait_until("its copy is complete", || {
        site.server(full).try_run(&["host", "ls"]).status.success().then_some(())
    });
    site.check_all();
    site.create_host(full, "after");
    site.check_all();
    drop(site);
    drop(disks);
}
