//! Routes and handlers of stories, which only a server for development runs: in the rules, on a fleet and a clock of
//! their own. The fleet and the clock of the server do not change.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use forewarn_control::shared::Role;
use forewarn_story::library::{Scenario, library};
use forewarn_story::{
    BEGINNING, CheckedExpectation, RunEnd, StepDocument, StepLimits, StoryError, StoryRun, StoryStep, parse,
    run_in_steps,
};
use forewarn_types::{Moment, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::body::read;
use super::context::OperatorRequest;
use super::problem::{ApiProblem, ProblemKind};
use super::reads::JsonResult;
use super::required_permit::RequiredPermit;
use super::route::{Link, Route};
use crate::clock::ClockKind;
use crate::long_work::run_long_work;

/// Bytes of a story.
const STORY_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a request: JSON writes a byte as up to six.
const BODY_BYTES_MAX: usize = 6 * STORY_BYTES_MAX + 1024;

/// Limits of one run.
const LIMITS: StepLimits =
    StepLimits { steps_max: 2_000, bytes_max: 4 * 1024 * 1024, time_max: Duration::from_secs(5) };

/// Runs at the same time. Others wait: a run is short.
static RUNS: Semaphore = Semaphore::const_new(2);

/// The stories of the library.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StoryList {
    /// Stories, in alphabetical order.
    items: Vec<StoryView>,
}

/// A story of the library.
#[derive(Debug, Serialize, JsonSchema)]
struct StoryView {
    /// Name, as `forewarn story show NAME` takes it.
    name: &'static str,
    /// The story in one line.
    title: &'static str,
    /// Types of the events that occur.
    events: Vec<&'static str>,
    /// Text of the story.
    text: String,
}

/// A story to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StoryToRun {
    /// Text of the story, at most 64 KiB.
    #[schemars(length(max = STORY_BYTES_MAX))]
    story: String,
}

/// A run of a story.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StoryRunView {
    result: StoryResult,
    /// Start of the story on its own clock.
    beginning: Moment,
    /// Steps, in order.
    steps: Vec<StepView>,
    /// Ids of the events that texts call E1, E2, … in this order.
    events: Vec<String>,
    /// Final state of the machines, line by line; empty unless the story has passed.
    machines: Vec<String>,
    /// The reason why the story has not passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<StoryErrorView>,
}

/// Result of a run: `passed`, `failed`, or `stopped` at a limit of the server.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StoryResult {
    Passed,
    Failed,
    Stopped,
}

/// Everything that a statement did at one instant.
#[derive(Debug, Serialize, JsonSchema)]
struct StepView {
    /// Line of the statement, from 1.
    line: usize,
    /// The statement, with the values of its variables and without its time.
    statement: String,
    /// Time on the clock of the story.
    at: Moment,
    /// Time since the beginning of the story.
    elapsed: Span,
    /// What happened, line by line.
    text: Vec<String>,
    /// Documents that have changed.
    documents: Vec<StepDocumentView>,
    /// Expectations that were checked.
    expectations: Vec<ExpectationView>,
}

/// A changed document.
#[derive(Debug, Serialize, JsonSchema)]
struct StepDocumentView {
    /// Tenant whose machines read it.
    tenant: String,
    /// The document as JSON text, in the newest api-version. Absent if the tenant no longer exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
}

/// A checked expectation.
#[derive(Debug, Serialize, JsonSchema)]
struct ExpectationView {
    /// Expected condition, such as `solo Started`.
    expected: String,
    /// True if it holds.
    holds: bool,
    /// Condition that was found instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

/// An error in a story, or a failed statement or expectation.
#[derive(Debug, Serialize, JsonSchema)]
struct StoryErrorView {
    /// Line, from 1.
    line: usize,
    /// Column of the word, from 1.
    column: usize,
    /// Length of the word.
    width: usize,
    /// The line, with the values of its variables.
    text: String,
    /// Description for people.
    message: String,
    /// Hint, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Expected condition, if an expectation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    /// Condition that was found instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/stories",
            "listStories",
            "List the stories of the library with their texts (test servers only)",
            list,
        )
        .json::<StoryList>()
        .may_fail_with(&[ProblemKind::Refused]),
        Route::post::<StoryToRun, _, _>(
            "/v1/stories/run",
            "runStory",
            "Run a story in the rules, apart from the fleet, and get its steps (test servers only)",
            run,
        )
        .changing_nothing()
        .requires(RequiredPermit::Tenants(Role::Viewer))
        .body_bytes_max(BODY_BYTES_MAX)
        .json::<StoryRunView>()
        .may_fail_with(&[ProblemKind::Refused])
        .link(Link::to("listStories", "Stories of the library.")),
    ]
}

async fn list(request: OperatorRequest) -> JsonResult<StoryList> {
    check_server(&request)?;
    Ok(Json(StoryList { items: library().iter().map(StoryView::from).collect() }))
}

async fn run(request: OperatorRequest, body: Bytes) -> JsonResult<StoryRunView> {
    check_server(&request)?;
    let StoryToRun { story } = read(&body)?;
    if story.len() > STORY_BYTES_MAX {
        let detail = format!(
            "the story is too long: {} bytes, not {STORY_BYTES_MAX}\n  hint: `forewarn story run FILE` runs it",
            story.len()
        );
        return Err(ApiProblem::bad(detail));
    }
    // The semaphore is never closed. A run that nobody waits for keeps its permit until it ends.
    let permit = RUNS.acquire().await.ok();
    let running = run_long_work(move || {
        let view = play(&story);
        drop(permit);
        view
    });
    Ok(Json(running.await))
}

/// Rejects the request on a server whose clock is real.
fn check_server(request: &OperatorRequest) -> Result<(), ApiProblem> {
    match request.api.control.clock().kind() {
        ClockKind::Virtual => Ok(()),
        ClockKind::Real | ClockKind::Accelerated { .. } => Err(ApiProblem::conflict(
            "only a server for development runs stories\n  hint: `forewarn story run FILE` runs them without a server",
        )),
    }
}

fn play(text: &str) -> StoryRunView {
    let StoryRun { steps, events, machines, end } = match parse(text) {
        Ok(story) => run_in_steps(&story, LIMITS),
        Err(error) => StoryRun {
            steps: Vec::new(),
            events: Vec::new(),
            machines: Vec::new(),
            end: RunEnd::Failed(error),
        },
    };
    let (result, error) = match end {
        RunEnd::Passed => (StoryResult::Passed, None),
        RunEnd::Failed(error) => (StoryResult::Failed, Some(error)),
        RunEnd::Stopped(error) => (StoryResult::Stopped, Some(error)),
    };
    StoryRunView {
        result,
        beginning: Moment(BEGINNING),
        steps: steps.into_iter().map(StepView::from).collect(),
        events: events.iter().map(ToString::to_string).collect(),
        machines: machines.iter().map(|line| line.trim().to_owned()).collect(),
        error: error.map(StoryErrorView::from),
    }
}

impl From<&Scenario> for StoryView {
    fn from(scenario: &Scenario) -> Self {
        let (title, events, text) = (scenario.title(), scenario.events(), scenario.story());
        Self { name: scenario.name, title, events, text }
    }
}

impl From<StoryStep> for StepView {
    fn from(StoryStep { line, statement, at, text, documents, expectations }: StoryStep) -> Self {
        Self {
            line,
            statement,
            at: Moment(BEGINNING.plus(at)),
            elapsed: Span(at),
            text: text.iter().map(|line| line.strip_prefix(INDENT).unwrap_or(line).to_owned()).collect(),
            documents: documents.into_iter().map(StepDocumentView::from).collect(),
            expectations: expectations.into_iter().map(ExpectationView::from).collect(),
        }
    }
}

/// Indentation of notes in a transcript.
const INDENT: &str = "    ";

impl From<StepDocument> for StepDocumentView {
    fn from(StepDocument { tenant, document }: StepDocument) -> Self {
        Self { tenant, document }
    }
}

impl From<CheckedExpectation> for ExpectationView {
    fn from(CheckedExpectation { expected, found }: CheckedExpectation) -> Self {
        Self { expected, holds: found.is_none(), found }
    }
}

impl From<StoryError> for StoryErrorView {
    fn from(StoryError { line, column, width, text, message, failure }: StoryError) -> Self {
        let mut lines = message.lines().map(str::trim);
        let message = lines.next().unwrap_or_default().to_owned();
        let hints: Vec<_> = lines.map(|hint| hint.strip_prefix("hint: ").unwrap_or(hint)).collect();
        let hint = Some(hints.join("\n")).filter(|hint| !hint.is_empty());
        let (expected, found) = failure.map_or((None, None), |failure| (failure.expected, failure.actual));
        Self { line, column, width, text, message, hint, expected, found }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{Method, StatusCode};
    use serde_json::{Value, json};

    use super::super::Access;
    use super::super::tests::TestServer;
    use super::*;

    async fn run_text(server: &TestServer, story: &str) -> (StatusCode, Value) {
        let body = json!({ "story": story }).to_string();
        let (status, _, view) = server.send(Method::POST, "/v1/stories/run", "application/json", body).await;
        (status, view)
    }

    #[tokio::test]
    async fn a_run_shows_documents_and_expectations_step_by_step() {
        let server = TestServer::new(Access::Open("anyone"));
        let story = "host h1\nvm solo on h1\npoll solo\nat 10s update host h1\nawait solo nothing within 1h\nexpect solo boots 1\n";
        let (status, run) = run_text(&server, story).await;
        assert_eq!((status, &run["result"]), (StatusCode::OK, &json!("passed")), "{run}");
        let steps = run["steps"].as_array().unwrap();
        let lines: Vec<_> = steps.iter().map(|step| step["line"].as_u64().unwrap()).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5, 5, 5, 6], "{run}");
        let elapsed: Vec<_> = steps.iter().map(|step| step["elapsed"].as_str().unwrap()).collect();
        assert_eq!(elapsed, ["0s", "0s", "0s", "10s", "10s", "15m10s", "15m19s", "15m19s"], "{run}");
        let document = &steps[3]["documents"][0];
        assert_eq!(document["tenant"], "solo");
        let document: Value = serde_json::from_str(document["document"].as_str().unwrap()).unwrap();
        assert_eq!(document["Events"][0]["EventId"], run["events"][0]);
        assert_eq!(steps[6]["expectations"], json!([{ "expected": "solo nothing", "holds": true }]));
        assert_eq!(steps[7]["expectations"], json!([{ "expected": "solo boots 1", "holds": true }]));
        assert_eq!(run["machines"].as_array().unwrap().len(), 1);
        // The server itself has no such machine.
        let (_, _, machines) = server.send(Method::GET, "/v1/machines", "", "").await;
        assert_eq!(machines["items"], json!([]));
    }

    #[tokio::test]
    async fn a_failure_has_its_line_and_a_hint() {
        let server = TestServer::new(Access::Open("anyone"));
        let (status, run) = run_text(&server, "host h1\nhots h2\n").await;
        assert_eq!((status, &run["result"]), (StatusCode::OK, &json!("failed")));
        assert_eq!((&run["error"]["line"], &run["steps"]), (&json!(2), &json!([])));
        assert_eq!(run["error"]["message"], "unknown statement; did you mean `host`?");

        let (_, run) = run_text(&server, "host h1\nvm solo on h9\n").await;
        let error = &run["error"];
        assert_eq!(
            (&error["line"], &error["column"], &error["hint"]),
            (&json!(2), &json!(12), &json!("did you mean h1?"))
        );

        let (_, run) = run_text(&server, "host h1\nvm solo on h1\nexpect solo boots 2\n").await;
        let error = &run["error"];
        assert_eq!(
            (&run["result"], &error["line"], &error["found"]),
            (&json!("failed"), &json!(3), &json!("boot 1"))
        );
        let last = run["steps"].as_array().unwrap().last().unwrap();
        let expectation = json!({ "expected": "solo boots 2", "holds": false, "found": "boot 1" });
        assert_eq!(last["expectations"], json!([expectation]));
    }

    #[tokio::test]
    async fn a_story_has_limits() {
        let server = TestServer::new(Access::Open("anyone"));
        let long = format!("# {}\n", "x".repeat(STORY_BYTES_MAX));
        assert_eq!(run_text(&server, &long).await.0, StatusCode::BAD_REQUEST);

        let many = "host h1\nvm solo on h1\nrepeat 3000 times\n  poll solo\nend\n";
        let (status, run) = run_text(&server, many).await;
        assert_eq!(
            (status, &run["result"], &run["error"]["line"]),
            (StatusCode::OK, &json!("stopped"), &json!(4))
        );
        assert!(run["error"]["message"].as_str().unwrap().contains("at most 2000 steps"), "{run}");
    }

    #[tokio::test]
    async fn the_library_has_texts_that_pass() {
        let server = TestServer::new(Access::Open("anyone"));
        let (status, _, list) = server.send(Method::GET, "/v1/stories", "", "").await;
        assert_eq!(status, StatusCode::OK);
        let stories = list["items"].as_array().unwrap();
        assert_eq!(stories.len(), library().len());
        for story in stories {
            let (_, run) = run_text(&server, story["text"].as_str().unwrap()).await;
            assert_eq!(run["result"], "passed", "{}: {}", story["name"], run["error"]);
        }
    }

    #[test]
    fn a_run_ends_at_its_limit_of_time_and_bytes() {
        let story = parse("host h1\nvm solo on h1\npoll solo\nadvance 1d\n").unwrap();
        let run = run_in_steps(&story, StepLimits { time_max: Duration::ZERO, ..LIMITS });
        assert!(matches!(run.end, RunEnd::Stopped(ref error) if error.line == 1), "{run:?}");
        let run = run_in_steps(&story, StepLimits { bytes_max: 20, ..LIMITS });
        assert!(matches!(run.end, RunEnd::Stopped(ref error) if error.line == 3), "{run:?}");
    }
}
