//! Webhooks: those who are told of events without asking.
//!
//! What there is to tell is in the trail, which is durable before anybody is told of anything. Each webhook has a courier,
//! which follows the trail from a number that the shared state keeps. Nothing here holds up the driver, and nobody waits for a
//! webhook but its courier. Time here is that of the computer, also where the clock of the service is another.
//!
//! ```text
//!   trail ──▶ courier of a webhook ──POST──▶ webhook
//!                 └── how far ──▶ register ──▶ driver, once a second at most
//! ```

mod counts;
mod courier;
mod desk;
mod letters;
mod line;
mod patience;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use forewarn_control::ClusterId;
use forewarn_control::push::sample;
use forewarn_control::shared::{Handshake, SharedState, Webhook};
use forewarn_control::{Site, WebhookState, WebhookTest};
use forewarn_http_client::{HeaderValue, Trust};
use forewarn_types::Moment;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::control_handle::ControlHandle;
use crate::telemetry::Telemetry;
use counts::Counts;
use courier::Courier;
pub(crate) use desk::Standing;
use desk::{Desk, Register};
use letters::{notification, question, understood};
use line::{Line, Trouble, check};

/// How webhooks are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Who tells them: a name by which they know this server, in visible ASCII characters.
    pub origin: String,
    /// Authorities that are believed besides those of the system, as PEM.
    pub authorities: Option<PathBuf>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self { origin: "forewarn".to_owned(), authorities: None }
    }
}

/// What all couriers share.
#[derive(Debug)]
pub(crate) struct Post {
    engine: ControlHandle,
    origin: HeaderValue,
    trust: Arc<Trust>,
    counts: Counts,
    register: Register,
    desks: Mutex<BTreeMap<u32, Arc<Desk>>>,
}

/// Couriers that run.
#[derive(Debug)]
pub(crate) struct Office {
    running: JoinHandle<()>,
}

impl Post {
    pub(crate) fn new(engine: ControlHandle, settings: &WebhookSettings, telemetry: &Telemetry) -> Arc<Self> {
        let origin = HeaderValue::from_str(&settings.origin).unwrap_or(HeaderValue::from_static("forewarn"));
        let (counts, register) = (telemetry.register(Counts::new), Register::default());
        let trust = settings.authorities.as_ref().map_or_else(Trust::system, Trust::system_and_file);
        Arc::new(Self { engine, origin, trust, counts, register, desks: Mutex::default() })
    }

    /// How it is with a webhook, if it has a courier.
    pub(crate) fn standing(&self, webhook: u32) -> Option<Standing> {
        Some(self.desk(webhook)?.look())
    }

    /// How it is with a webhook, in a word.
    pub(crate) fn state(&self, webhook: &Webhook) -> WebhookState {
        let failing =
            self.standing(webhook.number).map_or(webhook.progress.failing, |desk| desk.progress.failing);
        match (webhook.handshake, failing) {
            (Handshake::Wanted, _) => WebhookState::Unconfirmed,
            (Handshake::Done { .. }, Some(_)) => WebhookState::Failing,
            (Handshake::Done { .. }, None) => WebhookState::Well,
        }
    }

    /// Counts webhooks, for whoever looks at the metrics.
    pub(crate) fn count(&self) {
        let shared = self.engine.shared();
        let states = [
            ("unconfirmed", WebhookState::Unconfirmed),
            ("well", WebhookState::Well),
            ("failing", WebhookState::Failing),
        ];
        let count =
            |state: WebhookState| shared.webhooks().filter(|webhook| self.state(webhook) == state).count();
        let counted = states.map(|(word, state)| (word, i64::try_from(count(state)).unwrap_or(i64::MAX)));
        self.counts.show(counted.into_iter());
    }

    /// Sends a webhook something that tells of nothing, after a handshake if there was none. If it takes it, its courier tries
    /// again at once.
    pub(crate) async fn test(&self, webhook: &Webhook) -> WebhookTest {
        let begin = Instant::now();
        let mut line = Line::new(&webhook.url, Arc::clone(&self.trust));
        let tested = self.try_out(webhook, &mut line).await;
        if tested.is_ok()
            && let Some(desk) = self.desk(webhook.number)
        {
            desk.nudge.notify_one();
        }
        let millis = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let problem = tested.err().map(|trouble| trouble.to_string());
        WebhookTest { delivered: problem.is_none(), problem, millis }
    }

    async fn try_out(&self, webhook: &Webhook, line: &mut Line) -> Result<(), Trouble> {
        if webhook.handshake == Handshake::Wanted {
            handshake(self, webhook, line).await?;
        }
        let at = Moment(self.engine.clock().now().wall);
        let site = self.site(ClusterId::DEFAULT);
        let push = sample(webhook.name.as_str(), &random_code().unwrap_or_default(), at, &site);
        check(&line.send(&notification(webhook, &self.origin, &push, 1)).await?)
    }

    /// The site of a cluster; the usual one, if the cluster is gone.
    fn site(&self, cluster: ClusterId) -> Site {
        self.engine.of(cluster).look(|state| state.site.clone()).unwrap_or_default()
    }

    fn desk(&self, webhook: u32) -> Option<Arc<Desk>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner).get(&webhook).cloned()
    }
}

/// Asks a webhook whether it wants to be told, and keeps its answer. Says how often a minute.
async fn handshake(post: &Post, webhook: &Webhook, line: &mut Line) -> Result<Option<u32>, Trouble> {
    let shaken = shake(post, webhook, line).await;
    let counter = if shaken.is_ok() { &post.counts.handshakes_done } else { &post.counts.handshakes_failed };
    counter.inc();
    let per_minute = shaken?;
    if post.engine.confirm_webhook(webhook.number, per_minute).await.is_err() {
        return Err(Trouble::Unwilling("nothing can be written now"));
    }
    tracing::info!(webhook = webhook.name.as_str(), "a webhook wants to be told");
    Ok(per_minute)
}

async fn shake(post: &Post, webhook: &Webhook, line: &mut Line) -> Result<Option<u32>, Trouble> {
    let code = random_code().map_err(|_| Trouble::Unwilling("no random numbers to be had"))?;
    let site = post.site(ClusterId::DEFAULT);
    let at = Moment(post.engine.clock().now().wall);
    let answer = line.send(&question(webhook, &post.origin, &code, (at, &site))).await?;
    understood(webhook.schema, &answer, &post.origin, &code)
}

/// A code that nobody can guess.
fn random_code() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

impl Office {
    /// Has every webhook told what is for it, until that stops.
    pub(crate) fn open(post: Arc<Post>, stop: watch::Receiver<bool>) -> Self {
        Self { running: tokio::spawn(run(post, stop)) }
    }

    /// Waits until nobody is told any more, and how far they were told is written down.
    pub(crate) async fn close(self) {
        if let Err(problem) = self.running.await {
            tracing::error!(%problem, "webhooks could not be stopped");
        }
    }
}

async fn run(post: Arc<Post>, mut stop: watch::Receiver<bool>) {
    let (mut entries, mut commits) = (post.engine.entries(), post.engine.commits());
    let news = watch::Sender::new(0);
    let mut couriers = BTreeMap::new();
    let mut known: Option<Arc<SharedState>> = None;
    let register = tokio::spawn({
        let post = Arc::clone(&post);
        async move { post.register.keep(&post.engine).await }
    });
    loop {
        let shared = post.engine.shared();
        if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &shared)) {
            employ(&post, &shared, &news, &mut couriers);
            known = Some(shared);
        }
        tokio::select! {
            entry = entries.recv() => match entry {
                Ok(entry) if entry.notices.is_empty() => {}
                Ok(entry) => drop(news.send_replace(entry.number)),
                // What it was, the trail tells.
                Err(RecvError::Lagged(_)) => news.send_modify(|_| {}),
                Err(RecvError::Closed) => break,
            },
            changed = commits.changed() => if changed.is_err() { break },
            // It is an error if nobody is left who could say so: then it is time to stop, too.
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    couriers.values().for_each(JoinHandle::abort);
    register.abort();
    post.register.write(&post.engine).await;
}

/// Every webhook has a courier, and nobody else.
fn employ(
    post: &Arc<Post>,
    shared: &SharedState,
    news: &watch::Sender<u64>,
    couriers: &mut BTreeMap<u32, JoinHandle<()>>,
) {
    let mut desks = post.desks.lock().unwrap_or_else(PoisonError::into_inner);
    couriers.retain(|number, courier| {
        let stays = shared.find_webhook(*number).is_some();
        if !stays {
            courier.abort();
            desks.remove(number);
        }
        stays
    });
    for webhook in shared.webhooks() {
        couriers.entry(webhook.number).or_insert_with(|| {
            let desk = Arc::new(Desk::new(webhook.progress));
            desks.insert(webhook.number, Arc::clone(&desk));
            let courier = Courier::new(Arc::clone(post), webhook.clone(), desk, news.subscribe());
            tokio::spawn(courier.run())
        });
    }
}
