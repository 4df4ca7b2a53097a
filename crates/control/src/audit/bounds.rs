//! Limits of an audit entry: an entry that cannot be stored would stop the server.

use crate::audit::log::NewAuditEntry;
use crate::audit::notice::Notice;

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

impl NewAuditEntry {
    /// Cuts everything that exceeds the limits, so that the entry can be stored. Its command is within them.
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
        self
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
