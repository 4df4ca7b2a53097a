//! `cargo xtask bench dashboard`: the work of the browser in each frame with 10,000 machines during a rollout, and the cost
//! of an open dashboard for the server.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Keep, results};
use crate::dashboard;
use crate::steps::Outcome;
use crate::tree;

/// Its section in the results.
const NAME: &str = "dashboard";

const SCRIPT: &str = "crates/dashboard/tests/bench.mjs";

/// Work of the main thread in 95 of 100 frames.
const FRAME_MILLISECONDS_MAX: f64 = 16.0;
const FIRST_PAINT_MILLISECONDS_MAX: f64 = 200.0;

pub(super) fn run(keep: Keep) -> Result<Outcome> {
    let mut node = match dashboard::node(dashboard::Profile::Release)? {
        Ok(node) => node,
        Err(skipped) => return Ok(skipped),
    };
    let output = node.arg(SCRIPT).output().context("cannot run node")?;
    if !output.status.success() {
        return Ok(Outcome::Failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let value: Value = serde_json::from_slice(&output.stdout).context("the benchmark printed no result")?;
    let (table, outcome) = report(&value)?;
    println!("{table}");
    match keep {
        Keep::Nothing => {}
        Keep::Save => {
            let text = format!("Measured on: {}.\n\n{table}", results::machine());
            results::save(&tree::root()?, NAME, &text)?;
        }
    }
    Ok(outcome)
}

fn report(value: &Value) -> Result<(String, Outcome)> {
    let number =
        |value: &Value, name: &str| value[name].as_f64().with_context(|| format!("no {name} in the result"));
    let mut table = format!(
        "{} machines on {} hosts, a rollout over all of them, a clock 60 times as fast. Work of the main thread in each \
         frame of 16.7 ms with any work, from a trace of the browser:\n\n\
         | page | frames | p50 ms | p95 ms | p99 ms | full frames | longest task ms |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
        value["machines"], value["hosts"]
    );
    let mut too_slow = Vec::new();
    for (page, costs) in value["pages"].as_object().context("no pages in the result")? {
        let p95 = number(costs, "p95")?;
        writeln!(
            table,
            "| {page} | {} | {:.1} | {p95:.1} | {:.1} | {:.1} % | {:.1} |",
            costs["frames"],
            number(costs, "p50")?,
            number(costs, "p99")?,
            100.0 * number(costs, "full")?,
            number(costs, "longest")?
        )?;
        if p95 > FRAME_MILLISECONDS_MAX {
            too_slow.push(format!(
                "{page}: {p95:.1} ms in 95 of 100 frames (goal: at most {FRAME_MILLISECONDS_MAX})"
            ));
        }
    }
    let paint = number(value, "first_paint")?;
    if paint > FIRST_PAINT_MILLISECONDS_MAX {
        too_slow.push(format!("first paint: {paint:.0} ms (goal: at most {FIRST_PAINT_MILLISECONDS_MAX})"));
    }
    let each = &value["each"];
    writeln!(
        table,
        "\nFirst paint after {paint:.0} ms. The server needs {:.2} ms of processor time per second and {} KiB of memory for \
         each of {} open dashboards.",
        number(each, "micros_per_second")? / 1_000.0,
        each["kibibytes"],
        value["dashboards"]
    )?;
    let outcome = if too_slow.is_empty() { Outcome::Passed } else { Outcome::Failed(too_slow.join("\n")) };
    Ok((table, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_longer_than_a_frame_fails() {
        let result = |p95: f64| {
            serde_json::json!({
                "machines": 10_000, "hosts": 500, "first_paint": 80.0, "dashboards": 20,
                "pages": { "fleet": { "frames": 600, "p50": 2.0, "p95": p95, "p99": 16.6, "full": 0.01, "longest": 40.0 } },
                "each": { "micros_per_second": 400, "kibibytes": 60 },
            })
        };
        let (table, outcome) = report(&result(9.5)).unwrap();
        assert_eq!(outcome, Outcome::Passed);
        assert!(table.contains("| fleet | 600 | 2.0 | 9.5 | 16.6 | 1.0 % | 40.0 |"), "{table}");
        assert!(table.contains("needs 0.40 ms of processor time per second and 60 KiB"), "{table}");
        let (_, outcome) = report(&result(16.6)).unwrap();
        assert!(matches!(outcome, Outcome::Failed(why) if why.starts_with("fleet: 16.6 ms")));
    }
}
