//! CPUs and memory of hosts and machines as options.

use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

use clap::Args;
use forewarn_control::Memory;

/// The size of a machine.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SizeArgs {
    /// CPUs that the machine takes on its host [default: none]
    #[arg(long, value_name = "N")]
    pub(super) cpus: Option<NonZeroU16>,
    /// Memory that the machine takes on its host, such as 8GiB [default: none]
    #[arg(long, value_name = "MEMORY")]
    pub(super) memory: Option<Memory>,
}

/// The capacity of a host.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CapacityArgs {
    /// CPUs for its machines [default: no limit]
    #[arg(long, value_name = "N")]
    pub(super) cpus: Option<NonZeroU16>,
    /// Memory for its machines, such as 256GiB [default: no limit]
    #[arg(long, value_name = "MEMORY")]
    pub(super) memory: Option<Memory>,
}

/// A new size of a machine, or a new capacity of a host; omitted options keep their value.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SizeChangeArgs {
    /// CPUs: a number, or `none`
    #[arg(long, value_name = "N", value_parser = cpus)]
    cpus: Option<Amount<NonZeroU16>>,
    /// Memory: an amount such as 8GiB, or `none`
    #[arg(long, value_name = "MEMORY", value_parser = memory)]
    memory: Option<Amount<Memory>>,
}

/// CPUs and memory. None: no limit of a host, or nothing that a machine takes.
pub(super) type CpusAndMemory = (Option<NonZeroU16>, Option<Memory>);

/// An amount from the command line. None for the word `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Amount<T>(Option<T>);

impl SizeChangeArgs {
    /// The new size, given the current one. None if no option is set.
    pub(super) fn change(self, (cpus, memory): CpusAndMemory) -> Option<CpusAndMemory> {
        let new = (self.cpus.map_or(cpus, |Amount(new)| new), self.memory.map_or(memory, |Amount(new)| new));
        (self.cpus.is_some() || self.memory.is_some()).then_some(new)
    }
}

fn cpus(text: &str) -> Result<Amount<NonZeroU16>, String> {
    amount(text).ok_or_else(|| format!("not a number of CPUs: {text:?}\n  hint: write 1 to 65535, or none"))
}

fn memory(text: &str) -> Result<Amount<Memory>, String> {
    amount(text).ok_or_else(|| {
        format!("not an amount of memory: {text:?}\n  hint: write 512MiB, 8GiB, 2TiB, or none")
    })
}

fn amount<T: FromStr>(text: &str) -> Option<Amount<T>> {
    if text == "none" { Some(Amount(None)) } else { text.parse().ok().map(|amount| Amount(Some(amount))) }
}

/// An amount of memory from its number of MiB.
pub(super) fn memory_of_mib(mib: NonZeroU32) -> Option<Memory> {
    format!("{mib}MiB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_omitted_amount_stays_and_none_removes_it() {
        let (four, eight) = (NonZeroU16::new(4), "8GiB".parse().ok());
        let change = |cpus_text: Option<&str>, memory_text: Option<&str>| {
            let arguments = SizeChangeArgs {
                cpus: cpus_text.map(|text| cpus(text).unwrap()),
                memory: memory_text.map(|text| memory(text).unwrap()),
            };
            arguments.change((four, eight))
        };
        assert_eq!(change(None, None), None);
        assert_eq!(change(Some("16"), None), Some((NonZeroU16::new(16), eight)));
        assert_eq!(change(None, Some("none")), Some((four, None)));
        assert_eq!(change(Some("none"), Some("1GiB")), Some((None, "1024MiB".parse().ok())));
        assert!(cpus("0").unwrap_err().contains("hint: "));
        assert!(memory("8").unwrap_err().contains("hint: "));
        assert_eq!(memory_of_mib(NonZeroU32::new(8192).unwrap()), eight);
    }
}
