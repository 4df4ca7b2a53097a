//! How great an entry of the trail may be: one that cannot be kept would stop the server.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::audit::log::{NewAuditEntry, hex};
use crate::audit::notice::Notice;

/// Bytes of a command as JSON; of a greater one, the length and the hash are kept.
pub const COMMAND_BYTES_MAX: usize = 256 << 10;

/// Tenants, machines, hosts or events of one entry, and their bytes as JSON. The greatest list, the hosts of a rollout, has no more.
pub const NAMES_PER_ENTRY_MAX: usize = 10_000;
const NAMES_BYTES_MAX: usize = 900 << 10;

/// Bytes as JSON of what is told of events. Work on as many machines as may be, each of another tenant, needs no more.
const NOTICES_BYTES_MAX: usize = 900 << 10;

/// Bytes of a text, and of each name.
const TEXT_BYTES_MAX: usize = 4 << 10;
const NAME_BYTES_MAX: usize = 255;

/// Bytes of the reason of a failure.
const REASON_BYTES_MAX: usize = 1 << 10;

/// How deep a command may be nested: an entry must be readable by those who read JSON with a limit.
const COMMAND_DEPTH_MAX: usize = 64;

impl NewAuditEntry {
    /// The same, so small that it is an entry: an entry that cannot be kept would stop the server.
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
            self.text.push_str(&format!(" (others are told of the first {kept} of {there} events)"));
        }
        if let Some(reason) = &mut self.reason {
            cut(reason, REASON_BYTES_MAX);
        }
        for name in [&mut self.cluster, &mut self.by, &mut self.kind] {
            cut(name, NAME_BYTES_MAX);
        }
        // Nothing and nothing said look alike in JSON.
        self.command = self.command.filter(|command| !command.is_null());
        if let Some(command) = &mut self.command {
            let bytes = command.to_string();
            if bytes.len() > COMMAND_BYTES_MAX || depth(command) > COMMAND_DEPTH_MAX {
                let hash = hex(&Sha256::digest(&bytes));
                *command = json!({ "left_out": { "bytes": bytes.len(), "sha256": hash } });
            }
        }
        self
    }
}

/// How many of the names an entry has room for.
fn listed(names: &[String]) -> usize {
    let mut left = NAMES_BYTES_MAX;
    let fits = |name: &&String| left.checked_sub(written(name)).inspect(|rest| left = *rest).is_some();
    names.iter().take(NAMES_PER_ENTRY_MAX).take_while(fits).count()
}

/// What of events an entry has room for.
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
