//! Reading of fleet files: a large one in sections, each of which is read by itself. The tree that the TOML decoder
//! builds of a text takes many times the memory of the text.
//!
//! A section begins with a header of a list of the fleet, `[[vm]]`, so that it is a valid file. A file that cannot be
//! divided in this way, or has an error, is read as a whole: errors and their positions do not depend on sections.

use forewarn_types::plain_file_error;

use crate::fleet_file::fleet::{Fleet, FleetFileError};

/// Bytes of a section at least, except the last one.
const SECTION_BYTES_MIN: usize = 256 * 1024;

/// Headers at which a section may begin.
const HEADERS: [&str; 5] =
    ["[[host]]", "[[vm]]", "[[availability_set]]", "[[cloud_service]]", "[[scale_set]]"];

impl Fleet {
    /// Reads a fleet file.
    ///
    /// ```
    /// use forewarn_control::Fleet;
    ///
    /// let fleet = Fleet::parse("host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]").unwrap();
    /// assert_eq!(fleet.vms[0].name, "solo");
    /// assert!(Fleet::parse("hots = []").is_err());
    /// ```
    ///
    /// # Errors
    /// Fails if the text is not TOML, or has an unknown key.
    pub fn parse(text: &str) -> Result<Self, FleetFileError> {
        if let Some(fleet) = read(text) {
            return Ok(fleet);
        }
        toml::from_str(text).map_err(|error| FleetFileError::Malformed(plain_file_error(&error.to_string())))
    }
}

/// Reads a large file section by section. None if it has to be read as a whole.
fn read(text: &str) -> Option<Fleet> {
    let mut fleet = Fleet::default();
    let mut begin = 0;
    for end in section_ends(text)? {
        let section: Fleet = toml::from_str(&text[begin..end]).ok()?;
        if begin == 0 {
            (fleet.enrolment, fleet.site) = (section.enrolment, section.site);
        }
        fleet.hosts.extend(section.hosts);
        fleet.vms.extend(section.vms);
        fleet.availability_sets.extend(section.availability_sets);
        fleet.cloud_services.extend(section.cloud_services);
        fleet.scale_sets.extend(section.scale_sets);
        begin = end;
    }
    Some(fleet)
}

/// The ends of the sections. None if the file has one section only, or lists outside of sections.
fn section_ends(text: &str) -> Option<Vec<usize>> {
    if text.len() <= SECTION_BYTES_MIN {
        return None;
    }
    let (mut ends, mut begin) = (Vec::new(), 0);
    let mut scanner = Scanner { text, at: 0, place: ScannerPlace::Top };
    while let Some(header) = scanner.next_header()? {
        if header - begin >= SECTION_BYTES_MIN {
            ends.push(header);
            begin = header;
        }
    }
    ends.push(text.len());
    (ends.len() > 1).then_some(ends)
}

/// Finds the headers of lists in a TOML text. It knows just enough of TOML: comments, strings, and brackets.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    place: ScannerPlace,
}

/// The part of a file that a scanner is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScannerPlace {
    /// Before all headers.
    Top,
    /// After the header of another table, before the first list.
    Site,
    /// After the header of a list.
    List,
}

impl Scanner<'_> {
    /// The position of the next header of a list. None inside if there is none; None if the file cannot be divided.
    fn next_header(&mut self) -> Option<Option<usize>> {
        loop {
            self.skip_blank();
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                return Some(None);
            }
            let begin = self.at;
            let line = rest.lines().next().unwrap_or_default();
            let header = line.split('#').next().unwrap_or_default().trim_end();
            if HEADERS.contains(&header) {
                self.at += line.len();
                self.place = ScannerPlace::List;
                return Some(Some(begin));
            }
            match (self.place, rest.starts_with('[')) {
                // A table of an entry, such as `[vm.tags]`. Others, and names in quotes, are rare here.
                (ScannerPlace::List, true) => {
                    let is_of_entry = header.contains('.') && !header.contains(['"', '\'']);
                    is_of_entry.then(|| self.at += line.len())?;
                }
                (ScannerPlace::Top | ScannerPlace::Site, true) => {
                    (header == "[site]").then(|| self.at += line.len())?;
                    self.place = ScannerPlace::Site;
                }
                // A list before all headers: another part of it must not follow.
                (ScannerPlace::Top, false) if !rest.starts_with("site") && !rest.starts_with("enrolment") => {
                    return None;
                }
                (ScannerPlace::Top | ScannerPlace::Site | ScannerPlace::List, false) => self.skip_pair()?,
            }
        }
    }

    /// Skips empty lines, comments, and a byte order mark.
    fn skip_blank(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']);
            let comment = if trimmed.starts_with('#') { line_length(trimmed) } else { 0 };
            self.at = self.text.len() - trimmed.len() + comment;
            if comment == 0 {
                return;
            }
        }
    }

    /// Skips a key and its value, which may have several lines.
    fn skip_pair(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'\n' if depth == 0 => return Some(()),
                b'#' => self.at += line_length(&self.text[self.at..]),
                b'"' | b'\'' => self.skip_string()?,
                b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b']' | b'}' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        (depth == 0).then_some(())
    }

    /// Skips a string. None if it does not end.
    fn skip_string(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let quote = quotes.into_iter().find(|quote| rest.starts_with(quote))?;
        let mut at = quote.len();
        loop {
            let tail = rest.get(at..)?;
            if let Some(after) = tail.strip_prefix(quote) {
                // Up to two quotes may precede the three that end a string of several lines.
                let is_quote = |byte: &u8| *byte == quote.as_bytes()[0];
                let more = if quote.len() == 1 { 0 } else { after.bytes().take_while(is_quote).count() };
                self.at += at + quote.len() + more;
                return Some(());
            }
            match tail.as_bytes().first()? {
                b'\\' if quote.starts_with('"') => at += 2,
                b'\n' if quote.len() == 1 => return None,
                _ => at += 1,
            }
            while at < rest.len() && !rest.is_char_boundary(at) {
                at += 1;
            }
        }
    }
}

/// Bytes up to the end of the line.
fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many machines between two parts of a file: at least three sections.
    fn around(before: &str, after: &str) -> String {
        let vm = |number| format!("[[vm]]\nname = 'v{number}' # [[vm]]\nhost = 'h'\n");
        let vms: String = (0..20_000).map(vm).collect();
        format!("{before}\n{vms}{after}\n")
    }

    #[test]
    fn a_file_in_sections_is_read_as_it_is_read_at_once() {
        let tags = "[vm.tags]\na = \"\"\"\n[[vm]]\n\\\"\"\"\"\"\nb = '''x\n[[host]]'''\n";
        let set = "[[scale_set]]\nname = 's'\ninstance = [\n  { host = 'h' }, # ]\n\n  {host='h'}\n]\n";
        let more = "[[scale_set]]\nname = 't'\n[[scale_set.instance]]\nhost = 'h'\n[scale_set.policy]\n";
        for (before, after) in [
            ("enrolment = 'always'\nsite = { location = 'a' } # {", "  [[host]] # the last\nname = \"h\""),
            ("\u{feff}# a comment\n\n[site]\nlocation = \"a\\\"[[\"\r\n[[host]]\r\nname = 'h'\r", tags),
            ("", &format!("{set}{more}[[vm]]\nname = 'é\"'\nhost = 'h'")),
        ] {
            let text = around(before, after);
            let ends = section_ends(&text).unwrap();
            assert!(ends.len() >= 3, "{ends:?}");
            assert_eq!(read(&text).unwrap(), toml::from_str::<Fleet>(&text).unwrap(), "{before} {after}");
        }
    }

    #[test]
    fn a_file_that_is_invalid_or_unusual_is_read_as_a_whole() {
        for (before, after) in [
            ("host = [{ name = 'h' }]", ""),
            ("host = []", "[[host]]\nname = 'h'"),
            ("", "[site]\nlocation = 'a'"),
            ("[site]", "[site]"),
            ("[[scale_set]]\nname = 's'", "[[scale_set.instance]]\nhost = 'h'"),
            ("", "[[vm]]\nname = 'a"),
            ("", "[[vm]]\nname = '''a"),
            ("", "[[vm]]\nname = 'a'\nhost = 'h'\nadresses = []"),
            ("", "[[vm]]\naddresses = ["),
            ("", "[[vm]]\naddresses = ]"),
            ("", "[[\"vm\"]]\nname = 'a'\nhost = 'h'"),
        ] {
            let text = around(before, after);
            assert_eq!(read(&text), None, "{before} {after}");
            let at_once =
                toml::from_str::<Fleet>(&text).map_err(|error| plain_file_error(&error.to_string()));
            assert_eq!(Fleet::parse(&text).map_err(|error| error.to_string()), at_once);
        }
        assert_eq!(read("[[vm]]\nname = 'a'\nhost = 'h'"), None, "a small file");
        assert_eq!(read(&(around("", "") + "[[vm]]\nname = \"a\\")), None, "a file that was cut off");
    }
}
