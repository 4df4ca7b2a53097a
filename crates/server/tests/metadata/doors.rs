//! Where machines come in.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use forewarn_lifecycle::Command;
use forewarn_metadata::{Door, Front, Identity, Listener, Settings};
use forewarn_server::{ControlHandle, Telemetry};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use crate::support::{Line, NEWEST, WEB_0, engine, get};

const NAME: &str = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";

fn serve(engine: &ControlHandle, listener: Listener) -> JoinHandle<std::io::Result<()>> {
    let front = Front::new(engine.clone(), Settings::default(), Arc::clone(Telemetry::new().metadata()));
    tokio::spawn(front.serve(listener, std::future::pending()))
}

fn open_unix(path: &Path, identity: Identity) -> Listener {
    let door = Door::Unix { path: path.to_owned(), mode: 0o600 };
    let mut listeners = door.open(identity, 4).unwrap();
    assert_eq!(listeners.len(), 1, "for however many threads");
    assert_eq!(listeners[0].address(), None);
    listeners.remove(0)
}

async fn connect_unix(path: &Path) -> Line<UnixStream> {
    Line(UnixStream::connect(path).await.unwrap())
}

#[tokio::test]
async fn a_unix_socket_belongs_to_one_machine_and_goes_with_its_listener() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("web_1");
    let engine = engine().await;
    let serving = serve(&engine, open_unix(&path, Identity::Machine("web/web_1".to_owned())));
    let mut line = connect_unix(&path).await;
    line.send(&get(NAME)).await;
    assert_eq!(line.answer().await.short(), (200, "web_1"));
    line.send("nonsense\r\n\r\n").await;
    assert_eq!(line.answer().await.status(), 400);
    assert_eq!(line.rest().await, "");
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    assert!(!path.exists());
}

#[tokio::test]
async fn a_caller_through_a_unix_socket_may_wait_and_hang_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("any");
    let engine = engine().await;
    engine.submit(Command::Enrol(forewarn_lifecycle::TenantId(0))).await.unwrap();
    serve(&engine, open_unix(&path, Identity::Prefix { default: Some("web_0".to_owned()) }));
    let wait = get(&format!("{NEWEST}&wait=60s&incarnation=1"));
    let mut line = connect_unix(&path).await;
    line.send(&wait).await;
    tokio::io::AsyncWriteExt::shutdown(&mut line.0).await.unwrap();
    assert_eq!(line.answer().await.header("ETag"), Some("\"1\""), "who sends no more waits no more");
    let mut line = connect_unix(&path).await;
    line.send(&wait).await;
    engine.submit(Command::Restart(WEB_0)).await.unwrap();
    assert_eq!(line.answer().await.header("ETag"), Some("\"2\""));
    line.send(&get(&format!("/vm/web_1{NAME}"))).await;
    assert_eq!(line.answer().await.short(), (200, "web_1"));
}

#[tokio::test]
async fn everybody_who_comes_through_an_interface_is_one_machine() {
    let door = Door::Interface { name: "lo".to_owned(), address: (Ipv4Addr::UNSPECIFIED, 0).into() };
    let Ok(mut listeners) = door.open(Identity::Machine("solo".to_owned()), 1) else {
        // Old kernels keep this for the privileged.
        return;
    };
    let port = listeners[0].address().unwrap().port();
    serve(&engine().await, listeners.remove(0));
    let stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let mut line = Line(stream);
    line.send(&get(NAME)).await;
    assert_eq!(line.answer().await.short(), (200, "solo"));
}
