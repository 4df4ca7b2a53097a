//! An endpoint that is played: it says what a test wants it to say.
//!
//! It is not Forewarn and does not say so: the agent asks it once a second.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forewarn_imds::print_date;
use forewarn_types::Timestamp;

use forewarn_testkit::wait_until;

/// What is answered to whoever asks for events.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    /// A document with these events.
    Events(Vec<String>),
    /// 200, with nothing in it.
    Empty,
    /// This status, with an error.
    Status(u16),
    /// Nothing: the connection is closed.
    Nothing,
}

#[derive(Debug)]
struct Script {
    say: Say,
    /// It grows with each change.
    incarnation: u64,
    /// The only edition that it knows, if it does not know all; and it does not say which.
    edition: Option<&'static str>,
    /// What this machine is called, once it says so.
    name: Option<&'static str>,
    /// What is answered to approvals.
    approval: u16,
    /// Bodies of approvals.
    approvals: Vec<String>,
    polls: usize,
}

/// An endpoint that is played.
pub(crate) struct Played {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl Played {
    pub(crate) fn start(say: Say) -> Self {
        let script = Script {
            say,
            incarnation: 1,
            edition: None,
            name: Some("web_0"),
            approval: 200,
            approvals: Vec::new(),
            polls: 0,
        };
        let script = Arc::new(Mutex::new(script));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&script);
        // It ends with the process: nobody waits for it.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || answer(stream, &shared));
            }
        });
        Self { address, script }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it says that.
    pub(crate) fn say(&self, say: Say) {
        let mut script = self.script();
        script.say = say;
        script.incarnation += 1;
    }

    /// From now on it knows no other edition.
    pub(crate) fn know_only(&self, edition: &'static str) {
        self.script().edition = Some(edition);
    }

    /// From now on it says that machines are called that, or not what.
    pub(crate) fn call(&self, name: Option<&'static str>) {
        self.script().name = name;
    }

    /// From now on approvals are answered so.
    pub(crate) fn answer_approvals(&self, status: u16) {
        self.script().approval = status;
    }

    pub(crate) fn approvals(&self) -> Vec<String> {
        self.script().approvals.clone()
    }

    /// Waits until it was asked so often again.
    pub(crate) fn wait_for_polls(&self, polls: usize) {
        let before = self.script().polls;
        wait_until("the endpoint is asked", || (self.script().polls >= before + polls).then_some(()));
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }
}

fn answer(stream: TcpStream, script: &Mutex<Script>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut script = script.lock().unwrap();
    let (status, body) = if first.contains("/compute/name") {
        script.name.map_or((503, "not yet".to_owned()), |name| (200, name.to_owned()))
    } else if script.edition.is_some_and(|edition| !first.contains(&format!("api-version={edition} "))) {
        (400, "no".to_owned())
    } else if first.starts_with("POST") {
        script.approvals.push(String::from_utf8(body).unwrap());
        (script.approval, String::new())
    } else {
        script.polls += 1;
        match &script.say {
            Say::Events(events) => {
                let (number, events) = (script.incarnation, events.join(","));
                (200, format!(r#"{{"DocumentIncarnation":{number},"Events":[{events}]}}"#))
            }
            Say::Empty => (200, String::new()),
            Say::Status(status) => (*status, r#"{ "error": "not now" }"#.to_owned()),
            Say::Nothing => return None,
        }
    };
    let date = print_date(now());
    let head =
        format!("HTTP/1.1 {status} X\r\nDate: {date}\r\nConnection: close\r\nContent-Length: {}", body.len());
    let mut stream = stream;
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).ok()
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// The `n`-th id of the tests.
pub(crate) fn id(n: u8) -> String {
    format!("00000000-0000-4000-8000-0000000000{n:02X}")
}

/// An event of web_0 that is scheduled for `left` seconds from now.
pub(crate) fn scheduled(n: u8, kind: &str, left: u64) -> String {
    scheduled_for(n, kind, left, &["web_0"])
}

/// The same, for these machines.
pub(crate) fn scheduled_for(n: u8, kind: &str, left: u64, machines: &[&str]) -> String {
    let at = print_date(now().plus(Duration::from_secs(left)));
    event(n, kind, "Scheduled", &at, machines)
}

/// An event of web_0 that has started.
pub(crate) fn started(n: u8, kind: &str) -> String {
    event(n, kind, "Started", "", &["web_0"])
}

fn event(n: u8, kind: &str, status: &str, not_before: &str, machines: &[&str]) -> String {
    let event = serde_json::json!({
        "EventId": id(n),
        "EventStatus": status,
        "EventType": kind,
        "ResourceType": "VirtualMachine",
        "Resources": machines,
        "NotBefore": not_before,
        "Description": "x",
        "EventSource": "Platform",
        "DurationInSeconds": 9,
    });
    event.to_string()
}
