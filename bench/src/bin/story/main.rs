//! A large story in the rules: the time, the processor time and the memory of parsing and running it.
//!
//! Prints one line of JSON. The fleet has scale sets of 100 instances, each on a host of its own; restarts of instances
//! follow each other, each is approved, and all scale sets poll.

use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use forewarn_bench::program::{self, GivenOption};

/// Instances of a scale set: as many as one tenant of it holds.
const INSTANCES: u32 = 100;
/// Seconds between two restarts of different instances.
const INTERVAL_SECONDS: u32 = 20;
const HINT: &str = "story --machines N --events N";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arguments {
    machines: u32,
    events: u32,
}

impl Arguments {
    fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { machines: 10_000, events: 1_000 };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_default();
            let option = GivenOption { word: &word, value: &value, hint: HINT };
            match word.as_str() {
                "--machines" => arguments.machines = option.number(INSTANCES..=100_000)?,
                "--events" => arguments.events = option.number(1..=10_000)?,
                _ => return Err(format!("unknown word: {word}\n  hint: {HINT}")),
            }
        }
        Ok(arguments)
    }
}

fn main() -> ExitCode {
    program::run(Arguments::parse(std::env::args().skip(1)), run)
}

/// The text of the story.
fn story(Arguments { machines, events }: Arguments) -> String {
    let sets = machines / INSTANCES;
    let (rounds, rest) = (events / sets, events % sets);
    let mut text = format!(
        "for set in 0..{sets}\nhost h$set\nscaleset s$set\ninstance of s$set on h$set times {INSTANCES}\nend\n\
         poll all\n"
    );
    let round = |sets: u32| {
        format!(
            "for set in 0..{sets}\nat +{INTERVAL_SECONDS}s restart s${{set}}_$round\n\
             approve s$set by s${{set}}_0\nend\n"
        )
    };
    if rounds > 0 {
        text += &format!("for round in 0..{rounds}\n{}end\n", round(sets));
    }
    if rest > 0 {
        text += &format!("let round = {rounds}\n{}", round(rest));
    }
    text + "advance 5m\n"
}

fn run(arguments: Arguments) -> Result<String, Box<dyn Error>> {
    let text = story(arguments);
    let (begin, processor) = (Instant::now(), processor_nanoseconds()?);
    let story = forewarn_story::parse(&text)?;
    let parsed = processor_nanoseconds()?;
    let transcript = forewarn_story::run(&story)?.to_string();
    let milliseconds = begin.elapsed().as_millis();
    let ran = processor_nanoseconds()?;
    let documents = transcript.lines().filter(|line| line.contains(" sees document ")).count();
    let (parse, run) = (parsed.saturating_sub(processor), ran.saturating_sub(parsed));
    let Arguments { machines, events } = arguments;
    Ok(format!(
        "{{\"machines\":{machines},\"events\":{events},\"documents\":{documents},\"milliseconds\":{milliseconds},\
         \"parse_cpu_milliseconds\":{},\"run_cpu_milliseconds\":{},\"peak_kibibytes\":{}}}",
        parse / 1_000_000,
        run / 1_000_000,
        peak_kibibytes()?
    ))
}

/// Processor time of this process, which has one thread.
fn processor_nanoseconds() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let first = text.split_whitespace().next().ok_or("no processor time")?;
    Ok(first.parse()?)
}

/// The largest resident memory of this process so far.
fn peak_kibibytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak of memory")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_announced_started_and_completed() {
        let line = run(Arguments { machines: 400, events: 10 }).unwrap();
        assert!(line.starts_with("{\"machines\":400,\"events\":10,\"documents\":30,"), "{line}");
    }
}
