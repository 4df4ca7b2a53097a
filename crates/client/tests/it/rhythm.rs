//! When it asks: long polls, paces, pauses. Clocks are moved, not waited for.

use std::time::Duration;

use forewarn_client::{Error, PollStep};
use tokio::time;

use crate::script::{FOREWARN, Script, Step, bytes, document, empty, say};

/// Lets time pass while nothing is under way.
async fn pass(span: Duration) {
    time::pause();
    time::advance(span).await;
    time::resume();
}

fn incarnation(step: &PollStep) -> u64 {
    let PollStep::Changed(observation) = step else { panic!("news: {step:?}") };
    observation.document.incarnation
}

/// Whether a turn does not ask before that time has passed.
async fn is_quiet_for(client: &mut forewarn_client::Client, span: Duration) -> bool {
    time::pause();
    let silent = time::timeout(span, client.poll_step()).await.is_err();
    time::resume();
    silent
}

/// Longer than it takes a slow machine to look at the clock.
const PACE: Duration = Duration::from_secs(60);

/// promise: A6
#[tokio::test]
async fn forewarn_is_let_wait_and_others_are_asked_once_per_pace() {
    let mut script = Script::of([document(1, FOREWARN), document(2, FOREWARN)]).await;
    let mut client = script.client();
    assert_eq!(incarnation(&client.poll_step().await), 1);
    pass(Duration::from_millis(200)).await;
    assert_eq!(incarnation(&client.poll_step().await), 2);
    pass(Duration::from_millis(200)).await;
    let waiting = tokio::spawn(async move { client.poll_step().await });
    script.until_asked(3).await;
    waiting.abort();
    let asked = script.asked();
    assert!(!asked[0].text.contains("wait="), "there is nothing to wait for yet");
    assert!(
        asked[1].text.contains("api-version=2020-07-01&wait=30s&incarnation=1 HTTP/1.1"),
        "{}",
        asked[1].text
    );
    assert!(asked[2].text.contains("&wait=30s&incarnation=2 "), "{}", asked[2].text);

    for server in ["", "Server: Microsoft-IIS/10.0 IMDS\r\n", "Server: not-forewarn/1\r\n"] {
        let script = Script::of([document(1, server), document(2, server)]).await;
        let mut client = script.client().with_pace(PACE);
        assert_eq!(incarnation(&client.poll_step().await), 1);
        assert!(is_quiet_for(&mut client, PACE / 2).await);
        pass(PACE / 2).await;
        assert_eq!(incarnation(&client.poll_step().await), 2);
        assert!(script.asked().iter().all(|asked| !asked.text.contains("wait=")), "{server}");
    }
}

#[tokio::test]
async fn a_pace_and_polls_that_do_not_wait_can_be_asked_for() {
    let script = Script::of([document(1, FOREWARN), document(2, FOREWARN)]).await;
    let mut client = script.client().with_pace(PACE).with_long_poll(false);
    assert_eq!(incarnation(&client.poll_step().await), 1);
    assert!(is_quiet_for(&mut client, PACE / 2).await);
    pass(PACE / 2).await;
    assert_eq!(incarnation(&client.poll_step().await), 2);
    assert!(!script.asked()[1].text.contains("wait="));
}

#[tokio::test]
async fn an_endpoint_that_should_wait_and_does_not_is_not_hammered() {
    let unchanged = || say(304, FOREWARN, "");
    let script = Script::of([document(1, FOREWARN), unchanged(), unchanged()]).await;
    let mut client = script.client().with_pace(PACE);
    client.poll_step().await;
    pass(Duration::from_millis(200)).await;
    assert!(matches!(client.poll_step().await, PollStep::Unchanged { .. }));
    assert!(is_quiet_for(&mut client, PACE / 2).await);
    pass(PACE / 2).await;
    assert!(matches!(client.poll_step().await, PollStep::Unchanged { .. }));
    assert_eq!(script.asked().len(), 3);
}

#[tokio::test]
async fn older_editions_are_tried_one_after_the_other_without_growing_pauses() {
    let no = || say(400, "", r#"{"error":"Bad request"}"#);
    let mut script = Vec::from_iter((0..6).map(|_| no()));
    script.push(document(1, ""));
    let script = Script::of(script).await;
    let mut client = script.client();
    for _ in 0..6 {
        let PollStep::Failed { pause, .. } = client.poll_step().await else { panic!("it is refused") };
        assert_eq!(pause, Duration::from_millis(200));
        pass(pause).await;
    }
    assert_eq!(incarnation(&client.poll_step().await), 1);
    assert_eq!(client.edition().as_str(), "2017-03-01");
}

/// promise: A6
#[tokio::test]
async fn failures_are_told_with_growing_pauses_that_are_kept() {
    let steps = (0..6).map(|_| say(500, "", "")).chain([document(1, "")]);
    let script = Script::of(steps).await;
    let mut client = script.client();
    let mut least = Duration::from_millis(500);
    for number in 1..=6 {
        let PollStep::Failed { error, pause } = client.poll_step().await else { panic!("a failure") };
        assert!(matches!(error, Error::Busy { status: 500, .. }) && client.failures() == number);
        assert!(
            pause >= least.min(Duration::from_millis(7_500)) && pause <= least * 2,
            "{number}: {pause:?}"
        );
        least *= 2;
        let asked = script.asked().len();
        assert!(is_quiet_for(&mut client, pause / 4).await);
        assert_eq!(script.asked().len(), asked);
        pass(pause).await;
    }
    assert_eq!(incarnation(&client.poll_step().await), 1);
    assert_eq!(client.failures(), 0);
}

/// promise: A6
#[tokio::test]
async fn who_asks_to_be_left_alone_is() {
    let script = Script::of([say(429, "Retry-After: 60\r\n", ""), document(1, "")]).await;
    let mut client = script.client();
    let PollStep::Failed { pause, .. } = client.poll_step().await else { panic!("a failure") };
    assert!(pause >= Duration::from_secs(60) && pause <= Duration::from_secs(75), "{pause:?}");
    assert!(is_quiet_for(&mut client, Duration::from_secs(30)).await);
    pass(Duration::from_secs(50)).await;
    assert_eq!(incarnation(&client.poll_step().await), 1);
}

/// promise: A6
#[tokio::test]
async fn the_first_answer_may_take_two_minutes_and_later_ones_may_not() {
    let mut script = Script::of([]).await;
    let mut client = script.client();
    let waiting = tokio::spawn(async move {
        let step = client.poll_step().await;
        (client, step)
    });
    script.until_asked(1).await;
    pass(Duration::from_secs(149)).await;
    assert!(!waiting.is_finished());
    pass(Duration::from_secs(1)).await;
    let (_, step) = waiting.await.unwrap();
    assert!(
        matches!(step, PollStep::Failed { error: Error::TimedOut { limit, .. }, .. } if limit == Duration::from_secs(150))
    );

    let mut script = Script::of([document(1, "")]).await;
    let mut client = script.client();
    client.poll_step().await;
    pass(Duration::from_secs(1)).await;
    let waiting = tokio::spawn(async move { client.poll_step().await });
    script.until_asked(2).await;
    pass(Duration::from_secs(10)).await;
    let step = waiting.await.unwrap();
    assert!(
        matches!(step, PollStep::Failed { error: Error::TimedOut { limit, .. }, .. } if limit == Duration::from_secs(10))
    );
}

#[tokio::test]
async fn a_turn_that_is_dropped_gives_up_its_connection_and_nothing_else() {
    let mut script = Script::of([document(1, "")]).await;
    let mut client = script.client().with_pace(PACE);
    client.poll_step().await;
    for asked in 2..5 {
        pass(PACE).await;
        tokio::select! {
            step = client.poll_step() => panic!("nobody answers: {step:?}"),
            () = script.until_asked(asked) => {}
        }
        assert!(is_quiet_for(&mut client, PACE / 2).await, "it is not asked again at once");
    }
    let asked = script.asked();
    assert_eq!(asked.len(), 4);
    let connections: Vec<_> = asked.iter().map(|asked| asked.connection).collect();
    assert_eq!(connections, [0, 0, 1, 2]);
    assert!(asked[3].text.contains("if-none-match: \"1\""), "what was known is known");
}

#[tokio::test]
async fn after_a_failure_the_whole_document_is_asked_for() {
    let script = Script::of([
        document(5, FOREWARN),
        say(503, "", ""),
        say(200, FOREWARN, &empty(5)),
        Step::Say(bytes(200, FOREWARN, &empty(1))),
    ])
    .await;
    let mut client = script.client();
    assert_eq!(incarnation(&client.poll_step().await), 5);
    pass(Duration::from_secs(1)).await;
    assert!(matches!(client.poll_step().await, PollStep::Failed { .. }));
    pass(Duration::from_secs(2)).await;
    assert!(matches!(client.poll_step().await, PollStep::Unchanged { .. }), "it is the same still");
    pass(Duration::from_secs(2)).await;
    assert_eq!(incarnation(&client.poll_step().await), 1, "a server that has begun anew");
    let asked = script.asked();
    assert!(asked[1].text.contains("if-none-match"));
    assert!(
        !asked[2].text.contains("if-none-match") && !asked[2].text.contains("wait="),
        "{}",
        asked[2].text
    );
}

#[tokio::test]
async fn next_goes_on_until_there_is_news() {
    let script = Script::of([say(500, "", ""), say(200, "", ""), document(4, "")]).await;
    let mut client = script.client().with_pace(Duration::from_millis(200));
    assert_eq!(client.next().await.document.incarnation, 4);
    assert_eq!(script.asked().len(), 3);
}
