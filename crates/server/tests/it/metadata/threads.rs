//! Several threads, and their stop.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_lifecycle::{Command, TenantId};
use forewarn_metadata::{Endpoint, Identity, ListenAddress, Settings, Threads};
use forewarn_server::{ControlHandle, Telemetry};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::metadata::support::{Connection, NEWEST, control, get};

const EMPTY: (u16, &str) = (200, r#"{"DocumentIncarnation":1,"Events":[]}"#);

struct Running {
    control: ControlHandle,
    telemetry: Arc<Telemetry>,
    threads: Threads,
    at: SocketAddr,
}

async fn run(count: usize) -> Running {
    let control = control().await;
    control.submit(Command::Enrol(TenantId(0))).await.unwrap();
    let door = ListenAddress::Tcp((Ipv4Addr::LOCALHOST, 0).into());
    let listeners = door.open(Identity::Machine("web_0".to_owned()), count).unwrap();
    let at = listeners[0].address().unwrap();
    let telemetry = Telemetry::new();
    let endpoint = Endpoint::new(control.clone(), Settings::default(), Arc::clone(telemetry.metadata()));
    let threads = Threads::start(&endpoint, NonZeroUsize::new(count).unwrap(), vec![listeners]).unwrap();
    Running { control, telemetry, threads, at }
}

async fn connect(at: SocketAddr) -> Connection {
    Connection(TcpStream::connect(at).await.unwrap())
}

/// Stops the threads. Returns the time that took.
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
        let mut connection = connect(running.at).await;
        connection.send(&get(NEWEST)).await;
        lines.push(connection);
    }
    for connection in &mut lines {
        assert_eq!(connection.answer().await.short(), EMPTY);
    }
    assert!(stop(running.threads).await < Duration::from_secs(1), "no connection delayed the stop");
    for connection in &mut lines {
        assert_eq!(connection.rest().await, "", "idle connections are closed");
    }
    assert!(TcpStream::connect(running.at).await.is_err(), "the listener is closed");
}

/// promise: X2
#[tokio::test]
async fn who_waits_for_news_is_answered_when_the_server_stops() {
    let running = run(2).await;
    let mut connection = connect(running.at).await;
    connection.send(&get(&format!("{NEWEST}&wait=60s&incarnation=1"))).await;
    while !running.telemetry.encode().contains("forewarn_metadata_waiting_requests 1\n") {
        tokio::task::yield_now().await;
    }
    assert!(stop(running.threads).await < Duration::from_secs(1));
    let answer = connection.answer().await;
    assert_eq!((answer.short(), answer.header("Connection")), (EMPTY, Some("close")));
    assert_eq!(connection.rest().await, "");
    drop(running.control);
}

/// promise: X2
#[tokio::test]
async fn a_request_that_has_begun_is_waited_for_but_not_for_long() {
    let running = run(1).await;
    let head = get(NEWEST);
    let mut prompt = connect(running.at).await;
    prompt.send(&head[..30]).await;
    let mut slow = connect(running.at).await;
    slow.send(&head[..30]).await;
    // One thread reads requests in order: when the third is answered, both others have begun.
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
