//! DHCP option 245 in the lease files of DHCP clients.
//!
//! | client | directory | format |
//! |---|---|---|
//! | dhclient | `/var/lib/dhcp`, `/var/lib/dhclient` | `option unknown-245 a8:3f:81:10;` in the last lease of an interface |
//! | systemd-networkd | `/run/systemd/netif/leases` | `OPTION_245=a83f8110` |
//! | NetworkManager | `/var/lib/NetworkManager` | either |
//!
//! Files are read from the most recently changed one. Expiry is ignored: a stale address fails the probe.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Directories of lease files.
pub(crate) const DIRECTORIES: [&str; 4] =
    ["/var/lib/dhcp", "/var/lib/dhclient", "/run/systemd/netif/leases", "/var/lib/NetworkManager"];

/// Limits of the size and the number of files.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
const FILES_MAX: usize = 64;

/// The address in each file, or the reason why there is none; the newest file first.
pub(crate) fn read_leases(locations: &[PathBuf]) -> Vec<(PathBuf, Result<Ipv4Addr, String>)> {
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    let mut results = Vec::new();
    for location in locations {
        match files_at(location) {
            Ok(found) => files.extend(found),
            Err(reason) => results.push((location.clone(), Err(reason))),
        }
    }
    files.sort_by(|one, other| other.cmp(one));
    let read = files.into_iter().take(FILES_MAX).map(|(_, path)| {
        let address = read(&path);
        (path, address)
    });
    results.extend(read);
    results
}

fn files_at(location: &Path) -> Result<Vec<(SystemTime, PathBuf)>, String> {
    let describe = |error: std::io::Error| error.to_string();
    let metadata = std::fs::metadata(location).map_err(describe)?;
    let changed = |metadata: &std::fs::Metadata| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    if metadata.is_file() {
        return Ok(vec![(changed(&metadata), location.to_owned())]);
    }
    let entries = std::fs::read_dir(location).map_err(describe)?.take(FILES_MAX * 16);
    let files: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let metadata = std::fs::metadata(&path).ok()?;
            (metadata.is_file() && is_lease_file(location, &path)).then(|| (changed(&metadata), path))
        })
        .collect();
    if files.is_empty() { Err("no lease files found".to_owned()) } else { Ok(files) }
}

/// systemd-networkd names its files by numbers; other clients use a suffix and store more files in the same directory.
fn is_lease_file(location: &Path, path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    location.ends_with("netif/leases") || matches!(ending, "lease" | "leases")
}

fn read(path: &Path) -> Result<Ipv4Addr, String> {
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    option_245(&String::from_utf8_lossy(&bytes)).ok_or_else(|| "has no option 245".to_owned())
}

/// The address in the newest lease that has one.
fn option_245(text: &str) -> Option<Ipv4Addr> {
    // The last lease of each interface counts, with or without the option.
    let mut last: BTreeMap<String, (usize, Option<Ipv4Addr>)> = BTreeMap::new();
    let (mut interface, mut address) = (String::new(), None);
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if let Some(rest) = line.strip_prefix("OPTION_245=") {
            return hex_pairs(rest.trim()).and_then(plausible);
        }
        if line.starts_with("lease {") || line.starts_with("lease6 {") {
            (interface, address) = (String::new(), None);
        } else if let Some(rest) = line.strip_prefix("interface ") {
            rest.trim_end_matches(';').clone_into(&mut interface);
        } else if let Some(rest) = line.strip_prefix("option unknown-245 ") {
            address = written(rest.trim().trim_end_matches(';')).and_then(plausible);
        } else if line == "}" {
            last.insert(std::mem::take(&mut interface), (number, address.take()));
        }
    }
    let with_option = last.into_values().filter_map(|(number, address)| Some((number, address?)));
    with_option.max().map(|(_, address)| address)
}

/// The format of dhclient: `a8:3f:81:10`, or quoted text if every byte is a letter: `"hijk"`.
fn written(text: &str) -> Option<[u8; 4]> {
    if let Some(inside) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return quoted(inside);
    }
    let mut parts = text.split(':');
    let mut next = || parts.next().filter(|part| part.len() <= 2).and_then(hex);
    let bytes = [next()?, next()?, next()?, next()?];
    parts.next().is_none().then_some(bytes)
}

/// Quoted text with `\"`, `\\` and `\ooo`.
fn quoted(text: &str) -> Option<[u8; 4]> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
        } else if let Some((octal, after)) = after.split_first_chunk::<3>()
            && let Ok(text) = str::from_utf8(octal)
            && let Ok(byte) = u8::from_str_radix(text, 8)
        {
            bytes.push(byte);
            rest = after;
        } else {
            let (escaped, after) = after.split_first()?;
            bytes.push(*escaped);
            rest = after;
        }
    }
    bytes.try_into().ok()
}

/// The format `a83f8110`.
fn hex_pairs(text: &str) -> Option<[u8; 4]> {
    if text.len() != 8 || !text.is_ascii() {
        return None;
    }
    let pair = |at: usize| text.get(at..at + 2).and_then(hex);
    Some([pair(0)?, pair(2)?, pair(4)?, pair(6)?])
}

fn hex(text: &str) -> Option<u8> {
    let is_hex = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u8::from_str_radix(text, 16).ok()).flatten()
}

/// Rejects unspecified, broadcast and multicast addresses.
pub(crate) fn plausible(bytes: [u8; 4]) -> Option<Ipv4Addr> {
    let address = Ipv4Addr::from(bytes);
    let is_unusable = address.is_unspecified() || address.is_broadcast() || address.is_multicast();
    (!is_unusable).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIRE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

    fn lease(interface: &str, option: &str) -> String {
        format!("lease {{\n  interface \"{interface}\";\n  fixed-address 10.0.0.4;\n{option}}}\n")
    }

    #[test]
    fn what_dhclient_writes_is_read_and_the_newest_lease_wins() {
        let with = |address: &str| lease("eth0", &format!("  option unknown-245 {address};\n"));
        assert_eq!(option_245(&with("a8:3f:81:10")), Some(WIRE));
        assert_eq!(option_245(&with("a:0:0:1")), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(option_245(&with("\"hijk\"")), Some(Ipv4Addr::new(104, 105, 106, 107)));
        assert_eq!(option_245(&with("\"h\\\"\\\\\\177\"")), Some(Ipv4Addr::new(104, 34, 92, 127)));
        assert_eq!(option_245(&(with("1:2:3:4") + &with("a8:3f:81:10"))), Some(WIRE));
        assert_eq!(option_245(&(with("1:2:3:4") + &lease("eth0", ""))), None, "the newest has none");
        assert_eq!(option_245(&(with("a8:3f:81:10") + &lease("eth1", ""))), Some(WIRE), "another interface");
    }

    #[test]
    fn what_systemd_networkd_writes_is_read() {
        let text = "# This is private data. Do not parse.\nADDRESS=10.0.0.4\nOPTION_245=a83f8110\n";
        assert_eq!(option_245(text), Some(WIRE));
    }

    #[test]
    fn what_is_no_address_is_none() {
        for wrong in
            ["", "a8:3f:81", "a8:3f:81:10:1", "a8:3f:81:g0", "0:0:0:0", "ff:ff:ff:ff", "e0:0:0:1", "\"abc\""]
        {
            assert_eq!(option_245(&lease("e", &format!("option unknown-245 {wrong};\n"))), None, "{wrong}");
        }
        for wrong in ["", "a83f81", "a83f811000", "a83f811é", "+83f8110"] {
            assert_eq!(option_245(&format!("OPTION_245={wrong}\n")), None, "{wrong}");
        }
    }

    #[test]
    fn the_newest_file_comes_first_and_missing_ones_are_reported() {
        let location = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, age: u64| {
            let path = location.path().join(name);
            std::fs::write(&path, text).unwrap();
            let at = SystemTime::now() - std::time::Duration::from_secs(age);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
            path
        };
        let old = write("dhclient.eth0.leases", &lease("eth0", "option unknown-245 1:2:3:4;\n"), 60);
        let new = write("internal-1234-eth0.lease", "OPTION_245=a83f8110\n", 5);
        write("NetworkManager.state", "OPTION_245=01010101\n", 0);
        let missing = location.path().join("nowhere");
        let results = read_leases(&[missing.clone(), location.path().to_owned()]);
        let expected = [(new, Ok(WIRE)), (old, Ok(Ipv4Addr::new(1, 2, 3, 4)))];
        assert_eq!(results[1..], expected);
        assert!(results[0].0 == missing && results[0].1.is_err(), "{results:?}");
        let empty = tempfile::tempdir().unwrap();
        assert!(
            read_leases(&[empty.path().to_owned()])[0].1.as_ref().unwrap_err().contains("no lease files")
        );
    }

    proptest! {
        #[test]
        fn no_file_makes_the_reader_of_leases_stumble(
            lines in prop::collection::vec(
                "(lease \\{|\\}|interface \"eth0\";|option unknown-245 [\\\\\"a-f0-9:é]{0,14};|OPTION_245=[a-f0-9é]{0,9})",
                0..12,
            ),
        ) {
            if let Some(address) = option_245(&lines.join("\n")) {
                prop_assert!(!address.is_unspecified());
            }
        }
    }
}
