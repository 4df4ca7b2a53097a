//! Disks that only root can make: run by `cargo xtask disks`.

use std::process::Command;

use crate::doctor::place::Place;

fn run(program: &str, words: &[&str]) {
    assert!(Command::new(program).args(words).status().unwrap().success(), "{program} {words:?}");
}

/// A small disk on a directory, for as long as this lives.
struct Disk(String);

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &[&self.0]);
    }
}

#[test]
#[ignore = "needs root: cargo xtask disks"]
fn a_disk_that_is_nearly_full_is_found() {
    let place = Place::new();
    let (image, data) = (place.path("image"), place.path("data"));
    run("truncate", &["-s", "16M", &image]);
    run("mkfs.ext4", &["-q", "-F", "-m", "0", &image]);
    run("mount", &["-o", "loop", &image, &data]);
    let disk = Disk(data.clone());
    run("chmod", &["0700", &data]);
    assert_eq!(place.doctor(&place.settings()).code, Some(0));
    // It ends when the disk is full.
    drop(Command::new("dd").args(["if=/dev/zero", &format!("of={data}/filler"), "bs=64k"]).output());
    place.doctor(&place.settings()).expect("disk", "is nearly full", "df -h ");
    drop(disk);
}
