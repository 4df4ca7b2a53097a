//! A proxy in front of a server of Forewarn, which breaks one promise.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::Value;

/// A request, as it came.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What the proxy does with a request. The server is behind the function.
pub(super) type Fault = Arc<dyn Fn(&Asked, &dyn Fn(&Asked) -> Answered) -> Answered + Send + Sync>;

/// Starts the proxy. It ends with the process.
pub(super) fn start(server: SocketAddr, fault: Fault) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, fault) = (stream.unwrap(), Arc::clone(&fault));
            // A client that gives up ends the connection, not the test.
            thread::spawn(move || pass(&stream, server, &fault).ok());
        }
    });
    address
}

fn pass(mut client: &TcpStream, server: SocketAddr, fault: &Fault) -> std::io::Result<()> {
    let (line, fields, body) = read(client, false)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let asked = Asked { method, target, fields, body };
    let answered = fault(&asked, &|asked| forward(server, asked).unwrap());
    let mut head = format!("HTTP/1.1 {} Answered\r\n", answered.status);
    for (name, value) in answered.fields.iter().filter(|(name, _)| name != "content-length") {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\nconnection: close\r\n\r\n", answered.body.len());
    client.write_all(head.as_bytes())?;
    if asked.method == "HEAD" { Ok(()) } else { client.write_all(&answered.body) }
}

fn forward(server: SocketAddr, asked: &Asked) -> std::io::Result<Answered> {
    let mut stream = TcpStream::connect(server)?;
    let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", asked.method, asked.target);
    for (name, value) in &asked.fields {
        head += &format!("{name}: {value}\r\n");
    }
    // A server that refuses a long body may close the connection before it has read it.
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(&asked.body).ok();
    let (line, fields, body) = read(&stream, asked.method == "HEAD")?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Ok(Answered { status, fields, body })
}

type Message = (String, Vec<(String, String)>, Vec<u8>);

/// Reads a head, and a body of the announced length. Names of fields are in lower case.
fn read(stream: &TcpStream, is_head: bool) -> std::io::Result<Message> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut fields) = (String::new(), Vec::new());
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        fields.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = fields.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse());
    let length = length.and_then(Result::ok).filter(|_| !is_head).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((first.trim_end().to_owned(), fields, body))
}

impl Asked {
    pub(super) fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The request with a header field, or without it.
    pub(super) fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut changed = self.clone();
        changed.fields.retain(|(known, _)| known != name);
        changed.fields.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        changed
    }

    pub(super) fn at(&self, target: &str) -> Self {
        Self { target: target.to_owned(), ..self.clone() }
    }

    pub(super) fn is_poll(&self) -> bool {
        self.method == "GET" && self.target.contains("/metadata/scheduledevents?api-version=")
    }

    pub(super) fn is_approval(&self) -> bool {
        self.method == "POST"
    }

    /// Returns true if the request names that edition.
    pub(super) fn names(&self, edition: &str) -> bool {
        self.target.ends_with(&format!("api-version={edition}"))
    }

    /// The ids of a start request, as it spells them.
    pub(super) fn ids(&self) -> Vec<String> {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let requests = body["StartRequests"].as_array().cloned().unwrap_or_default();
        requests.iter().filter_map(|request| Some(request["EventId"].as_str()?.to_owned())).collect()
    }

    /// The same start request for other events.
    pub(super) fn with_ids(&self, ids: &[String]) -> Self {
        let requests: Vec<_> = ids.iter().map(|id| serde_json::json!({ "EventId": id })).collect();
        let body = serde_json::json!({ "StartRequests": requests }).to_string().into_bytes();
        let length = body.len().to_string();
        Self { body, ..self.with("content-length", Some(&length)) }
    }
}

impl Answered {
    pub(super) fn new(status: u16, body: &str) -> Self {
        Self { status, fields: Vec::new(), body: body.as_bytes().to_vec() }
    }

    pub(super) fn with(mut self, name: &str, value: Option<&str>) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self.fields.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        self
    }

    /// The response with another document.
    pub(super) fn with_document(mut self, change: impl FnOnce(&mut Value)) -> Self {
        if let Ok(mut document) = serde_json::from_slice(&self.body) {
            change(&mut document);
            self.body = document.to_string().into_bytes();
        }
        self
    }
}
