//! A server whose driver acts on real machines: what is forgotten or moved is not touched, and destruction is confirmed.

use std::process::{Child, Command, Stdio};

use crate::cli::support::alone;
use forewarn_testkit::{CommandResult, ServeDir, wait_until};

const FLEET: &str = "\
host = [{ name = 'h1' }, { name = 'h2' }, { name = 'h3' }]
vm = [
    { name = 'solo', host = 'h1' },
    { name = 'other', host = 'h1' },
    { name = 'cheap', host = 'h2', spot = 'delete' },
    { name = 'witness', host = 'h3' },
]
scale_set = [{ name = 'web', instance = [{ host = 'h2' }, { host = 'h2' }] }]
";

/// A program that notes what it is ordered, and does it at once.
const DRIVER: &str = "cat >>\"${0%/*}/orders\"\necho >>\"${0%/*}/orders\"\necho '{\"result\":\"done\"}'";

const CONFIG: &str = "in_memory = true\nfleet = 'DIR/fleet.toml'\napi.socket = 'DIR/api.sock'\n\
    [driver]\nkind = 'program'\nprogram = 'DIR/driver'\n\
    [[metadata.listen]]\nsocket = 'DIR/witness.sock'\nmachine = 'witness'\n";

/// `forewarn serve` with a driver that is a program.
struct Site {
    files: ServeDir,
    server: Child,
}

impl Site {
    fn start() -> Self {
        let files = ServeDir::new(crate::program(), FLEET);
        files.script("driver", DRIVER);
        let server = files.serve(CONFIG).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let site = Self { files, server };
        wait_until("the server answers", || (site.run("vm ls").code == Some(0)).then_some(()));
        site
    }

    fn api(&self) -> String {
        format!("unix:{}", self.files.path("api.sock"))
    }

    /// Runs a command whose standard input is no terminal.
    fn run(&self, words: &str) -> CommandResult {
        alone(&format!("--api {} {words}", self.api()))
    }

    fn out(&self, words: &str) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        ran.out
    }

    /// Runs a command at a terminal, where the operator types that; says whether it succeeded.
    fn type_in(&self, words: &str, answer: &str) -> bool {
        let program = crate::program().into_string().unwrap();
        let line = format!("{program} --api {} {words}", self.api());
        let mut terminal = Command::new("sh");
        terminal.args(["-c", "printf '%s\\n' \"$2\" | script -qec \"$1\" /dev/null", "sh", &line, answer]);
        terminal.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success()
    }

    fn host_of(&self, machine: &str) -> String {
        let shown: serde_json::Value =
            serde_json::from_str(&self.out(&format!("vm show {machine} --output json"))).unwrap();
        shown["host"].as_str().unwrap().to_owned()
    }

    fn file(&self, text: &str) -> String {
        self.files.write("wanted.toml", text)
    }

    /// What the driver was ordered before this, as verb and machine. The restart of the witness is an order that comes last.
    fn orders(&self) -> Vec<String> {
        self.out("vm restart witness --wait");
        let text = self.files.read("orders");
        let order = |line: &str| {
            let order: serde_json::Value = serde_json::from_str(line).unwrap();
            format!("{} {}", order["verb"].as_str().unwrap(), order["machine"].as_str().unwrap())
        };
        let orders = text.lines().map(order);
        orders.filter(|order| !order.ends_with(" witness")).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

/// promise: E6
#[test]
fn a_forgotten_machine_is_not_touched() {
    let site = Site::start();
    assert_eq!(site.out("vm forget solo"), "solo is no longer managed.\n");
    assert_eq!(site.run("vm show solo").code, Some(1));
    assert_eq!(site.out("vm forget web_1"), "web_1 is no longer managed.\n");
    let in_use = site.run("host forget h1");
    assert_eq!(in_use.code, Some(1));
    assert!(
        in_use.err.starts_with("forewarn: the host still has machines: h1: other/other\n"),
        "{}",
        in_use.err
    );
    site.out("vm forget other");
    site.out("host forget h1");
    assert_eq!(site.orders(), [""; 0]);
    let trail = site.out("audit ls --machine solo/solo");
    assert!(trail.contains("machine solo is no longer managed; the machine itself is unchanged"), "{trail}");
    assert!(site.out("vm explain solo/solo").contains("The machine is no longer managed"));
}

/// promise: X2
#[test]
fn what_destroys_machines_is_confirmed_where_the_driver_acts_on_real_machines() {
    let site = Site::start();
    let nothing = site.file("");
    let prune = format!("fleet apply {nothing} --prune");
    for words in [
        "vm delete solo other",
        "vm evict cheap",
        "vm reimage solo",
        "scaleset scale web 1",
        "scaleset delete-instances web 0",
        "host fail h1",
        prune.as_str(),
    ] {
        let ran = site.run(words);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{words}: {}", ran.err);
        assert!(ran.err.starts_with("forewarn: confirmation is required: "), "{words}: {}", ran.err);
        assert!(ran.err.contains("add --yes"), "{words}: {}", ran.err);
    }
    for harmless in ["scaleset scale web 3", "vm stop other --wait"] {
        site.out(harmless);
    }
    site.out(&format!("{prune} --dry-run"));
    assert_eq!(site.orders(), ["stop other"]);
    assert!(!site.type_in("vm delete solo", "n"));
    assert!(!site.type_in("vm delete solo", ""));
    assert_eq!(site.orders(), ["stop other"]);
    assert!(site.type_in("vm delete solo --wait", "y"));
    site.out("scaleset scale web 2 --yes --wait");
    let orders = site.orders();
    assert_eq!(orders[..2], ["stop other", "delete solo"]);
    assert!(orders.len() == 3 && orders[2].starts_with("delete web_"), "{orders:?}");
}

/// promise: C4
#[test]
fn a_fleet_file_moves_and_forgets_only_when_that_is_asked_for() {
    let site = Site::start();
    let wanted = site.file(&FLEET.replace("'solo', host = 'h1'", "'solo', host = 'h2'"));
    for more in ["", " --dry-run", " --output json"] {
        let ran = site.run(&format!("fleet apply {wanted}{more}"));
        assert_eq!(ran.code, Some(1), "{more}: {}", ran.err);
        assert!(ran.err.contains("1 of 1 differences not applied: "), "{more}: {}", ran.err);
        assert!(ran.err.contains("\n  hint: ") && ran.err.contains("--moves"), "{more}: {}", ran.err);
        assert!(ran.out.contains("~ solo: host h1 -> h2"), "{more}: {}", ran.out);
    }
    assert_eq!(site.host_of("solo"), "h1");
    assert_eq!(site.out(&format!("fleet apply {wanted} --moves")), "~ solo: host h1 -> h2\n");
    assert_eq!(site.host_of("solo"), "h2");
    assert_eq!(site.out(&format!("fleet apply {wanted} --moves")), "The fleet already matches the file.\n");
    let less = site.file("host = [{ name = 'h3' }]\nvm = [{ name = 'witness', host = 'h3' }]\n");
    let forgotten = site.out(&format!("fleet apply {less} --forget"));
    for text in ["- vm solo, forgotten\n", "- instance web_1, forgotten\n", "- host h1"] {
        assert!(forgotten.contains(text), "{forgotten}");
    }
    assert_eq!(site.out("vm ls").lines().count(), 2, "the head of the table, and the witness");
    assert_eq!(site.out("host ls").lines().count(), 2);
    assert_eq!(site.orders(), [""; 0]);
}

/// promise: E6
#[test]
fn a_move_by_other_means_is_recorded_and_nothing_is_ordered() {
    let site = Site::start();
    assert_eq!(
        site.out("vm move solo other --host h2"),
        "solo is recorded on h2.\nother is recorded on h2.\n"
    );
    assert_eq!((site.host_of("solo").as_str(), site.host_of("other").as_str()), ("h2", "h2"));
    assert_eq!(site.out("vm move solo --host h2"), "solo is already recorded on h2.\n");
    site.out("vm move solo --host h1 --force");
    assert_eq!(site.host_of("solo"), "h1");
    let unknown = site.run("vm move solo --host h9");
    assert!(unknown.code == Some(1) && unknown.err.contains("no such host: h9"), "{}", unknown.err);
    let trail = site.out("audit ls --machine solo/solo");
    assert!(trail.contains("machine solo now runs on h1: it was moved outside Forewarn"), "{trail}");
    assert_eq!(site.orders(), [""; 0]);
}
