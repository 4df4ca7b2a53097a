//! Names made of other texts: always the same for the same texts, and the same as in Azure.

use serde_json::Value;

use super::{Arguments, Trouble};

/// The namespace of names that `guid` makes.
const GUID_NAMESPACE: [u8; 16] =
    [0x11, 0xfb, 0x06, 0xfb, 0x71, 0x2d, 0x4d, 0xdd, 0x98, 0xc7, 0xe7, 0x1b, 0xbd, 0x58, 0x88, 0x30];

/// Thirteen letters and digits: a hash of 64 bits of the texts with hyphens between them.
pub(super) fn unique_string(arguments: &Arguments<'_>) -> Result<Value, Trouble> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut hash = murmur(arguments.texts()?.join("-").as_bytes());
    let mut name = String::new();
    for _ in 0..13 {
        name.push(char::from(LETTERS[usize::try_from(hash >> 59).unwrap_or(0)]));
        hash <<= 5;
    }
    Ok(name.into())
}

/// A version 5 UUID of the texts with hyphens between them.
pub(super) fn guid(arguments: &Arguments<'_>) -> Result<Value, Trouble> {
    let text = arguments.texts()?.join("-");
    let hash = sha1(&[&GUID_NAMESPACE, text.as_bytes()].concat());
    let mut name = String::new();
    for (place, byte) in hash.iter().take(16).enumerate() {
        let byte = match place {
            6 => byte & 0x0f | 0x50,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        if matches!(place, 4 | 6 | 8 | 10) {
            name.push('-');
        }
        name.push_str(&format!("{byte:02x}"));
    }
    Ok(name.into())
}

/// Murmur 3 with two words of 32 bits.
fn murmur(bytes: &[u8]) -> u64 {
    const FIRST: u32 = 0x239b_961b;
    const SECOND: u32 = 0xab0e_9789;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
    let mix_one = |word: u32| word.wrapping_mul(FIRST).rotate_left(15).wrapping_mul(SECOND);
    let mix_two = |word: u32| word.wrapping_mul(SECOND).rotate_left(17).wrapping_mul(FIRST);
    let (mut one, mut two) = (0_u32, 0_u32);
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        let (low, high) = chunk.split_at(4);
        one = (one ^ mix_one(word(low))).rotate_left(19).wrapping_add(two);
        one = one.wrapping_mul(5).wrapping_add(0x561c_cd1b);
        two = (two ^ mix_two(word(high))).rotate_left(13).wrapping_add(one);
        two = two.wrapping_mul(5).wrapping_add(0x0bca_a747);
    }
    let (low, high) = rest.split_at(rest.len().min(4));
    one ^= mix_one(word(low));
    two ^= mix_two(word(high));
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    one = (one ^ length).wrapping_add(two ^ length);
    two = (two ^ length).wrapping_add(one);
    (one, two) = (avalanche(one), avalanche(two));
    one = one.wrapping_add(two);
    two = two.wrapping_add(one);
    u64::from(two) << 32 | u64::from(one)
}

fn avalanche(mut word: u32) -> u32 {
    word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}

/// SHA-1, for a name and nothing that must be safe.
fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64), 0);
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded.chunks_exact(64) {
        let mixed = sha1_block(state, block);
        state.iter_mut().zip(mixed).for_each(|(word, mixed)| *word = word.wrapping_add(mixed));
    }
    let mut hash = [0; 20];
    hash.chunks_exact_mut(4).zip(state).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_be_bytes()));
    hash
}

fn sha1_block(state: [u32; 5], block: &[u8]) -> [u32; 5] {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for place in 16..80 {
        let mixed = words[place - 3] ^ words[place - 8] ^ words[place - 14] ^ words[place - 16];
        words[place] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for (place, word) in words.into_iter().enumerate() {
        let (mixed, constant) = match place {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc_u32),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let sum = [mixed, e, constant, word].into_iter().fold(a.rotate_left(5), u32::wrapping_add);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
    }
    [a, b, c, d, e]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn sha1_is_as_published() {
        assert_eq!(hex(&sha1(b"")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(hex(&sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let longer = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(&sha1(longer)), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        for (count, hash) in [
            (55, "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
            (56, "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
            (63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5"),
            (64, "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
            (1_000, "291e9a6c66994949b57ba5e650361e98fc36b1ba"),
        ] {
            assert_eq!(hex(&sha1(&vec![b'a'; count])), hash, "{count}");
        }
    }

    #[test]
    fn names_are_the_same_as_in_azure() {
        let values = |texts: &[&str]| texts.iter().map(|text| Value::from(*text)).collect::<Vec<_>>();
        let unique = |texts: &[&str]| {
            unique_string(&Arguments { name: "uniqueString", values: &values(texts) }).unwrap()
        };
        assert_eq!(unique(&["tyeth"]), "zcztcwvu6iyg6");
        assert_eq!(unique(&["hello", "world"]), "a7wkljktk6wne");
        assert_eq!(unique(&["hello-world"]), "a7wkljktk6wne");
        let guid = |texts: &[&str]| guid(&Arguments { name: "guid", values: &values(texts) }).unwrap();
        assert_eq!(guid(&["a", "b"]), guid(&["a-b"]));
        assert_eq!(guid(&["a", "b"]), "2d796349-8c7e-55ec-9624-54ece82ed031");
    }
}
