//! A host with a libvirtd of its own, in namespaces of its own.

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};

use forewarn_testkit::command::stdout_of;
use forewarn_testkit::{wait_until, wait_until_for};
use std::time::Duration;

use crate::drivers::support::VirshDriver;

/// A guest boots within seconds, and within a minute where several boot at once on few cores without KVM.
const BOOT: Duration = Duration::from_secs(120);

/// Calls virsh inside of the namespaces, and kills the driver after the command that the file `kill` has. It waits before or
/// after a command while a file says so.
const VIRSH: &str = "read -r host <DIR/host\n\
    hold() { while [ -e \"DIR/hold-$1\" ]; do echo >\"DIR/at-$1\"; sleep 0.02; done; }\n\
    hold \"before-$4\"\n\
    date \"+%s.%N $4 $5\" >>DIR/calls\n\
    nsenter --target \"$host\" --mount --net virsh \"$@\"\n\
    code=$?\n\
    hold \"after-$4\"\n\
    if [ -e DIR/kill ] && read -r line <DIR/kill && [ \"$line\" = \"$4\" ]; then rm DIR/kill; kill -9 \"$PPID\"; fi\n\
    exit $code";

/// Everything that runs in here ends with it: libvirtd is the first process of its own process namespace.
pub(super) struct LibvirtHost {
    pub(super) driver: VirshDriver,
    process: Child,
}

impl LibvirtHost {
    pub(super) fn start() -> Self {
        let unpacked =
            std::env::var("FOREWARN_LIBVIRT_ROOT").expect("`cargo xtask libvirt` says where libvirt is");
        let mut driver = VirshDriver::new();
        let virsh = driver.dir.script("virsh", VIRSH);
        driver.set("VIRSH", &virsh);
        driver.set("REMOTE_URI", "qemu:///system");
        driver.set("GRACE", "90");
        driver.dir.write("guest-init", include_str!("guest-init"));
        std::fs::create_dir(driver.dir.file("own")).unwrap();
        let script = driver.dir.script("host.sh", include_str!("host.sh"));
        let mut unshare = Command::new("unshare");
        unshare.args([
            "--mount",
            "--net",
            "--pid",
            "--propagation",
            "private",
            "--mount-proc",
            "--fork",
            "--kill-child",
        ]);
        unshare.args([&script, &unpacked]).stdin(Stdio::null()).stdout(Stdio::null());
        let process = unshare.spawn().unwrap();
        let id = process.id();
        let host = Self { driver, process };
        // The first process in there is the only child.
        let children = format!("/proc/{id}/task/{id}/children");
        let first = wait_until("the namespaces exist", || {
            let text = std::fs::read_to_string(&children).unwrap_or_default();
            text.split_whitespace().next().map(str::to_owned)
        });
        host.driver.dir.write("host", &format!("{first}\n"));
        wait_until("libvirtd answers", || host.call(&["list"]).status().unwrap().success().then_some(()));
        host
    }

    fn call(&self, words: &[&str]) -> Command {
        let mut virsh = Command::new(self.driver.dir.file("virsh"));
        virsh.args(["--connect", "qemu:///system", "--quiet"]).args(words);
        virsh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        virsh
    }

    /// A command that runs in the network of the host, ready for its arguments. `/sys` shows the interfaces of that network.
    pub(super) fn in_its_network(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", self.driver.dir.read("host").trim(), "--net"]);
        let exec = "mount -t sysfs network /sys && exec \"$0\" \"$@\"";
        command.args(["unshare", "--mount", "--propagation", "private", "sh", "-c", exec]).arg(program);
        command
    }

    /// Defines a guest, whose kernel gets these words.
    pub(super) fn define(&self, name: &str, words: &str) {
        self.define_with(name, words, "");
    }

    /// Defines a guest on the network, with that address.
    pub(super) fn define_on_network(&self, name: &str, address: &str, words: &str) {
        let card = format!(
            "<interface type='ethernet'><target dev='tap-{name}' managed='no'/><model type='virtio'/></interface>"
        );
        self.define_with(name, &format!("{words} address={address}"), &card);
    }

    fn define_with(&self, name: &str, words: &str, network: &str) {
        let text = include_str!("domain.xml");
        let text = text.replace("NAME", name).replace("WORDS", words).replace("NETWORK", network);
        let file = self.driver.dir.configure("domain.xml", &text);
        stdout_of(self.call(&["define", &file]).stderr(Stdio::piped()));
    }

    /// Starts a guest without the driver.
    pub(super) fn start_guest(&self, name: &str) {
        stdout_of(self.call(&["start", name]).stderr(Stdio::piped()));
    }

    /// The id by which the driver calls a guest.
    pub(super) fn uuid(&self, name: &str) -> String {
        stdout_of(self.call(&["domuuid", name]).stdout(Stdio::piped())).trim().to_owned()
    }

    /// The text on the console of a guest.
    pub(super) fn console(&self, name: &str) -> String {
        let bytes = std::fs::read(self.driver.dir.file(&format!("{name}.console"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The boot ids that a guest has had.
    pub(super) fn boots(&self, name: &str) -> Vec<String> {
        self.lines(name, "BOOT ")
    }

    /// The boots in which a guest has felt its power button.
    pub(super) fn presses(&self, name: &str) -> Vec<String> {
        self.lines(name, "BUTTON ")
    }

    /// The lines of a guest that begin with that, without it.
    pub(super) fn lines(&self, name: &str, head: &str) -> Vec<String> {
        let console = self.console(name);
        let whole = console.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(|line| line.trim().strip_prefix(head).map(str::to_owned)).collect()
    }

    pub(super) fn ticks(&self, name: &str) -> usize {
        self.console(name).matches("TICK").count()
    }

    /// Waits until a guest has booted so many times and ticks.
    pub(super) fn await_boots(&self, name: &str, count: usize) {
        wait_until_for(BOOT, "the guest boots", || (self.boots(name).len() >= count).then_some(()));
        let before = self.ticks(name);
        wait_until_for(BOOT, "the guest ticks", || (self.ticks(name) > before).then_some(()));
    }
}

impl Drop for LibvirtHost {
    fn drop(&mut self) {
        // The kernel ends every process of the namespace with its first one.
        self.process.kill().ok();
        self.process.wait().ok();
        if std::thread::panicking() {
            let log = self.driver.dir.read("libvirtd.log");
            let last: Vec<_> = log.lines().filter(|line| !line.contains("ethtool")).collect();
            eprintln!("libvirtd.log:\n{}", last[last.len().saturating_sub(20)..].join("\n"));
            for guest in ["web_0", "web", "spot"] {
                let console = self.console(guest);
                let lines: Vec<_> = console.lines().filter(|line| !line.contains("TICK")).collect();
                eprintln!("console of {guest}:\n{}", lines[lines.len().saturating_sub(20)..].join("\n"));
            }
        }
    }
}
