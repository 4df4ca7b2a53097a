//! What is secret is sent, and shown to nobody; and who is told has to be who they say.

use std::fs;
use std::process::Stdio;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls_pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::program;
use forewarn_testkit::TestServer;
use forewarn_testkit::webhook_receiver::{WebhookReceiver, add, show, until_state};

const SECRET: &str = "s3cret-of-the-webhook";

/// promise: S4, W2
#[test]
fn secrets_are_sent_and_never_shown() {
    let (files, receiver) = (TempDir::new().unwrap(), WebhookReceiver::start());
    let server = TestServer::start_with(crate::program(), &["--log-level", "debug"]);
    server.enrol(&["solo"]);
    let file = files.path().join("authorization");
    fs::write(&file, format!("Bearer {SECRET}\n")).unwrap();
    let file = file.display().to_string();
    let url = receiver.url(&format!("/events?code={SECRET}"));
    server.run(&["webhook", "create", "ops", &url, "--authorization-file", &file]);
    server.restart("solo");
    let told = &receiver.until_taken(1)[0];
    assert_eq!(told.line, format!("POST /events?code={SECRET} HTTP/1.1"));
    for seen in receiver.seen() {
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {SECRET}").as_str()), "{seen:?}");
    }

    // Nobody can be reached any more, and nothing that goes wrong names it either.
    let gone = format!("http://127.0.0.1:9/x?code={SECRET}");
    server.run(&["webhook", "create", "gone", &gone, "--authorization-file", &file]);
    until_state(&server, "gone", "unconfirmed");
    let refused = [
        server.try_run(&["webhook", "test", "gone"]),
        server.try_run(&[
            "webhook",
            "create",
            "clear",
            &format!("http://h.example/?{SECRET}"),
            "--authorization-file",
            &file,
        ]),
        server.try_run(&["webhook", "create", "bad", &format!("ftp://h/?{SECRET}")]),
        server.try_run(&["webhook", "create", "ops", &url]),
    ];
    for output in &refused {
        assert!(!output.status.success());
    }
    let said = refused.iter().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    let shown = [
        server.run(&["webhook", "ls", "--output", "wide"]),
        show(&server, "ops").to_string(),
        show(&server, "gone").to_string(),
        server.run(&["webhook", "show", "ops"]),
        server.run(&["audit", "export", "-"]),
        server.run(&["audit", "ls"]),
        server.log(),
    ];
    for text in shown.into_iter().chain(said) {
        assert!(!text.contains(SECRET), "{text}");
    }
    let audit = server.run(&["audit", "export", "-"]);
    assert!(audit.contains("add_webhook") && audit.contains("/events?…"), "who added it is told: {audit}");
    assert!(String::from_utf8_lossy(&refused[1].stderr).contains("would be sent in the clear: clear"));
}

#[test]
fn a_secret_may_come_from_standard_input() {
    let (server, receiver) = (TestServer::start(crate::program()), WebhookReceiver::start());
    let mut command = std::process::Command::new(program());
    command.args([
        "--api",
        &format!("http://{}", server.api()),
        "webhook",
        "create",
        "ops",
        &receiver.url("/"),
    ]);
    command.args(["--authorization-file", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), SECRET.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    until_state(&server, "ops", "healthy");
    assert_eq!(receiver.seen()[0].header("authorization"), Some(SECRET));
    assert_eq!(show(&server, "ops")["authorization"], true);
}

/// A receiver that has a certificate for `localhost`; and the authority behind it, as PEM.
fn secure_receiver() -> (WebhookReceiver, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let config = ServerConfig::builder_with_provider(forewarn_server::tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let config = Arc::new(config);
    let secure = move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let secured: Box<dyn forewarn_testkit::webhook_receiver::Both> =
            Box::new(StreamOwned::new(connection, stream));
        secured
    };
    (WebhookReceiver::start_with(Arc::new(secure)), authority.pem())
}

/// promise: S4, W2
#[test]
fn a_certificate_has_to_be_of_an_authority_that_is_believed() {
    let files = TempDir::new().unwrap();
    let (receiver, authority) = secure_receiver();
    let file = files.path().join("ca.pem");
    fs::write(&file, authority).unwrap();
    let url = format!("https://localhost:{}/events", receiver.port());

    let server = TestServer::start_with(crate::program(), &["--webhook-ca", &file.display().to_string()]);
    server.enrol(&["solo"]);
    server.run(&["webhook", "create", "ops", &url]);
    until_state(&server, "ops", "healthy");
    server.restart("solo");
    assert_eq!(receiver.until_taken(1)[0].short(), "Scheduled Reboot solo");
    // It is for another name.
    server.run(&["webhook", "create", "other", &format!("https://127.0.0.1:{}/", receiver.port())]);
    let problem = problem_of(&server, "other");
    assert!(problem.contains("certificate"), "{problem}");
    drop(server);

    let before = receiver.seen().len();
    let server = TestServer::start(crate::program());
    server.run(&["webhook", "create", "ops", &url]);
    let problem = problem_of(&server, "ops");
    assert!(problem.starts_with("receiver is unreachable: "), "{problem}");
    assert_eq!(receiver.seen().len(), before, "nothing was said");
    let plain = WebhookReceiver::start();
    add(&server, "plain", &plain, &[]);
}

fn problem_of(server: &TestServer, name: &str) -> String {
    forewarn_testkit::wait_until("there is a problem", || {
        show(server, name)["error"].as_str().map(str::to_owned)
    })
}
