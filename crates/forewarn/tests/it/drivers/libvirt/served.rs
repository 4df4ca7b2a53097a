//! Real guests and the whole server: a guest polls with its own tools, approves, and feels what was announced.
//!
//! ```text
//!   guest web, spot (QEMU)            the network of the host                 outside of it
//!   busybox wget ── virtio ── tap ──▶ 169.254.169.254:80 `forewarn serve` ──▶ the driver, virsh, the step on the host
//!   TICK on the console  ────────────────────────────────────────────────▶ the test
//! ```
//!
//! The network interface of a guest says which machine it is. The clock is the real one.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forewarn_imds::parse_date;
use forewarn_testkit::command::clean;
use forewarn_testkit::{ServeDir, TestServer, wait_until, wait_until_for};
use serde_json::Value;

use super::LibvirtHost;
use crate::drivers::support::VirshDriver;

const FLEET: &str = "host = [{ name = 'kvm1' }, { name = 'kvm2' }]\n\
    vm = [{ name = 'web', host = 'kvm1', terminate = '5m' }, { name = 'spot', host = 'kvm2', spot = 'deallocate' }]\n";

const SETTINGS: &str = "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\napi = { socket = 'DIR/api.sock' }\n\
    driver = { kind = 'program', program = 'PROGRAM' }\n\
    [[metadata.listen]]\naddress = '169.254.169.254:80'\ninterface = 'tap-web'\nmachine = 'web'\n\
    [[metadata.listen]]\naddress = '169.254.169.254:80'\ninterface = 'tap-spot'\nmachine = 'spot'\n";

/// The step on the host: it takes a while.
const WORK: &str =
    "date \"+%s.%N\" >>DIR/work\necho \"$@\" >>DIR/worked\nsleep 2\ndate \"+%s.%N\" >>DIR/work";

/// Longer than a boot, a shutdown and a notice of Preempt on few cores.
const LONG: Duration = Duration::from_secs(150);

/// A host with a guest `web`, which approves all events, and a server.
struct ServedHost {
    host: LibvirtHost,
    serve: ServeDir,
}

impl ServedHost {
    /// The guest `web` runs, and has read its document.
    fn with_web() -> (Self, TestServer) {
        let mut host = LibvirtHost::start();
        host.define_on_network("web", "169.254.0.2", "approves");
        let step = host.driver.dir.script("step", WORK);
        host.driver.set("UPDATE_HOST", &format!("{step} {{verb}} {{host}} {{work}}"));
        host.driver.set("REBOOT_HOST", &format!("{step} {{verb}} {{host}} {{work}}"));
        let served = Self { host, serve: ServeDir::new(crate::program(), FLEET) };
        let server = served.start();
        served.boot("web");
        (served, server)
    }

    fn boot(&self, name: &str) {
        self.host.start_guest(name);
        self.wait(name, "READ ", r#""Events":[]"#);
    }

    /// A server on the same data, in the network of the host.
    fn start(&self) -> TestServer {
        let settings =
            self.serve.configure("config.toml", &SETTINGS.replace("PROGRAM", VirshDriver::PROGRAM));
        let mut command: Command = self.host.in_its_network(crate::program());
        command.args(["serve", "--config", &settings]);
        clean(&mut command);
        self.host.driver.configure(&mut command);
        TestServer::spawn(crate::program(), command)
    }

    /// Waits for a line of a guest; gives the first one that contains that.
    fn wait(&self, name: &str, head: &str, part: &str) -> String {
        wait_until_for(LONG, &format!("{name}: {head}{part}"), || {
            self.host.lines(name, head).into_iter().find(|line| line.contains(part))
        })
    }

    /// The first event of that type and status that a guest has read.
    fn event(&self, name: &str, kind: &str, status: &str) -> Value {
        wait_until_for(LONG, &format!("{name} reads {kind} {status}"), || {
            let documents = self.host.lines(name, "READ ");
            let documents = documents.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut events = documents.map(|document| document["Events"][0].clone());
            events.find(|event| event["EventType"] == kind && event["EventStatus"] == status)
        })
    }

    /// Times at which virsh was called with that command for a guest.
    fn calls(&self, name: &str, command: &str) -> Vec<f64> {
        let (calls, end) =
            (self.host.driver.dir.read("calls"), format!(" {command} {}", self.host.uuid(name)));
        let call = |line: &str| line.strip_suffix(&end).map(|time| time.parse().unwrap());
        calls.lines().filter_map(call).collect()
    }

    fn is_at(&self, gap: &str) -> Option<()> {
        self.host.driver.dir.file(&format!("at-{gap}")).exists().then_some(())
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn wait_for_end(server: &TestServer) {
    wait_until_for(LONG, "the work on the host ends", || {
        server.json(&["host", "show", "kvm1"])["work"].is_null().then_some(())
    });
}

/// The longest time without a tick, as the host sees it: when it began and when it ended.
fn longest_gap(host: &LibvirtHost, over: &AtomicBool) -> (f64, f64) {
    let (mut ticks, mut last, mut longest) = (host.ticks("web"), now(), (0.0, 0.0));
    loop {
        let is_over = wait_until_for(LONG, "a tick", || {
            let (count, is_over) = (host.ticks("web"), over.load(Ordering::Acquire));
            let is_new = count != ticks;
            ticks = count;
            (is_new || is_over).then_some(is_over)
        });
        let moment = now();
        if moment - last > longest.1 - longest.0 {
            longest = (last, moment);
        }
        last = moment;
        if is_over {
            return longest;
        }
    }
}

/// promise: E1
#[test]
#[ignore = "needs root, libvirtd and QEMU; `cargo xtask libvirt` unpacks them"]
fn a_guest_approves_and_is_paused_around_the_work_on_its_host() {
    let (served, server) = ServedHost::with_web();
    let over = AtomicBool::new(false);
    let (from, to) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| longest_gap(&served.host, &over));
        server.run(&["host", "update", "kvm1", "--work", "kernel 6.12.9", "--duration", "45s"]);
        let event = served.event("web", "Freeze", "Scheduled");
        assert_eq!((&event["DurationInSeconds"], &event["Resources"][0]), (&45.into(), &"web".into()));
        served.wait("web", "APPROVED ", event["EventId"].as_str().unwrap());
        wait_for_end(&server);
        let ticks = served.host.ticks("web");
        wait_until("the guest ticks after the pause", || (served.host.ticks("web") > ticks).then_some(()));
        over.store(true, Ordering::Release);
        watching.join().unwrap()
    });
    let work: Vec<f64> =
        served.host.driver.dir.read("work").lines().map(|time| time.parse().unwrap()).collect();
    assert_eq!(served.host.driver.dir.read("worked"), "update_host kvm1 kernel 6.12.9\n", "once");
    assert!(work[1] - work[0] >= 2.0, "{work:?}");
    assert!(from < work[0] && work[1] < to, "no tick from {from} to {to}, work: {work:?}");
    let (paused, resumed) = (served.calls("web", "suspend"), served.calls("web", "resume"));
    assert_eq!((paused.len(), resumed.len()), (1, 1));
    assert!(paused[0] < work[0] && work[1] < resumed[0], "{paused:?} {work:?} {resumed:?}");
    assert_eq!(served.host.boots("web").len(), 1, "memory stays");

    // A restart of the host: the guest is shut down, and boots once.
    server.run(&["host", "reboot", "kvm1"]);
    served.event("web", "Reboot", "Scheduled");
    wait_for_end(&server);
    served.host.await_boots("web", 2);
    assert_eq!(served.host.driver.dir.read("worked").lines().nth(1), Some("reboot_host kvm1 "));
    let boots = served.host.boots("web");
    assert_eq!((boots.len(), served.host.presses("web")), (2, vec![boots[0].clone()]));
    assert_eq!(server.json(&["vm", "show", "web"])["boots"], 2);
}

/// promise: D2
#[test]
#[ignore = "needs root, libvirtd and QEMU; `cargo xtask libvirt` unpacks them"]
fn a_restart_gives_one_boot_wherever_the_server_dies() {
    let (served, mut server) = ServedHost::with_web();
    for (count, gap) in (2..).zip(["before-suspend", "after-suspend", "after-reset", "after-resume"]) {
        let hold = served.host.driver.dir.write(&format!("hold-{gap}"), "");
        server.run(&["vm", "restart", "web"]);
        wait_until_for(LONG, gap, || served.is_at(gap));
        // The driver outlives the server, and another one has the same order.
        server.kill();
        server = served.start();
        fs::remove_file(hold).unwrap();
        wait_until_for(LONG, "the restart ends", || {
            let machine = server.json(&["vm", "show", "web"]);
            (machine["boots"] == count && machine["events"].as_array()?.is_empty()).then_some(())
        });
        served.host.await_boots("web", count);
        assert_eq!(served.host.boots("web").len(), count, "killed {gap}");
        // A second reset within the first seconds of a boot would leave no trace in the guest.
        assert_eq!(served.calls("web", "reset").len(), count - 1, "killed {gap}");
    }
    let mut ids = served.host.boots("web");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "a boot id came twice");
}

#[test]
#[ignore = "needs root, libvirtd and QEMU; `cargo xtask libvirt` unpacks them"]
fn a_deleted_guest_shuts_down_by_itself_and_without_approval_nothing_happens_early() {
    let (served, server) = ServedHost::with_web();
    served.host.define_on_network("spot", "169.254.0.3", "");
    served.boot("spot");
    server.run(&["vm", "evict", "spot", "--yes"]);
    let event = served.event("spot", "Preempt", "Scheduled");
    let not_before = parse_date(event["NotBefore"].as_str().unwrap()).expect("a date").seconds() as f64;

    server.run(&["vm", "delete", "web", "--yes"]);
    served.event("web", "Terminate", "Scheduled");
    served.wait("web", "BUTTON ", &served.host.boots("web")[0]);
    wait_until_for(LONG, "the power of web is off", || {
        served.host.console("web").contains("Power down").then_some(())
    });
    assert!(served.calls("web", "destroy").is_empty(), "it has shut down by itself");

    served.wait("spot", "BUTTON ", &served.host.boots("spot")[0]);
    let pressed = served.calls("spot", "shutdown")[0];
    assert!(pressed >= not_before, "{pressed}, not before {not_before}");
    assert!(served.calls("spot", "suspend").is_empty());
    assert!(served.host.lines("spot", "APPROVED ").is_empty());
    wait_until_for(LONG, "spot is deallocated", || {
        (server.json(&["vm", "show", "spot"])["power"] == "deallocated").then_some(())
    });
}
