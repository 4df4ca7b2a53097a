//! The packages: name, description and contents.

use super::manual::ReferencePage;

/// A Debian package.
pub(super) struct DebPackage {
    /// The name of the package, of its program and of its cargo package.
    pub(super) name: &'static str,
    /// The cargo profile of a release.
    pub(super) profile: &'static str,
    /// The directory of the maintainer scripts.
    pub(super) scripts: &'static str,
    /// Files to copy: path in the repository, path in the package.
    pub(super) copied: &'static [(&'static str, &'static str)],
    /// Directories to copy.
    pub(super) trees: &'static [(&'static str, &'static str)],
    /// Empty directories.
    pub(super) empty: &'static [&'static str],
    pub(super) manual: Manual,
    /// Manual pages that are made from the reference.
    pub(super) references: &'static [ReferencePage],
    pub(super) installation: Installation,
    /// Files that the package must contain, with their modes.
    pub(super) expected: &'static [(&'static str, &'static str)],
    /// Directories that its settings name; the trial replaces them.
    pub(super) places: &'static [&'static str],
    /// The path of its settings, and the arguments that check them, before that path.
    pub(super) settings: &'static str,
    pub(super) check: &'static [&'static str],
    pub(super) description: &'static str,
}

/// The source of a manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manual {
    /// The program writes it.
    Written,
    /// A file of the repository.
    File(&'static str),
}

/// The depth of the trial of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Installation {
    /// The package is installed and its service used.
    Tried,
    /// The files are extracted and its program started.
    Extracted,
}

pub(super) const PACKAGES: [DebPackage; 2] = [SERVER, AGENT];

const SERVER: DebPackage = DebPackage {
    name: "forewarn",
    profile: "release",
    scripts: "deploy/deb",
    copied: &[
        ("deploy/deb/serve.toml", "etc/forewarn/serve.toml"),
        ("deploy/deb/fleet.toml", "usr/share/doc/forewarn/examples/fleet.toml"),
        ("deploy/deb/sysusers.conf", "usr/lib/sysusers.d/forewarn.conf"),
        ("deploy/deb/tmpfiles.conf", "usr/lib/tmpfiles.d/forewarn.conf"),
        ("deploy/systemd/forewarn.service", "usr/lib/systemd/system/forewarn.service"),
    ],
    trees: &[
        ("docs", "usr/share/doc/forewarn/docs"),
        ("deploy/drivers", "usr/share/doc/forewarn/examples/drivers"),
        ("deploy/monitoring", "usr/share/doc/forewarn/examples/monitoring"),
    ],
    empty: &[],
    manual: Manual::Written,
    references: &[
        ReferencePage {
            name: "serve.toml",
            purpose: "settings of forewarn serve",
            document: "docs/reference/configuration.md",
        },
        ReferencePage {
            name: "fleet.toml",
            purpose: "hosts and virtual machines of Forewarn",
            document: "docs/reference/fleet.md",
        },
    ],
    installation: Installation::Tried,
    expected: &[
        ("-rwxr-xr-x", "./usr/bin/forewarn"),
        ("-rw-r--r--", "./etc/forewarn/serve.toml"),
        ("-rw-r--r--", "./usr/lib/systemd/system/forewarn.service"),
        ("-rw-r--r--", "./usr/lib/sysusers.d/forewarn.conf"),
        ("-rw-r--r--", "./usr/lib/tmpfiles.d/forewarn.conf"),
        ("-rw-r--r--", "./usr/share/man/man1/forewarn.1.gz"),
        ("-rw-r--r--", "./usr/share/man/man1/forewarn-vm-restart.1.gz"),
        ("-rw-r--r--", "./usr/share/man/man5/serve.toml.5.gz"),
        ("-rw-r--r--", "./usr/share/man/man5/fleet.toml.5.gz"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/examples/fleet.toml"),
        ("-rw-r--r--", "./usr/share/bash-completion/completions/forewarn"),
        ("-rw-r--r--", "./usr/share/zsh/vendor-completions/_forewarn"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/examples/drivers/virsh/forewarn-driver-virsh"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/examples/drivers/forewarn-driver.conf"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/docs/guides/serve.md"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/examples/monitoring/forewarn.rules.yml"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/copyright"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/changelog.gz"),
    ],
    places: &["/var/lib/forewarn", "/run/forewarn"],
    settings: "etc/forewarn/serve.toml",
    check: &["serve", "--check", "--config"],
    description: "\
Description: announce maintenance to virtual machines in advance
 Forewarn announces reboots, freezes, moves, evictions and deletions to the
 virtual machines concerned, waits until they approve or the notice is over,
 and then carries them out. It is an open implementation of the Scheduled
 Events system known from the metadata service of a large cloud.
 .
 This package has the server (forewarn serve), its systemd unit, and the
 commands for operators.
",
};

const AGENT: DebPackage = DebPackage {
    name: "forewarn-agent",
    profile: "agent",
    scripts: "deploy/deb-agent",
    copied: &[
        ("deploy/deb-agent/agent.toml", "etc/forewarn-agent/agent.toml"),
        ("deploy/systemd/forewarn-agent.service", "usr/lib/systemd/system/forewarn-agent.service"),
        ("docs/reference/agent.md", "usr/share/doc/forewarn-agent/agent.md"),
    ],
    trees: &[("deploy/recipes", "usr/share/doc/forewarn-agent/examples")],
    empty: &[
        "etc/forewarn-agent/scheduled.d",
        "etc/forewarn-agent/started.d",
        "etc/forewarn-agent/completed.d",
        "etc/forewarn-agent/cancelled.d",
        "etc/forewarn-agent/undo.d",
    ],
    manual: Manual::File("deploy/deb-agent/forewarn-agent.1"),
    references: &[],
    installation: Installation::Extracted,
    expected: &[
        ("-rwxr-xr-x", "./usr/bin/forewarn-agent"),
        ("-rw-r--r--", "./etc/forewarn-agent/agent.toml"),
        ("drwxr-xr-x", "./etc/forewarn-agent/scheduled.d/"),
        ("-rw-r--r--", "./usr/lib/systemd/system/forewarn-agent.service"),
        ("-rw-r--r--", "./usr/share/man/man1/forewarn-agent.1.gz"),
        ("-rw-r--r--", "./usr/share/bash-completion/completions/forewarn-agent"),
        ("-rw-r--r--", "./usr/share/doc/forewarn-agent/agent.md"),
        ("-rw-r--r--", "./usr/share/doc/forewarn-agent/examples/graceful-shutdown/agent.toml"),
        ("-rw-r--r--", "./usr/share/doc/forewarn-agent/copyright"),
        ("-rw-r--r--", "./usr/share/doc/forewarn-agent/changelog.gz"),
    ],
    places: &["/var/lib/forewarn-agent", "/etc/forewarn-agent"],
    settings: "etc/forewarn-agent/agent.toml",
    check: &["check-config", "--config"],
    description: "\
Description: prepare a virtual machine for announced maintenance
 Watches the Scheduled Events of its virtual machine, from Forewarn or from
 the cloud that has them, runs hooks and built-in actions before the event
 starts, waits for the other machines concerned, approves, and undoes its
 actions when the event is over.
 .
 This package has the agent, its systemd unit, and worked examples.
",
};
