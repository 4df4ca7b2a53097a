//! The output: a line per change, and on a terminal a table below them that is drawn again and again.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use forewarn_cli_support::table::Width;
use serde_json::{Value, json};

use super::board::{BoardChange, RealmBoard, seconds};
use super::process::{ProcessRole, RealmProcess};
use super::site::RealmSite;
use crate::operator::{DataFormat, OutputFormat, visible};

/// Characters of a time since the start.
const TIME_CHARS: usize = 8;

/// Time between two drawings, unless something has changed.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);

/// The output of the command.
pub(super) struct Screen {
    kind: ScreenKind,
    /// Lines of the table at the end of the output.
    drawn_lines: usize,
    drawn_at: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScreenKind {
    Terminal,
    /// A line per change.
    Lines,
    Data(DataFormat),
}

impl Screen {
    pub(super) fn new(output: OutputFormat) -> Self {
        let kind = match output {
            OutputFormat::Data(format) => ScreenKind::Data(format),
            OutputFormat::Text(_) if io::stdout().is_terminal() => ScreenKind::Terminal,
            OutputFormat::Text(_) => ScreenKind::Lines,
        };
        Self { kind, drawn_lines: 0, drawn_at: None }
    }

    /// Prints text that stays, above the table.
    fn print(&mut self, text: &str) -> Result<()> {
        let erase = self.erase();
        let mut out = io::stdout().lock();
        write!(out, "{erase}{}", visible(text))?;
        Ok(out.flush()?)
    }

    /// Moves to the beginning of the table, and erases it.
    fn erase(&mut self) -> String {
        let lines = std::mem::take(&mut self.drawn_lines);
        self.drawn_at = None;
        if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
    }

    /// A remark for people.
    pub(super) fn note(&mut self, text: &str) -> Result<()> {
        match self.kind {
            ScreenKind::Terminal | ScreenKind::Lines => self.print(&format!("{text}\n")),
            ScreenKind::Data(_) => Ok(()),
        }
    }

    pub(super) fn change(&mut self, now: Duration, change: &BoardChange) -> Result<()> {
        let text = match self.kind {
            ScreenKind::Terminal | ScreenKind::Lines => {
                format!("{:>TIME_CHARS$}  {}\n", seconds(now), change.text())
            }
            ScreenKind::Data(format) => {
                let mut value = change.json();
                value["seconds"] = json!(now.as_secs_f64());
                format.element(&value, |value| name_in(value).into_iter().collect())
            }
        };
        self.print(&text)
    }

    /// What the user may try.
    pub(super) fn ready(&mut self, site: &RealmSite, board: &RealmBoard, speed: u32) -> Result<()> {
        let text = match self.kind {
            ScreenKind::Terminal | ScreenKind::Lines => greeting(site, board, speed),
            ScreenKind::Data(format) => format.element(&ready_value(site, speed), |_| Vec::new()),
        };
        self.print(&text)
    }

    /// Draws the table, on a terminal.
    pub(super) fn draw(&mut self, now: Duration, board: &RealmBoard) -> Result<()> {
        let is_recent = self.drawn_at.is_some_and(|at| now.saturating_sub(at) < DRAW_INTERVAL);
        if self.kind != ScreenKind::Terminal || is_recent {
            return Ok(());
        }
        let width = Width::of_output();
        // A line that is too long would take two.
        let line_chars = match width {
            Width::Fit(chars) => chars,
            Width::Wide => usize::MAX,
        };
        let text = format!("\n{}", board.text(width, now));
        let text: String = text
            .lines()
            .map(|line| line.chars().take(line_chars).chain(['\n']).collect::<String>())
            .collect();
        self.print(&text)?;
        (self.drawn_lines, self.drawn_at) = (text.lines().count(), Some(now));
        Ok(())
    }

    /// The last line. The output may be closed.
    pub(super) fn close(&mut self, directory: &Path) {
        self.note(&format!("\nending everything, and removing {}", directory.display())).ok();
    }
}

fn name_in(value: &Value) -> Option<String> {
    value["name"].as_str().map(str::to_owned)
}

fn greeting(site: &RealmSite, board: &RealmBoard, speed: u32) -> String {
    let mut text = String::from("\n");
    let clock = match speed {
        1 => "the real clock".to_owned(),
        _ => format!("a clock that is {speed} times as fast"),
    };
    // Writing to a string cannot fail.
    let mut line = |line: &str| writeln!(text, "{line}").unwrap_or_default();
    line(&format!("The realm is ready, with {clock}. Its directory is {}.", site.directory.path().display()));
    line("");
    for server in &site.servers {
        line(&format!("  {}: unix:{}  {}", server.name, server.socket.display(), server.metadata));
    }
    line("");
    line("Try, in another terminal:");
    let try_lines = [
        site.servers.last().map(|server| {
            let api = format!("forewarn --api unix:{}", server.socket.display());
            format!("  {api} vm restart solo\n  {api} event ls")
        }),
        site.servers.first().map(|server| {
            let path = "/metadata/scheduledevents?api-version=2020-07-01";
            format!("  curl -H Metadata:true '{}{path}'", server.metadata)
        }),
        board.first_owner().map(|(name, pid)| {
            format!("  kill -9 {pid}    kill this one: {name}, the owner of cluster default; another server takes over")
        }),
        board.leader().map(|(name, pid)| format!("  kill -9 {pid}    {name}, the leader of etcd")),
    ];
    try_lines.into_iter().flatten().for_each(|text| line(&text));
    line("");
    line("Ctrl-C ends everything.");
    text
}

fn ready_value(site: &RealmSite, speed: u32) -> Value {
    let servers = site.servers.iter().map(|server| {
        json!({
            "name": server.name, "pid": site.process(&server.name).and_then(RealmProcess::pid),
            "api": format!("unix:{}", server.socket.display()), "metadata": server.metadata,
        })
    });
    let members = site.processes.iter().filter(|process| process.role == ProcessRole::Member);
    let members = members.zip(&site.endpoints);
    let members =
        members.map(|(process, url)| json!({ "name": process.name, "pid": process.pid(), "url": url }));
    let directory = site.directory.path().display().to_string();
    json!({
        "kind": "ready", "speed": speed, "directory": directory, "servers": servers.collect::<Vec<_>>(),
        "etcd": members.collect::<Vec<_>>(),
    })
}
