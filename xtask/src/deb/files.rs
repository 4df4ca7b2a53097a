//! The files of a package, at their paths.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::list::{DebPackage, Manual};
use super::output;

/// Paths of completions by shell: before and after the name of the program.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/", ""),
    ("zsh", "usr/share/zsh/vendor-completions/_", ""),
    ("fish", "usr/share/fish/vendor_completions.d/", ".fish"),
];

/// Writes all files below a directory.
pub(super) fn lay_out(package: &DebPackage, root: &Path, program: &Path, stage: &Path) -> Result<()> {
    let name = package.name;
    let installed = stage.join("usr/bin").join(name);
    copy(program, &installed, 0o755)?;
    strip(&installed);
    for (from, to) in package.copied {
        copy(&root.join(from), &stage.join(to), 0o644)?;
    }
    for (from, to) in package.trees {
        let from = root.join(from);
        for file in all_below(&from)? {
            copy(&file, &stage.join(to).join(file.strip_prefix(&from)?), 0o644)?;
        }
    }
    for (shell, before, after) in COMPLETIONS {
        let place = stage.join(format!("{before}{name}{after}"));
        write(&place, &output(Command::new(program).args(["completions", shell]))?)?;
    }
    let manual = stage.join("usr/share/man");
    let pages = manual.join("man1");
    match package.manual {
        Manual::Written => output(Command::new(program).arg("man").arg(&pages)).map(drop)?,
        Manual::File(page) => copy(&root.join(page), &pages.join(format!("{name}.1")), 0o644)?,
    }
    for page in package.references {
        let document = root.join(page.document);
        let text = fs::read_to_string(&document);
        let text = text.with_context(|| format!("cannot read: {}", document.display()))?;
        write(&manual.join(page.file()), &page.render(&text))?;
    }
    for page in all_below(&manual)? {
        compress(&page)?;
    }
    let documents = stage.join("usr/share/doc").join(name);
    copy(&root.join("deploy/deb/copyright"), &documents.join("copyright"), 0o644)?;
    copy(&root.join("CHANGELOG.md"), &documents.join("changelog"), 0o644)?;
    compress(&documents.join("changelog"))?;
    make_plain(stage)?;
    for directory in package.empty {
        let directory = stage.join(directory);
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Writes the Debian changelog.
pub(super) fn write_changelog(package: &DebPackage, stage: &Path, text: &str) -> Result<()> {
    let file = stage.join("usr/share/doc").join(package.name).join("changelog.Debian");
    write(&file, text)?;
    compress(&file)
}

/// Removes symbols. Without `strip`, they stay.
fn strip(program: &Path) {
    if let Err(why) =
        output(Command::new("strip").args(["--strip-unneeded", "--remove-section=.comment"]).arg(program))
    {
        eprintln!("not stripped: {why:#}");
    }
}

fn compress(file: &Path) -> Result<()> {
    output(Command::new("gzip").args(["-9n"]).arg(file)).map(drop)
}

/// Sets modes that let every user read, whatever the umask of the build.
fn make_plain(stage: &Path) -> Result<()> {
    for file in all_below(stage)? {
        for directory in file.ancestors().skip(1).take_while(|directory| directory.starts_with(stage)) {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
        let is_program = file.starts_with(stage.join("usr/bin"));
        fs::set_permissions(&file, fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))?;
    }
    Ok(())
}

/// Every file below a directory, in order.
pub(super) fn all_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in
            fs::read_dir(&directory).with_context(|| format!("cannot read: {}", directory.display()))?
        {
            let entry = entry?;
            let list = if entry.file_type()?.is_dir() { &mut directories } else { &mut files };
            list.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

pub(super) fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy: {}", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

pub(super) fn write(to: &Path, text: &str) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(to, text)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o644))?;
    Ok(())
}
