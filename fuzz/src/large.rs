//! Inputs that are too large to be kept as files, each at or beyond some limit.

use crate::Target;
use crate::corpus::{Input, approval};

/// The event that a machine of [`crate::endpoint`] has.
const ID: &str = "BCEA9720-A519-4998-8221-5F1EFCC6F7AA";
const POLL: &str = "GET /metadata/versions HTTP/1.1\r\nHost: h\r\nMetadata: true\r\n\r\n";

/// The large inputs of a target.
#[must_use]
pub fn inputs(target: Target) -> Vec<Input> {
    match target {
        Target::Request => requests(),
        Target::StartRequests => bodies(),
        Target::Document => documents(),
        Target::Fleet => fleets(),
        Target::Story => stories(),
        Target::Record => records(),
        Target::Template => templates(),
        Target::ControlRequest => control_requests(),
    }
}

fn input(name: &str, bytes: impl Into<Vec<u8>>) -> Input {
    Input { name: name.to_owned(), bytes: bytes.into() }
}

fn request(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\n{fields}\r\n{POLL}")
}

fn requests() -> Vec<Input> {
    let parameters: Vec<_> = (0..10_000).map(|key| format!("k{key}")).collect();
    let chunks = "POST /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: h\r\nMetadata: true\r\n\
                  Transfer-Encoding: chunked\r\n\r\n";
    let mut inputs = vec![
        input("ten-thousand-requests-ahead", POLL.repeat(10_000)),
        input("target-of-70-kilobytes", request(&format!("/{}", "a".repeat(70_000)), "")),
        input("ten-thousand-parameters", request(&format!("/metadata?{}", parameters.join("&")), "")),
        input("value-of-100-kilobytes", request("/metadata", &format!("A: {}\r\n", "b".repeat(100_000)))),
        input("name-of-100-kilobytes", request("/metadata", &format!("{}: b\r\n", "A".repeat(100_000)))),
        input("ten-thousand-fields", request("/metadata", &"A: b\r\n".repeat(10_000))),
        input("method-of-10-kilobytes", format!("{} / HTTP/1.1\r\n\r\n", "A".repeat(10_000))),
        input("one-line-without-an-end", "A".repeat(200_000)),
        input("nothing-but-line-ends", "\r\n".repeat(100_000)),
        input("body-of-a-megabyte", approval(&vec![b' '; 1_000_000])),
        input(
            "ten-thousand-chunks-of-a-byte",
            format!("{chunks}{}0\r\n\r\n{POLL}", "1\r\n \r\n".repeat(10_000)),
        ),
        input(
            "chunks-beyond-the-limit",
            format!("{chunks}{}", "8000\r\n".to_owned() + &" ".repeat(32_768) + "\r\n").repeat(6),
        ),
        input("size-of-a-chunk-without-an-end", format!("{chunks}{}", "0".repeat(100_000))),
        input("trailers-of-100-kilobytes", format!("{chunks}0\r\n{}\r\n", "A: b\r\n".repeat(16_000))),
    ];
    inputs.extend(bodies().into_iter().map(|body| input(&body.name, approval(&body.bytes))));
    inputs
}

fn list(entry: &str, count: usize) -> String {
    format!("{{\"StartRequests\":[{}]}}", vec![entry; count].join(","))
}

fn bodies() -> Vec<Input> {
    let entry = format!("{{\"EventId\":\"{ID}\"}}");
    let depth = 100_000;
    vec![
        input("two-thousand-entries", list(&entry, 2_000)),
        input("two-thousand-and-one-entries", list(&entry, 2_001)),
        input("a-million-entries", list(&entry, 1_000_000)),
        input("as-many-empty-entries-as-fit", list("{}", 40_000)),
        input("as-many-numbers-as-fit", list("1", 60_000)),
        input("as-many-wrong-ids-as-fit", list("{\"EventId\":1}", 9_000)),
        input(
            "as-many-ids-in-an-entry-as-fit",
            format!("{{\"StartRequests\":[{{{}}}]}}", vec!["\"EventId\":1"; 10_000].join(",")),
        ),
        input(
            "as-many-nested-ids-as-fit",
            list(&format!("{}1{}", "{\"EventId\":".repeat(6), "}".repeat(6)), 1_700),
        ),
        input("as-many-lists-as-fit", format!("{{{}}}", vec!["\"StartRequests\":[]"; 6_500].join(","))),
        input("lists-inside-entries", list(&list(&list("{\"EventId\":1}", 30), 3), 90)),
        input("depth-of-lists", "[".repeat(depth) + &"]".repeat(depth)),
        input("depth-of-objects", "{\"a\":".repeat(depth)),
        input(
            "id-of-a-megabyte",
            format!("{{\"StartRequests\":[{{\"EventId\":\"{}\"}}]}}", "A".repeat(1_000_000)),
        ),
        input(
            "id-as-long-as-fits",
            format!("{{\"StartRequests\":[{{\"EventId\":\"{}\"}}]}}", "A".repeat(131_000)),
        ),
        input(
            "id-of-escapes",
            format!("{{\"StartRequests\":[{{\"EventId\":\"{}\"}}]}}", "\\u0041".repeat(21_000)),
        ),
        input("key-as-long-as-fits", format!("{{\"{}\":1}}", "A".repeat(131_000))),
        input("as-many-keys-as-fit", format!("{{{}}}", vec!["\"\":1"; 26_000].join(","))),
        input("white-space", " ".repeat(131_072)),
        input("number-of-a-hundred-thousand-digits", "9".repeat(100_000)),
    ]
}

fn documents() -> Vec<Input> {
    let event = format!(
        "{{\"EventId\":\"{ID}\",\"EventStatus\":\"Scheduled\",\"EventType\":\"Reboot\",\"ResourceType\":\"VirtualMachine\",\
         \"Resources\":[\"a\"],\"NotBefore\":\"\"}}"
    );
    let document =
        |events: &[&str]| format!("{{\"DocumentIncarnation\":1,\"Events\":[{}]}}", events.join(","));
    vec![
        input("ten-thousand-events", document(&vec![event.as_str(); 10_000])),
        input("nine-megabytes", document(&vec![event.as_str(); 60_000])),
        input("depth", "{\"a\":".repeat(100_000)),
    ]
}

fn fleets() -> Vec<Input> {
    let hosts: Vec<_> = (0..2_000).map(|host| format!("{{name='h{host}'}}")).collect();
    vec![
        input("two-thousand-hosts", format!("host=[{}]", hosts.join(","))),
        input("depth", format!("a={}", "[".repeat(100_000))),
        input("depth-of-keys", format!("{}b=1", "a.".repeat(100_000))),
    ]
}

fn records() -> Vec<Input> {
    vec![input("a-megabyte-of-nothing", vec![0; 1 << 20]), input("a-megabyte-of-ones", vec![1; 1 << 20])]
}

fn stories() -> Vec<Input> {
    vec![
        input("two-thousand-and-one-lines", "host h\n".repeat(2_001)),
        input("a-million-empty-lines", "\n".repeat(1_000_000)),
        input("a-line-of-a-megabyte", "host ".to_owned() + &"a".repeat(1_000_000)),
    ]
}

fn templates() -> Vec<Input> {
    let template = |inside: &str| format!("{{\"properties\":{{\"template\":{{{inside}}}}}}}");
    let variables = |step: &str| {
        let one = |place: usize| {
            let before = format!("variables('v{}')", place.saturating_sub(1));
            let value = if place == 0 { "xxxxxxxx".to_owned() } else { step.replace('%', &before) };
            format!("\"v{place}\":\"{value}\"")
        };
        template(&format!("\"variables\":{{{}}}", (0..200).map(one).collect::<Vec<_>>().join(",")))
    };
    let resource = "{\"type\":\"A.B/c\",\"apiVersion\":\"2024-07-01\",\"name\":\"[concat('r', copyIndex())]\",\
                    \"copy\":{\"name\":\"l\",\"count\":800}}";
    vec![
        input("texts-that-double", variables("[concat(%, %)]")),
        input("texts-in-texts", variables("[replace(%, 'x', %)]")),
        input("lists-in-lists", variables("[createArray(%)]")),
        input("lists-that-double", variables("[createArray(%, %)]")),
        input("two-loops-of-resources", template(&format!("\"resources\":[{resource},{resource}]"))),
        input(
            "an-expression-of-25-kilobytes",
            template(&format!("\"variables\":{{\"a\":\"[concat('{}')]\"}}", "x".repeat(25_000))),
        ),
        input("depth-of-calls", template(&format!("\"variables\":{{\"a\":\"[{}]\"}}", "f(".repeat(1_000)))),
        input("depth", template(&format!("\"resources\":{}", "[".repeat(100_000)))),
        input("nine-megabytes", template(&format!("\"metadata\":\"{}\"", "x".repeat(9 << 20)))),
    ]
}

fn control_requests() -> Vec<Input> {
    let commands = |inside: &str| {
        format!(
            "{{\"Cluster\":[0,{{\"Commands\":{{\"commands\":[{inside}],\"context\":{{\"by\":\"socket\",\"token\":null,\
             \"permit\":null,\"because\":null,\"once\":null,\"if_revision\":null}}}}}}]}}"
        )
    };
    let asked = |depth: usize| {
        let value = "[".repeat(depth) + &"]".repeat(depth);
        commands("").replace("\"by\"", &format!("\"asked\":{value},\"by\""))
    };
    let hosts: Vec<_> = (0..10_000).map(|host| format!("\"h{host}\"")).collect();
    let body = format!(
        "{{\"Put\":{{\"id\":\"/a\",\"link\":null,\"body\":\"{}\",\"notes\":\"\"}}}}",
        "AAAA".repeat(1 << 18)
    );
    let write = commands("")
        .replace("\"Commands\":{", "\"Transaction\":{\"transaction\":{")
        .replace("\"commands\":[]", &format!("\"commands\":[],\"writes\":[{body}],\"operation\":null}}"));
    vec![
        input("two-thousand-commands", commands(&vec!["{\"command\":\"brake_on\"}"; 2_000].join(","))),
        input(
            "ten-thousand-hosts",
            commands(&format!("{{\"command\":\"update_hosts\",\"hosts\":[{}]}}", hosts.join(","))),
        ),
        input("body-of-a-megabyte", write),
        input("depth-of-100", asked(100)),
        input("depth-of-200", asked(200)),
        input("depth", "[".repeat(100_000)),
    ]
}
