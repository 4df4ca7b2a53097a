//! A server that answers each request with the next bytes of a script, and keeps what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forewarn_client::{Client, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What a server does when it was asked.
pub(crate) enum Step {
    /// These bytes.
    Say(String),
    /// These bytes, and the end of the connection.
    SayAndClose(String),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// All of it.
    pub(crate) text: String,
    /// The number of its connection.
    pub(crate) connection: usize,
}

pub(crate) struct Script {
    pub(crate) address: String,
    state: Arc<State>,
    changed: watch::Receiver<usize>,
}

struct State {
    steps: Mutex<VecDeque<Step>>,
    asked: Mutex<Vec<Asked>>,
    count: watch::Sender<usize>,
}

/// Longer than anything takes. Whoever waits for it has failed already.
const PATIENCE: Duration = Duration::from_secs(60);

impl Script {
    /// When the script is at its end, requests are not answered.
    pub(crate) async fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (count, changed) = watch::channel(0);
        let steps = Mutex::new(steps.into_iter().collect());
        let state = Arc::new(State { steps, asked: Mutex::default(), count });
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let state = Arc::clone(&serving);
                tokio::spawn(async move { state.serve(stream, connection).await });
            }
        });
        Self { address, state, changed }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::parse(&self.address).unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.endpoint())
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Waits until it was asked so often.
    pub(crate) async fn until_asked(&mut self, times: usize) {
        let asked = self.changed.wait_for(|count| *count >= times);
        tokio::time::timeout(PATIENCE, asked).await.expect("waited in vain").unwrap();
    }
}

impl State {
    async fn serve(&self, mut stream: TcpStream, connection: usize) {
        while let Some(text) = read_request(&mut stream).await {
            self.asked.lock().unwrap().push(Asked { text, connection });
            self.count.send_modify(|count| *count += 1);
            let step = self.steps.lock().unwrap().pop_front();
            match step {
                Some(Step::Say(bytes)) => stream.write_all(bytes.as_bytes()).await.unwrap_or_default(),
                Some(Step::SayAndClose(bytes)) => {
                    stream.write_all(bytes.as_bytes()).await.unwrap_or_default();
                    return;
                }
                None => std::future::pending().await,
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        text.push_str(str::from_utf8(&buffer[..count]).unwrap());
    }
}

/// An answer with a body.
pub(crate) fn say(status: u16, headers: &str, body: &str) -> Step {
    Step::Say(bytes(status, headers, body))
}

pub(crate) fn bytes(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
}

/// The document of an incarnation, with its tag and a date.
pub(crate) fn document(incarnation: u64, headers: &str) -> Step {
    say(200, &format!("ETag: \"{incarnation}\"\r\n{DATE}{headers}"), &empty(incarnation))
}

pub(crate) fn empty(incarnation: u64) -> String {
    format!("{{\"DocumentIncarnation\":{incarnation},\"Events\":[]}}")
}

pub(crate) const DATE: &str = "Date: Wed, 24 Jan 2018 21:20:44 GMT\r\n";
pub(crate) const FOREWARN: &str = "Server: forewarn/0.1.0 IMDS\r\n";
