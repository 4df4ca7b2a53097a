//! Guests of a failed host that still run there. A guest is a process that holds the lock on its disk: a file that only one
//! of them may hold. The host fails for the server only; its guests live on until the driver fences the host.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::durable::site::Site;
use forewarn_testkit::{NEWEST, TestServer, get, wait_until};

const FLEET: &str = r#"
host = [{ name = "h1" }, { name = "h2" }]
vm = [{ name = "a", host = "h1" }, { name = "b", host = "h1" }]
"#;

/// Runs a guest, and returns once it holds its disk. A guest that finds its disk taken is a violation.
const GUEST: &str = r#"cd "$HANDS" || exit 1
machine=$1 host=$2
exec 9>>"disk-$machine"
if ! flock -n 9; then
    echo "$machine on $host" >>violations
    exit 1
fi
unset FOREWARN_RUN
setsid sleep 600 </dev/null >/dev/null 2>&1 &
echo $! >"guest-$machine-$host"
"#;

/// Starts each guest once for each action, and fences a host by killing its guests. `answer-fence_host` is its response
/// instead.
const DRIVER: &str = r#"order=$(cat)
case $order in *'}') ;; *) exit 1 ;; esac
cd "$HANDS" || exit 1
member() {
    case $order in *"\"$1\":\""*) rest=${order#*\"$1\":\"}; echo "${rest%%\"*}" ;; esac
}
action=$(member action) verb=$(member verb) machine=$(member machine) host=$(member host) to=$(member to)
echo "$verb $action $(member cause)" >>orders
case $verb in
fence_host)
    if [ -e answer-fence_host ]; then cat answer-fence_host; exit; fi
    for guest in guest-*-"$host"; do
        [ -e "$guest" ] || continue
        kill -9 "$(cat "$guest")"
        name=${guest#guest-}
        flock "disk-${name%-"$host"}" true
        rm "$guest"
    done
    echo "fenced $host" >>effects
    ;;
reboot)
    if mkdir "done-$action" 2>/dev/null; then
        echo "start $machine on $to" >>effects
        ./guest "$machine" "$to" || { echo '{"result":"failed","message":"the disk is taken"}'; exit; }
    fi
    ;;
esac
echo '{"result":"done"}'
"#;

const UNKNOWN: &str = r#"{"result":"unknown","message":"no contact to the power switch"}"#;
const FAILED: &str = r#"{"result":"failed","message":"no power switch"}"#;

/// A server with a driver, and two guests on h1.
struct Fleet {
    site: Site,
}

/// No guest outlives its test.
impl Drop for Fleet {
    fn drop(&mut self) {
        self.cut_power("h1");
        self.cut_power("h2");
    }
}

impl Fleet {
    fn new() -> Self {
        let site = Site::with_fleet(FLEET, "a");
        site.bring_program(DRIVER);
        site.script("guest", GUEST);
        let fleet = Self { site };
        for machine in ["a", "b"] {
            let mut guest = Command::new(fleet.site.file("guest"));
            guest.args([machine, "h1"]).env("HANDS", fleet.site.root()).stdin(Stdio::null());
            assert!(guest.status().unwrap().success());
        }
        fleet
    }

    fn pid(&self, machine: &str, host: &str) -> Option<Pid> {
        let number = fs::read_to_string(self.site.file(&format!("guest-{machine}-{host}"))).ok()?;
        Pid::from_raw(number.trim().parse().ok()?)
    }

    fn runs(&self, machine: &str, host: &str) -> bool {
        self.pid(machine, host).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }

    /// Ends all guests of a host, and waits until they have released their disks.
    fn cut_power(&self, host: &str) {
        for machine in ["a", "b"] {
            let Some(pid) = self.pid(machine, host) else { continue };
            kill_process(pid, Signal::KILL).ok();
            drop(fs::remove_file(self.site.file(&format!("guest-{machine}-{host}"))));
            let disk = self.site.file(&format!("disk-{machine}"));
            drop(Command::new("flock").args(["-w", "5"]).arg(disk).arg("true").status());
        }
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.site.file(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The names of the actions of the attempts to fence the host so far.
    fn attempts(&self) -> Vec<String> {
        let orders = self.lines("orders");
        orders.into_iter().filter(|order| order.starts_with("fence_host")).collect()
    }

    fn wait_for_attempts(&self, count: usize) {
        wait_until("the fence is ordered", || (self.attempts().len() >= count).then_some(()));
    }

    fn answer(&self, response: &str) {
        fs::write(self.site.file("answer-fence_host"), response).unwrap();
    }

    /// Both guests still run on h1, and nothing has been started.
    fn check_untouched(&self, server: &TestServer) {
        for machine in ["a", "b"] {
            assert!(self.runs(machine, "h1"));
            assert_eq!(server.json(&["vm", "show", machine])["host"], "h1");
        }
        assert_eq!(self.lines("effects"), [""; 0], "no guest is started");
        assert_eq!(server.json(&["host", "show", "h1"])["fence"], "awaited");
    }

    /// Both guests run on h2, and never ran twice.
    fn check_moved(&self, server: &TestServer) {
        for machine in ["a", "b"] {
            wait_until("the guest runs elsewhere", || {
                (server.json(&["vm", "show", machine])["host"] == "h2").then_some(())
            });
            assert!(self.runs(machine, "h2") && !self.runs(machine, "h1"));
        }
        assert_eq!(self.lines("violations"), [""; 0], "two guests on one disk");
        assert_eq!(server.json(&["host", "show", "h1"])["fence"], "confirmed");
    }
}

/// promise: E4
#[test]
fn a_guest_starts_elsewhere_strictly_after_the_fence_also_over_a_kill_of_the_server() {
    let fleet = Fleet::new();
    fleet.answer(UNKNOWN);
    let server = fleet.site.start();
    // Enrols a.
    assert_eq!(server.say(&get(NEWEST)).status(), 200);
    server.run(&["host", "fail", "h1", "--yes"]);
    fleet.wait_for_attempts(3);
    fleet.check_untouched(&server);
    let listed = server.run(&["host", "ls", "--output", "wide"]);
    assert!(listed.contains("failed, not fenced") && listed.contains("fence of h1"), "{listed}");
    let event = server.json(&["event", "ls"])["items"][0]["id"].as_str().expect("an event of a").to_owned();
    let explained = server.run(&["event", "explain", &event]);
    let reason = "aits for the driver to fence host h1";
    assert!(
        explained.contains(reason) && explained.contains("no contact to the power switch"),
        "{explained}"
    );
    let explained = server.run(&["vm", "explain", "b"]);
    assert!(explained.contains(reason), "without an event, too: {explained}");
    let forced = server.try_run(&["event", "start", &event]);
    assert!(String::from_utf8(forced.stderr).unwrap().contains("not fenced"));
    let held = server.run(&["audit", "ls", "--kind", "held"]);
    assert!(held.contains("its failed host is not fenced"), "{held}");
    server.kill();
    let before = fleet.attempts().len();
    let server = fleet.site.start();
    fleet.wait_for_attempts(before + 1);
    fleet.check_untouched(&server);
    let mut actions = fleet.attempts();
    actions.dedup();
    assert_eq!(actions.len(), 1, "one order, however often it is sent");
    assert!(actions[0].ends_with(" failed"), "the cause: {actions:?}");
    let refused = server.try_run(&["host", "recover", "h1"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("being fenced"));

    fs::remove_file(fleet.site.file("answer-fence_host")).unwrap();
    server.run(&["host", "retry", "h1"]);
    fleet.check_moved(&server);
    let mut effects = fleet.lines("effects");
    assert_eq!(effects.remove(0), "fenced h1");
    effects.sort_unstable();
    assert_eq!(effects, ["start a on h2", "start b on h2"], "each once");
}

/// promise: E4
#[test]
fn after_a_fence_that_failed_the_word_of_an_operator_counts() {
    let fleet = Fleet::new();
    fleet.answer(FAILED);
    let server = fleet.site.start();
    server.run(&["host", "fail", "h1", "--yes"]);
    let needs_attention = |server: &TestServer| {
        (server.json(&["host", "show", "h1"])["attention"] == "no power switch").then_some(())
    };
    wait_until("the fence has failed", || needs_attention(&server));
    fleet.check_untouched(&server);
    server.run(&["host", "retry", "h1"]);
    fleet.wait_for_attempts(2);
    let actions = fleet.attempts();
    assert_ne!(actions[0], actions[1], "another order");
    server.kill();
    let server = fleet.site.start();
    wait_until("it has failed again", || {
        server.json(&["host", "show", "h1"])["work"].is_null().then_some(())
    });
    let attempts = fleet.attempts().len();
    fleet.check_untouched(&server);
    let done = server.try_run(&["host", "done", "h1"]);
    assert!(!done.status.success(), "only the word about the disks counts");
    fleet.check_untouched(&server);

    fleet.cut_power("h1");
    server.run(&["host", "fail", "h1", "--fenced", "--yes"]);
    fleet.check_moved(&server);
    assert_eq!(fleet.attempts().len(), attempts, "it is not fenced again");
}

/// promise: E4
#[test]
fn the_word_of_an_operator_ends_the_attempts_to_fence_a_host() {
    let fleet = Fleet::new();
    fleet.answer(UNKNOWN);
    let server = fleet.site.start();
    server.run(&["host", "fail", "h1", "--yes"]);
    fleet.wait_for_attempts(2);
    fleet.cut_power("h1");
    server.run(&["host", "fail", "h1", "--fenced", "--yes"]);
    fleet.check_moved(&server);
    server.kill();
    let attempts = fleet.attempts().len();
    let server = fleet.site.start();
    server.run(&["host", "recover", "h1"]);
    assert_eq!(fleet.attempts().len(), attempts, "a host that has recovered is not fenced");
}

/// Shows that the other tests would see two guests on one disk.
#[test]
fn without_fencing_two_guests_want_one_disk() {
    let fleet = Fleet::new();
    let settings =
        fleet.site.read("config.toml").replace("kind = 'program',", "kind = 'program', fencing = 'off',");
    fleet.site.write("config.toml", &settings);
    let server = fleet.site.start();
    server.run(&["host", "fail", "h1", "--yes"]);
    wait_until("both disks are taken", || (fleet.lines("violations").len() == 2).then_some(()));
    assert_eq!(fleet.attempts().len(), 0);
    assert!(fleet.runs("a", "h1"), "the old guest runs on");
}
