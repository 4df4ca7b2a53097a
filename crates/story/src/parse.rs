//! From text to statements. Says where it stumbles, and what it would have understood.

use forewarn_lifecycle::{
    Approve, Brake, EvictionPolicy, FailureKind, HostWork, Orchestration, OsImageNotice, PowerChange,
    Priority, SetShape, TerminateNotice, Unenrolled, UpgradePolicy,
};

use crate::error::Mistake;
use crate::statement::{
    By, ClockStep, Deed, Expectation, Expected, Named, Place, PolicyRule, Removed, Says, Seen, Setting, Spot,
    Story, Told, Traits, UserDeed,
};
use crate::words::{Line, Word};
use crate::{LINE_BYTES_MAX, LINES_MAX};

/// Reads a story.
///
/// # Errors
/// When a line cannot be understood; the mistake points at the word.
pub fn parse(text: &str) -> Result<Story, Mistake> {
    let mut lines = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let mut line = Line::new(index + 1, text);
        if index >= LINES_MAX {
            return Err(line.mistake_at_end(format!("a story has at most {LINES_MAX} lines")));
        }
        if text.len() > LINE_BYTES_MAX {
            let mistake = Line::new(index + 1, "").mistake_at_end("");
            return Err(Mistake { message: format!("a line has at most {LINE_BYTES_MAX} bytes"), ..mistake });
        }
        if !line.is_empty() {
            lines.push(told(&mut line)?);
        }
    }
    Ok(Story { lines })
}

fn told(line: &mut Line<'_>) -> Result<Told, Mistake> {
    let at = match line.take_if("at") {
        Some(_) => Some(line.need_duration()?),
        None => None,
    };
    let says = says(line)?;
    line.end()?;
    Ok(Told { place: Place::of(line), at, says })
}

fn says(line: &mut Line<'_>) -> Result<Says, Mistake> {
    let word = line.need("what happens")?;
    Ok(match word.text {
        "advance" => Says::Advance(line.need_duration()?),
        "step" => {
            line.need_word("clock")?;
            match choice(line, &["forward", "back"])? {
                "forward" => Says::StepClock(ClockStep::Forward(line.need_duration()?)),
                _ => Says::StepClock(ClockStep::Back(line.need_duration()?)),
            }
        }
        "crash" => Says::Crash,
        "poll" => Says::Poll(match line.take_if("all") {
            Some(_) => None,
            None => Some(name(line, "a machine, or `all`")?),
        }),
        "jam" => Says::Jam(name(line, "a machine")?),
        "expect" => Says::Expect(expectations(line)?),
        "refused" => {
            let word = line.need("what is refused")?;
            Says::Refused(deed(line, word)?)
        }
        _ => Says::Does(deed(line, word)?),
    })
}

/// Every word with which a line may begin, for suggestions.
const VERBS: &[&str] = &[
    "host",
    "vm",
    "availabilityset",
    "service",
    "scaleset",
    "machine",
    "instance",
    "remove",
    "poll",
    "restart",
    "redeploy",
    "delete",
    "reimage",
    "evict",
    "stop",
    "start",
    "deallocate",
    "update",
    "migrate",
    "reboot",
    "degrade",
    "fail",
    "recover",
    "approve",
    "cancel",
    "force",
    "brake",
    "policy",
    "model",
    "profile",
    "upgrade",
    "set",
    "jam",
    "advance",
    "step",
    "crash",
    "expect",
    "refused",
    "at",
];

fn deed(line: &mut Line<'_>, verb: Word<'_>) -> Result<Deed, Mistake> {
    if let Some(deed) = fleet_deed(line, verb)? {
        return Ok(deed);
    }
    if let Some(what) = user_deed(verb) {
        return Ok(Deed::User { what, machine: name(line, "a machine")? });
    }
    Ok(match verb.text {
        "update" => match choice(line, &["host", "network"])? {
            "host" => host_work(line, HostWork::Update)?,
            _ => host_work(line, HostWork::NetworkUpdate)?,
        },
        "migrate" => after_host(line, |line| host_work(line, HostWork::Migration))?,
        "reboot" => after_host(line, |line| host_work(line, HostWork::Restart))?,
        "degrade" => after_host(line, degrade)?,
        "fail" => after_host(line, |line| Ok(Deed::Fail(name(line, "a host")?)))?,
        "recover" => after_host(line, |line| Ok(Deed::Recover(name(line, "a host")?)))?,
        "approve" => approve(line)?,
        "cancel" => match line.take_if("rollout") {
            Some(_) => Deed::CancelRollout,
            None => Deed::Cancel(name(line, "an event, such as E1, or `rollout`")?),
        },
        "force" => Deed::Force(name(line, "an event, such as E1")?),
        "brake" => Deed::Brake(if choice(line, &["on", "off"])? == "on" { Brake::On } else { Brake::Off }),
        "policy" => policy(line)?,
        "model" => {
            let scale_set = name(line, "a scale set")?;
            let (terminate, os_image) = profile(line)?;
            Deed::Model { scale_set, terminate, os_image }
        }
        "profile" => {
            let machine = name(line, "a machine")?;
            let (terminate, os_image) = profile(line)?;
            Deed::Profile { machine, terminate, os_image }
        }
        "upgrade" => Deed::Upgrade(name(line, "a machine")?),
        "set" => Deed::Choose(setting(line)?),
        _ => return Err(line.mistake(verb, unknown(verb.text))),
    })
}

/// What sets the fleet up.
fn fleet_deed(line: &mut Line<'_>, verb: Word<'_>) -> Result<Option<Deed>, Mistake> {
    Ok(Some(match verb.text {
        "host" => hosts(line)?,
        "vm" => {
            let name = name(line, "a name")?;
            Deed::Vm { name, spot: spot(line)? }
        }
        "availabilityset" => Deed::Set { name: name(line, "a name")?, shape: SetShape::AvailabilitySet },
        "service" => Deed::Set { name: name(line, "a name")?, shape: SetShape::CloudService },
        "scaleset" => scale_set(line)?,
        "machine" => {
            let name_of_machine = name(line, "a name")?;
            line.need_word("of")?;
            let tenant = name(line, "a tenant")?;
            Deed::Machine { name: name_of_machine, tenant, spot: spot(line)? }
        }
        "instance" => {
            line.need_word("of")?;
            let scale_set = name(line, "a scale set")?;
            let spot = spot(line)?;
            let times = match line.take_if("times") {
                Some(_) => line.need_number()?,
                None => 1,
            };
            Deed::Instances { scale_set, spot, times }
        }
        "remove" => {
            let what = match choice(line, &["host", "tenant", "scaleset"])? {
                "host" => Removed::Host,
                "tenant" => Removed::Tenant,
                _ => Removed::ScaleSet,
            };
            Deed::Remove { what, name: name(line, "a name")? }
        }
        _ => return Ok(None),
    }))
}

fn user_deed(verb: Word<'_>) -> Option<UserDeed> {
    Some(match verb.text {
        "restart" => UserDeed::Restart,
        "redeploy" => UserDeed::Redeploy,
        "delete" => UserDeed::Delete,
        "reimage" => UserDeed::Reimage,
        "evict" => UserDeed::Evict,
        "stop" => UserDeed::Power(PowerChange::Stop),
        "start" => UserDeed::Power(PowerChange::Start),
        "deallocate" => UserDeed::Power(PowerChange::Deallocate),
        _ => return None,
    })
}

fn name(line: &mut Line<'_>, what: &str) -> Result<Named, Mistake> {
    line.need(what).map(Named::new)
}

/// Every word that is left, at least one.
fn names(line: &mut Line<'_>, what: &str) -> Result<Vec<Named>, Mistake> {
    let mut all = vec![name(line, what)?];
    while let Some(word) = line.take() {
        all.push(Named::new(word));
    }
    Ok(all)
}

/// One of a few words.
fn choice<'c>(line: &mut Line<'_>, choices: &[&'c str]) -> Result<&'c str, Mistake> {
    let wanted = choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(" or ");
    let word = line.need(&wanted)?;
    let found = choices.iter().find(|choice| **choice == word.text);
    found.copied().ok_or_else(|| line.mistake(word, format!("here should be {wanted}")))
}

fn hosts(line: &mut Line<'_>) -> Result<Deed, Mistake> {
    let mut names = vec![name(line, "a name")?];
    while let Some(word) = line.peek().filter(|word| word.text != "zone") {
        line.take();
        names.push(Named::new(word));
    }
    let zone = match line.take_if("zone") {
        Some(_) => Some(line.need_number()?),
        None => None,
    };
    Ok(Deed::Hosts { names, zone })
}

fn spot(line: &mut Line<'_>) -> Result<Spot, Mistake> {
    line.need_word("on")?;
    let host = name(line, "a host")?;
    let mut numbers = [0; 2];
    for (number, word) in numbers.iter_mut().zip(["ud", "fd"]) {
        if line.take_if(word).is_some() {
            *number = line.need_number()?;
        }
    }
    let [update_domain, fault_domain] = numbers;
    Ok(Spot { host, update_domain, fault_domain, traits: traits(line)? })
}

fn scale_set(line: &mut Line<'_>) -> Result<Deed, Mistake> {
    let name = name(line, "a name")?;
    let orchestration = match line.take_if("flexible") {
        Some(_) => Orchestration::Flexible,
        None => Orchestration::Uniform,
    };
    let upgrade = match line.take_if("automatic") {
        Some(_) => UpgradePolicy::Automatic,
        None => UpgradePolicy::Manual,
    };
    Ok(Deed::ScaleSet { name, orchestration, upgrade, traits: traits(line)? })
}

fn traits(line: &mut Line<'_>) -> Result<Traits, Mistake> {
    let priority = match line.take_if("spot") {
        Some(_) => Priority::Spot(match choice(line, &["delete", "deallocate"])? {
            "delete" => EvictionPolicy::Delete,
            _ => EvictionPolicy::Deallocate,
        }),
        None => Priority::Regular,
    };
    let terminate = match line.take_if("terminate") {
        Some(_) => terminate(line)?,
        None => None,
    };
    Ok(Traits { priority, terminate, os_image: os_image(line) })
}

fn terminate(line: &mut Line<'_>) -> Result<Option<TerminateNotice>, Mistake> {
    if line.take_if("off").is_some() {
        return Ok(None);
    }
    let place = line.peek();
    let span = line.need_duration()?;
    let notice = TerminateNotice::from_seconds(span.as_secs());
    let wrong = |word| line.mistake(word, "the notice of a Terminate event is 5m to 15m");
    notice.map(Some).ok_or_else(|| place.map_or_else(|| line.mistake_at_end(""), wrong))
}

fn os_image(line: &mut Line<'_>) -> OsImageNotice {
    line.take_if("osimage").map_or(OsImageNotice::Off, |_| OsImageNotice::On)
}

fn profile(line: &mut Line<'_>) -> Result<(Option<TerminateNotice>, OsImageNotice), Mistake> {
    line.need_word("terminate")?;
    Ok((terminate(line)?, os_image(line)))
}

fn after_host(
    line: &mut Line<'_>,
    rest: impl Fn(&mut Line<'_>) -> Result<Deed, Mistake>,
) -> Result<Deed, Mistake> {
    line.need_word("host")?;
    rest(line)
}

fn host_work(line: &mut Line<'_>, work: HostWork) -> Result<Deed, Mistake> {
    Ok(Deed::HostWork { work, hosts: names(line, "a host")? })
}

fn degrade(line: &mut Line<'_>) -> Result<Deed, Mistake> {
    let host = name(line, "a host")?;
    let fails_in = match line.take_if("fails") {
        Some(_) => {
            line.need_word("in")?;
            Some(line.need_duration()?)
        }
        None => None,
    };
    Ok(Deed::Degrade { host, fails_in })
}

fn approve(line: &mut Line<'_>) -> Result<Deed, Mistake> {
    let mut what = vec![name(line, "a tenant, or events such as E1")?];
    while line.take_if("by").is_none() {
        what.push(name(line, "`by`")?);
    }
    let by = match line.take_if("owner") {
        Some(_) => {
            line.need_word("of")?;
            By::OwnerOf(name(line, "a tenant")?)
        }
        None => By::Machine(name(line, "a machine, or `owner of` a tenant")?),
    };
    Ok(Deed::Approve { what, by })
}

fn policy(line: &mut Line<'_>) -> Result<Deed, Mistake> {
    let tenant = name(line, "a tenant")?;
    let rule = match choice(line, &["restart", "redeploy", "alldown"])? {
        "restart" => PolicyRule::Restart,
        "redeploy" => PolicyRule::Redeploy,
        _ => PolicyRule::AllDown,
    };
    let approve = match choice(line, &["automatic", "asked"])? {
        "automatic" => Approve::Automatically,
        _ => Approve::WhenAsked,
    };
    Ok(Deed::Policy { tenant, rule, approve })
}

fn setting(line: &mut Line<'_>) -> Result<Setting, Mistake> {
    Ok(match choice(line, &["unenrolled", "useroperations", "failure"])? {
        "unenrolled" => Setting::Unenrolled(match choice(line, &["runs", "waits"])? {
            "runs" => Unenrolled::RunAtOnce,
            _ => Unenrolled::WaitAnyway,
        }),
        "useroperations" => Setting::UserOperations(match line.take_if("unlimited") {
            Some(_) => None,
            None => Some(line.need_number()?),
        }),
        _ => Setting::Failure(match choice(line, &["reboot", "redeploy"])? {
            "reboot" => FailureKind::Reboot,
            _ => FailureKind::Redeploy,
        }),
    })
}

fn expectations(line: &mut Line<'_>) -> Result<Vec<Expectation>, Mistake> {
    let mut all = Vec::new();
    while !line.is_over() || all.is_empty() {
        let subject = name(line, "a tenant or a machine")?;
        all.push(Expectation { subject, is: expected(line)? });
    }
    Ok(all)
}

fn expected(line: &mut Line<'_>) -> Result<Expected, Mistake> {
    let word = line.need("what is expected, such as Scheduled, nothing or gone")?;
    Ok(match word.text {
        "Scheduled" => events(line, Seen::Scheduled),
        "Started" => events(line, Seen::Started),
        "nothing" => Expected::Events(Vec::new()),
        "enrolled" => Expected::Enrolled,
        "unenrolled" => Expected::NotEnrolled,
        "incarnation" => Expected::Incarnation(line.need_number()?.into()),
        "on" => Expected::On(name(line, "a host")?),
        "boots" => Expected::Boots(line.need_number()?.into()),
        "disk" => Expected::Disk(line.need_number()?.into()),
        "running" => Expected::Power("running"),
        "stopped" => Expected::Power("stopped"),
        "deallocated" => Expected::Power("deallocated"),
        "gone" => Expected::Gone,
        _ => return Err(line.mistake(word, "not something that can be expected")),
    })
}

fn events(line: &mut Line<'_>, first: Seen) -> Expected {
    let mut all = vec![first];
    loop {
        if line.take_if("Scheduled").is_some() {
            all.push(Seen::Scheduled);
        } else if line.take_if("Started").is_some() {
            all.push(Seen::Started);
        } else {
            return Expected::Events(all);
        }
    }
}

fn unknown(verb: &str) -> String {
    let near =
        VERBS.iter().min_by_key(|known| distance(known, verb)).filter(|known| distance(known, verb) <= 2);
    match near {
        Some(near) => format!("not something that can happen; did you mean `{near}`?"),
        None => "not something that can happen".to_owned(),
    }
}

/// How many letters must change to make one word the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
