//! Several threads, and how they stop.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_lifecycle::{Command, TenantId};
use forewarn_metadata::{Door, Front, Identity, Settings, Threads};
use forewarn_server::{ControlHandle, Telemetry};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::support::{Line, NEWEST, engine, get};

const EMPTY: (u16, &str) = (200, r#"{"DocumentIncarnation":1,"Events":[]}"#);

struct Running {
    engine: ControlHandle,
    telemetry: Arc<Telemetry>,
    threads: Threads,
    at: SocketAddr,
}

async fn run(count: usize) -> Running {
    let engine = engine().await;
    engine.submit(Command::Enrol(TenantId(0))).await.unwrap();
    let door = Door::Tcp((Ipv4Addr::LOCALHOST, 0).into());
    let listeners = door.open(Identity::Machine("web_0".to_owned()), count).unwrap();
    let at = listeners[0].address().unwrap();
    let telemetry = Telemetry::new();
    let front = Front::new(engine.clone(), Settings::default(), Arc::clone(telemetry.metadata()));
    let threads = Threads::start(&front, NonZeroUsize::new(count).unwrap(), vec![listeners]).unwrap();
    Running { engine, telemetry, threads, at }
}

async fn connect(at: SocketAddr) -> Line {
    Line(TcpStream::connect(at).await.unwrap())
}

/// Stops the threads; says how long that took.
async fn stop(threads: Threads) -> Duration {
    let start = Instant::now();
    tokio::task::spawn_blocking(move || threads.stop()).await.unwrap();
    start.elapsed()
}

#[tokio::test]
async fn every_thread_answers() {
    let running = run(3).await;
    let mut lines = Vec::new();
    for _ in 0..60 {
        let mut line = connect(running.at).await;
        line.send(&get(NEWEST)).await;
        lines.push(line);
    }
    for line in &mut lines {
        assert_eq!(line.answer().await.short(), EMPTY);
    }
    assert!(stop(running.threads).await < Duration::from_secs(1), "nobody had to be waited for");
    for line in &mut lines {
        assert_eq!(line.rest().await, "", "whoever was idle is closed");
    }
    assert!(TcpStream::connect(running.at).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn who_waits_for_news_is_answered_when_the_server_stops() {
    let running = run(2).await;
    let mut line = connect(running.at).await;
    line.send(&get(&format!("{NEWEST}&wait=60s&incarnation=1"))).await;
    while !running.telemetry.encode().contains("forewarn_metadata_waiting_requests 1\n") {
        tokio::task::yield_now().await;
    }
    assert!(stop(running.threads).await < Duration::from_secs(1));
    let answer = line.answer().await;
    assert_eq!((answer.short(), answer.header("Connection")), (EMPTY, Some("close")));
    assert_eq!(line.rest().await, "");
    drop(running.engine);
}

#[tokio::test]
async fn a_request_that_has_begun_is_waited_for_but_not_for_long() {
    let running = run(1).await;
    let head = get(NEWEST);
    let mut prompt = connect(running.at).await;
    prompt.send(&head[..30]).await;
    let mut slow = connect(running.at).await;
    slow.send(&head[..30]).await;
    // There is one thread, and what came first is read first: when a third is answered, both have begun.
    let mut third = connect(running.at).await;
    third.send(&head).await;
    third.answer().await;
    let stopping = tokio::spawn(stop(running.threads));
    while TcpStream::connect(running.at).await.is_ok() {
        tokio::task::yield_now().await;
    }
    prompt.send(&head[30..]).await;
    let answer = prompt.answer().await;
    assert_eq!((answer.short(), answer.header("Connection")), (EMPTY, Some("close")));
    let took = stopping.await.unwrap();
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(4), "{took:?}");
    let mut rest = Vec::new();
    drop(slow.0.read_to_end(&mut rest).await);
    assert!(rest.is_empty());
}
