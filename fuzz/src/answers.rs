//! Answers as a caller sees them: a strict reader of what the endpoint writes.

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
    /// Whether it says that the connection is closed after it.
    pub closes: bool,
}

/// Reads all answers of a connection, without those that only say that a body may come.
///
/// # Errors
/// When the bytes are anything but whole answers, one after the other. The text says what is wrong.
pub fn read(mut bytes: &[u8]) -> Result<Vec<Answer>, String> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or("a head without an end")?;
        let head = str::from_utf8(&bytes[..end]).map_err(|_| "a head that is not text")?;
        let mut lines = head.split("\r\n");
        let status = status(lines.next().unwrap_or_default())?;
        let (mut length, mut closes) = (0, false);
        for line in lines {
            let (name, value) = line.split_once(": ").ok_or_else(|| format!("not a field: {line:?}"))?;
            if value.chars().any(char::is_control) {
                return Err(format!("not the value of a field: {value:?}"));
            }
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(|_| format!("not a length: {value}"))?,
                "connection" => closes = value == "close",
                _ => {}
            }
        }
        let rest = &bytes[end + 4..];
        let body = rest.get(..length).ok_or("a body that is cut off")?;
        bytes = &rest[length..];
        if status != 100 {
            answers.push(Answer { status, body: body.to_vec(), closes });
        }
    }
    Ok(answers)
}

fn status(line: &str) -> Result<u16, String> {
    let number =
        line.strip_prefix("HTTP/1.1 ").or(line.strip_prefix("HTTP/1.0 ")).and_then(|rest| rest.get(..3));
    number.and_then(|number| number.parse().ok()).ok_or_else(|| format!("not a status line: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_one_after_the_other() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}\
                      HTTP/1.1 405 Method Not Allowed\r\nConnection: close\r\n\r\n";
        let expected = [
            Answer { status: 200, body: b"{}".to_vec(), closes: false },
            Answer { status: 405, body: Vec::new(), closes: true },
        ];
        assert_eq!(read(bytes).unwrap(), expected);
    }

    #[test]
    fn what_is_no_answer_is_told() {
        for wrong in
            ["x", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "ICY 200\r\n\r\n"]
        {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(read(b"HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n").is_err());
    }
}
