//! Units, against a stand-in for `systemctl`: a script with a file for each unit that is active, masked, or exists.
//!
//! It takes the options and prints the properties of the real one, fails for missing units, and rejects the start of
//! masked ones. It has no dependencies and no job queue.

use std::path::Path;

use forewarn_agent_core::{HookOutcome, Phase};
use serde_json::json;
use tokio::sync::watch;

use super::*;
use crate::hooks::fixtures::{self, job, never_stop, runtime, script, until};
use crate::hooks::{HookRuntime, Work};

const STAND_IN: &str = r#"
cd "$(dirname "$0")" || exit 9
echo "$*" >> calls
[ "$1" = --no-ask-password ] && [ "$2" = --no-pager ] || exit 9
verb=$3; shift 3
property=
case "$1" in --property=*) property=$1; shift;; esac
[ "$1" = -- ] || exit 9
shift
for unit in "$@"; do
    if [ "$verb" != show ] && [ ! -e "exists.$unit" ]; then echo "Unit $unit not loaded." >&2; exit 5; fi
    case "$verb" in
    show)
        [ -e "exists.$unit" ] && load=loaded || load=not-found
        [ -e "masked.$unit" ] && load=masked
        [ -e "active.$unit" ] && active=active || active=inactive
        [ "$property" = --property=MainPID ] && cat "pid.$unit" && continue
        printf 'LoadState=%s\nActiveState=%s\nUnitFileState=%s\n\n' "$load" "$active" "$load";;
    stop)
        while [ -e "hangs.$unit" ]; do touch "hanging.$unit"; sleep 0.02; done
        rm -f "active.$unit";;
    start)
        if [ -e "masked.$unit" ]; then echo "Failed to start $unit: Unit $unit is masked." >&2; exit 1; fi
        touch "active.$unit";;
    mask) touch "masked.$unit";;
    unmask) rm -f "masked.$unit";;
    *) exit 9;;
    esac
done
"#;

/// A machine with three services, two of them active.
struct SystemdFixture {
    runtime: HookRuntime,
    folder: tempfile::TempDir,
    systemctl: PathBuf,
}

impl SystemdFixture {
    fn new() -> Self {
        let (runtime, folder) = runtime();
        let systemctl = PathBuf::from(script(folder.path(), "systemctl", STAND_IN));
        let fixture = Self { runtime, folder, systemctl };
        for name in ["web", "batch", "old", "standby"] {
            fixture.set(&format!("exists.{name}.service"));
        }
        fixture.set("active.web.service");
        fixture.set("active.batch.service");
        fixture.set("masked.old.service");
        fixture
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn set(&self, file: &str) {
        std::fs::write(self.path().join(file), "").unwrap();
    }

    fn clear(&self, file: &str) {
        std::fs::remove_file(self.path().join(file)).unwrap();
    }

    fn work(&self, settings: &str) -> Work {
        let mut work: SystemdWork = toml::from_str(settings).unwrap();
        work.systemctl.clone_from(&self.systemctl);
        assert_eq!(work.errors(), [""; 0]);
        Work::Systemd(work)
    }

    fn state(&self) -> String {
        let names = std::fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> =
            names.filter(|name| name.starts_with("active.") || name.starts_with("masked.")).collect();
        names.sort();
        names.join(" ").replace(".service", "")
    }

    async fn perform(&self, work: &Work) -> HookOutcome {
        work.perform(&job("units", Phase::Scheduled), &self.runtime, never_stop()).await
    }

    async fn undo(&self, work: &Work, memory: Option<Value>) -> HookOutcome {
        let mut job = job("units", Phase::Undo);
        job.run.memory = memory;
        work.undo(&job, &self.runtime, never_stop()).await
    }
}

/// promise: A2
#[tokio::test(flavor = "current_thread")]
async fn units_are_stopped_and_only_those_that_ran_are_started_again() {
    let fixture = SystemdFixture::new();
    let work = fixture.work("stop = ['web', 'standby.service', 'old']\nmask = true");
    let before = fixture.state();
    let hook_outcome = fixture.perform(&work).await;
    assert_eq!(hook_outcome.result, Ok(()));
    assert_eq!(fixture.state(), "active.batch masked.old masked.standby masked.web");
    let memory = hook_outcome.memory.unwrap();
    assert_eq!(memory["units"]["web.service"], json!({ "active": true, "masked": false }));
    assert_eq!(fixture.undo(&work, Some(memory)).await.result, Ok(()));
    assert_eq!(fixture.state(), before, "everything is restored, including the earlier mask");
}

#[tokio::test(flavor = "current_thread")]
async fn a_second_event_does_not_forget_what_ran_before_the_first() {
    let fixture = SystemdFixture::new();
    let work = fixture.work("stop = ['web', 'batch']\nstart = ['standby']");
    let first = fixture.perform(&work).await.memory;
    assert_eq!(fixture.state(), "active.standby masked.old");
    let mut again = job("units", Phase::Scheduled);
    again.run.memory.clone_from(&first);
    let second = work.perform(&again, &fixture.runtime, never_stop()).await;
    assert_eq!((second.result, &second.memory), (Ok(()), &first));
    assert_eq!(fixture.undo(&work, second.memory).await.result, Ok(()));
    assert_eq!(fixture.state(), "active.batch active.web masked.old");
}

#[tokio::test(flavor = "current_thread")]
async fn an_agent_that_dies_in_the_middle_knows_in_its_next_life_what_ran() {
    let fixture = SystemdFixture::new();
    let work = fixture.work("stop = ['web', 'batch']");
    fixture.set("hangs.batch.service");
    let this = job("units", Phase::Scheduled);
    let hanging = || fixture.path().join("hanging.batch.service").exists().then_some(());
    tokio::select! {
        hook_outcome = work.perform(&this, &fixture.runtime, never_stop()) => panic!("it hangs: {hook_outcome:?}"),
        () = until("it hangs", hanging) => {}
    }
    fixture.clear("hangs.batch.service");
    assert_eq!(fixture.state(), "active.batch masked.old", "half done, and not reported");
    assert_eq!(fixture.perform(&work).await.result, Ok(()));
    assert_eq!(fixture.undo(&work, None).await.result, Ok(()));
    assert_eq!(fixture.state(), "active.batch active.web masked.old");
    // After the undo the recorded state is deleted, and the next run records it again.
    fixture.clear("active.web.service");
    fixture.perform(&work).await.result.unwrap();
    fixture.undo(&work, None).await.result.unwrap();
    assert_eq!(fixture.state(), "active.batch masked.old");
}

#[tokio::test(flavor = "current_thread")]
async fn a_stopped_hook_keeps_its_undo_state() {
    let fixture = SystemdFixture::new();
    let work = fixture.work("stop = ['web']");
    fixture.set("hangs.web.service");
    let (sender, stop) = watch::channel(false);
    let hanging = || fixture.path().join("hanging.web.service").exists().then_some(());
    let telling = async {
        until("it hangs", hanging).await;
        sender.send(true).unwrap();
    };
    let this = job("units", Phase::Scheduled);
    let (hook_outcome, ()) = tokio::join!(work.perform(&this, &fixture.runtime, stop), telling);
    assert_eq!(hook_outcome.result, Err("stopped on request".to_owned()));
    assert_eq!(hook_outcome.memory.unwrap()["units"]["web.service"]["active"], json!(true));
}

#[tokio::test(flavor = "current_thread")]
async fn errors_of_systemctl_are_reported() {
    let fixture = SystemdFixture::new();
    let missing = fixture.perform(&fixture.work("stop = ['web', 'nothing']")).await;
    assert!(missing.result.unwrap_err().starts_with("unit nothing.service not found"));
    assert_eq!(fixture.state(), "active.batch active.web masked.old", "nothing was done");
    let masked = fixture.perform(&fixture.work("start = ['old']")).await;
    let expected = "systemctl start old.service: exited with status 1: Failed to start old.service: Unit old.service is masked.";
    assert_eq!(masked.result, Err(expected.to_owned()));
    let mut absent = fixture.work("stop = ['web']");
    if let Work::Systemd(work) = &mut absent {
        work.systemctl = PathBuf::from("/nonexistent/systemctl");
    }
    assert!(fixture.perform(&absent).await.result.unwrap_err().contains("does not exist"));
}

#[tokio::test(flavor = "current_thread")]
async fn nothing_remembered_is_nothing_to_undo() {
    let fixture = SystemdFixture::new();
    let work = fixture.work("stop = ['standby']\nmask = true");
    fixture.set("masked.standby.service");
    for memory in [None, Some(json!(3)), Some(json!({ "units": { "x": 1 } })), Some(json!({}))] {
        assert_eq!(fixture.undo(&work, memory).await.result, Ok(()));
    }
    assert!(fixture.state().contains("masked.standby"));
    assert!(!fixture.path().join("calls").exists());
}

#[test]
fn settings_are_checked() {
    let check = |text: &str| fixtures::all_or_none(&toml::from_str::<SystemdWork>(text).unwrap().errors());
    assert_eq!(check("stop = ['a@1.service']"), Ok(()));
    for (text, expected) in [
        ("", "names no unit"),
        ("stop = ['--now']", "invalid unit name"),
        ("stop = ['nginx*']", "without patterns"),
        ("stop = ['a b']", "invalid unit name"),
        ("stop = ['']", "invalid unit name"),
        ("stop = ['a']\nstart = ['a']", "two hooks"),
        ("start = ['a']\nmask = true", "`mask` needs units in `stop`"),
        ("stop = ['a']\nsystemctl = 'systemctl'", "not an absolute path"),
    ] {
        let error = check(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(toml::from_str::<SystemdWork>("stop = ['a']\nrestart = []").is_err());
    assert_eq!(
        full_names(&["a".to_owned(), "b.timer".to_owned(), "c.d".to_owned()]),
        ["a.service", "b.timer", "c.d.service"]
    );
}
