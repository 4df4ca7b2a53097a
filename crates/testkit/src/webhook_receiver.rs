//! A webhook that writes down whatever it is told, and answers as a test wants. Bytes in, bytes out: no HTTP library.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::chat::{ChatRequest, ChatService};
use crate::{TestServer, wait_until};

/// How a stream is made of a connection.
type Secure = dyn Fn(TcpStream) -> Box<dyn Both> + Send + Sync;

/// Something that is read and written.
pub trait Both: Read + Write + Send {}

impl<T: Read + Write + Send> Both for T {}

/// Whoever has this has the receiver; what it was told outlives the servers that told it.
#[derive(Clone)]
pub struct WebhookReceiver {
    address: SocketAddr,
    shared: Arc<(Mutex<Book>, Condvar)>,
}

#[derive(Default)]
struct Book {
    seen: Vec<Seen>,
    /// It does not agree to anything.
    unwilling: bool,
    /// The rate that it agrees to.
    rate: Option<u32>,
    /// The service that it stands for: it checks every message.
    chat: Option<ChatService>,
    /// What the next notifications are answered, in this order, instead of 204: status line and header fields.
    answers: VecDeque<String>,
    /// What all notifications are answered, for as long as it is so.
    refuses: Option<String>,
    /// From that notification on nobody is answered.
    stalls_at: Option<usize>,
    is_stopped: bool,
}

/// A request, and what it was answered.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    /// Header fields, their names in lower case.
    pub head: String,
    pub body: String,
    /// The status line; empty, if there was no answer.
    pub answer: String,
    pub at: Instant,
}

const TAKEN: &str = "204 No Content";

impl WebhookReceiver {
    pub fn start() -> Self {
        Self::start_with(Arc::new(|stream| Box::new(stream)))
    }

    /// Starts at a fixed address, as soon as no other test listens there.
    pub fn start_at(address: &str) -> Self {
        let listener = wait_until(&format!("{address} is free"), || TcpListener::bind(address).ok());
        Self::listen(listener, Arc::new(|stream| Box::new(stream)))
    }

    /// Starts as a chat, which accepts what its service documents.
    pub fn start_chat(service: ChatService) -> Self {
        let receiver = Self::start();
        receiver.book().chat = Some(service);
        receiver
    }

    pub fn start_with(secure: Arc<Secure>) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), secure)
    }

    fn listen(listener: TcpListener, secure: Arc<Secure>) -> Self {
        let (address, shared) = (listener.local_addr().unwrap(), Arc::default());
        let receiver = Self { address, shared };
        let own = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if own.book().is_stopped {
                    return;
                }
                let (own, secure) = (own.clone(), Arc::clone(&secure));
                // Whoever hangs up has had enough.
                thread::spawn(move || drop(own.converse(secure(stream))));
            }
        });
        receiver
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// From now on it agrees to nothing, or to everything.
    pub fn is_unwilling(&self, unwilling: bool) {
        self.book().unwilling = unwilling;
    }

    /// It agrees to be told so often a minute.
    pub fn agrees_to(&self, rate: u32) {
        self.book().rate = Some(rate);
    }

    /// The next notifications are answered so, instead of being taken.
    pub fn answers(&self, answers: &[&str]) {
        self.book().answers.extend(answers.iter().map(|answer| (*answer).to_owned()));
    }

    /// From now on notifications are answered so, or taken again.
    pub fn refuses(&self, answer: Option<&str>) {
        self.book().refuses = answer.map(str::to_owned);
    }

    /// After so many notifications it takes, it answers nobody, until it is told otherwise.
    pub fn stalls_at(&self, count: Option<usize>) {
        self.book().stalls_at = count;
        self.shared.1.notify_all();
    }

    /// Stops to listen, so that another one can listen at its address.
    pub fn stop(&self) {
        self.book().is_stopped = true;
        // The thread that accepts connections sees it with the next one.
        drop(TcpStream::connect(self.address));
    }

    /// Every request.
    pub fn seen(&self) -> Vec<Seen> {
        self.book().seen.clone()
    }

    /// Every notification, taken or not.
    pub fn told(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(Seen::is_notification).collect()
    }

    /// Notifications that were taken.
    pub fn taken(&self) -> Vec<Seen> {
        self.told().into_iter().filter(|seen| seen.answer.starts_with('2')).collect()
    }

    /// Waits until it has taken so many notifications.
    pub fn until_taken(&self, count: usize) -> Vec<Seen> {
        wait_until(&format!("{count} notifications"), || {
            let taken = self.taken();
            (taken.len() >= count).then_some(taken)
        })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.shared.0.lock().unwrap()
    }

    fn converse(&self, stream: Box<dyn Both>) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(mut seen) = read(&mut stream)? {
            let (answer, body) = self.answer(&seen);
            seen.answer = answer.lines().next().unwrap_or_default().to_owned();
            let silent = answer.is_empty();
            self.book().seen.push(seen);
            if silent {
                let (_, changed) = &*self.shared;
                drop(changed.wait_while(self.book(), |book| book.stalls_at.is_some()).unwrap());
                return Ok(());
            }
            let length =
                if answer == TAKEN { String::new() } else { format!("\r\nContent-Length: {}", body.len()) };
            write!(stream.get_mut(), "HTTP/1.1 {answer}{length}\r\n\r\n{body}")?;
            stream.get_mut().flush()?;
        }
        Ok(())
    }

    /// Status line and header fields, and a body; nothing, if nobody is answered.
    fn answer(&self, seen: &Seen) -> (String, String) {
        let mut book = self.book();
        let plain = |answer: &str| (answer.to_owned(), String::new());
        if book.chat.is_none() && seen.line.starts_with("OPTIONS ") {
            let rate = book.rate.map(|rate| format!("\r\nWebHook-Allowed-Rate: {rate}")).unwrap_or_default();
            return if book.unwilling {
                plain("200 OK\r\nAllow: POST")
            } else {
                plain(&format!("200 OK\r\nWebHook-Allowed-Origin: *{rate}"))
            };
        }
        if !seen.is_notification() {
            let code = &seen.json()[0]["data"]["validationCode"];
            let body =
                if book.unwilling { "{}".to_owned() } else { format!(r#"{{"validationResponse":{code}}}"#) };
            return ("200 OK\r\nContent-Type: application/json".to_owned(), body);
        }
        let told = book.seen.iter().filter(|seen| seen.is_notification()).count();
        if book.stalls_at.is_some_and(|count| told >= count) {
            return plain("");
        }
        if let Some(answer) = &book.refuses {
            return plain(answer);
        }
        match (book.answers.pop_front(), book.chat) {
            (Some(answer), _) => plain(&answer),
            (None, Some(chat)) => chat.answer(seen.to_chat()),
            (None, None) => plain(TAKEN),
        }
    }
}

fn read(stream: &mut impl BufRead) -> io::Result<Option<Seen>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut field = String::new();
        stream.read_line(&mut field)?;
        let Some((name, value)) = field.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap();
        }
        head.push_str(&format!("{}: {value}\n", name.to_lowercase()));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let body = String::from_utf8(body).unwrap();
    Ok(Some(Seen { line: line.trim_end().to_owned(), head, body, answer: String::new(), at: Instant::now() }))
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(field, _)| *field == name)
            .map(|(_, value)| value)
    }

    /// The request, for checks of chats.
    pub fn to_chat(&self) -> ChatRequest<'_> {
        ChatRequest { line: &self.line, content_type: self.header("content-type"), body: &self.body }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The event that it is about, whatever the form.
    pub fn event(&self) -> Value {
        let json = self.json();
        if json.is_array() { json[0].clone() } else { json }
    }

    pub fn properties(&self) -> Value {
        self.event()["data"]["resourceInfo"]["properties"].clone()
    }

    pub fn id(&self) -> String {
        self.event()["id"].as_str().unwrap().to_owned()
    }

    /// `Scheduled Reboot web_0`.
    pub fn short(&self) -> String {
        let properties = self.properties();
        let word = |name: &str| properties[name].as_str().unwrap().to_owned();
        let resources = properties["Resources"].as_array().unwrap().iter().filter_map(Value::as_str);
        format!("{} {} {}", word("EventStatus"), word("EventType"), resources.collect::<Vec<_>>().join(","))
    }

    fn is_notification(&self) -> bool {
        self.line.starts_with("POST ") && self.header("aeg-event-type") != Some("SubscriptionValidation")
    }
}

/// In short, all of them.
pub fn shorts(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(Seen::short).collect()
}

/// How it is with a webhook.
pub fn show(server: &TestServer, name: &str) -> Value {
    server.json(&["webhook", "show", name])
}

/// Waits until it is so with a webhook.
pub fn until_state(server: &TestServer, name: &str, state: &str) -> Value {
    wait_until(&format!("{name} is {state}"), || {
        let shown = show(server, name);
        (shown["state"] == state).then_some(shown)
    })
}

/// Adds a webhook, and waits until it has agreed.
pub fn add(server: &TestServer, name: &str, receiver: &WebhookReceiver, more: &[&str]) {
    server.run(&[&["webhook", "create", name, &receiver.url("/events")], more].concat());
    until_state(server, name, "healthy");
}

/// Two moments are so far apart at least.
pub fn are_apart(one: &Seen, other: &Seen, span: Duration) -> bool {
    other.at.duration_since(one.at) >= span
}
