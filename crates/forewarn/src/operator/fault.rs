//! `forewarn fault`: faults that a test server injects into its answers to one machine.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use forewarn_control::{ClearedFaults, FaultView, NewFault};
use forewarn_http_client::Method;
use forewarn_types::{FAULT_REQUESTS_MAX, FaultAnswer, FaultedRequest};

use super::Name;
use super::session::{Session, escaped};
use super::table::{Table, Width};

const EXAMPLES: &str = "\
Examples:
  forewarn fault create web_0 --next 3 --answer 500
  forewarn fault create web_0 --answer slow=2s
  forewarn fault create web_0 --request approve --answer reset
  forewarn fault create web_0 --answer hide=5s      until `forewarn fault clear web_0`
  forewarn fault create --webhook ops --next 2 --answer duplicate";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Inject a fault into the next answers to a machine, or messages of a webhook (only `dev` and `test`)
    #[command(before_help = EXAMPLES, alias = "add")]
    Create(FaultArgs),
    /// List faults that are not used up
    Ls,
    /// Show a fault
    Show {
        /// Number of the fault, as in `fault ls`
        id: u64,
    },
    /// Delete faults
    #[command(before_help = "Example:\n  forewarn fault delete 3")]
    Delete {
        /// Numbers of the faults, as in `fault ls`
        #[arg(required = true, value_name = "ID")]
        ids: Vec<u64>,
    },
    /// Clear faults: all, or those of a machine or a webhook
    #[command(before_help = "Examples:\n  forewarn fault clear\n  forewarn fault clear web_0")]
    Clear {
        /// Machine: NAME or TENANT/NAME [default: all machines and webhooks]
        #[arg(value_name = "VM")]
        machine: Option<Name>,
        /// Webhook, instead of a machine
        #[arg(long, value_name = "NAME", conflicts_with = "machine")]
        webhook: Option<Name>,
        /// Number of one fault: the same as `fault delete`
        #[arg(long, value_name = "ID", conflicts_with_all = ["machine", "webhook"], hide = true)]
        id: Option<u64>,
    },
}

#[derive(Args)]
pub(crate) struct FaultArgs {
    /// Machine: NAME or TENANT/NAME
    #[arg(value_name = "VM", required_unless_present = "webhook")]
    machine: Option<Name>,
    /// Webhook whose messages are sent twice, instead of a machine
    #[arg(long, value_name = "NAME", conflicts_with_all = ["machine", "request"])]
    webhook: Option<Name>,
    /// Answer: 400, 401, 403, 404, 408, 410, 429, 500, 502, 503, 504, hang, reset, truncated, empty, slow=2s, jump,
    /// hide=5s, or duplicate for a webhook
    #[arg(long, value_name = "ANSWER")]
    answer: FaultAnswer,
    /// Number of requests or messages [default: 1; for `hide`, until it is cleared]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(FAULT_REQUESTS_MAX)))]
    next: Option<u32>,
    /// Requests of the machine that get the answer
    #[arg(long, value_enum, default_value_t)]
    request: RequestArg,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum RequestArg {
    /// Requests for events
    #[default]
    Poll,
    /// Approvals
    Approve,
    /// Both
    Any,
}

impl RequestArg {
    fn word(self) -> FaultedRequest {
        match self {
            Self::Poll => FaultedRequest::Poll,
            Self::Approve => FaultedRequest::Approve,
            Self::Any => FaultedRequest::Any,
        }
    }
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Create(new) => {
            let request = new.webhook.is_none().then(|| new.request.word());
            let [machine, webhook] = [new.machine, new.webhook].map(|name| name.map(|Name(name)| name));
            let fault = NewFault { machine, webhook, request, next: new.next, answer: new.answer };
            session.send("/v1/faults", &fault, |fault| Ok(sentence(&fault)))
        }
        Command::Ls => {
            session.list("/v1/faults", |faults: Vec<FaultView>| Ok(table(&faults, session.width())))
        }
        Command::Show { id } => session.show(&path(id), |fault| Ok(facts(&fault))),
        Command::Delete { ids } => ids.into_iter().try_for_each(|id| {
            let response = session.change(Method::DELETE, &path(id), None::<&()>)?;
            session.present(response, |_: ClearedFaults| Ok(format!("Fault {id} deleted.\n")))
        }),
        Command::Clear { machine, webhook, id } => {
            let filter = |key: &str, Name(name): Name| format!("/v1/faults?{key}={}", escaped(&name));
            let path = match (machine, webhook, id) {
                (Some(machine), _, _) => filter("machine", machine),
                (None, Some(webhook), _) => filter("webhook", webhook),
                (None, None, Some(id)) => path(id),
                (None, None, None) => "/v1/faults".to_owned(),
            };
            let response = session.change(Method::DELETE, &path, None::<&()>)?;
            session.present(response, |cleared: ClearedFaults| Ok(cleared_sentence(cleared)))
        }
    }
}

fn path(id: u64) -> String {
    format!("/v1/faults/{id}")
}

fn cleared_sentence(ClearedFaults { cleared }: ClearedFaults) -> String {
    match cleared {
        0 => "No fault to clear.\n".to_owned(),
        1 => "1 fault cleared.\n".to_owned(),
        count => format!("{count} faults cleared.\n"),
    }
}

/// The requests or messages that a fault applies to.
fn requests(request: Option<FaultedRequest>, count: Option<u32>) -> String {
    let (one, many) = match request {
        Some(FaultedRequest::Poll) => ("poll", "polls"),
        Some(FaultedRequest::Approve) => ("approval", "approvals"),
        Some(FaultedRequest::Any) => ("request", "requests"),
        None => ("message", "messages"),
    };
    match count {
        None => format!("all {many}"),
        Some(1) => format!("next {one}"),
        Some(count) => format!("next {count} {many}"),
    }
}

fn target(fault: &FaultView) -> &str {
    fault.machine.as_deref().or(fault.webhook.as_deref()).unwrap_or("-")
}

fn sentence(fault: &FaultView) -> String {
    let FaultView { id, request, answer, left, .. } = fault;
    format!("Fault {id}: {} of {}: {answer}.\n", requests(*request, *left), target(fault))
}

fn table(faults: &[FaultView], width: Width) -> String {
    let mut table = Table::new(width, &["id", "target", "requests", "answer", "used"])
        .dropping(&["used", "requests", "target"]);
    for fault in faults {
        table.row([
            fault.id.to_string(),
            target(fault).to_owned(),
            requests(fault.request, fault.left),
            fault.answer.to_string(),
            fault.used.to_string(),
        ]);
    }
    table.to_string()
}

fn facts(fault: &FaultView) -> String {
    Table::facts([
        ("id", fault.id.to_string()),
        ("target", target(fault).to_owned()),
        ("requests", requests(fault.request, fault.left)),
        ("answer", fault.answer.to_string()),
        ("used", fault.used.to_string()),
    ])
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_listed_with_what_is_left_of_them() {
        let json = r#"[
            {"id":1,"machine":"web/web_0","webhook":null,"request":"poll","answer":"500","left":2,"used":1},
            {"id":2,"machine":"web/web_0","webhook":null,"request":"poll","answer":"hide=5s","left":null,"used":7},
            {"id":3,"machine":null,"webhook":"ops","request":null,"answer":"duplicate","left":1,"used":0}]"#;
        let faults: Vec<FaultView> = serde_json::from_str(json).unwrap();
        assert_eq!(
            table(&faults, Width::USUAL),
            "ID  TARGET     REQUESTS      ANSWER     USED\n\
             1   web/web_0  next 2 polls  500        1\n\
             2   web/web_0  all polls     hide=5s    7\n\
             3   ops        next message  duplicate  0\n"
        );
        let shown = facts(&faults[1]);
        assert_eq!(
            shown,
            "id        2\ntarget    web/web_0\nrequests  all polls\nanswer    hide=5s\nused      7\n"
        );
        assert_eq!(sentence(&faults[0]), "Fault 1: next 2 polls of web/web_0: 500.\n");
        assert_eq!(cleared_sentence(ClearedFaults { cleared: 2 }), "2 faults cleared.\n");
    }
}
