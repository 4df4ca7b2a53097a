//! The program `forewarn`: reads the command line, calls a library, and prints the result.
//!
//! Data goes to standard output, everything else to standard error. Exit code 0: success; 1: failure; 2: invalid
//! command line; 3: timed out (`forewarn wait`).

#[cfg(test)]
mod announcing_commands;
mod client;
mod clock_speed;
mod completion;
mod conformance;
mod context;
mod context_file;
mod doctor;
#[cfg(test)]
mod documented;
mod driver;
mod event_pattern;
mod exit_code;
mod findings;
mod machine_url;
mod new_file;
mod operator;
mod realm_acceptance;
mod realm_dev;
mod requested_events;
mod server;
mod server_lookup;
mod service;
mod state_directory;
mod store;
mod story;
mod test;
mod trust;

use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};

/// Announce maintenance to virtual machines, wait for their approval, then carry it out
#[derive(Parser)]
#[command(name = "forewarn", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    options: operator::GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(server::dev::DevArgs),
    Serve(server::serve::ServeArgs),
    Test(test::TestArgs),
    /// Run, list or record stories: scripted scenarios for a fleet, with the events that its machines see
    Story {
        #[command(subcommand)]
        command: story::Command,
    },
    /// Check, export, import or repair the data directory of a stopped server
    Store {
        #[command(subcommand)]
        command: store::Command,
    },
    /// Show or change a realm: several servers on one etcd; or try one on this computer
    #[command(subcommand)]
    Realm(RealmCommand),
    Doctor(doctor::DoctorArgs),
    Conformance(conformance::ConformanceArgs),
    /// Check driver programs
    Driver {
        #[command(subcommand)]
        command: driver::Command,
    },
    /// Manage contexts: servers with a name, for all commands
    #[command(subcommand)]
    Context(context::Command),
    #[command(flatten)]
    Operator(operator::Command),
    /// Print a completion script for a shell
    #[command(
        before_help = "Example:\n  forewarn completions bash > ~/.local/share/bash-completion/completions/forewarn"
    )]
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Complete a line; called by completion scripts
    #[command(hide = true)]
    Complete(completion::CompleteArgs),
    /// Write the manual pages to a directory, or the main page to standard output
    #[command(before_help = "Example:\n  forewarn man /usr/local/share/man/man1")]
    Man {
        /// Directory for the pages; created if it does not exist [default: standard output, main page only]
        directory: Option<std::path::PathBuf>,
    },
}

/// Commands about a realm.
#[derive(Subcommand)]
enum RealmCommand {
    #[command(flatten)]
    Trial(realm_dev::Command),
    #[command(flatten)]
    Acceptance(realm_acceptance::Command),
    #[command(flatten)]
    Operator(operator::RealmCommand),
}

impl Command {
    /// Returns true if the result is that of tests, which other programs read as JUnit XML.
    fn reports_tests(&self) -> bool {
        matches!(self, Self::Story { command: story::Command::Run(_) })
    }
}

fn main() -> ExitCode {
    let Cli { options, command } = forewarn_cli_support::help::parse();
    if options.report() == operator::TestReportFormat::Junit && !command.reports_tests() {
        let message = "invalid value 'junit' for '--output <FORMAT>': only `story run` prints JUnit XML; `forewarn test` \
                       writes it with --report FILE.xml\n";
        Cli::command().error(clap::error::ErrorKind::InvalidValue, message).exit();
    }
    let result = match command {
        Command::Dev(arguments) => server::dev::command(&arguments),
        Command::Serve(arguments) => server::serve::command(&arguments, &options),
        Command::Test(arguments) => match test::command(&arguments, &options) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Story { command } => story::run(&command, &options),
        Command::Store { command } => store::run(&command, &options),
        Command::Realm(RealmCommand::Trial(command)) => realm_dev::run(&command, &options),
        Command::Realm(RealmCommand::Acceptance(command)) => realm_acceptance::run(&command, &options),
        Command::Realm(RealmCommand::Operator(command)) => operator::run_realm(&options, &command),
        Command::Doctor(arguments) => doctor::command(&arguments, &options),
        Command::Conformance(arguments) => conformance::command(&arguments, &options),
        Command::Driver { command } => driver::run(&command, &options),
        Command::Context(command) => context::run(&command, &options),
        Command::Operator(command) => operator::run(&options, command),
        Command::Completions { shell } => operator::print(&completion::script(shell, Cli::command())),
        Command::Complete(arguments) => completion::answer(arguments, Cli::command()),
        Command::Man { directory } => manual(directory.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            forewarn_cli_support::log::fail("forewarn", &format!("{error:#}"));
            exit_code::of(&error)
        }
    }
}

fn manual(directory: Option<&std::path::Path>) -> anyhow::Result<()> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(forewarn_cli_support::help::for_manual(Cli::command())).render(&mut page)?;
        return operator::print(&with_examples(&String::from_utf8_lossy(&page)));
    };
    let written = std::fs::create_dir_all(directory).and_then(|()| {
        clap_mangen::generate_to(forewarn_cli_support::help::for_manual(Cli::command()), directory)?;
        for entry in directory.read_dir()? {
            let page = entry?.path();
            std::fs::write(&page, with_examples(&std::fs::read_to_string(&page)?))?;
        }
        Ok(())
    });
    written.with_context(|| format!("cannot write the manual pages: {}", directory.display()))
}

/// A page whose last text has the heading that readers look for: commands end with their examples.
fn with_examples(page: &str) -> String {
    page.replace("\n.SH EXTRA\n", "\n.SH EXAMPLES\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_a_manual_page_have_their_heading() {
        let directory = tempfile::tempdir().unwrap();
        manual(Some(directory.path())).unwrap();
        let page = std::fs::read_to_string(directory.path().join("forewarn-vm-restart.1")).unwrap();
        assert!(page.contains("\n.SH EXAMPLES\n") && !page.contains("EXTRA"), "{page}");
    }

    #[test]
    fn every_command_has_its_page_in_the_manual() {
        let pages = tempfile::tempdir().unwrap();
        manual(Some(pages.path())).unwrap();
        for page in ["forewarn.1", "forewarn-vm.1", "forewarn-vm-restart.1", "forewarn-serve.1"] {
            let text = std::fs::read_to_string(pages.path().join(page)).unwrap();
            assert!(text.contains(".TH ") && text.contains("SYNOPSIS"), "{page}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_error_about_a_value_says_what_is_expected() {
        let command = forewarn_cli_support::help::with_layout(Cli::command());
        let read = |command: &mut clap::Command, words: &[std::ffi::OsString]| {
            forewarn_cli_support::help::matches(command, words).err()
        };
        let (unhelpful, errors) = forewarn_testkit::bad_values::check(&command, read);
        assert!(unhelpful.is_empty(), "{}", unhelpful.join("\n"));
        assert!(errors > 1000, "too few options were tried: {errors} errors");
    }

    #[test]
    fn a_global_option_may_stand_anywhere_on_the_line() {
        for line in ["--api http://x:1 vm ls", "vm --api http://x:1 ls", "vm ls --api http://x:1"] {
            let words = ["forewarn"].into_iter().chain(line.split(' '));
            let arguments = Cli::try_parse_from(words).unwrap();
            assert_eq!(arguments.options.api_option(), Some("http://x:1"), "{line}");
        }
    }

    #[test]
    fn an_invalid_command_line_is_a_usage_error() {
        let lines = [
            "vm",
            "vm restart",
            "vm show \u{20}",
            "event approve",
            "event approve 123",
            "event approve 1234 --tenant web",
            "clock advance soon",
            "clock scale 0",
            "host degrade h1 --fails-in 3",
            "fleet apply",
            "fleet apply - --prune --forget",
            "vm move web_0",
            "vm forget",
            "host forget",
            "scaleset upgrade web",
            "scaleset upgrade web 0 --all",
            "scaleset scale web 1001",
            "vm create solo",
            "vm set solo",
            "vm set solo --tag role",
            "vm jam web_0 --wait",
            "host recover h1 --wait",
            "host maintenance exit h1 --wait",
            "rollout start h1 --dry-run --wait",
            "host set h1",
            "tenant set web",
            "fault delete",
            "fault show first",
            "brake",
            "wait",
            "wait --since 7",
            "dashboard --port 0",
            "dashboard --port 99999",
            "wait --event Thaw",
            "wait --event Reboot:",
            "vm stop web_0 --require-notice",
            "rollout start",
            "rollout start --all h1",
            "rollout start h1 --tenant-share 0%",
            "rollout start h1 --ignore-health --await-machines",
            "vm ls --output xml",
            "driver check ./driver",
            "driver check ./driver --machine m",
            "driver check ./driver --machine m --host h --time-limit 0s",
            "driver check ./driver --machine m --host h --host-order dance",
            "state save",
            "realm accept-restore",
            "health --wait soon",
            "webhook create",
            "webhook create ops https://h --type Thaw",
            "webhook create ops https://h --format xml",
            "webhook create ops --key-file k --authorization-file a",
            "clock scale 0.5x",
            "clock until tomorrow",
            "conformance",
            "conformance http://h --event Thaw=true",
            "conformance http://h --read-only --event Reboot=true",
            "conformance http://h --report conformance.txt",
            "context",
            "context set",
            "context use",
            "context delete",
        ];
        for line in lines {
            let words = ["forewarn"].into_iter().chain(line.split(' '));
            assert_eq!(Cli::try_parse_from(words).err().map(|error| error.exit_code()), Some(2), "{line}");
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a list")]
    fn every_command_line_of_the_documents_parses() {
        let lines = [
            "vm ls --tenant web --output json",
            "vm restart web_0 db/db-0 --wait",
            "host update --network h1 h2",
            "host degrade h1 --fails-in 3d",
            "tenant show web",
            "tenant set web --restart automatic --no-window",
            "scaleset create web --instances 3 --spot delete --upgrade automatic --hosts h1 h2",
            "scaleset set web --terminate-notification on --terminate-delay 10m --os-image off",
            "scaleset upgrade web 0 web_1",
            "scaleset upgrade web --all",
            "scaleset delete-instances web 3 --wait",
            "availabilityset add-vm db db-0 --host h1 --update-domain 1 --fault-domain 2 --tag role=db",
            "cloudservice ls",
            "cloudservice show shop",
            "cloudservice add-instance shop FrontEnd_IN_0 --host h1",
            "event approve 2851 9F00AA11",
            "event approve --tenant web",
            "event start 28512AF7-C957-4500-9BC4-842D6FB531E4",
            "clock next --within 1h",
            "clock scale 60x",
            "clock scale frozen",
            "clock until 2026-01-01T00:15:00Z",
            "clock until 28512AF7",
            "fleet apply - --prune --dry-run --yes",
            "fleet apply - --forget --moves",
            "vm delete web_0 --yes --wait",
            "vm forget web_0 db/db-0",
            "vm move web_0 --host h2 --force",
            "host forget h1 h2",
            "host fail h1 --yes",
            "host set h1 --cpus none --memory 64GiB",
            "host maintenance exit h1 --return --wait",
            "rollout cancel 3",
            "rollout start h1 h2 --kind reboot --at-once 5 --tenant-share 25% --one-fault-domain --wait",
            "rollout start h1 --await-machines",
            "rollout set 0 --await-machines=false",
            "rollout start --all --pause-between 10m --confirm first --stop-after 2 --ignore-health=false --dry-run",
            "rollout preview --zone 1 --window 22:00-06:00 --window any",
            "rollout ls --all",
            "rollout show 3",
            "rollout pause 3 --take-back",
            "rollout resume 3",
            "rollout set 3 --add h1 --remove h2 --at-once 0",
            "brake on",
            "brake show",
            "fault delete 1 2",
            "watch --tenant web",
            "dashboard",
            "--context prod dashboard --port 8080 --no-browser -o json",
            "wait --enrolled solo --enrolled web_0 --event Reboot:web_0 --event :solo --approved 2851 --timeout 5s",
            "wait --event --idle --since 7",
            "vm restart web_0 --require-notice",
            "event explain 2851",
            "vm explain web_0 --all",
            "audit ls --machine web/web_0 --since 2026-01-01T00:00:00Z --kind command",
            "audit verify",
            "webhook create ops https://h/x --format eventgrid --tenant web --type Freeze --type preempt --authorization-file -",
            "webhook create pager --format pagerduty --key-file -",
            "webhook test ops",
            "audit export -",
            "reset",
            "state save fixture.json",
            "state load -",
            "realm accept-restore --config serve.toml --yes -o json",
            "health --wait 30s --output json",
            "driver check ./driver --machine m --host h --to g --host-order update_host --destroy --yes",
            "conformance http://h --as web_0 --event reboot=true --advance true --watch 1s --report c.xml",
            "context set prod --api https://h:1 --ca ca.pem --token-file t --cluster west",
            "context use prod",
            "context ls",
            "context show",
            "context delete prod lab",
            "--context prod vm ls",
            "completions zsh",
        ];
        for line in lines {
            let words = ["forewarn"].into_iter().chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{line}");
        }
    }

    /// Lines with an old word, and the same lines with the current one.
    const OLD_WORDS: [(&str, &str); 18] = [
        ("host add h1 --zone 2", "host create h1 --zone 2"),
        ("host rm h1 h2", "host delete h1 h2"),
        ("cluster rm west", "cluster delete west"),
        ("scaleset rm web", "scaleset delete web"),
        ("scaleset update web --os-image on", "scaleset set web --os-image on"),
        ("availabilityset rm db", "availabilityset delete db"),
        ("availabilityset add db db-0 --host h1", "availabilityset add-vm db db-0 --host h1"),
        ("cloudservice rm shop", "cloudservice delete shop"),
        ("cloudservice add shop F_IN_0 --host h1", "cloudservice add-instance shop F_IN_0 --host h1"),
        ("token revoke ci", "token delete ci"),
        ("rollout status 3", "rollout show 3"),
        ("rollout change 3 --at-once 2", "rollout set 3 --at-once 2"),
        ("fault add web_0 --answer 500", "fault create web_0 --answer 500"),
        ("vm describe web_0 --no-tags", "vm set web_0 --no-tags"),
        ("vm update web_0 --os-image on", "vm set web_0 --os-image on"),
        ("vm update web_0 --terminate-delay 10m", "vm set web_0 --terminate-delay 10m"),
        ("tenant policy web --restart asked", "tenant set web --restart asked"),
        ("vm reboot web_0 --wait", "vm restart web_0 --wait"),
    ];

    #[test]
    fn old_words_mean_the_same_as_the_current_ones() {
        let parse = |line: &str| {
            let words = ["forewarn"].into_iter().chain(line.split(' '));
            Cli::command().try_get_matches_from(words).unwrap_or_else(|error| panic!("{line}: {error}"))
        };
        for (old, current) in OLD_WORDS {
            assert_eq!(parse(old), parse(current), "{old}");
        }
    }

    #[test]
    fn old_words_are_not_in_the_help() {
        let help = |noun: &str| {
            let mut command = Cli::command();
            command.find_subcommand_mut(noun).unwrap().render_long_help().to_string()
        };
        for (noun, old) in [
            ("host", "add "),
            ("host", "rm "),
            ("cluster", "rm "),
            ("token", "revoke "),
            ("rollout", "status "),
            ("rollout", "change "),
            ("fault", "add "),
            ("vm", "describe "),
            ("tenant", "policy "),
        ] {
            assert!(!help(noun).contains(&format!("\n  {old}")), "{noun} {old}");
        }
        assert!(help("vm").contains("[alias: reboot]"), "{}", help("vm"));
    }

    #[test]
    fn every_shell_gets_its_completions() {
        for shell in <clap_complete::Shell as clap::ValueEnum>::value_variants() {
            let script = completion::script(*shell, Cli::command());
            assert!(script.contains("forewarn complete") || script.contains("deallocate"), "{shell}");
        }
    }
}
