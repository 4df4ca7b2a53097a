//! The conformance suite, judged itself: the server passes every check, and each check notices its fault.

mod faults;
mod proxy;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::thread;

use forewarn_testkit::{TestServer, clean_command};
use serde_json::Value;

use crate::program;
use faults::Broken;

/// The machine as which the endpoint is judged.
const MACHINE: &str = "frozen";

fn server() -> TestServer {
    let fleet = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/conformance/fleet.toml");
    TestServer::start_with(program(), &["--fleet", fleet, "--default-vm", MACHINE])
}

/// The report about the endpoint at an address, with the exit code.
fn judge(server: &TestServer, at: SocketAddr, more: &[&str]) -> (Value, Option<i32>) {
    let operator = format!("{} --api {}", program().to_string_lossy(), server.api_url());
    let cause = |kind: &str, words: &str| format!("--event={kind}={operator} {words}");
    let mut command = clean_command(program());
    command.args(["conformance", &format!("http://{at}"), "--watch", "1s", "--patience", "15s"]);
    if !more.contains(&"--read-only") {
        command.args([
            cause("Reboot", "vm restart restarted"),
            cause("Freeze", "host update h0"),
            cause("Redeploy", "vm redeploy moved"),
            cause("Preempt", "vm evict evicted"),
            cause("Terminate", "vm delete deleted --yes"),
            format!("--advance={operator} clock advance 20m"),
        ]);
    }
    let output = command.args(more).args(["--output", "json"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    (serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed}{said}")), output.status.code())
}

/// The checks with that outcome.
fn with_outcome(report: &Value, wanted: &str) -> BTreeSet<String> {
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["outcome"] == wanted);
    checks.map(|check| check["check"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn our_server_passes_every_check() {
    let server = server();
    let (report, code) = judge(&server, server.metadata(), &[]);
    assert_eq!(with_outcome(&report, "failed"), BTreeSet::new(), "{report:#}");
    assert_eq!(with_outcome(&report, "not run"), BTreeSet::new(), "{report:#}");
    assert_eq!((report["percent"].as_u64(), code), (Some(100), Some(0)));
}

#[test]
fn a_machine_below_a_path_is_judged_without_the_paths_beside_it() {
    let server = server();
    let (report, code) = judge(&server, server.metadata(), &["--as", MACHINE, "--read-only"]);
    assert_eq!((with_outcome(&report, "failed"), code), (BTreeSet::new(), Some(0)), "{report:#}");
    let not_run = with_outcome(&report, "not run");
    assert!(not_run.contains("path-outside") && not_run.contains("metadata-header-first"), "{not_run:?}");
}

#[test]
fn a_read_only_run_changes_nothing_and_counts_only_what_ran() {
    let server = server();
    let (report, code) = judge(&server, server.metadata(), &["--read-only"]);
    assert_eq!(with_outcome(&report, "failed"), BTreeSet::new(), "{report:#}");
    let not_run = with_outcome(&report, "not run");
    assert!(not_run.contains("approval-malformed") && not_run.contains("event-id"), "{not_run:?}");
    assert_eq!((report["percent"].as_u64(), code), (Some(100), Some(0)));
    assert_eq!(server.document(MACHINE)["Events"], serde_json::json!([]));
}

/// Breaks one promise after the other. All run at the same time, because each of them waits most of the time.
fn each_is_noticed(all: Vec<Broken>) -> usize {
    let count = all.len();
    thread::scope(|scope| {
        for Broken { check, also, fault } in all {
            scope.spawn(move || {
                let server = server();
                let at = proxy::start(server.metadata(), fault);
                let (report, _) = judge(&server, at, &[]);
                let wanted = [check].iter().chain(also).map(|check| (*check).to_owned()).collect();
                assert_eq!(with_outcome(&report, "failed"), wanted, "{check}: {report:#}");
            });
        }
    });
    count
}

#[test]
fn each_check_of_requests_notices_its_fault() {
    assert_eq!(each_is_noticed(faults::of_requests()), 25);
}

#[test]
fn each_check_of_documents_notices_its_fault() {
    assert_eq!(each_is_noticed(faults::of_documents()), 13);
}

#[test]
fn each_check_of_events_notices_its_fault() {
    assert_eq!(each_is_noticed(faults::of_members()) + each_is_noticed(faults::of_events()), 16);
}

#[test]
fn each_check_of_approvals_notices_its_fault() {
    assert_eq!(each_is_noticed(faults::of_approvals()), 16);
}

/// Operators start events by force, which no client may see.
#[test]
fn a_start_before_its_time_is_noticed() {
    let server = server();
    let started = std::sync::atomic::AtomicBool::new(false);
    let operator = (program(), server.api_url().to_owned());
    let at = proxy::start(
        server.metadata(),
        std::sync::Arc::new(move |asked, server| {
            let answered = server(asked);
            let document: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
            let events = document["Events"].as_array().cloned().unwrap_or_default();
            let deleted =
                events.iter().find(|event| event["EventType"] == "Redeploy").filter(|_| events.len() == 5);
            if let Some(event) = deleted
                && !started.swap(true, std::sync::atomic::Ordering::Relaxed)
            {
                let id = event["EventId"].as_str().unwrap();
                clean_command(&operator.0)
                    .args(["--api", &operator.1, "event", "start", id])
                    .output()
                    .unwrap();
            }
            answered
        }),
    );
    let (report, code) = judge(&server, at, &[]);
    let failed: BTreeSet<_> = ["no-early-start".to_owned()].into();
    assert_eq!((with_outcome(&report, "failed"), code), (failed, Some(1)), "{report:#}");
}

/// The imitation of a mock, and its port.
struct Mock(Child, u16);

impl Mock {
    fn start(more: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/conformance/mock.py");
        let mut command = clean_command("python3");
        let mut child = command.arg(script).args(more).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line.trim().parse().unwrap())
    }

    fn judge(&self) -> Value {
        let base = format!("http://127.0.0.1:{}", self.1);
        let cause = |kind| format!("--event={kind}=curl -fsS '{base}/announce?type={kind}&vm={kind}-vm'");
        let causes = ["Reboot", "Freeze", "Redeploy", "Preempt", "Terminate"].map(cause);
        let mut command = clean_command(program());
        command.args(["conformance", &base, "--watch", "3s", "--patience", "15s", "--output", "json"]);
        command.args(causes).arg(format!("--advance=curl -fsS {base}/end"));
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_mock_loses_the_points_of_what_it_ignores() {
    let lost: BTreeSet<_> = [
        // It ignores the header, and the version.
        "metadata-header-required",
        "metadata-header-first",
        "approval-needs-header",
        "version-required",
        "version-unknown",
        "parameter-twice",
        "event-fields-of-edition",
        "resources-underscore",
        // Another id after the start; ISO times; one start request; no Preempt, no Terminate.
        "event-id-stable",
        "incarnation-grows",
        "not-before-format",
        "approval-several",
        "preempt-announced",
        "terminate-announced",
        // It judges neither the caller nor the ids.
        "forwarded-refused",
        "approval-bad-id",
        // Without points.
        "proxy-headers-refused",
        "host-name-refused",
        "etag-matched",
        "approval-unknown-event",
        "approval-all-or-nothing",
    ]
    .map(str::to_owned)
    .into();
    let report = Mock::start(&[]).judge();
    assert_eq!(with_outcome(&report, "failed"), lost, "{report:#}");
    let fast = Mock::start(&["--fast"]).judge();
    let failed = with_outcome(&fast, "failed");
    assert!(failed.contains("no-early-start"), "{fast:#}");
    assert!(with_outcome(&fast, "not run").contains("approval-several"), "{fast:#}");
}

#[test]
fn every_check_is_documented_with_its_promise_and_its_reason() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/conformance.md");
    let page = std::fs::read_to_string(page).unwrap();
    for check in forewarn_conformance::CHECKS {
        let (id, severity) = (check.id, check.severity.as_str());
        let row = page.lines().find(|line| line.starts_with(&format!("| `{id}` | {severity} |")));
        let row = row.unwrap_or_else(|| panic!("{id}"));
        assert!(row.ends_with(&format!("| {} | {} |", check.title, check.reason)), "{row}");
    }
}

/// Every check is in one of the lists above.
#[test]
fn every_check_has_a_fault() {
    let all = [
        faults::of_requests(),
        faults::of_documents(),
        faults::of_members(),
        faults::of_events(),
        faults::of_approvals(),
    ];
    let mut broken: Vec<_> =
        all.iter().flatten().map(|broken| broken.check).chain(["no-early-start"]).collect();
    let mut checks: Vec<_> = forewarn_conformance::CHECKS.iter().map(|check| check.id).collect();
    broken.sort_unstable();
    checks.sort_unstable();
    assert_eq!(broken, checks);
}
