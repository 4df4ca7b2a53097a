//! Stories that nobody wrote. A line that the rules do not take is told as refused, or left out; what is left is a story.

use proptest::prelude::*;
use proptest::sample::select;

use crate::live::server::{STAGE, play_on};

const FLEET: &str = "\
host h1 h2 h3 h4
host h5 h6 zone 2
vm solo on h1 terminate 5m
vm cheap on h2 spot deallocate
scaleset web terminate 5m
instance of web on h1 ud 0
instance of web on h2 ud 1 times 2
instance of web on h5 ud 2 times 2
availabilityset db
machine db-0 of db on h1 ud 0
machine db-1 of db on h3 ud 1
availabilityset a
machine vm of a on h3
service shop
machine Role_IN_0 of shop on h3
";

fn machine() -> impl Strategy<Value = &'static str> {
    select(vec![
        "solo",
        "cheap",
        "web_0",
        "web_1",
        "web_2",
        "web_3",
        "db-0",
        "db-1",
        "a/vm",
        "Role_IN_0",
        "new",
    ])
}

fn tenant() -> impl Strategy<Value = &'static str> {
    select(vec!["solo", "cheap", "web", "db", "a", "shop", "new"])
}

fn host() -> impl Strategy<Value = &'static str> {
    select(vec!["h1", "h2", "h3", "h4", "h5", "h6"])
}

fn event() -> impl Strategy<Value = String> {
    (1..15).prop_map(|number| format!("E{number}"))
}

fn words(choices: &[&'static str]) -> impl Strategy<Value = &'static str> + use<> {
    select(choices.to_vec())
}

fn line() -> impl Strategy<Value = String> {
    let user = [
        "restart",
        "redeploy",
        "delete",
        "reimage",
        "stop",
        "start",
        "deallocate",
        "evict",
        "jam",
        "upgrade",
    ];
    let work = ["update host", "update network", "migrate host", "reboot host"];
    let one = ["fail host", "recover host", "recover host", "remove host", "degrade host"];
    let spans = ["1s", "9s", "20s", "1m", "5m", "15m", "1h", "7h", "1d", "8d"];
    let rest = [
        "poll all",
        "cancel rollout",
        "brake on",
        "brake off",
        "set unenrolled waits",
        "set unenrolled runs",
        "set useroperations 2",
        "set useroperations unlimited",
        "set failure redeploy",
        "model web terminate 10m",
        "model web terminate off",
        "policy web restart automatic",
        "policy db alldown asked",
        "vm new on h4 terminate 5m",
        "vm new on h4 spot delete",
        "instance of web on h6 ud 2",
        "host h7",
        "remove tenant db",
    ];
    let language = [
        "run command as solo",
        "run command as web_1",
        "run \"./service\" as db-0",
        "await solo nothing within 20m",
        "await web Started within 16m",
        "await web_2 running, web nothing within 1h",
        "await rollout finished within 2h",
        "expect web_0 approved",
        "expect no start before approval",
        "at +90s poll all",
        "for n in 0..3\n  restart web_$n\nend",
        "repeat 2 times\n  at +1m poll all\n  advance 9s\nend",
        "randomly seed 5 4 times between 1s and 5m\n  restart web_0\n  approve web by web_1\n  update host h2\nend",
    ];
    prop_oneof![
        3 => words(&language).prop_map(str::to_owned),
        5 => words(&spans).prop_map(|span| format!("advance {span}")),
        3 => (words(&user), machine()).prop_map(|(deed, machine)| format!("{deed} {machine}")),
        3 => (words(&work), host(), host()).prop_map(|(work, one, other)| format!("{work} {one} {other}")),
        1 => (words(&one), host()).prop_map(|(deed, host)| format!("{deed} {host}")),
        4 => (tenant(), machine()).prop_map(|(tenant, machine)| format!("approve {tenant} by {machine}")),
        1 => (event(), event(), machine()).prop_map(|(one, other, by)| format!("approve {one} {other} by {by}")),
        1 => (event(), tenant()).prop_map(|(event, tenant)| format!("approve {event} by owner of {tenant}")),
        1 => (words(&["cancel", "force"]), event()).prop_map(|(deed, event)| format!("{deed} {event}")),
        1 => machine().prop_map(|machine| format!("poll {machine}")),
        4 => words(&rest).prop_map(str::to_owned),
    ]
}

fn told(text: &str) -> Option<String> {
    let story = forewarn_story::parse(text).ok()?;
    forewarn_story::run(&story).ok().map(|transcript| transcript.to_string())
}

/// The lines that the rules take, or refuse, one after the other.
fn story(lines: &[String]) -> String {
    lines.iter().fold(FLEET.to_owned(), |text, line| {
        let takes = |line: String| Some(format!("{text}{line}\n")).filter(|text| told(text).is_some());
        takes(line.clone()).or_else(|| takes(format!("refused {line}"))).unwrap_or_else(|| text.clone())
    })
}

/// A server is started for each: fewer than usual.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.div_ceil(32), max_shrink_iters: 200, ..usual }
}

proptest! {
    #![proptest_config(config())]

    /// promise: X1
    #[test]
    fn a_story_that_nobody_wrote_shows_the_same_on_a_server(lines in prop::collection::vec(line(), 40..80)) {
        let text = story(&lines);
        let output = play_on(&STAGE, &text);
        let (shown, problem) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        prop_assert!(output.status.success(), "{}\n{}", text, problem);
        prop_assert_eq!(Some(shown), told(&text), "{}", text);
    }
}
