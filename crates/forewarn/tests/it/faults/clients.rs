//! Faults as clients see them: Python's standard library, curl, and our own client, which survives each of them.

use std::time::Duration;

use forewarn_client::{Client, Endpoint, PollStep, Status, Word};
use forewarn_testkit::{NEWEST, TestServer, clean_command};

use super::{faults_left, inject, server};

fn url(server: &TestServer, machine: &str) -> String {
    format!("{}/vm/{machine}{NEWEST}", server.metadata_url())
}

#[test]
fn python_sees_each_fault() {
    let server = server();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/faults/clients.py");
    let poll = |patience: &str| {
        let mut command = clean_command("python3");
        let output = command.args([script, &url(&server, "solo"), patience]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    for (answer, seen) in [
        ("500", "status 500 retry-after None"),
        ("429", "status 429 retry-after 1"),
        ("410", "status 410 retry-after None"),
        ("reset", "reset"),
        ("truncated", "incomplete"),
        ("empty", "body of 0 bytes"),
        ("slow=1s", "document"),
        ("jump", "document"),
    ] {
        inject(&server, &format!("solo --answer {answer}"));
        assert_eq!(poll("60"), seen, "{answer}");
        assert_eq!(poll("60"), "document", "after {answer}");
    }
    inject(&server, "solo --answer hang");
    assert_eq!(poll("0.5"), "timeout");
    assert_eq!(poll("60"), "document");
}

#[test]
fn curl_has_an_exit_code_for_each_fault() {
    let server = server();
    let poll = || {
        let mut command = clean_command("curl");
        command.args(["-sS", "--fail", "--max-time", "2", "-H", "Metadata: true", &url(&server, "solo")]);
        command.output().unwrap().status.code()
    };
    for (answer, code) in [("503", 22), ("reset", 56), ("truncated", 18), ("hang", 28), ("empty", 0)] {
        inject(&server, &format!("solo --answer {answer}"));
        assert_eq!(poll(), Some(code), "{answer}");
        assert_eq!(poll(), Some(0), "after {answer}");
    }
}

/// Polls until a fault has ended, and returns the number of polls that failed.
async fn polls_until_healthy(client: &mut Client, server: &TestServer) -> u32 {
    let mut failed = 0;
    loop {
        match client.poll_step().await {
            PollStep::Failed { .. } => failed += 1,
            PollStep::Changed(_) | PollStep::Unchanged { .. } if faults_left(server) == 0 => return failed,
            PollStep::Changed(_) | PollStep::Unchanged { .. } => {}
        }
    }
}

/// Reads documents until one has a Scheduled event, and approves it, until the approval is accepted.
async fn approve_next(client: &mut Client) -> u32 {
    let event = loop {
        if let PollStep::Changed(observation) = client.poll_step().await
            && let Some(event) = observation.document.events.first()
            && event.status == Word::Known(Status::Scheduled)
        {
            break event.id;
        }
    };
    for failed in 0.. {
        if client.approve(&[event]).await.is_ok() {
            return failed;
        }
    }
    unreachable!("an approval fails a few times only")
}

#[tokio::test]
async fn our_client_reports_each_fault_tries_again_and_approves_afterwards() {
    let server = server();
    let endpoint = Endpoint::parse(&format!("{}/vm/solo", server.metadata_url())).unwrap();
    let mut client = Client::new(endpoint).with_long_poll(false).with_pace(Duration::from_millis(200));
    assert!(matches!(client.poll_step().await, PollStep::Changed(_)));
    for (answer, next, failures) in [
        ("500", 1, 1),
        ("429", 1, 1),
        ("503", 1, 1),
        ("404", 1, 1),
        // A connection that was used before may be closed at any time: the client connects again by itself.
        ("reset", 2, 1),
        ("truncated", 2, 1),
        ("empty", 1, 0),
        ("slow=1s", 1, 0),
        ("jump", 1, 0),
    ] {
        inject(&server, &format!("solo --next {next} --answer {answer}"));
        assert_eq!(polls_until_healthy(&mut client, &server).await, failures, "{answer}");
    }
    for (answer, failures) in [("500", 2), ("reset", 1), ("truncated", 1)] {
        server.run(&["vm", "restart", "solo"]);
        inject(&server, &format!("solo --request approve --next 2 --answer {answer}"));
        assert_eq!(approve_next(&mut client).await, failures, "{answer}");
        assert_eq!(server.status("solo"), "Started", "{answer}");
        server.advance("10m");
    }
}

#[tokio::test]
async fn our_client_gives_up_a_poll_that_hangs_and_polls_again() {
    let server = server();
    let endpoint = Endpoint::parse(&format!("{}/vm/solo", server.metadata_url())).unwrap();
    let mut client = Client::new(endpoint).with_long_poll(false).with_pace(Duration::from_millis(200));
    assert!(matches!(client.poll_step().await, PollStep::Changed(_)));
    inject(&server, "solo --answer hang");
    // Only the patience of the client passes, and at once.
    tokio::time::pause();
    let step = client.poll_step().await;
    tokio::time::resume();
    assert!(matches!(step, PollStep::Failed { .. }), "{step:?}");
    // The request may still be on its way.
    while faults_left(&server) > 0 {
        tokio::task::yield_now().await;
    }
    server.run(&["vm", "restart", "solo"]);
    assert_eq!(approve_next(&mut client).await, 0);
    assert_eq!(server.status("solo"), "Started");
}
