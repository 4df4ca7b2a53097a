//! `cargo xtask deb`: Debian packages of the server and of the agent, with what Debian has by default (`dpkg-deb`).
//!
//! ```text
//!   release build ──▶ a tree of files ──▶ dpkg-deb ──▶ target/deb/NAME_VERSION_ARCH.deb ──▶ checked
//! ```
//!
//! A package is checked before it is printed: its contents, that its program runs and accepts its settings, and that its
//! service can be used after an installation in a root of its own. Nothing is installed on this computer.

mod files;
mod installation;
mod list;
mod manual;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::packages::{Readiness, prepare_programs};
use crate::steps::{Outcome, built_program, cargo};
use crate::tree;
use crate::words::{Usage, Words};

use list::{DebPackage, PACKAGES};

/// The programs that build packages; all are essential in Debian.
const PROGRAMS: [(&str, &str); 3] = [("dpkg-deb", "dpkg"), ("gzip", "gzip"), ("md5sum", "coreutils")];

const MAINTAINER: &str = "The Forewarn authors <authors@forewarn.invalid>";

/// The Debian revision of this version.
const REVISION: u32 = 1;

/// Version and architecture of a package.
struct Label {
    /// The version of the program.
    version: String,
    architecture: String,
}

impl Label {
    /// The version of the package.
    fn full_version(&self) -> String {
        format!("{}-{REVISION}", self.version)
    }
}

/// The build that goes into packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// The release build.
    Release,
    /// The build of the tests, to check packages in seconds instead of minutes.
    Tests,
}

/// Builds packages to give away, or with `--check` packages of the build of the tests.
pub(crate) fn command(words: Words) -> Result<Outcome> {
    let mut build = Build::Release;
    for word in words {
        match word.as_str() {
            "--check" if build == Build::Release => build = Build::Tests,
            other => return Err(Usage::unknown(other).into()),
        }
    }
    run(build)
}

/// Builds the packages and checks them.
pub(crate) fn run(build: Build) -> Result<Outcome> {
    match prepare_programs(&PROGRAMS) {
        Readiness::Ready => {}
        Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
    }
    PACKAGES.iter().try_for_each(|package| make(package, build))?;
    Ok(Outcome::Passed)
}

fn make(package: &DebPackage, build: Build) -> Result<()> {
    let root = tree::root()?;
    let profile = match build {
        Build::Release => package.profile,
        Build::Tests => "dev",
    };
    let words = ["build", "--locked", "--package", package.name, "--profile", profile];
    let program = built_program(cargo().current_dir(&root).args(words))?;
    let label = Label { version: version(package, &program)?, architecture: architecture()? };
    let stage = tempfile::tempdir()?;
    files::lay_out(package, &root, &program, stage.path())?;
    files::write_changelog(package, stage.path(), &changelog(package, &root, &label)?)?;
    let target = program.ancestors().nth(2).context("a program is built below the target directory")?;
    let file = pack(package, &root, stage.path(), target, &label)?;
    trial::run(package, &file, &label.version)?;
    match build {
        Build::Release => println!("{}", file.display()),
        // Not to be mistaken for a release.
        Build::Tests => fs::remove_file(&file)?,
    }
    Ok(())
}

fn version(package: &DebPackage, program: &Path) -> Result<String> {
    let said = output(Command::new(program).arg("--version"))?;
    let version = said.trim().strip_prefix(package.name).context("the program does not print its version")?;
    Ok(version.trim().to_owned())
}

fn architecture() -> Result<String> {
    Ok(output(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned())
}

fn pack(package: &DebPackage, root: &Path, stage: &Path, target: &Path, label: &Label) -> Result<PathBuf> {
    let control = stage.join("DEBIAN");
    fs::create_dir(&control)?;
    for script in ["postinst", "prerm", "postrm"] {
        files::copy(&root.join(package.scripts).join(script), &control.join(script), 0o755)?;
    }
    let conffiles = files::all_below(&stage.join("etc"))?;
    let named = |path: &PathBuf| Ok(format!("/{}\n", path.strip_prefix(stage)?.display()));
    files::write(&control.join("conffiles"), &conffiles.iter().map(named).collect::<Result<String>>()?)?;
    files::write(&control.join("md5sums"), &sums(stage)?)?;
    files::write(&control.join("control"), &control_text(package, stage, label)?)?;
    let directory = target.join("deb");
    fs::create_dir_all(&directory)?;
    let (version, architecture) = (label.full_version(), &label.architecture);
    let file = directory.join(format!("{}_{version}_{architecture}.deb", package.name));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(stage).arg(&file);
    if let Some(seconds) = committed(root) {
        build.env("SOURCE_DATE_EPOCH", seconds);
    }
    output(&mut build)?;
    Ok(file)
}

/// The time of the last commit: the same source gives the same package.
fn committed(root: &Path) -> Option<String> {
    let seconds = output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"])).ok()?;
    Some(seconds.trim().to_owned()).filter(|seconds| !seconds.is_empty())
}

/// The Debian changelog, which refers to the changelog of the project.
fn changelog(package: &DebPackage, root: &Path, label: &Label) -> Result<String> {
    let at = committed(root).map_or_else(|| "now".to_owned(), |seconds| format!("@{seconds}"));
    let date = output(Command::new("date").env("LC_ALL", "C").args(["--utc", "--rfc-email", "--date", &at]))?;
    Ok(format!(
        "{} ({}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {MAINTAINER}  {}\n",
        package.name,
        label.full_version(),
        date.trim(),
    ))
}

fn control_text(package: &DebPackage, stage: &Path, label: &Label) -> Result<String> {
    let (version, architecture) = (label.full_version(), &label.architecture);
    let depends = dependencies(&fs::read(stage.join("usr/bin").join(package.name))?);
    let bytes: u64 = files::all_below(stage)?
        .iter()
        .filter_map(|file| fs::metadata(file).ok())
        .map(|file| file.len())
        .sum();
    Ok(format!(
        "Package: {}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {}\nDepends: {depends}\nRecommends: ca-certificates, tzdata\nSection: admin\nPriority: optional\n{}",
        package.name,
        bytes.div_ceil(1024),
        package.description,
    ))
}

/// The C library, at least of the newest symbol version that the program uses.
fn dependencies(program: &[u8]) -> String {
    let mark = b"GLIBC_";
    let versions =
        program.windows(mark.len()).enumerate().filter(|(_, bytes)| bytes == mark).filter_map(|(at, _)| {
            let digits =
                program[at + mark.len()..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
            let text = String::from_utf8(digits.copied().collect()).ok()?;
            let (major, minor) = text.split_once('.')?;
            Some((major.parse::<u32>().ok()?, minor.split('.').next()?.parse::<u32>().ok()?))
        });
    let libc = versions.max().map(|(major, minor)| format!("libc6 (>= {major}.{minor})"));
    let gcc = b"libgcc_s.so.1";
    let gcc = program.windows(gcc.len()).any(|bytes| bytes == gcc).then(|| "libgcc-s1".to_owned());
    libc.into_iter().chain(gcc).collect::<Vec<_>>().join(", ")
}

fn sums(stage: &Path) -> Result<String> {
    let mut sum = Command::new("md5sum");
    sum.current_dir(stage);
    for file in files::all_below(stage)? {
        let name = file.strip_prefix(stage)?.to_owned();
        // Settings are the operator's to change.
        if !name.starts_with("etc") && !name.starts_with("DEBIAN") {
            sum.arg(name);
        }
    }
    output(&mut sum)
}

/// Runs a program that must succeed, and returns its output.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run: {name}"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{name} has failed: {}\n{stdout}{stderr}", output.status);
    Ok(stdout.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_program() {
        let program = b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.4.1\0GLIBC_PRIVATE\0libgcc_s.so.1\0";
        assert_eq!(dependencies(program), "libc6 (>= 2.34), libgcc-s1");
        assert_eq!(dependencies(b"static"), "");
    }
}
