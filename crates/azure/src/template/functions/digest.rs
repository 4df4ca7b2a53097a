//! Deterministic names from texts, with the same results as in Azure.

use serde_json::Value;
use uuid::Uuid;

use super::{Arguments, TemplateError};

/// Namespace of `guid`.
const GUID_NAMESPACE: Uuid = Uuid::from_u128(0x11fb_06fb_712d_4ddd_98c7_e71b_bd58_8830);

/// Thirteen letters and digits: a 64-bit hash of the texts, joined by hyphens.
pub(super) fn unique_string(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut hash = murmur(arguments.texts()?.join("-").as_bytes());
    let mut name = String::new();
    for _ in 0..13 {
        name.push(char::from(LETTERS[usize::try_from(hash >> 59).unwrap_or(0)]));
        hash <<= 5;
    }
    Ok(name.into())
}

/// A version 5 UUID of the texts, joined by hyphens.
pub(super) fn guid(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let text = arguments.texts()?.join("-");
    let name = Uuid::new_v5(&GUID_NAMESPACE, text.as_bytes()).to_string();
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

#[cfg(test)]
mod tests {
    use super::*;

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
