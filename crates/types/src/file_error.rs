//! Errors in files of people, in their words: parsers of TOML use the names of Rust types.

/// Expected types: names of Rust, and ours.
const EXPECTED: [(&str, &str); 14] = [
    ("a sequence", "a list"),
    ("a map", "a table"),
    ("a boolean", "true or false"),
    ("a string", "a text in quotes"),
    ("u8", "a number from 0 to 255"),
    ("u16", "a number from 0 to 65535"),
    ("u32", "a whole number"),
    ("u64", "a whole number"),
    ("usize", "a whole number"),
    ("i64", "a whole number"),
    ("a nonzero u16", "a number from 1 to 65535"),
    ("a nonzero u32", "a whole number from 1"),
    ("a nonzero u64", "a whole number from 1"),
    ("a nonzero usize", "a whole number from 1"),
];

/// Rewrites the last line of a parser's message; the lines before it show the position.
///
/// ```
/// use forewarn_types::plain_file_error;
/// assert_eq!(plain_file_error("missing field `host`"), "missing: host\n  hint: add host = …");
/// ```
#[must_use]
pub fn plain_file_error(message: &str) -> String {
    let message = message.trim_end();
    let start = message.rfind('\n').map_or(0, |end| end + 1);
    let (position, last) = message.split_at(start);
    format!("{position}{}", plain(last).unwrap_or_else(|| last.to_owned()))
}

fn plain(said: &str) -> Option<String> {
    if let Some(field) = said.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return Some(format!("missing: {field}\n  hint: add {field} = …"));
    }
    if said.starts_with("invalid IP address syntax") {
        return Some("not an IP address\n  hint: write \"10.0.0.4\"".to_owned());
    }
    let found = said.strip_prefix("invalid type: ").or_else(|| said.strip_prefix("invalid value: "))?;
    let (found, expected) = found.rsplit_once(", expected ")?;
    let is_table = ["struct ", "internally tagged enum "].iter().any(|kind| expected.starts_with(kind));
    let known = EXPECTED.iter().find(|(theirs, _)| *theirs == expected);
    let expected = if is_table { "a table" } else { known.map_or(expected, |(_, ours)| ours) };
    Some(format!("expected {expected}, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_stays_and_types_get_names_for_people() {
        let cases = [
            (
                "at line 1\n  |\n1 | [[vm]]\nmissing field `host`\n",
                "at line 1\n  |\n1 | [[vm]]\nmissing: host\n  hint: add host = …",
            ),
            ("invalid IP address syntax", "not an IP address\n  hint: write \"10.0.0.4\""),
            (
                "invalid type: string \"many\", expected a nonzero u16",
                "expected a number from 1 to 65535, found string \"many\"",
            ),
            (
                "invalid value: integer `-1`, expected u16",
                "expected a number from 0 to 65535, found integer `-1`",
            ),
            ("invalid type: integer `7`, expected struct VmEntry", "expected a table, found integer `7`"),
            ("unknown field `x`, expected `a`", "unknown field `x`, expected `a`"),
            ("not a duration: \"5x\"", "not a duration: \"5x\""),
            ("", ""),
        ];
        for (said, expected) in cases {
            assert_eq!(plain_file_error(said), expected);
        }
    }
}
