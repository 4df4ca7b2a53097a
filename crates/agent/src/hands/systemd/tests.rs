//! Units, against a stand-in for `systemctl`: a script with a file for each unit that runs, is masked, or exists.
//!
//! It takes the options and prints the properties that the real one does, fails as it does for what does not exist, and refuses
//! to start what is masked. There is no systemd behind it: no dependencies, no jobs that queue.

use std::path::Path;

use forewarn_agent_core::{Ending, Phase};
use serde_json::json;
use tokio::sync::watch;

use super::*;
use crate::hands::samples::{go_on, hands, job, script, until};
use crate::hands::{Hands, Work};

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

/// A machine with three services, of which two run.
struct Machine {
    hands: Hands,
    folder: tempfile::TempDir,
    systemctl: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let (hands, folder) = hands();
        let systemctl = PathBuf::from(script(folder.path(), "systemctl", STAND_IN));
        let machine = Self { hands, folder, systemctl };
        for name in ["web", "batch", "old", "standby"] {
            machine.set(&format!("exists.{name}.service"));
        }
        machine.set("active.web.service");
        machine.set("active.batch.service");
        machine.set("masked.old.service");
        machine
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
        assert_eq!(work.check(), Ok(()));
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

    async fn perform(&self, work: &Work) -> Ending {
        work.perform(&job("units", Phase::Scheduled), &self.hands, go_on()).await
    }

    async fn undo(&self, work: &Work, memory: Option<Value>) -> Ending {
        let mut job = job("units", Phase::Undo);
        job.run.memory = memory;
        work.undo(&job, &self.hands, go_on()).await
    }
}

#[tokio::test(flavor = "current_thread")]
async fn units_are_stopped_and_only_those_that_ran_are_started_again() {
    let machine = Machine::new();
    let work = machine.work("stop = ['web', 'standby.service', 'old']\nmask = true");
    let before = machine.state();
    let ending = machine.perform(&work).await;
    assert_eq!(ending.result, Ok(()));
    assert_eq!(machine.state(), "active.batch masked.old masked.standby masked.web");
    let memory = ending.memory.unwrap();
    assert_eq!(memory["units"]["web.service"], json!({ "active": true, "masked": false }));
    assert_eq!(machine.undo(&work, Some(memory)).await.result, Ok(()));
    assert_eq!(machine.state(), before, "all as it was, and the mask of somebody else with it");
}

#[tokio::test(flavor = "current_thread")]
async fn a_second_event_does_not_forget_what_ran_before_the_first() {
    let machine = Machine::new();
    let work = machine.work("stop = ['web', 'batch']\nstart = ['standby']");
    let first = machine.perform(&work).await.memory;
    assert_eq!(machine.state(), "active.standby masked.old");
    let mut again = job("units", Phase::Scheduled);
    again.run.memory.clone_from(&first);
    let second = work.perform(&again, &machine.hands, go_on()).await;
    assert_eq!((second.result, &second.memory), (Ok(()), &first));
    assert_eq!(machine.undo(&work, second.memory).await.result, Ok(()));
    assert_eq!(machine.state(), "active.batch active.web masked.old");
}

#[tokio::test(flavor = "current_thread")]
async fn an_agent_that_dies_in_the_middle_knows_in_its_next_life_what_ran() {
    let machine = Machine::new();
    let work = machine.work("stop = ['web', 'batch']");
    machine.set("hangs.batch.service");
    let this = job("units", Phase::Scheduled);
    let hanging = || machine.path().join("hanging.batch.service").exists().then_some(());
    tokio::select! {
        ending = work.perform(&this, &machine.hands, go_on()) => panic!("it hangs: {ending:?}"),
        () = until("it hangs", hanging) => {}
    }
    machine.clear("hangs.batch.service");
    assert_eq!(machine.state(), "active.batch masked.old", "half of it is done, and nobody was told");
    assert_eq!(machine.perform(&work).await.result, Ok(()));
    assert_eq!(machine.undo(&work, None).await.result, Ok(()));
    assert_eq!(machine.state(), "active.batch active.web masked.old");
    // And once it is undone, that is forgotten: what runs the next time is looked at anew.
    machine.clear("active.web.service");
    machine.perform(&work).await.result.unwrap();
    machine.undo(&work, None).await.result.unwrap();
    assert_eq!(machine.state(), "active.batch masked.old");
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_told_to_stop_remembers_all_the_same() {
    let machine = Machine::new();
    let work = machine.work("stop = ['web']");
    machine.set("hangs.web.service");
    let (tell, stop) = watch::channel(false);
    let hanging = || machine.path().join("hanging.web.service").exists().then_some(());
    let telling = async {
        until("it hangs", hanging).await;
        tell.send(true).unwrap();
    };
    let this = job("units", Phase::Scheduled);
    let (ending, ()) = tokio::join!(work.perform(&this, &machine.hands, stop), telling);
    assert_eq!(ending.result, Err("it was told to stop".to_owned()));
    assert_eq!(ending.memory.unwrap()["units"]["web.service"]["active"], json!(true));
}

#[tokio::test(flavor = "current_thread")]
async fn what_systemctl_refuses_is_told_in_its_words() {
    let machine = Machine::new();
    let missing = machine.perform(&machine.work("stop = ['web', 'nothing']")).await;
    assert!(missing.result.unwrap_err().starts_with("there is no unit nothing.service"));
    assert_eq!(machine.state(), "active.batch active.web masked.old", "nothing was done");
    let masked = machine.perform(&machine.work("start = ['old']")).await;
    let told = "systemctl start old.service: it ended with status 1: Failed to start old.service: Unit old.service is masked.";
    assert_eq!(masked.result, Err(told.to_owned()));
    let mut absent = machine.work("stop = ['web']");
    if let Work::Systemd(work) = &mut absent {
        work.systemctl = PathBuf::from("/nonexistent/systemctl");
    }
    assert!(machine.perform(&absent).await.result.unwrap_err().contains("is not there"));
}

#[tokio::test(flavor = "current_thread")]
async fn nothing_remembered_is_nothing_to_undo() {
    let machine = Machine::new();
    let work = machine.work("stop = ['standby']\nmask = true");
    machine.set("masked.standby.service");
    for memory in [None, Some(json!(3)), Some(json!({ "units": { "x": 1 } })), Some(json!({}))] {
        assert_eq!(machine.undo(&work, memory).await.result, Ok(()));
    }
    assert!(machine.state().contains("masked.standby"));
    assert!(!machine.path().join("calls").exists());
}

#[test]
fn settings_are_checked() {
    let check = |text: &str| toml::from_str::<SystemdWork>(text).unwrap().check();
    assert_eq!(check("stop = ['a@1.service']"), Ok(()));
    for (text, told) in [
        ("", "names no unit"),
        ("stop = ['--now']", "not the name of a unit"),
        ("stop = ['nginx*']", "without patterns"),
        ("stop = ['a b']", "not the name"),
        ("stop = ['']", "not the name"),
        ("stop = ['a']\nstart = ['a']", "two hooks"),
        ("start = ['a']\nmask = true", "units that are stopped"),
        ("stop = ['a']\nsystemctl = 'systemctl'", "not a whole path"),
    ] {
        let problem = check(text).unwrap_err();
        assert!(problem.contains(told), "{text}: {problem}");
    }
    assert!(toml::from_str::<SystemdWork>("stop = ['a']\nrestart = []").is_err());
    assert_eq!(
        full_names(&["a".to_owned(), "b.timer".to_owned(), "c.d".to_owned()]),
        ["a.service", "b.timer", "c.d.service"]
    );
}
