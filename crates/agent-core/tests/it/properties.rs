//! What holds whatever comes: any documents, endings, peers and restarts, in any order.

use forewarn_agent_core::{Approval, ApprovalResult, Hook, Phase, Settings, Silence, Stage};
use proptest::prelude::*;

use super::support::{Event, ME, Machine, drain, hook, id, settings};

/// Something that happens to an agent.
#[derive(Clone, Debug)]
enum Step {
    See(Vec<(u8, bool, bool)>),
    End { nth: usize, well: bool },
    ApprovalResult { number: u8, taken: bool },
    Hear { number: u8, stage: Stage },
    Pass(u64),
    Retry,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let event = (1u8..4, any::<bool>(), any::<bool>());
    let stage = prop::sample::select(vec![
        Stage::Waiting,
        Stage::Preparing,
        Stage::Ready,
        Stage::Failed,
        Stage::Idle,
    ]);
    prop_oneof![
        3 => prop::collection::btree_map(1u8..4, (any::<bool>(), any::<bool>()), 0..3)
            .prop_map(|events| Step::See(events.into_iter().map(|(number, (a, b))| (number, a, b)).collect())),
        3 => (0usize..4, any::<bool>()).prop_map(|(nth, well)| Step::End { nth, well }),
        1 => (1u8..4, any::<bool>()).prop_map(|(number, taken)| Step::ApprovalResult { number, taken }),
        2 => (1u8..4, stage).prop_map(|(number, stage)| Step::Hear { number, stage }),
        2 => (1u64..400).prop_map(Step::Pass),
        1 => Just(Step::Restart),
        1 => Just(Step::Retry),
        1 => event.prop_map(|event| Step::See(vec![event])),
    ]
}

fn hooks() -> Vec<Hook> {
    vec![
        Hook { retries: 1, ..drain() },
        Hook { order: 90, undoes: true, ..hook("second", Phase::Scheduled) },
        hook("on-started", Phase::Started),
        hook("on-completed", Phase::Completed),
        hook("on-cancelled", Phase::Cancelled),
        hook("back", Phase::Undo),
    ]
}

fn machine(approval: Approval, at_once: Option<u32>) -> Machine {
    let mut peers = settings().peers;
    peers.silence = Silence::GoOn;
    peers.at_once = at_once;
    let mut machine = Machine::new(Settings { approval, hooks: hooks(), peers, ..settings() });
    machine.heeds_stops = false;
    machine
}

fn play(mut machine: Machine, steps: &[Step], mut check: impl FnMut(&Machine)) -> Machine {
    for step in steps {
        match step {
            Step::See(events) => {
                let events: Vec<_> = events
                    .iter()
                    .map(|&(number, shared, started)| {
                        let resources: &[&str] = if shared { &[ME, "web_1"] } else { &[ME] };
                        let event = Event::new(number, "Reboot", resources, 5_000);
                        if started { event.started() } else { event }
                    })
                    .collect();
                machine.observe(&events);
            }
            Step::End { nth, well } => {
                let running = machine.running();
                if let Some(name) = running.get(*nth).and_then(|text| text.split(' ').nth(1)) {
                    if *well { machine.done(name) } else { machine.fail(name) }
                }
            }
            Step::ApprovalResult { number, taken } => {
                let answer =
                    if *taken { ApprovalResult::Accepted } else { ApprovalResult::Rejected("no".to_owned()) };
                if machine.approvals.contains(&id(*number)) {
                    machine.answer(*number, answer);
                }
            }
            Step::Hear { number, stage } => machine.hear(&[("web_1", *number, *stage)]),
            Step::Pass(seconds) => machine.pass(*seconds),
            Step::Retry => drop(machine.retry(None)),
            Step::Restart => machine = machine.restart(1),
        }
        check(&machine);
    }
    machine
}

/// All is over, and whatever still runs ends well.
fn conclude(mut machine: Machine) -> Machine {
    machine.observe(&[]);
    machine.settle();
    machine = machine.restart(1);
    machine.observe(&[]);
    machine.settle();
    machine
}

proptest! {
    /// promise: A2
    #[test]
    fn in_the_end_nothing_is_left_undone(
        steps in prop::collection::vec(step(), 0..40),
        approval in prop::sample::select(vec![Approval::Never, Approval::Alone, Approval::WhenDone, Approval::Leader]),
        at_once in prop::option::of(1u32..3),
    ) {
        let machine = conclude(play(machine(approval, at_once), &steps, |_| {}));
        prop_assert!(!machine.watcher.is_drained(), "{:?}", machine.watcher.memory());
        prop_assert_eq!(machine.watcher.memory(), &Default::default());
    }

    /// promise: A1
    #[test]
    fn nothing_is_undone_beside_what_is_prepared(steps in prop::collection::vec(step(), 0..40)) {
        play(machine(Approval::Alone, None), &steps, |machine| {
            let running = machine.running();
            let undoes = running.iter().filter(|text| text.starts_with("undo")).count();
            let prepares = running.iter().filter(|text| text.starts_with("scheduled")).count();
            assert!(undoes <= 1 && (undoes == 0 || prepares == 0), "{running:?}");
        });
    }

    /// promise: A1
    #[test]
    fn nothing_is_approved_while_its_hooks_run(steps in prop::collection::vec(step(), 0..40)) {
        let mut before = 0;
        play(machine(Approval::WhenDone, None), &steps, |machine| {
            if machine.approvals.len() < before {
                before = 0;
            }
            for event in &machine.approvals[before..] {
                let runs = machine.watcher.memory().cases.iter().find(|case| case.observed.id == *event);
                let scheduled = runs.and_then(|case| case.runs.get(&Phase::Scheduled));
                let done = scheduled.into_iter().flatten().filter(|(_, progress)| progress.state == forewarn_agent_core::HookState::Done);
                assert_eq!(done.count(), 2, "{:?}", machine.log);
            }
            before = machine.approvals.len();
        });
    }

    /// promise: A2
    #[test]
    fn what_is_kept_can_be_read_and_says_the_same(steps in prop::collection::vec(step(), 0..40)) {
        play(machine(Approval::Leader, Some(1)), &steps, |machine| {
            let kept = serde_json::to_string(machine.watcher.memory()).unwrap();
            let read: forewarn_agent_core::Memory = serde_json::from_str(&kept).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), kept);
        });
    }
}
