//! How much memory the process has in use, as the kernel counts it.

use std::io::{Error, Result};

/// Resident memory. It counts whole pages, and what the allocator keeps beside what was asked for.
pub(crate) fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    parse_resident_bytes(&status).ok_or_else(|| Error::other("no resident size in the status of the process"))
}

fn parse_resident_bytes(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_in_kibibytes() {
        assert_eq!(parse_resident_bytes("VmSize:\t 9 kB\nVmRSS:\t    2048 kB\n"), Some(2_097_152));
        assert_eq!(parse_resident_bytes("VmSize:\t 9 kB\n"), None);
    }
}
