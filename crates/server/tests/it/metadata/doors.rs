//! Listeners of the metadata endpoint.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use forewarn_lifecycle::Command;
use forewarn_metadata::{Endpoint, Identity, ListenAddress, Listener, Settings};
use forewarn_server::{ControlHandle, Telemetry};
use tokio::net::{TcpSocket, UnixStream};
use tokio::task::JoinHandle;

use crate::metadata::support::{Connection, NEWEST, WEB_0, address, by_address, control, get};

const NAME: &str = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";

fn serve(control: &ControlHandle, listener: Listener) -> JoinHandle<std::io::Result<()>> {
    let endpoint =
        Endpoint::new(control.clone(), Settings::default(), Arc::clone(Telemetry::new().metadata()));
    tokio::spawn(endpoint.serve(listener, std::future::pending()))
}

fn open_unix(path: &Path, identity: Identity) -> Listener {
    let door = ListenAddress::Unix { path: path.to_owned(), mode: 0o600 };
    let mut listeners = door.open(identity, 4).unwrap();
    assert_eq!(listeners.len(), 1, "for however many threads");
    assert_eq!(listeners[0].address(), None);
    listeners.remove(0)
}

async fn connect_unix(path: &Path) -> Connection<UnixStream> {
    Connection(UnixStream::connect(path).await.unwrap())
}

/// promise: M3
#[tokio::test]
async fn a_unix_socket_belongs_to_one_machine_and_goes_with_its_listener() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("web_1");
    let control = control().await;
    let serving = serve(&control, open_unix(&path, Identity::Machine("web/web_1".to_owned())));
    let mut connection = connect_unix(&path).await;
    connection.send(&get(NAME)).await;
    assert_eq!(connection.answer().await.short(), (200, "web_1"));
    connection.send("nonsense\r\n\r\n").await;
    assert_eq!(connection.answer().await.status(), 400);
    assert_eq!(connection.rest().await, "");
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    assert!(!path.exists());
}

#[tokio::test]
async fn a_caller_through_a_unix_socket_may_wait_and_hang_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("any");
    let control = control().await;
    control.submit(Command::Enrol(forewarn_lifecycle::TenantId(0))).await.unwrap();
    serve(&control, open_unix(&path, Identity::Prefix { default: Some("web_0".to_owned()) }));
    let wait = get(&format!("{NEWEST}&wait=60s&incarnation=1"));
    let mut connection = connect_unix(&path).await;
    connection.send(&wait).await;
    tokio::io::AsyncWriteExt::shutdown(&mut connection.0).await.unwrap();
    assert_eq!(connection.answer().await.header("ETag"), Some("\"1\""), "who sends no more waits no more");
    let mut connection = connect_unix(&path).await;
    connection.send(&wait).await;
    control.submit(Command::Restart(WEB_0)).await.unwrap();
    assert_eq!(connection.answer().await.header("ETag"), Some("\"2\""));
    connection.send(&get(&format!("/vm/web_1{NAME}"))).await;
    assert_eq!(connection.answer().await.short(), (200, "web_1"));
}

/// promise: M3
#[tokio::test]
async fn everybody_who_comes_through_an_interface_is_one_machine() {
    let door = ListenAddress::Interface { name: "lo".to_owned(), address: (Ipv4Addr::UNSPECIFIED, 0).into() };
    let Ok(mut listeners) = door.open(Identity::Machine("solo".to_owned()), 1) else {
        // Old kernels require privileges for this.
        return;
    };
    let port = listeners[0].address().unwrap().port();
    serve(&control().await, listeners.remove(0));
    let stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let mut connection = Connection(stream);
    connection.send(&get(NAME)).await;
    assert_eq!(connection.answer().await.short(), (200, "solo"));
}

/// promise: M3
#[tokio::test]
async fn machines_behind_an_interface_may_be_known_by_their_addresses() {
    let door = ListenAddress::Interface { name: "lo".to_owned(), address: (Ipv4Addr::LOCALHOST, 0).into() };
    let Ok(mut listeners) = door.open(by_address(), 1) else {
        // Old kernels require privileges for this.
        return;
    };
    let at = listeners[0].address().unwrap();
    serve(&control().await, listeners.remove(0));
    for (from, expected) in [(address(WEB_0), 200), (Ipv4Addr::LOCALHOST, 403)] {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let mut connection = Connection(socket.connect(at).await.unwrap());
        connection.send(&get(NAME)).await;
        assert_eq!(connection.answer().await.status(), expected, "{from}");
    }
}
