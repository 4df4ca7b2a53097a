//! Parsing of statements that set up the fleet.

use std::num::NonZeroU16;
use std::str::FromStr;

use forewarn_control::{
    Eviction, HostEntry, InstanceEntry, MachineEntry, Memory, NamedCommand, OrchestrationWord, PolicyEntry,
    RollingEntry, ScaleSetEntry, SetEntry, UpgradeWord, VmEntry,
};
use forewarn_lifecycle::TerminateNotice;
use forewarn_types::Span;

use super::rollout::percent;
use super::{choice, known, new_name};
use crate::error::StoryError;
use crate::line_reader::{LineReader, Token};

/// The placement of a machine.
struct Placed {
    host: String,
    update_domain: u16,
    fault_domain: u16,
}

/// Options of a machine.
struct Traits {
    spot: Option<Eviction>,
    terminate: Option<Span>,
    os_image: bool,
    cpus: Option<NonZeroU16>,
    memory: Option<Memory>,
}

/// Parses a statement about the fleet; `None` if the verb is another.
pub(super) fn fleet_operation(
    line: &mut LineReader<'_>,
    verb: Token<'_>,
) -> Result<Option<Vec<NamedCommand>>, StoryError> {
    Ok(Some(match verb.text {
        "host" => return hosts(line).map(Some),
        "vm" => vec![vm(line)?],
        "availabilityset" => vec![NamedCommand::AdmitAvailabilitySet(set(line)?)],
        "service" => vec![NamedCommand::AdmitCloudService(set(line)?)],
        "scaleset" => vec![scale_set(line)?],
        "machine" => vec![machine(line)?],
        "capacity" => {
            let (host, (cpus, memory)) = (known(line, "a host")?, size(line)?);
            vec![NamedCommand::ChangeCapacity { host, cpus, memory }]
        }
        "remove" => vec![match choice(line, &["host", "tenant", "scaleset"])? {
            "host" => NamedCommand::RemoveHost { host: known(line, "a name")? },
            "tenant" => NamedCommand::RemoveTenant { tenant: known(line, "a name")? },
            _ => NamedCommand::RemoveScaleSet { scale_set: known(line, "a name")? },
        }],
        _ => return Ok(None),
    }))
}

fn hosts(line: &mut LineReader<'_>) -> Result<Vec<NamedCommand>, StoryError> {
    let mut names = vec![new_name(line)?];
    while line.peek().is_some_and(|word| !["zone", "cpus", "memory"].contains(&word.text)) {
        names.push(new_name(line)?);
    }
    let zone = match line.take_if("zone") {
        Some(_) => Some(line.need_number()?),
        None => None,
    };
    let (cpus, memory) = size(line)?;
    let entry = |name| HostEntry { name, zone, cpus, memory };
    Ok(names.into_iter().map(|name| NamedCommand::AdmitHost(entry(name))).collect())
}

fn vm(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    let name = new_name(line)?;
    let Placed { host, update_domain, fault_domain } = placed(line)?;
    let Traits { spot, terminate, os_image, cpus, memory } = traits(line)?;
    Ok(NamedCommand::AdmitVm(VmEntry {
        name,
        host,
        update_domain,
        fault_domain,
        cpus,
        memory,
        spot,
        terminate,
        os_image,
        policy: PolicyEntry::default(),
        windows: Vec::new(),
        addresses: Vec::new(),
        tags: std::collections::BTreeMap::new(),
    }))
}

fn set(line: &mut LineReader<'_>) -> Result<SetEntry, StoryError> {
    let (policy, windows, machines) = (PolicyEntry::default(), Vec::new(), Vec::new());
    Ok(SetEntry { name: new_name(line)?, policy, windows, machines })
}

fn machine(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    let name = new_name(line)?;
    line.need_word("of")?;
    let tenant = known(line, "a tenant")?;
    let Placed { host, update_domain, fault_domain } = placed(line)?;
    let Traits { spot, terminate, os_image, cpus, memory } = traits(line)?;
    let machine = MachineEntry {
        name,
        host,
        update_domain,
        fault_domain,
        cpus,
        memory,
        spot,
        terminate,
        os_image,
        addresses: Vec::new(),
        tags: std::collections::BTreeMap::new(),
    };
    Ok(NamedCommand::AdmitMachine { tenant, machine })
}

fn scale_set(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    let name = new_name(line)?;
    let orchestration =
        line.take_if("flexible").map_or(OrchestrationWord::Uniform, |_| OrchestrationWord::Flexible);
    let kind = |word: Token<'_>| ["manual", "automatic", "rolling"].contains(&word.text);
    let upgrade = if line.peek().is_some_and(kind) { upgrading(line)? } else { UpgradeWord::Manual };
    let Traits { spot, terminate, os_image, cpus, memory } = traits(line)?;
    Ok(NamedCommand::AdmitScaleSet(ScaleSetEntry {
        name,
        orchestration,
        upgrade,
        cpus,
        memory,
        spot,
        terminate,
        os_image,
        policy: PolicyEntry::default(),
        windows: Vec::new(),
        count: None,
        placement: None,
        instances: Vec::new(),
    }))
}

/// Parses an upgrade policy.
pub(super) fn upgrading(line: &mut LineReader<'_>) -> Result<UpgradeWord, StoryError> {
    let mut rolling = match choice(line, &["manual", "automatic", "rolling"])? {
        "manual" => return Ok(UpgradeWord::Manual),
        "automatic" => return Ok(UpgradeWord::Automatic),
        _ => RollingEntry::default(),
    };
    if line.peek().is_some_and(|word| word.text.ends_with('%')) {
        rolling.batch_percent = percent(line)?;
    }
    if line.take_if("pause").is_some() {
        rolling.pause = Span(line.need_duration()?);
    }
    Ok(UpgradeWord::Rolling(rolling))
}

/// Parses `of web on h1 [ud 0] [fd 0] [times 3]`: one command, and its number.
pub(super) fn instances(line: &mut LineReader<'_>) -> Result<(NamedCommand, u16), StoryError> {
    line.need_word("of")?;
    let scale_set = known(line, "a scale set")?;
    let Placed { host, update_domain, fault_domain } = placed(line)?;
    let times = match line.take_if("times") {
        Some(_) => line.need_number()?,
        None => 1,
    };
    let instance = InstanceEntry {
        id: None,
        host,
        update_domain,
        fault_domain,
        addresses: Vec::new(),
        tags: std::collections::BTreeMap::new(),
    };
    Ok((NamedCommand::AdmitInstance { scale_set, instance }, times))
}

fn placed(line: &mut LineReader<'_>) -> Result<Placed, StoryError> {
    line.need_word("on")?;
    let host = known(line, "a host")?;
    let mut numbers = [0; 2];
    for (number, word) in numbers.iter_mut().zip(["ud", "fd"]) {
        if line.take_if(word).is_some() {
            *number = line.need_number()?;
        }
    }
    let [update_domain, fault_domain] = numbers;
    Ok(Placed { host, update_domain, fault_domain })
}

fn traits(line: &mut LineReader<'_>) -> Result<Traits, StoryError> {
    let spot = match line.take_if("spot") {
        Some(_) => Some(match choice(line, &["delete", "deallocate"])? {
            "delete" => Eviction::Delete,
            _ => Eviction::Deallocate,
        }),
        None => None,
    };
    let terminate = match line.take_if("terminate") {
        Some(_) => terminate(line)?,
        None => None,
    };
    let os_image = line.take_if("osimage").is_some();
    let (cpus, memory) = size(line)?;
    Ok(Traits { spot, terminate, os_image, cpus, memory })
}

/// Parses CPUs and memory, each of which may be absent.
pub(super) fn size(line: &mut LineReader<'_>) -> Result<(Option<NonZeroU16>, Option<Memory>), StoryError> {
    let cpus = match line.take_if("cpus") {
        Some(_) => Some(needed(line, "a number of CPUs")?),
        None => None,
    };
    let memory = match line.take_if("memory") {
        Some(_) => Some(needed(line, "an amount of memory, such as 8GiB")?),
        None => None,
    };
    Ok((cpus, memory))
}

fn needed<T: FromStr>(line: &mut LineReader<'_>, what: &str) -> Result<T, StoryError> {
    let word = line.need(what)?;
    word.text.parse().map_err(|_| line.error_at(word, format!("not {what}")))
}

/// Parses the notice of a deletion, and the announcement of new images.
pub(super) fn profile(line: &mut LineReader<'_>) -> Result<(Option<Span>, bool), StoryError> {
    line.need_word("terminate")?;
    Ok((terminate(line)?, line.take_if("osimage").is_some()))
}

fn terminate(line: &mut LineReader<'_>) -> Result<Option<Span>, StoryError> {
    if line.take_if("off").is_some() {
        return Ok(None);
    }
    let location = line.peek();
    let span = line.need_duration()?;
    let notice = TerminateNotice::from_seconds(span.as_secs());
    let wrong = |word| line.error_at(word, "the notice of a Terminate event is 5m to 15m");
    notice.map(|_| Some(Span(span))).ok_or_else(|| location.map_or_else(|| line.error_at_end(""), wrong))
}
