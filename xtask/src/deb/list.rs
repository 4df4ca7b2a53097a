//! The packages: what each is called, what is said of it, and what is in it besides its program.

/// A package.
pub(super) struct Package {
    /// What it is called, and so are its program and the package of cargo that has it.
    pub(super) name: &'static str,
    /// The profile of what is given away, and the one that tests have made already.
    pub(super) profile: &'static str,
    /// Where the scripts of `dpkg` are.
    pub(super) scripts: &'static str,
    /// What is copied as it is: from the repository, below the root of the computer.
    pub(super) copied: &'static [(&'static str, &'static str)],
    /// Whole directories that are copied as they are.
    pub(super) trees: &'static [(&'static str, &'static str)],
    /// Directories that are empty at first.
    pub(super) empty: &'static [&'static str],
    /// Where its manual comes from.
    pub(super) manual: Manual,
    /// What has to be in it, with its mode.
    pub(super) expected: &'static [(&'static str, &'static str)],
    /// Directories that its settings name; the trial has others.
    pub(super) places: &'static [&'static str],
    /// Where its settings are, and the words that have them checked, before their path.
    pub(super) settings: &'static str,
    pub(super) check: &'static [&'static str],
    pub(super) description: &'static str,
}

/// Where a manual comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manual {
    /// The program writes it.
    Written,
    /// It is a file of the repository.
    File(&'static str),
}

pub(super) const PACKAGES: [Package; 2] = [SERVER, AGENT];

const SERVER: Package = Package {
    name: "forewarn",
    profile: "release",
    scripts: "deploy/deb",
    copied: &[
        ("deploy/deb/serve.toml", "etc/forewarn/serve.toml"),
        ("deploy/deb/sysusers.conf", "usr/lib/sysusers.d/forewarn.conf"),
        ("deploy/systemd/forewarn.service", "usr/lib/systemd/system/forewarn.service"),
    ],
    trees: &[],
    empty: &[],
    manual: Manual::Written,
    expected: &[
        ("-rwxr-xr-x", "./usr/bin/forewarn"),
        ("-rw-r--r--", "./etc/forewarn/serve.toml"),
        ("-rw-r--r--", "./usr/lib/systemd/system/forewarn.service"),
        ("-rw-r--r--", "./usr/lib/sysusers.d/forewarn.conf"),
        ("-rw-r--r--", "./usr/share/man/man1/forewarn.1.gz"),
        ("-rw-r--r--", "./usr/share/man/man1/forewarn-vm-restart.1.gz"),
        ("-rw-r--r--", "./usr/share/bash-completion/completions/forewarn"),
        ("-rw-r--r--", "./usr/share/zsh/vendor-completions/_forewarn"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/copyright"),
        ("-rw-r--r--", "./usr/share/doc/forewarn/changelog.gz"),
    ],
    places: &["/var/lib/forewarn", "/run/forewarn"],
    settings: "etc/forewarn/serve.toml",
    check: &["serve", "--check", "--config"],
    description: "\
Description: tell virtual machines what is about to happen to them
 Forewarn announces reboots, freezes, moves, evictions and deletions to the
 machines concerned, waits until they are ready or their notice has run out,
 and then has it done. It is an open implementation of the Scheduled Events
 system known from the metadata service of a large cloud.
 .
 This package has the server (forewarn serve), its systemd unit, and the
 commands for operators.
",
};

const AGENT: Package = Package {
    name: "forewarn-agent",
    profile: "agent",
    scripts: "deploy/deb-agent",
    copied: &[
        ("deploy/deb-agent/agent.toml", "etc/forewarn-agent/agent.toml"),
        ("deploy/systemd/forewarn-agent.service", "usr/lib/systemd/system/forewarn-agent.service"),
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
    expected: &[
        ("-rwxr-xr-x", "./usr/bin/forewarn-agent"),
        ("-rw-r--r--", "./etc/forewarn-agent/agent.toml"),
        ("drwxr-xr-x", "./etc/forewarn-agent/scheduled.d/"),
        ("-rw-r--r--", "./usr/lib/systemd/system/forewarn-agent.service"),
        ("-rw-r--r--", "./usr/share/man/man1/forewarn-agent.1.gz"),
        ("-rw-r--r--", "./usr/share/bash-completion/completions/forewarn-agent"),
        ("-rw-r--r--", "./usr/share/doc/forewarn-agent/examples/graceful-shutdown/agent.toml"),
        ("-rw-r--r--", "./usr/share/doc/forewarn-agent/copyright"),
        ("-rw-r--r--", "./usr/share/doc/forewarn-agent/changelog.gz"),
    ],
    places: &["/var/lib/forewarn-agent", "/etc/forewarn-agent"],
    settings: "etc/forewarn-agent/agent.toml",
    check: &["check-config", "--config"],
    description: "\
Description: prepare a virtual machine for what is announced to it
 Watches the Scheduled Events of the machine that it runs on, of Forewarn or
 of the cloud that has them, runs hooks and built-in actions while there is
 time, waits for the other machines concerned, approves, and undoes what it
 did when all is over.
 .
 This package has the agent, its systemd unit, and worked examples.
",
};
