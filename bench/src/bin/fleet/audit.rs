//! A large audit log: commands with long texts, which their entries contain.

use std::sync::atomic::{AtomicU64, Ordering};

use forewarn_bench::LoadResult;
use forewarn_bench::blocks;

use crate::arguments::Arguments;
use crate::{LOAD, connect};

/// Each describes a machine of its own.
const CLIENTS: u32 = 8;
/// As many tags, and characters in each name and value, as a machine may have.
const TAGS: usize = 50;
const TAG_CHARACTERS: usize = 512;

/// Short commands of each client after the long ones: the server then writes the state anew, and deletes the records
/// of the long ones. Only their audit entries stay.
const SHORT_COMMANDS: usize = 3_000;

/// Sends commands until their texts have that many megabytes.
pub(crate) fn fill(arguments: &Arguments) -> LoadResult<String> {
    let (bytes, wanted) = (AtomicU64::new(0), u64::from(arguments.megabytes) << 20);
    std::thread::scope(|scope| {
        let describe = |client| describe(arguments, client, &bytes, wanted);
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || describe(client))).collect();
        clients.into_iter().try_for_each(|client| client.join().map_err(|_| "a client panicked")?)
    })?;
    Ok(format!("{{\"bytes\":{}}}", bytes.into_inner()))
}

fn describe(arguments: &Arguments, client: u32, bytes: &AtomicU64, wanted: u64) -> LoadResult<()> {
    let mut connection = connect(arguments, &arguments.token)?;
    let (target, machine) = (format!("/v1/commands?cluster={LOAD}"), blocks::machine(client));
    let body =
        |tags: &str| format!("{{\"command\":\"describe\",\"machine\":\"{machine}\",\"tags\":{{{tags}}}}}");
    let variants = ["a", "b"].map(|letter| body(&long_tags(letter)));
    for variant in variants.iter().cycle() {
        if bytes.fetch_add(variant.len() as u64, Ordering::Relaxed) >= wanted {
            break;
        }
        connection.post(&target, variant)?;
    }
    let short = ["c", "d"].map(|letter| body(&format!("\"a\":\"{letter}\"")));
    short
        .iter()
        .cycle()
        .take(SHORT_COMMANDS)
        .try_for_each(|short| connection.post(&target, short).map(|_| ()))
}

fn long_tags(letter: &str) -> String {
    let value = letter.repeat(TAG_CHARACTERS);
    let tag = |number: usize| format!("\"{number:0>TAG_CHARACTERS$}\":\"{value}\"");
    (0..TAGS).map(tag).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_as_long_as_a_request_allows() {
        let bytes = long_tags("a").len();
        assert!((50_000..60_000).contains(&bytes), "{bytes}");
    }
}
