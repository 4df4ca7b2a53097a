//! Limits of an audit entry: an entry that cannot be stored would stop the server.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::audit::log::{NewAuditEntry, hex};
use crate::audit::notice::Notice;

/// Bytes of a command as JSON; of a larger command, only the length and the hash are stored.
pub const COMMAND_BYTES_MAX: usize = 256 << 10;

/// Tenants, machines, hosts or events of one entry, and their bytes as JSON. Work has fewer of each; the entry of a
/// rollout lists its first hosts, and the entries of its groups list all of them.
pub const NAMES_PER_ENTRY_MAX: usize = 10_000;
const NAMES_BYTES_MAX: usize = 900 << 10;

/// Bytes of notices as JSON. Work on the maximum number of machines, each of another tenant, fits.
const NOTICES_BYTES_MAX: usize = 900 << 10;

/// Bytes of a text, and of each name.
const TEXT_BYTES_MAX: usize = 4 << 10;
const NAME_BYTES_MAX: usize = 255;

/// Bytes of the reason of a failure.
const REASON_BYTES_MAX: usize = 1 << 10;

/// Nesting of a command as JSON: readers of an entry may limit the depth.
const COMMAND_DEPTH_MAX: usize = 64;

impl NewAuditEntry {
    /// Cuts everything that exceeds the limits, so that the entry can be stored.
    pub(crate) fn bounded(mut self) -> Self {
        cut(&mut self.text, TEXT_BYTES_MAX);
        let lists = [
            ("tenants", &mut self.tenants),
            ("machines", &mut self.machines),
            ("hosts", &mut self.hosts),
            ("events", &mut self.events),
        ];
        for (what, list) in lists {
            list.iter_mut().for_each(|name| cut(name, NAME_BYTES_MAX));
            let (there, listed) = (list.len(), listed(list));
            if listed < there {
                list.truncate(listed);
                self.text.push_str(&format!(" (the first {listed} of {there} {what} are listed)"));
            }
        }
        let (there, kept) = (self.notices.len(), kept(&self.notices));
        if kept < there {
            self.notices.truncate(kept);
            self.text.push_str(&format!(" (webhooks are notified of the first {kept} of {there} events)"));
        }
        if let Some(reason) = &mut self.reason {
            cut(reason, REASON_BYTES_MAX);
        }
        for name in [&mut self.cluster, &mut self.by, &mut self.kind] {
            cut(name, NAME_BYTES_MAX);
        }
        // JSON does not distinguish `null` from an absent command.
        self.command = self.command.filter(|command| !command.is_null());
        // Most commands are not even close to the limit, and need not be written to find out.
        let near_limit = |command: &&mut Value| {
            bytes_at_most(command) > COMMAND_BYTES_MAX || depth(command) > COMMAND_DEPTH_MAX
        };
        if let Some(command) = self.command.as_mut().filter(near_limit) {
            let bytes = command.to_string();
            if bytes.len() > COMMAND_BYTES_MAX || depth(command) > COMMAND_DEPTH_MAX {
                let hash = hex(&Sha256::digest(&bytes));
                *command = json!({ "left_out": { "bytes": bytes.len(), "sha256": hash } });
            }
        }
        self
    }
}

/// Bytes of a value as JSON at most.
fn bytes_at_most(value: &Value) -> usize {
    const SCALAR_BYTES: usize = 32;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR_BYTES,
        Value::String(text) => written(text),
        Value::Array(items) => 2 + items.iter().map(|item| 1 + bytes_at_most(item)).sum::<usize>(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| written(name) + 1 + bytes_at_most(value);
            2 + members.iter().map(member).sum::<usize>()
        }
    }
}

/// Number of names that an entry has room for.
fn listed(names: &[String]) -> usize {
    let mut left = NAMES_BYTES_MAX;
    let fits = |name: &&String| left.checked_sub(written(name)).inspect(|rest| left = *rest).is_some();
    names.iter().take(NAMES_PER_ENTRY_MAX).take_while(fits).count()
}

/// Number of notices that an entry has room for.
fn kept(notices: &[Notice]) -> usize {
    let mut left = NOTICES_BYTES_MAX;
    let fits = |notice: &&Notice| {
        let Notice { event, kind, source, description, tenant, resource, resources, failures, .. } = notice;
        let texts = [event, kind, source, description, tenant, resource].into_iter().chain(resources);
        let failures = failures.iter().flat_map(|failure| [&failure.machine, &failure.reason]);
        let failed = failures.map(|text| FAILURE_BYTES + written(text)).sum::<usize>();
        let bytes = NOTICE_BYTES + failed + texts.map(|text| written(text)).sum::<usize>();
        left.checked_sub(bytes).inspect(|rest| left = *rest).is_some()
    };
    notices.iter().take_while(fits).count()
}

/// Bytes of a notice as JSON at most, but for its texts.
const NOTICE_BYTES: usize = 256;

/// Bytes of a member of a failure as JSON, but for its text.
const FAILURE_BYTES: usize = 16;

/// Bytes of a text in a list at most. An escape takes six; names of the rules need none.
fn written(text: &str) -> usize {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
    let bytes = if plain { text.len() } else { 6 * text.len() };
    bytes + r#""","#.len()
}

fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max - '…'.len_utf8()));
        text.push('…');
    }
}

fn depth(value: &Value) -> usize {
    let inside = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + inside.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_longer_than_its_bound() {
        for value in [
            json!(null),
            json!([true, false, u64::MAX, i64::MIN, f64::MIN_POSITIVE, -1.234_567_890_123_456_7e300]),
            json!({ "a\u{1}\"\\": ["é\u{7f}\u{2028}", "", {}, []], "": { "b": "\n\t" } }),
        ] {
            assert!(bytes_at_most(&value) >= value.to_string().len(), "{value}");
        }
    }
}
