//! Whatever the environment says of proxies, nothing goes through one.

use std::io::ErrorKind;
use std::net::TcpListener;

use forewarn_client::{Client, Endpoint, PollResponse};

use crate::script::{Script, document};

const ENDPOINT: &str = "FOREWARN_TEST_ENDPOINT";

/// promise: A6
#[tokio::test]
async fn a_proxy_in_the_environment_is_never_asked() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let script = Script::of([document(7, "")]).await;
    // The environment is that of a process, so there is one more: this test, with the endpoint told to it.
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "proxies::one_poll_of_the_endpoint_in_the_environment"]);
    child.env(ENDPOINT, script.endpoint().to_string()).env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(name, &url);
    }
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(script.asked().len(), 1);
    assert_eq!(proxy.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "somebody came to the proxy");
}

/// Does nothing on its own.
#[tokio::test]
async fn one_poll_of_the_endpoint_in_the_environment() {
    let Ok(endpoint) = std::env::var(ENDPOINT) else { return };
    assert!(std::env::var("ALL_PROXY").is_ok());
    let mut client = Client::new(Endpoint::parse(&endpoint).unwrap());
    assert!(matches!(client.poll().await.unwrap(), PollResponse::Document(_)));
}
