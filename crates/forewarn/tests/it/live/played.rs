//! `/v1/stories`: a server plays a story apart from its own fleet, and says what the command line says.

use forewarn_testkit::TestServer;
use forewarn_testkit::operator::{read, value, write};
use serde_json::{Value, json};

/// Texts of the steps, as the transcript of the command line has them.
fn happened(run: &Value) -> Vec<String> {
    let lines = |step: &Value| {
        let text = step["text"].as_array().unwrap().iter();
        text.map(|line| format!("      {}", line.as_str().unwrap())).collect::<Vec<_>>()
    };
    run["steps"].as_array().unwrap().iter().flat_map(lines).collect()
}

#[test]
fn a_server_plays_stories_of_the_library_without_an_effect_on_its_fleet() {
    let server = TestServer::start_with(crate::program(), &["--arm-listen", "off"]);
    let state = || {
        ["/v1/clock", "/v1/machines", "/v1/events", "/v1/audit"]
            .map(|path| value(&read(server.api(), path).unwrap()))
    };
    let before = state();
    let list = value(&read(server.api(), "/v1/stories").unwrap());
    let stories = list["items"].as_array().unwrap();
    for name in ["freeze", "two-tenants", "spot-eviction"] {
        let story = stories.iter().find(|story| story["name"] == name).unwrap();
        let run = value(&write(server.api(), "/v1/stories/run", &json!({ "story": story["text"] })).unwrap());
        assert_eq!(run["result"], "passed", "{run}");
        let transcript = server.run(&["story", "run", name]);
        let (transcript, _) = transcript.split_once("\nin the end\n").unwrap();
        let lines: Vec<_> = transcript.lines().filter(|line| line.starts_with("      ")).collect();
        assert!(!lines.is_empty());
        assert_eq!(happened(&run), lines, "{name}");
    }
    assert_eq!(state(), before);
}

#[test]
fn a_story_that_fails_names_its_line() {
    let server = TestServer::start_with(crate::program(), &["--arm-listen", "off"]);
    let story = "host h1\nvm solo on h1\nat 1m expect solo Started\n";
    let run = value(&write(server.api(), "/v1/stories/run", &json!({ "story": story })).unwrap());
    assert_eq!(run["result"], "failed");
    let error = &run["error"];
    assert_eq!(
        (&error["line"], &error["expected"], &error["found"]),
        (&json!(3), &json!("solo Started"), &json!("nothing"))
    );
    let empty = write(server.api(), "/v1/stories/run", &json!({})).unwrap();
    assert_eq!(empty.status(), 400);
}
