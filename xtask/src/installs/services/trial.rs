//! A real package with a service, installed in a copy of this system: `/etc`, `/usr` and `/var` are covered by layers
//! in memory, in namespaces that end with the test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use super::install_quietly;

/// The package for the test inside of the namespaces.
const PACKAGE: &str = "FOREWARN_TRIAL_PACKAGE";

const FILES: [(&str, &str); 4] = [
    (
        "DEBIAN/control",
        "Package: forewarn-trial\nVersion: 1\nArchitecture: all\nMaintainer: A <a@forewarn.invalid>\nDescription: trial\n",
    ),
    (
        "DEBIAN/postinst",
        "#!/bin/sh\nset -e\nmkdir -p /etc/systemd/system/multi-user.target.wants\n\
         ln -sf /lib/systemd/system/forewarn-trial.service /etc/systemd/system/multi-user.target.wants/\n\
         update-rc.d forewarn-trial defaults\ninvoke-rc.d forewarn-trial start\n",
    ),
    (
        "etc/init.d/forewarn-trial",
        "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: forewarn-trial\n# Required-Start:\n# Required-Stop:\n\
         # Default-Start: 2 3 4 5\n# Default-Stop: 0 1 6\n### END INIT INFO\n\
         [ \"$1\" != start ] || { sleep 1000 > /dev/null 2>&1 & echo $! > /run/forewarn-trial; }\n",
    ),
    (
        "lib/systemd/system/forewarn-trial.service",
        "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n",
    ),
];

/// Debian starts a service only on a computer that has an init system. `$1` is a directory, `$2` the test program.
const SCRIPT: &str = r#"set -e
mount -t tmpfs tmpfs "$1/layers"
for part in etc usr var; do
    mkdir "$1/layers/$part" "$1/layers/$part.work"
    mount -t overlay overlay -o "lowerdir=/$part,upperdir=$1/layers/$part,workdir=$1/layers/$part.work" "/$part"
done
mount -t tmpfs tmpfs /run
mount -t proc proc /proc
rm -f /usr/sbin/policy-rc.d /usr/sbin/runlevel
printf '#!/bin/sh\necho N 2\n' > /usr/sbin/runlevel
chmod 755 /usr/sbin/runlevel
[ -e /usr/sbin/init ] || cp /bin/true /usr/sbin/init
state() {
    if [ -e /run/forewarn-trial ] && kill -0 "$(cat /run/forewarn-trial)"; then echo "$1: running"; fi
    for link in /etc/rc2.d/S*forewarn-trial /etc/systemd/system/*.wants/forewarn-trial.service /usr/sbin/policy-rc.d; do
        if [ -e "$link" ] || [ -L "$link" ]; then echo "$1: $(basename "$link")"; fi
    done
}
dpkg --install "$1/trial.deb" > /dev/null
state debian
kill "$(cat /run/forewarn-trial)"
rm /run/forewarn-trial
dpkg --purge forewarn-trial > /dev/null 2>&1
rm -f /etc/rc?.d/*forewarn-trial /etc/systemd/system/*.wants/forewarn-trial.service
FOREWARN_TRIAL_PACKAGE="$1/trial.deb" "$2" --ignored --exact installs::services::trial::inside > "$1/log" 2>&1 || cat "$1/log"
grep -q '1 passed' "$1/log"
dpkg-query --show --showformat='${db:Status-Status}\n' forewarn-trial
state forewarn
"#;

#[test]
fn a_service_of_an_installed_package_neither_runs_nor_starts_with_the_computer() {
    let directory = tempfile::tempdir().unwrap();
    let Some(said) = run_in_namespaces(directory.path()) else { return };
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{text}{errors}");
    for line in
        ["debian: running", "debian: S01forewarn-trial", "debian: forewarn-trial.service", "installed"]
    {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}{errors}");
    }
    let has_systemctl = Path::new("/usr/bin/systemctl").exists();
    let of_other_init = |line: &&str| !has_systemctl && line.ends_with(".service");
    let ours: Vec<_> = text.lines().filter(|line| line.starts_with("forewarn: ")).collect();
    assert!(ours.iter().all(of_other_init), "{text}{errors}");
}

#[test]
#[ignore = "runs inside of the namespaces of the other test"]
fn inside() {
    let package = std::env::var(PACKAGE).expect("the other test starts this one");
    let install = |environment: &[(&str, &str)]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.args(["--install", &package]).envs(environment.iter().copied()).status().unwrap().success()
    };
    assert!(install_quietly(install).unwrap());
}

/// None if this user or system cannot make such namespaces; in CI that is a failure.
fn run_in_namespaces(directory: &Path) -> Option<Output> {
    let has_tools = Command::new("dpkg-deb").arg("--version").output().is_ok();
    let namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"];
    let probe =
        Command::new("unshare").args(namespaces).args(["mount", "-t", "tmpfs", "tmpfs", "/run"]).output();
    if !has_tools || !probe.is_ok_and(|probe| probe.status.success()) {
        assert!(!crate::steps::skips_are_failures(), "only root on Debian can make these namespaces");
        eprintln!("SKIPPED: only root on Debian can make these namespaces");
        return None;
    }
    let tree = directory.join("tree");
    for (path, text) in FILES {
        let file = tree.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(directory.join("layers")).unwrap();
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(&tree).arg(directory.join("trial.deb"));
    assert!(build.output().unwrap().status.success());
    let mut script = Command::new("unshare");
    script.args(namespaces).args(["sh", "-c", SCRIPT, "sh"]).arg(directory);
    Some(script.arg(std::env::current_exe().unwrap()).output().unwrap())
}
