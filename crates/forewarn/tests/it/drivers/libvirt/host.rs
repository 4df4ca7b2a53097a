//! A host with a libvirtd of its own, in namespaces of its own.

use std::process::{Child, Command, Stdio};

use forewarn_testkit::command::stdout_of;
use forewarn_testkit::{wait_until, wait_until_for};
use std::time::Duration;

use crate::drivers::support::VirshDriver;

/// A guest boots within seconds, and within a minute where several boot at once on few cores without KVM.
const BOOT: Duration = Duration::from_secs(120);

/// Calls virsh inside of the namespaces, and kills the driver after the command that the file `kill` has.
const VIRSH: &str = "read -r host <DIR/host\n\
    nsenter --target \"$host\" --mount --net virsh \"$@\"\n\
    code=$?\n\
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

    /// Defines a guest, whose kernel gets these words.
    pub(super) fn define(&self, name: &str, words: &str) {
        let text = include_str!("domain.xml").replace("NAME", name).replace("WORDS", words);
        let file = self.driver.dir.configure("domain.xml", &text);
        stdout_of(self.call(&["define", &file]).stderr(Stdio::piped()));
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

    fn lines(&self, name: &str, head: &str) -> Vec<String> {
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
        }
    }
}
