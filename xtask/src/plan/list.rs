//! The installations of each step, as far as they are missing on this computer.

use std::collections::BTreeMap;

use super::{Installation, MEGABYTE, Steps};
use crate::environments::{
    AZURE_CLI, AZURE_CLI_2_50, AZURE_CLI_2_72, AZURE_NODE, AZURE_PYTHON, BROWSER_TOOLS, Environment, JEST,
    PYTEST, SCHEMATHESIS,
};
use crate::libvirt;
use crate::machines::MACHINE_PROGRAMS;
use crate::packages::{
    self, AGENT_PROGRAMS, BROWSER, KUBECTL, NODE, PROGRAMS, REAL_CLIENTS, SYSTEMD_ANALYZE, TRACER,
};
use crate::packages::{VALGRIND, download_bytes};
use crate::steps::Extent;
use crate::tools::{CARGO_DENY, CARGO_FUZZ, CARGO_MUTANTS, MDBOOK, Tool};
use crate::unpacked::{NEWER_ETCD, NGINX, PROMTOOL, Unpacked};

/// Environments of each step.
const ENVIRONMENTS: [(&str, &[&Environment]); 4] = [
    ("api", &[&SCHEMATHESIS]),
    ("azure", &[&AZURE_CLI, &AZURE_CLI_2_50, &AZURE_CLI_2_72, &AZURE_PYTHON, &AZURE_NODE]),
    ("plugins", &[&PYTEST, &JEST]),
    ("dashboard", &[&BROWSER_TOOLS]),
];

const TOOLS: [(&str, &Tool); 2] = [("fuzz", &CARGO_FUZZ), ("dependencies", &CARGO_DENY)];
const TOOLS_OF_LONG_RUN: [(&str, &Tool); 2] = [("site", &MDBOOK), ("mutants", &CARGO_MUTANTS)];

const UNPACKED: [(&str, &Unpacked); 2] = [("programs", &NEWER_ETCD), ("monitoring", &PROMTOOL)];
const UNPACKED_IN_LONG_RUN: [(&str, &Unpacked); 1] = [("cost of polls", &NGINX)];

/// The size of a Debian package on disk, as a multiple of the download.
const UNPACKED_SIZE: u64 = 4;

/// Minutes to install Debian packages, and to unpack one.
const DEBIAN_MINUTES: u64 = 2;
const UNPACK_MINUTES: u64 = 1;

/// What is missing and can be installed, and the Debian packages that cannot.
pub(super) fn missing(extent: Extent) -> (Vec<Installation>, Option<(Vec<&'static str>, Steps)>) {
    let mut found = Vec::new();
    let (names, steps) = debian_packages();
    let mut unavailable = None;
    if packages::can_install() {
        let words = [&["install"], &names[..]].concat();
        let installation = || debian(names.join(" "), download_bytes(&words), DEBIAN_MINUTES, steps);
        found.extend((!names.is_empty()).then(installation));
        found.extend(guests());
    } else if !names.is_empty() {
        unavailable = Some((names, steps));
    }
    found.extend(environments());
    let (tools, unpacked) = match extent {
        Extent::Usual => (&[][..], &[][..]),
        Extent::Long => (&TOOLS_OF_LONG_RUN[..], &UNPACKED_IN_LONG_RUN[..]),
    };
    found.extend(
        UNPACKED.iter().chain(unpacked).filter_map(|(step, program)| unpacked_program(step, program)),
    );
    found.extend(TOOLS.iter().chain(tools).filter_map(|(step, tool)| compiled_tool(step, tool)));
    (found, unavailable)
}

fn debian(what: String, bytes: Option<u64>, minutes: u64, steps: Steps) -> Installation {
    let disk_bytes = bytes.unwrap_or_default() * UNPACKED_SIZE;
    Installation { source: "Debian", what, bytes, disk_bytes, minutes, steps }
}

/// The missing Debian packages of all steps, and the steps that need them.
fn debian_packages() -> (Vec<&'static str>, Steps) {
    let strace = packages::missing_programs(&TRACER);
    let needs = [
        ("programs", packages::missing_programs(&PROGRAMS)),
        ("real clients", packages::missing(&REAL_CLIENTS)),
        ("azure", packages::missing_python()),
        ("agent", [packages::missing(&AGENT_PROGRAMS), packages::missing_programs(&KUBECTL)].concat()),
        ("plugins", [packages::missing_python(), packages::missing_programs(&NODE)].concat()),
        ("dashboard", packages::missing_programs(&BROWSER)),
        ("libvirt", packages::missing(&libvirt::INSTALLED)),
        ("several machines", packages::missing(&MACHINE_PROGRAMS)),
        ("power cuts", strace.clone()),
        ("full disks", strace),
        ("costs", packages::missing_programs(&VALGRIND)),
        ("units", packages::missing_programs(&SYSTEMD_ANALYZE)),
    ];
    let by_package: BTreeMap<_, _> = needs
        .iter()
        .flat_map(|(step, packages)| packages.iter().map(move |package| (*package, *step)))
        .collect();
    let steps = needs.iter().filter(|(_, packages)| !packages.is_empty()).map(|(step, _)| *step).collect();
    (by_package.into_keys().collect(), steps)
}

/// The packages of libvirt and QEMU, which are unpacked.
fn guests() -> Option<Installation> {
    let packages = libvirt::missing();
    let count = match &packages {
        Some(packages) if packages.is_empty() => return None,
        Some(packages) => format!("{} packages of libvirt and QEMU, unpacked", packages.len()),
        None => "libvirt and QEMU, unpacked".to_owned(),
    };
    let bytes = packages.and_then(|packages| {
        let names: Vec<_> = packages.iter().map(String::as_str).collect();
        download_bytes(&[&["download"], &names[..]].concat())
    });
    Some(debian(count, bytes, UNPACK_MINUTES, vec!["libvirt"]))
}

fn environments() -> Vec<Installation> {
    let all = ENVIRONMENTS.iter().flat_map(|(step, all)| all.iter().map(move |one| (*step, *one)));
    let is_possible = |one: &Environment| one.source() != "npm" || packages::has_npm();
    let missing = all.filter(|(_, one)| !one.is_installed() && is_possible(one));
    let installation = |(step, one): (&'static str, &Environment)| Installation {
        source: one.source(),
        what: one.title(),
        bytes: Some(one.cost.download_megabytes * MEGABYTE),
        disk_bytes: one.cost.disk_megabytes * MEGABYTE,
        minutes: one.cost.minutes,
        steps: vec![step],
    };
    missing.map(installation).collect()
}

fn unpacked_program(step: &'static str, program: &Unpacked) -> Option<Installation> {
    program.find().is_none().then(|| {
        let what = format!("{}, unpacked", program.title());
        debian(what, program.download_bytes(), UNPACK_MINUTES, vec![step])
    })
}

fn compiled_tool(step: &'static str, tool: &Tool) -> Option<Installation> {
    tool.find().is_none().then(|| Installation {
        source: "crates.io",
        what: format!("{}, compiled", tool.title()),
        bytes: Some(tool.cost.download_megabytes * MEGABYTE),
        disk_bytes: tool.cost.disk_megabytes * MEGABYTE,
        minutes: tool.cost.minutes,
        steps: vec![step],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    /// A step that the plan names is a step of the test command.
    #[test]
    fn the_steps_of_the_plan_are_those_of_the_test_command() {
        let suite = std::fs::read_to_string(tree::root().unwrap().join("xtask/src/suite.rs")).unwrap();
        let mut steps = vec!["programs", "real clients", "agent", "libvirt", "power cuts", "full disks"];
        steps.extend(["costs", "units"]);
        steps.extend(ENVIRONMENTS.iter().map(|(step, _)| *step));
        steps.extend(TOOLS.iter().chain(&TOOLS_OF_LONG_RUN).map(|(step, _)| *step));
        steps.extend(UNPACKED.iter().chain(&UNPACKED_IN_LONG_RUN).map(|(step, _)| *step));
        for step in steps {
            assert!(suite.contains(&format!("steps.run(\"{step}\"")), "{step}");
        }
    }
}
