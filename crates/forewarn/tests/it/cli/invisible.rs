//! Characters that turn or hide text, in what tenants and clients have written: a terminal never gets them raw.

use crate::cli::support::Server;

/// A right-to-left override and a zero-width space.
const TAG: &str = "role=safe\u{202e}evil\u{200b}";

fn has_none(what: &str, text: &str) {
    let harmful = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{200b}' | '\u{202e}');
    assert!(!text.contains(harmful), "{what}: {text:?}");
}

/// promise: S6
#[test]
fn nothing_that_is_printed_turns_or_hides_text() {
    let server = Server::start();
    let watching = server.begin("watch");
    server.out(&format!("vm set solo --tag {TAG}"));
    for command in ["vm show solo", "vm ls --output wide", "vm explain solo", "audit ls", "fleet show"] {
        let ran = server.run(command);
        assert_eq!(ran.code, Some(0), "{command}: {}", ran.err);
        has_none(command, &ran.out);
    }
    assert!(server.out("vm show solo").contains("safe\\u{202e}evil\\u{200b}"), "it can be seen");
    let lines = std::iter::repeat_with(|| {
        server.out(&format!("vm set solo --tag {TAG}"));
        server.out("vm set solo --tag a=b");
        watching.line_soon()
    });
    has_none("watch", &lines.flatten().next().unwrap());
    let refused = server.run("vm show so\u{202e}lo");
    assert_ne!(refused.code, Some(0));
    has_none("an error", &refused.err);
}

/// promise: S6
#[test]
fn data_stays_what_it_is() {
    let server = Server::start();
    server.out(&format!("vm set solo --tag {TAG}"));
    let ran = server.run("vm show solo --output json");
    has_none("JSON", &ran.out);
    let view: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(view["tags"]["role"], "safe\u{202e}evil\u{200b}");
    // A fleet that is shown can be applied again, and changes nothing.
    let shown = server.out("fleet show");
    assert!(shown.contains("safe\\U0000202eevil\\U0000200b"), "{shown}");
    let file = server.file("again.toml", &shown);
    server.out(&format!("fleet apply {}", file.display()));
    assert_eq!(server.json("vm show solo")["tags"]["role"], "safe\u{202e}evil\u{200b}");
}
