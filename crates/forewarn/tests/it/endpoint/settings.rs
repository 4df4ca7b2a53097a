//! What an operator of `forewarn serve` may choose about the endpoint.
//!
//! | setting | test |
//! |---|---|
//! | `oldest_edition`: older ones are refused like unknown ones, and the header is required of them | `an_operator_may_refuse_the_preview` |
//! | `host_names`: names with dots that `Host` may have | `an_operator_may_name_hosts` |
//! | `identity_directory`: there are no tokens without it | `there_are_tokens_where_the_operator_wants_them` |
//! | `limits`: on unless they are turned off | `limits_are_on_unless_they_are_turned_off` |
//! | `machine`: everybody who comes in there is that machine, whatever the path says | `a_listener_may_belong_to_one_machine` |
//! | `cluster`: machines of that cluster are known by their addresses | `a_listener_knows_machines_of_its_cluster_by_their_addresses` |

use forewarn_testkit::{NEWEST, ServeDir, TestServer, get, request};

const FLEET: &str = r#"
host = [{ name = "h1" }, { name = "h2" }]
vm = [{ name = "solo", host = "h1" }, { name = "other", host = "h2" }]
"#;

const EMPTY: (u16, &str) = (200, r#"{"DocumentIncarnation":1,"Events":[]}"#);
const NO_HEADER: &str = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;
const FORBIDDEN: &str = r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#;

/// A server on whose port everybody is that machine, and its files.
fn serving(machine: &str, settings: &str) -> (TestServer, ServeDir) {
    serving_fleet("fleet = 'DIR/fleet.toml'", machine, settings)
}

fn serving_fleet(fleet: &str, machine: &str, settings: &str) -> (TestServer, ServeDir) {
    let files = ServeDir::new(crate::program(), FLEET);
    let server = files.start(&format!(
        "in_memory = true\n{fleet}\napi.socket = 'DIR/api.sock'\ndriver.kind = \"simulated\"\n[metadata]\n\
         listen = [{{ address = \"127.0.0.1:0\", machine = \"{machine}\" }}]\n{settings}\n"
    ));
    (server, files)
}

#[test]
fn an_operator_may_refuse_the_preview() {
    let (server, _files) = serving("solo", "oldest_edition = \"2017-08-01\"");
    let preview = "/metadata/scheduledevents?api-version=2017-03-01";
    assert_eq!(server.say(&request(&format!("GET {preview}"), "")).short(), (400, NO_HEADER));
    let refused = server.say(&get(preview));
    assert_eq!(refused.status(), 400);
    assert!(refused.body.contains("api-version is invalid"), "{}", refused.body);
    assert_eq!(server.say(&get(&preview.replace("2017-03-01", "2017-08-01"))).short(), EMPTY);
}

#[test]
fn an_operator_may_name_hosts() {
    let (server, _files) = serving("solo", "host_names = [\"imds.example.org\"]");
    for (host, status) in [
        ("IMDS.example.org:80", 200),
        ("169.254.169.254", 200),
        ("www.imds.example.org", 400),
        ("example.org", 400),
    ] {
        let answer = server.say(&get(NEWEST).replace("169.254.169.254", host));
        assert_eq!(answer.status(), status, "{host}");
    }
}

#[test]
fn there_are_tokens_where_the_operator_wants_them() {
    let target = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fr%2F";
    let (without, _files) = serving("solo", "");
    assert_eq!(without.say(&get(target)).short(), (404, r#"{ "error": "Not found" }"#));
    let (with, _files) = serving("solo", "identity_directory = \"my-directory\"");
    assert_eq!(with.say(&get(target)).status(), 200);
}

#[test]
fn limits_are_on_unless_they_are_turned_off() {
    for (settings, some_are_refused) in [("", true), ("limits.enabled = false", false)] {
        let (server, _files) = serving("solo", settings);
        let mut line = server.connect();
        line.send(&get(NEWEST).repeat(200));
        let refused = (0..200).filter(|_| line.answer().status() == 429).count();
        assert_eq!(refused > 0, some_are_refused, "{settings:?}");
    }
}

#[test]
fn a_listener_may_belong_to_one_machine() {
    let name = "metadata/instance/compute/name?api-version=2021-02-01&format=text";
    let (server, _files) = serving("other", "");
    assert_eq!(server.say(&get(&format!("/{name}"))).short(), (200, "other"));
    let claim = server.say(&get(&format!("/vm/solo/{name}")));
    assert_eq!(claim.short(), (404, r#"{ "error": "Not found" }"#), "a path is just a path here");
    let (nobody, _files) = serving_fleet("", "nobody", "");
    assert!(nobody.log().contains("listener of an unknown machine error=no such machine: nobody"));
    assert_eq!(nobody.say(&get(&format!("/{name}"))).short(), (403, FORBIDDEN));
}

/// promise: M3
#[test]
fn a_listener_knows_machines_of_its_cluster_by_their_addresses() {
    let files = ServeDir::new(crate::program(), "");
    let start = |cluster: &str| {
        files.start(&format!(
            "data_dir = 'DIR/data'\napi.socket = 'DIR/api.sock'\ndriver.kind = 'simulated'\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\ncluster = '{cluster}'\n"
        ))
    };
    let name = get("/metadata/instance/compute/name?api-version=2021-02-01&format=text");
    {
        let server = start("west");
        assert!(server.log().contains("listener of an unknown cluster listener=127.0.0.1:0 cluster=west"));
        assert_eq!(server.say(&name).short(), (403, FORBIDDEN));
        for command in [
            "cluster create west",
            "--cluster west host create w1",
            "--cluster west vm create far --host w1",
            "--cluster west vm set far --address 127.0.0.1",
        ] {
            let output = server.try_run(&command.split(' ').collect::<Vec<_>>());
            assert!(output.status.success(), "{command}: {output:?}");
        }
        assert_eq!(server.say(&name).short(), (200, "far"));
    }
    {
        let server = start("west");
        let served = "identifies machines of this cluster by address listener=127.0.0.1:0 cluster=west";
        assert!(server.log().contains(served), "{}", server.log());
        assert!(!server.log().contains("WARN"), "{}", server.log());
        assert_eq!(server.say(&name).short(), (200, "far"));
    }
    let server = start("default");
    let unserved = "no listener identifies machines of this cluster by address cluster=west machines=1";
    assert!(server.log().contains(unserved), "{}", server.log());
    assert_eq!(server.say(&name).short(), (403, FORBIDDEN));
}
