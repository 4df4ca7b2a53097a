//! Small changes to inputs, the same in every run.

use forewarn_fuzz::corpus::Input;

/// Longer inputs are not changed: what is long about them is what they are for.
const BYTES_MAX: usize = 4 * 1024;

/// Pieces that mean something to somebody.
const PIECES: [&[u8]; 24] = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"\0",
    b":",
    b",",
    b";",
    b"\xff",
    b"0",
    b"-",
    b"%",
    b"#",
    b"?",
    b"/",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Host: a\r\n",
    b"Expect: 100-continue\r\n",
    b"HTTP/1.0",
    b"chunked",
    b"0\r\n\r\n",
];

/// So many mutations of each input.
pub(crate) fn of(inputs: &[Input], count: usize) -> Vec<Input> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut mutations = Vec::new();
    for input in inputs.iter().filter(|input| !input.bytes.is_empty() && input.bytes.len() <= BYTES_MAX) {
        for number in 0..count {
            let mut bytes = input.bytes.clone();
            for _ in 0..=random.below(2) {
                let other = random.below(inputs.len());
                mutate(&mut bytes, &mut random, &inputs[other].bytes);
            }
            mutations.push(Input { name: format!("{} #{number}", input.name), bytes });
        }
    }
    mutations
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random, other: &[u8]) {
    let at = random.below(bytes.len() + 1);
    let end = (at + 1 + random.below(4)).min(bytes.len());
    match random.below(6) {
        0 => drop(bytes.splice(at..end, [])),
        1 => drop(bytes.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
        2 => drop(bytes.splice(at..end, PIECES[random.below(PIECES.len())].iter().copied())),
        3 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        4 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        // The beginning of one, and the end of another.
        _ => {
            let from = random.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..other.len().min(from + 2_048)]);
        }
    }
}

/// xorshift: good enough to be different every time, and the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}
