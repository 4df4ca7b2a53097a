//! Asks one peer how it stands: one question, two seconds at most.
//!
//! The log says once that a peer does not answer, not once a second.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_agent_core::{Asking, PeerReport, PeerWord};
use forewarn_cli_support::visible::flat;
use forewarn_client::Endpoint;
use forewarn_client::http::{self, HeaderName, HeaderValue, HttpClient, Limits, Request, Trust, Url};

use super::PATH;
use super::addresses::PeerAddresses;
use super::find::{Finder, Peer};
use super::places::PeerPlaces;
use super::proof::{ASKER, Key, NONCE, Nonce, PROOF};

/// How long a peer may take, connecting included, and how much it may say.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(2), answer: Duration::from_secs(2), body_bytes: 256 * 1024 };

/// Events of a word, bytes of an id, and bytes of a name.
const EVENTS_MAX: usize = 1000;
const TEXT_BYTES_MAX: usize = 1024;

/// Characters that are logged of why a peer has no time.
const REASON_CHARS_MAX: usize = 200;

/// Asks peers.
#[derive(Clone, Debug)]
pub(crate) struct Asker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    finder: Finder,
    key: Key,
    /// What is wrong with whom, as it was told.
    told: Mutex<BTreeMap<String, String>>,
    /// Names of the peers that were found without one, by where they are.
    names: Mutex<BTreeMap<String, String>>,
}

/// Why a peer has not said how it is.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("no place that can be asked: {0}")]
    Place(#[from] forewarn_client::http::BadUrl),
    #[error("{0}")]
    Line(#[from] forewarn_client::http::HttpError),
    #[error("it does not believe us: it answers 403\n  hint: do both have the same key?")]
    Forbidden,
    #[error("it is alive, but answers 503: {0}")]
    Unavailable(String),
    #[error("it answers {0}\n  hint: is it an agent, and does it have a key?")]
    Status(u16),
    #[error("its answer has no proof, or not one for this question\n  hint: do both have the same key?")]
    Unproved,
    #[error("what it says is of another form")]
    Form,
    #[error("it calls itself {0:?}")]
    Name(String),
    #[error("nothing can be asked: {0}")]
    Own(&'static str),
}

impl Asker {
    /// Asks in the name of `me`, those who are at `places`; who that is may be told by the endpoint.
    pub(crate) fn new(
        places: PeerPlaces,
        key: Key,
        me: impl Into<String>,
        endpoint: Endpoint,
        addresses: PeerAddresses,
    ) -> Self {
        let finder = Finder::new(places, me.into(), endpoint, addresses);
        Self(Arc::new(Inner { finder, key, told: Mutex::default(), names: Mutex::default() }))
    }

    /// Finds the peers to ask. It takes two seconds at most.
    pub(super) async fn find(&self, asking: &Asking) -> Vec<Peer> {
        let peers = self.0.finder.find(asking).await;
        self.0.names().retain(|place, _| peers.iter().any(|peer| peer.place == *place));
        peers
    }

    /// Asks a peer. It takes two seconds at most; none: the peer is silent, or not to be believed.
    pub(super) async fn ask(&self, peer: &Peer) -> Option<PeerReport> {
        let said = self.0.ask(peer).await;
        self.0.tell(peer, said.as_ref().err());
        let report = match said {
            Ok(word) => {
                if peer.name.is_none() {
                    self.0.names().insert(peer.place.clone(), word.name.clone());
                }
                PeerReport::Word(word)
            }
            // The peer is there, and this machine does not know how it stands. Such an answer needs no proof: a stranger that forges
            // it only makes this machine wait.
            Err(Trouble::Unavailable(_) | Trouble::Form | Trouble::Line(http::HttpError::TooLong(_))) => {
                PeerReport::Alive(peer.name.clone().or_else(|| self.0.names().get(&peer.place).cloned())?)
            }
            Err(
                Trouble::Place(_)
                | Trouble::Line(
                    http::HttpError::Late(_)
                    | http::HttpError::Unreachable(_)
                    | http::HttpError::Broken(_)
                    | http::HttpError::Unaskable(_),
                )
                | Trouble::Forbidden
                | Trouble::Status(_)
                | Trouble::Unproved
                | Trouble::Name(_)
                | Trouble::Own(_),
            ) => return None,
        };
        // One of the addresses that a name of DNS leads to is this machine's own.
        let (PeerReport::Word(PeerWord { name, .. }) | PeerReport::Alive(name)) = &report;
        (name != self.0.finder.me()).then_some(report)
    }
}

impl Inner {
    async fn ask(&self, peer: &Peer) -> Result<PeerWord, Trouble> {
        let url = Url::parse(&format!("http://{}{PATH}", peer.place))?;
        let nonce = Nonce::fresh().ok_or(Trouble::Own("the system has no random numbers"))?;
        let request = self.question(&nonce).ok_or(Trouble::Own("a name that cannot be sent"))?;
        let answer = HttpClient::new(url, Trust::system()).send(&request, LIMITS).await?;
        match answer.status {
            200 => {}
            403 => return Err(Trouble::Forbidden),
            503 => return Err(Trouble::Unavailable(reason(&answer.body))),
            status => return Err(Trouble::Status(status)),
        }
        let proof = answer.header(PROOF).ok_or(Trouble::Unproved)?;
        // Before anything in it is looked at.
        if !self.key.is_word(&nonce, &answer.body, proof) {
            return Err(Trouble::Unproved);
        }
        let word = read(&answer.body).ok_or(Trouble::Form)?;
        match &peer.name {
            Some(name) if *name != word.name => Err(Trouble::Name(word.name)),
            Some(_) | None => Ok(word),
        }
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn question(&self, nonce: &Nonce) -> Option<Request> {
        let me = self.finder.me();
        let proof = self.key.prove_ask(nonce, me);
        let mut request = Request::get(PATH);
        let fields = [(ASKER, me), (NONCE, nonce.as_str()), (PROOF, proof.as_str())];
        for (name, value) in fields {
            let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
            request.headers.insert(HeaderName::from_static(name), value);
        }
        Some(request)
    }

    /// Tells how it goes with a peer, if that is news.
    fn tell(&self, peer: &Peer, trouble: Option<&Trouble>) {
        let who = peer.name.as_deref().unwrap_or(&peer.place);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match trouble.map(ToString::to_string) {
            Some(why) if told.get(who) != Some(&why) => {
                let shown = flat(&why);
                tracing::warn!(peer = who, why = shown, "a peer does not say how it is");
                told.insert(who.to_owned(), why);
            }
            Some(_) => {}
            None => {
                if told.remove(who).is_some() {
                    tracing::info!(peer = who, "a peer says again how it is");
                }
            }
        }
    }
}

/// The reason in an answer that is not a word.
fn reason(body: &[u8]) -> String {
    let text = flat(&String::from_utf8_lossy(body));
    if text.is_empty() { "(no reason)".to_owned() } else { text.chars().take(REASON_CHARS_MAX).collect() }
}

fn read(body: &[u8]) -> Option<PeerWord> {
    let word: PeerWord = serde_json::from_slice(body).ok()?;
    let fits = |text: &str| (1..=TEXT_BYTES_MAX).contains(&text.len());
    (fits(&word.name) && word.events.len() <= EVENTS_MAX && word.events.keys().all(|id| fits(id)))
        .then_some(word)
}
