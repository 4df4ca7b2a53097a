//! Runs seeds of the simulator, one after the other, and says where to go on after an interruption.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use forewarn_sim::{Observations, Omission, history, run, seeds};

const HELP: &str = "\
Usage: forewarn-sim [--from SEED] [--seeds N] [--omit RULE] [--history]

  --from SEED   run seeds from SEED on [default: 1, after those of sim/seeds.txt]
  --seeds N     run N seeds [default: 500]
  --omit RULE   leave a rule out, to see how it is noticed
  --history     print the steps of the first seed instead

Exit code: 0 passed, 1 a promise is broken, 2 invalid command line.";

/// Interval of reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

struct Arguments {
    from: Option<u64>,
    seeds: u64,
    omission: Option<Omission>,
    is_history: bool,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    if arguments.is_history {
        history(arguments.from.unwrap_or(1), arguments.omission).iter().for_each(|line| println!("{line}"));
        return ExitCode::SUCCESS;
    }
    run_all(&arguments)
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { from: None, seeds: 500, omission: None, is_history: false };
    while let Some(word) = words.next() {
        let mut value =
            || words.next().ok_or_else(|| format!("a value is missing: {word}\n  hint: see --help"));
        let number = |text: String| {
            text.parse().map_err(|_| format!("not a number: {text}\n  hint: seeds are whole numbers"))
        };
        match word.as_str() {
            "--from" => arguments.from = Some(number(value()?)?),
            "--seeds" => arguments.seeds = number(value()?)?,
            "--omit" => {
                let name = value()?;
                let known = Omission::ALL.iter().find(|(known, _)| *known == name);
                let names = || Omission::ALL.map(|(known, _)| known).join(", ");
                let known = known.ok_or_else(|| format!("not a rule: {name}\n  hint: {}", names()))?;
                arguments.omission = Some(known.1);
            }
            "--history" => arguments.is_history = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("unknown word: {word}\n  hint: see --help")),
        }
    }
    Ok(Some(arguments))
}

fn run_all(arguments: &Arguments) -> ExitCode {
    let first = arguments.from.unwrap_or(1);
    let known = if arguments.from.is_none() { seeds::known() } else { Vec::new() };
    let (begin, mut reported) = (Instant::now(), Instant::now());
    let (mut count, mut total) = (0_u64, Observations::new());
    for seed in known.into_iter().chain(first..first.saturating_add(arguments.seeds)) {
        match run(seed, arguments.omission) {
            Ok(seen) => seen.into_iter().for_each(|(what, seen)| *total.entry(what).or_default() += seen),
            Err(violation) => {
                println!("{}", seeds::report(&violation));
                return ExitCode::FAILURE;
            }
        }
        count += 1;
        if reported.elapsed() >= REPORT_INTERVAL {
            reported = Instant::now();
            let left = (first + arguments.seeds).saturating_sub(seed + 1);
            println!(
                "{}; to go on after an interruption: --from {} --seeds {left}",
                speed(count, begin),
                seed + 1
            );
        }
    }
    println!("{}", speed(count, begin));
    total.iter().for_each(|(what, seen)| println!("  {seen:>9} {what}"));
    println!("no promise is broken; the next seed is {}", first.saturating_add(arguments.seeds));
    ExitCode::SUCCESS
}

fn speed(count: u64, begin: Instant) -> String {
    let millis = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    format!("{count} seeds, {} a second", count * 1_000 / millis)
}
