//! The virsh driver, its state directory, and a virsh whose guests are files.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use forewarn_testkit::command::{clean, run_with_input, stdout_of};
use forewarn_testkit::{CommandResult, TestDir};
use serde_json::{Value, json};

const FAKE_VIRSH: &str = include_str!("fake-virsh");

/// Calls of virsh that change nothing.
const READS: [&str; 4] = ["list", "domstate", "qemu-monitor-command", "dumpxml"];

/// Attempts of one order: more than a driver is killed.
const ATTEMPTS_MAX: usize = 4;

/// The driver with two hosts, `h1` and `h2`.
pub(super) struct VirshDriver {
    pub(super) dir: TestDir,
    settings: Vec<(&'static str, String)>,
}

impl VirshDriver {
    pub(super) const PROGRAM: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/drivers/virsh/forewarn-driver-virsh");

    /// Hosts of the fake; the guest `web_0` runs on `h1`.
    pub(super) fn new() -> Self {
        let dir = TestDir::new();
        let virsh = dir.script("virsh", FAKE_VIRSH);
        for part in ["hosts/h1", "hosts/h2", "boots"] {
            fs::create_dir_all(dir.file(part)).unwrap();
        }
        let mut driver = Self { dir, settings: Vec::new() };
        driver.set("VIRSH", &virsh);
        driver.set("LOCAL_URI", "fake:///{host}");
        driver.set("REMOTE_URI", "fake:///{host}");
        driver.set("GRACE", "0.2");
        driver.set("STATE", &driver.dir.path("state"));
        driver.guest("h1", "web_0", "running");
        driver
    }

    /// The driver with the real virsh and the test hypervisor, whose state begins anew with every connection.
    pub(super) fn with_test_uri() -> Self {
        let mut driver = Self::new();
        driver.set("VIRSH", "virsh");
        driver.set("REMOTE_URI", "test:///default");
        driver
    }

    /// Sets a variable of the environment, without its prefix.
    pub(super) fn set(&mut self, name: &'static str, value: &str) {
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, value.to_owned()));
    }

    /// Puts a guest with a disk that both hosts share.
    pub(super) fn guest(&self, host: &str, name: &str, state: &str) {
        self.dir.write(&format!("hosts/{host}/{name}"), &format!("{state}\n"));
        self.define(host, name, "<disk type='network'><source name='pool/web'/><target dev='vda'/></disk>");
    }

    pub(super) fn define(&self, host: &str, name: &str, disks: &str) {
        let definition = format!("<domain><name>{name}</name><devices>{disks}</devices></domain>\n");
        self.dir.write(&format!("hosts/{host}/{name}.xml"), &definition);
    }

    /// The state of a guest, empty if the host has none of that name.
    pub(super) fn state(&self, host: &str, name: &str) -> String {
        self.dir.read(&format!("hosts/{host}/{name}")).trim().to_owned()
    }

    pub(super) fn boots(&self, name: &str) -> usize {
        self.dir.read(&format!("boots/{name}")).lines().count()
    }

    /// The calls of virsh that change something, as host and command.
    pub(super) fn acts(&self) -> Vec<String> {
        let calls = self.dir.read("calls");
        let call = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let is_act = |call: &String| !READS.iter().any(|read| call.ends_with(&format!(" {read}")));
        calls.lines().map(call).filter(is_act).collect()
    }

    pub(super) fn command(&self) -> Command {
        // Without the search for packages and for a version of Python, which takes longer than an order.
        let mut command = Command::new(interpreter());
        command.args(["-I", "-S", Self::PROGRAM]);
        clean(&mut command);
        self.configure(&mut command);
        command
    }

    /// Puts the settings into the environment of a command.
    pub(super) fn configure(&self, command: &mut Command) {
        command.env("FOREWARN_VIRSH_CONFIG", self.dir.write("driver.conf", "[driver]\n"));
        for (name, value) in &self.settings {
            command.env(format!("FOREWARN_VIRSH_{name}"), value);
        }
    }

    pub(super) fn run(&self, words: &[&str], input: &str) -> CommandResult {
        run_with_input(self.command().args(words), input)
    }

    /// The response to a request; null if there is none.
    pub(super) fn send(&self, request: &Value) -> Value {
        let ran = self.run(&[], &request.to_string());
        if ran.code == Some(0) { serde_json::from_str(&ran.out).unwrap() } else { Value::Null }
    }

    /// Sends an order again and again, as the server does, until it is answered and is not unknown.
    pub(super) fn repeat(&self, request: &Value) -> Value {
        let mut responses = (0..ATTEMPTS_MAX).map(|_| self.send(request));
        let found = responses.find(|response| !response.is_null() && response["result"] != "unknown");
        found.unwrap_or_else(|| panic!("no result: {request}"))
    }

    /// Starts the driver and leaves it running.
    pub(super) fn start(&self, request: &Value) -> Child {
        let input = self.dir.write("request.json", &request.to_string());
        let mut command = self.command();
        command.stdin(fs::File::open(input).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }
}

/// The Python that `python3` starts.
fn interpreter() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let words = ["-c", "import sys; print(sys.executable)"];
        stdout_of(Command::new("python3").args(words)).trim().to_owned()
    })
}

/// An order on `web_0` of `h1`. The number makes the name of its action.
pub(super) fn order(number: u32, verb: &str) -> Value {
    json!({
        "action": format!("{number:032x}"), "verb": verb, "tenant": "web", "machine": "web_0", "host": "h1", "boots": 1,
    })
}

/// The same with more members.
pub(super) fn order_with(number: u32, verb: &str, more: &Value) -> Value {
    let mut order = order(number, verb);
    let members = more.as_object().unwrap().clone();
    order.as_object_mut().unwrap().extend(members);
    order
}

pub(super) fn done() -> Value {
    json!({"result": "done"})
}

/// The message of a response with that result.
pub(super) fn message<'a>(response: &'a Value, result: &str) -> &'a str {
    assert_eq!(response["result"], result, "{response}");
    response["message"].as_str().unwrap()
}

/// The seconds that something takes.
pub(super) fn seconds_of(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64()
}
