//! Programs of Debian packages that are unpacked into the user's cache: the installed packages would start servers, or
//! belong to another release of Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::installs;
use crate::packages::download_bytes;
use crate::tools::cache_directory;

/// The keys of Debian, which a computer with an older release may have for newer ones.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A program of a Debian package.
pub(crate) struct Unpacked {
    pub(crate) package: &'static str,
    /// The release of Debian, if it is not that of the computer.
    release: Option<Release>,
    /// Paths outside of the cache, then the path below the directory of the package.
    places: &'static [&'static str],
    inside: &'static str,
    version_word: &'static str,
    /// The beginning of the output of the right program.
    answer: &'static str,
}

/// A release of Debian, whose lists of packages are fetched into a directory of their own.
struct Release {
    name: &'static str,
    /// Bytes of the lists and of the package, about.
    download_bytes: u64,
}

pub(crate) const NGINX: Unpacked = Unpacked {
    package: "nginx",
    release: None,
    places: &["nginx", "/usr/sbin/nginx"],
    inside: "usr/sbin/nginx",
    version_word: "-v",
    answer: "nginx version:",
};

pub(crate) const PROMTOOL: Unpacked = Unpacked {
    package: "prometheus",
    release: None,
    places: &["promtool"],
    inside: "usr/bin/promtool",
    version_word: "--version",
    answer: "promtool, version ",
};

/// A newer etcd than that of Debian 12, which the tests use, too.
pub(crate) const NEWER_ETCD: Unpacked = Unpacked {
    package: "etcd-server",
    release: Some(Release { name: "trixie", download_bytes: 21_000_000 }),
    places: &[],
    inside: "usr/bin/etcd",
    version_word: "--version",
    answer: "etcd Version: 3.5.",
};

impl Unpacked {
    pub(crate) fn find_or_unpack(&self) -> Result<PathBuf> {
        if let Some(program) = self.find() {
            return Ok(program);
        }
        let (title, root) = (self.title(), self.root()?);
        installs::permit(&title)?;
        eprintln!("unpacking {title} into {}", root.display());
        let missing = || format!("{title} is missing\n  hint: install it by hand");
        fs::create_dir_all(&root).with_context(|| format!("cannot make: {}", root.display()))?;
        let unpacked = match &self.release {
            None => unpack(self.package, &root, &[]),
            Some(release) => release.unpack(self.package, &root),
        };
        unpacked.with_context(missing)?;
        self.find().with_context(missing)
    }

    pub(crate) fn find(&self) -> Option<PathBuf> {
        let cached = self.root().ok().map(|root| root.join(self.inside));
        let mut places = self.places.iter().map(PathBuf::from).chain(cached);
        places.find(|program| self.is_suitable(program))
    }

    /// The package, and its release.
    pub(crate) fn title(&self) -> String {
        let release = self.release.as_ref().map(|release| format!(" of {}", release.name));
        format!("{}{}", self.package, release.unwrap_or_default())
    }

    /// The bytes to download. None if apt does not know.
    pub(crate) fn download_bytes(&self) -> Option<u64> {
        match &self.release {
            Some(release) => Some(release.download_bytes),
            None => download_bytes(&["download", self.package]),
        }
    }

    fn root(&self) -> Result<PathBuf> {
        let name = match &self.release {
            Some(release) => format!("{}-{}", self.package, release.name),
            None => self.package.to_owned(),
        };
        Ok(cache_directory()?.join("forewarn/tools").join(name))
    }

    fn is_suitable(&self, program: &Path) -> bool {
        let output = Command::new(program).arg(self.version_word).output();
        output.is_ok_and(|output| {
            let is_answer = |text: &[u8]| text.starts_with(self.answer.as_bytes());
            output.status.success() && (is_answer(&output.stdout) || is_answer(&output.stderr))
        })
    }
}

impl Release {
    fn unpack(&self, package: &str, root: &Path) -> Result<()> {
        let state = root.join("apt");
        let options = self.options(&state)?;
        ensure!(run(root, "apt-get", &options, &["update"]), "no lists of packages of {}", self.name);
        unpack(package, root, &options)?;
        // The lists are larger than the package.
        fs::remove_dir_all(&state).with_context(|| format!("cannot remove: {}", state.display()))
    }

    /// Options of apt for this release: from the same mirror, with lists below a directory of ours.
    fn options(&self, state: &Path) -> Result<Vec<String>> {
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(state.join(part))?;
        }
        fs::write(state.join("status"), "")?;
        let signed_by =
            if Path::new(KEYRING).exists() { format!("[signed-by={KEYRING}] ") } else { String::new() };
        let sources = format!("deb {signed_by}{} {} main\n", mirror()?, self.name);
        fs::write(state.join("sources.list"), sources)?;
        let at = |part: &str| state.join(part).display().to_string();
        Ok(vec![
            format!("Dir::Etc::SourceList={}", at("sources.list")),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            format!("Dir::State={}", at("")),
            format!("Dir::State::Lists={}", at("lists")),
            format!("Dir::State::status={}", at("status")),
            format!("Dir::Cache={}", at("cache")),
            // The user of apt cannot write there.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
        ])
    }
}

/// The mirror from which this computer has its packages.
fn mirror() -> Result<String> {
    let mut query = Command::new("apt-get");
    query.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main"]);
    query.args(["Origin: Debian", "Label: Debian"]);
    let output = query.stderr(Stdio::null()).output().context("this is not Debian")?;
    let mirrors = String::from_utf8_lossy(&output.stdout).into_owned();
    let mirror = mirrors.lines().next().context("apt has no lists of Debian\n  hint: apt-get update")?;
    Ok(mirror.to_owned())
}

/// Unpacks without installing, so that no rights are needed, except to fetch a missing list of the computer's packages.
fn unpack(package: &str, into: &Path, options: &[String]) -> Result<()> {
    let apt = |words: &[&str]| run(into, "apt-get", options, words);
    let is_downloaded = apt(&["download", package]) || (apt(&["update"]) && apt(&["download", package]));
    ensure!(is_downloaded, "cannot download: {package}");
    let entries = into.read_dir()?.filter_map(Result::ok).map(|entry| entry.path());
    let archive = entries.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).max();
    let archive = archive.with_context(|| format!("not downloaded: {package}"))?;
    let words = ["--extract", &archive.to_string_lossy(), "."];
    ensure!(run(into, "dpkg-deb", &[], &words), "cannot unpack: {package}");
    Ok(())
}

/// Runs a program in a directory, with options of apt. Returns true if it succeeds.
fn run(directory: &Path, program: &str, options: &[String], words: &[&str]) -> bool {
    let options = options.iter().flat_map(|option| ["--option", option]);
    let mut command = Command::new(program);
    command.current_dir(directory).args(options).args(words).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_of_another_release_has_a_directory_and_lists_of_its_own() {
        assert_eq!(
            (NEWER_ETCD.title().as_str(), PROMTOOL.title().as_str()),
            ("etcd-server of trixie", "prometheus")
        );
        let name = |program: &Unpacked| program.root().unwrap().file_name().unwrap().to_owned();
        assert_eq!((name(&NEWER_ETCD), name(&PROMTOOL)), ("etcd-server-trixie".into(), "prometheus".into()));
        let directory = tempfile::tempdir().unwrap();
        let release = NEWER_ETCD.release.as_ref().unwrap();
        // Without apt, there is no mirror.
        if let Ok(options) = release.options(directory.path()) {
            let own = directory.path().display().to_string();
            assert_eq!(options.iter().filter(|option| option.contains(&own)).count(), 5);
            let sources = fs::read_to_string(directory.path().join("sources.list")).unwrap();
            assert!(sources.ends_with(" trixie main\n"), "{sources}");
        }
    }
}
