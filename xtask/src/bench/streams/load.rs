//! A server that stores its data on disk, and its clients.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::report::{ApplyRound, CommandSample, CommandTimes};
use crate::bench::hostile::find_address;
use crate::bench::metadata::forewarn::ADDRESSES;
use crate::bench::metadata::rounds::wait;
use crate::bench::metadata::server::{Server, Start};

const SOCKET: &str = "api.sock";
const WARM_UP_TIME: Duration = Duration::from_millis(500);
/// The extra time that the program of the clients may take.
const GRACE: Duration = Duration::from_secs(30);
/// The time of a fleet with a thousand VMs, on a slow computer.
const BLOCK_TIME_MAX: Duration = Duration::from_secs(20);

/// A running server with its clusters, and the program of its clients.
pub(super) struct LoadedServer<'a> {
    server: Server,
    program: &'a Path,
    token: String,
    clusters: u32,
    clients: u32,
}

impl<'a> LoadedServer<'a> {
    /// Starts `program`, and creates the clusters.
    pub(super) fn start(
        program: &Path,
        clients_program: &'a Path,
        clusters: u32,
        clients: u32,
    ) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let socket = directory.path().join(SOCKET);
        let settings = write_settings(directory.path(), &socket)?;
        let mut command = Command::new(program);
        command.args(["serve", "--config"]).arg(settings);
        command.arg("--addresses-file").arg(directory.path().join(ADDRESSES));
        let start = Start { name: "forewarn", command, stop: None, directory };
        let server = start.run(|directory| find_address(directory, "api"))?;
        let mut loaded = Self { server, program: clients_program, token: String::new(), clusters, clients };
        let socket = socket.to_str().context("not a name")?;
        let prepared = loaded.run("prepare", &["--socket", socket], GRACE)?;
        prepared["token"].as_str().context("no token")?.clone_into(&mut loaded.token);
        Ok(loaded)
    }

    pub(super) fn warm_up(&self) -> Result<()> {
        self.send(WARM_UP_TIME).map(|_| ())
    }

    /// Commands for a time.
    pub(super) fn commands(&self, time: Duration) -> Result<CommandSample> {
        let before = self.server.cpu_time()?;
        let result = self.send(time)?;
        let cpu = self.server.cpu_time()?.saturating_sub(before);
        let times = CommandTimes::parse(&result)?;
        Ok(CommandSample {
            commands_per_second: times.commands / number(&result, "nanoseconds")? * 1e9,
            cpu_microseconds: cpu.as_secs_f64() * 1e6 / times.commands.max(1.0),
            generator_percent: number(&result, "busy_nanoseconds")? / number(&result, "nanoseconds")? * 100.0,
            times,
        })
    }

    /// Creates the large fleet in a cluster of its own.
    pub(super) fn build_fleet(&self, machines: u32) -> Result<()> {
        self.run("fleet", &["--machines", &machines.to_string()], apply_time_max(machines)).map(|_| ())
    }

    /// Commands for a time, and then while VMs join the large fleet, of which the first has the number `first`.
    pub(super) fn interference(&self, time: Duration, first: u32, added: u32) -> Result<ApplyRound> {
        let alone = self.commands(time)?;
        let (first, machines) = (first.to_string(), added.to_string());
        let words = ["--first", &first, "--machines", &machines];
        let result = self.run("beside", &words, apply_time_max(added))?;
        let apply_seconds = number(&result, "apply_nanoseconds")? / 1e9;
        Ok(ApplyRound { alone, beside: CommandTimes::parse(&result)?, apply_seconds })
    }

    fn send(&self, time: Duration) -> Result<Value> {
        self.run("commands", &["--milliseconds", &time.as_millis().to_string()], time + GRACE)
    }

    /// The result of the program of the clients in that role.
    fn run(&self, role: &str, words: &[&str], time_max: Duration) -> Result<Value> {
        let mut command = Command::new(self.program);
        command.args([role, "--at", &self.server.at().to_string(), "--token", &self.token]);
        command.args(["--clusters", &self.clusters.to_string(), "--clients", &self.clients.to_string()]);
        let mut child =
            command.args(words).stdout(Stdio::piped()).spawn().context("cannot run the clients")?;
        let line = wait(&mut child, time_max).with_context(|| format!("the clients failed: {role}"))?;
        serde_json::from_str(&line).context("no result")
    }
}

/// All operators are on loopback, and the simulated VMs poll nothing.
fn write_settings(directory: &Path, socket: &Path) -> Result<PathBuf> {
    let (data, file) = (directory.join("data"), directory.join("serve.toml"));
    std::fs::create_dir(&data).context("cannot create the data directory")?;
    let settings = format!(
        "data_dir = '{}'\n[metadata]\nlisten = [{{ address = '127.0.0.1:0' }}]\n\
         [api]\nlisten = '127.0.0.1:0'\nsocket = '{}'\n[driver]\nkind = 'simulated'\n",
        data.display(),
        socket.display()
    );
    std::fs::write(&file, settings).context("cannot write the settings")?;
    Ok(file)
}

fn apply_time_max(machines: u32) -> Duration {
    GRACE + BLOCK_TIME_MAX * (machines / super::MACHINES_PER_BLOCK)
}

fn number(result: &Value, key: &str) -> Result<f64> {
    result[key].as_f64().with_context(|| format!("not in the result: {key}"))
}

impl CommandTimes {
    fn parse(result: &Value) -> Result<Self> {
        let microseconds = |key: &str| number(result, key).map(|nanoseconds| nanoseconds / 1e3);
        Ok(Self {
            commands: number(result, "answers")?,
            p50_microseconds: microseconds("p50_nanoseconds")?,
            p99_microseconds: microseconds("p99_nanoseconds")?,
            max_microseconds: microseconds("max_nanoseconds")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let line = r#"{"answers":7,"p50_nanoseconds":2000,"p99_nanoseconds":3000,"max_nanoseconds":4000}"#;
        let times = CommandTimes::parse(&serde_json::from_str(line).unwrap()).unwrap();
        let expected = CommandTimes {
            commands: 7.0,
            p50_microseconds: 2.0,
            p99_microseconds: 3.0,
            max_microseconds: 4.0,
        };
        assert_eq!(times, expected);
        assert!(CommandTimes::parse(&Value::Null).is_err());
    }
}
