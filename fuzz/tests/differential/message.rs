//! A request as somebody would read it who refuses nothing: enough to say what is special about it.

/// The head of a request, and the first bytes after it.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) head: Vec<u8>,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) is_old: bool,
    fields: Vec<(String, String)>,
    after: Vec<u8>,
}

const SHOWN_BYTES: usize = 400;
const HEAD_BYTES_MAX: usize = 8 * 1024;
const TARGET_BYTES_MAX: usize = 2 * 1024;
const FIELDS_MAX: usize = 32;
const BODY_BYTES_MAX: u64 = 128 * 1024;

impl Message {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
        let ends = |at: &usize| bytes[*at..].starts_with(b"\n\n") || bytes[*at..].starts_with(b"\n\r\n");
        let end = (start..bytes.len()).find(ends).map_or(bytes.len(), |at| at + 1);
        let end = if bytes[end..].starts_with(b"\r\n") { end + 2 } else { (end + 1).min(bytes.len()) };
        let (head, after) = bytes.split_at(end);
        let text = String::from_utf8_lossy(&head[start..]).into_owned();
        let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
        let mut words = lines.next().unwrap_or_default().split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default().to_owned();
        let is_old = words.next() == Some("HTTP/1.0");
        let field = |line: &str| {
            line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let fields = lines.filter_map(field).collect();
        Self { head: head.to_vec(), method, target, is_old, fields, after: after.to_vec() }
    }

    pub(crate) fn shown(&self) -> String {
        let bytes: Vec<_> = self.head.iter().chain(&self.after).copied().take(SHOWN_BYTES).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_poll(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.values("transfer-encoding").next().is_some()
    }

    pub(crate) fn has_body(&self) -> bool {
        self.is_chunked()
            || self.values("content-length").any(|value| !value.trim_start_matches('0').is_empty())
    }

    /// None where there must be one, two, or one that is neither an address nor a single label.
    pub(crate) fn has_wrong_host(&self) -> bool {
        let hosts: Vec<_> = self.values("host").collect();
        match hosts.as_slice() {
            [] => !self.is_old,
            [host] => {
                let (name, port) = match host.rsplit_once(':') {
                    Some((name, port)) if !host.ends_with(']') => (name, Some(port)),
                    Some(_) | None => (*host, None),
                };
                let is_label = (1..=63).contains(&name.len())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
                let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
                let is_address = bare
                    .unwrap_or(name)
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|ip| ip.is_ipv6() == bare.is_some());
                let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok() && !port.starts_with('+'));
                !((is_label || is_address) && is_port)
            }
            _ => true,
        }
    }

    /// A carriage return without a line feed, or the other way round.
    pub(crate) fn has_torn_lines(&self) -> bool {
        let lone = |at: usize, byte: u8| match byte {
            b'\n' => at == 0 || self.head[at - 1] != b'\r',
            b'\r' => self.head.get(at + 1).is_some_and(|next| *next != b'\n'),
            _ => false,
        };
        self.head.iter().enumerate().any(|(at, byte)| lone(at, *byte))
    }

    pub(crate) fn has_proxy_fields(&self) -> bool {
        let unwanted = ["x-forwarded-for", "forwarded", "via", "x-real-ip", "origin", "sec-fetch-site"];
        self.fields.iter().any(|(name, _)| unwanted.contains(&name.replace('_', "-").as_str()))
    }

    pub(crate) fn is_large(&self) -> bool {
        let is_long = |value: &str| value.parse::<u64>().is_ok_and(|length| length > BODY_BYTES_MAX);
        self.target.len() > TARGET_BYTES_MAX
            || self.head.len() > HEAD_BYTES_MAX
            || self.fields.len() > FIELDS_MAX
            || self.values("content-length").any(is_long)
    }

    /// A percent sign without two digits after it; or, in the path, a slash or a NUL in disguise.
    pub(crate) fn has_wrong_percent(&self) -> bool {
        let path_end = self.target.find('?').unwrap_or(self.target.len());
        self.target.match_indices('%').any(|(at, _)| {
            let digits = self.target.get(at + 1..at + 3).unwrap_or_default();
            let is_digits = digits.len() == 2 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
            !is_digits || (at < path_end && ["2f", "2F", "00"].contains(&digits))
        })
    }

    /// Several lengths, a length next to chunks, or a coding that is not just chunks.
    pub(crate) fn has_doubtful_length(&self) -> bool {
        let (lengths, codings) =
            (self.values("content-length").count(), self.values("transfer-encoding").count());
        let is_odd = |value: &str| !value.eq_ignore_ascii_case("chunked");
        lengths > 1
            || codings > 1
            || (lengths > 0 && codings > 0)
            || self.values("transfer-encoding").any(is_odd)
    }

    /// What hyper's own type of targets takes.
    pub(crate) fn is_usual_target(&self) -> bool {
        self.target.parse::<hyper::Uri>().is_ok()
    }
}
