//! What settings need on the machine that they are for: directories for sockets, interfaces, a program that can be started.
//!
//! A server that starts would find out about most of it, one thing at a time and some of it only when the first order is
//! given. `--check` says it before.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use forewarn_metadata::{Door, Identity};
use forewarn_server::tls::{Source, examine};
use forewarn_server::{ApiDoor, Hypervisor};

/// Where Linux lists network interfaces. Elsewhere there is nothing to look at.
const INTERFACES: &str = "/sys/class/net";

/// Bits of the mode of a file that let somebody start it.
const EXECUTABLE: u32 = 0o111;

/// Everything that listens can do so, and nothing twice.
pub(in super::super) fn check_doors(
    doors: &[(Door, Identity)],
    api: &[ApiDoor],
    arm: Option<&(SocketAddr, Source)>,
) -> Result<()> {
    let mut taken = BTreeMap::new();
    for (door, _) in doors {
        match door {
            Door::Tcp(address) if address.port() == 0 => {}
            Door::Tcp(address) => take(&mut taken, address.to_string(), "metadata.listen")?,
            Door::Interface { name, address } => {
                check_interface(name)?;
                if address.port() != 0 {
                    take(&mut taken, format!("{address} on {name}"), "metadata.listen")?;
                }
            }
            Door::Unix { path, .. } => take(&mut taken, socket(path)?, "metadata.listen")?,
        }
    }
    for door in api {
        match door {
            ApiDoor::Tls(_, source) => drop(examine(source)?),
            ApiDoor::Open(_) | ApiDoor::Locked(_) | ApiDoor::Unix(_) => {}
        }
        match door {
            ApiDoor::Open(address) | ApiDoor::Locked(address) | ApiDoor::Tls(address, _)
                if address.port() == 0 => {}
            ApiDoor::Open(address) | ApiDoor::Locked(address) | ApiDoor::Tls(address, _) => {
                take(&mut taken, address.to_string(), "api.listen")?;
            }
            ApiDoor::Unix(path) => take(&mut taken, socket(path)?, "api.socket")?,
        }
    }
    if let Some((address, source)) = arm {
        examine(source)?;
        if address.port() != 0 {
            take(&mut taken, address.to_string(), "arm.listen")?;
        }
    }
    Ok(())
}

fn take(taken: &mut BTreeMap<String, &'static str>, place: String, whose: &'static str) -> Result<()> {
    if let Some(other) = taken.get(&place) {
        bail!("only one can listen there: {place}\n  hint: {other} and {whose} both name it");
    }
    taken.insert(place, whose);
    Ok(())
}

/// The path of a socket, by which it is known whether another one is the same.
fn socket(path: &Path) -> Result<String> {
    let Some(name) = path.file_name() else { bail!("not the path of a socket: {}", path.display()) };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match directory.canonicalize() {
        Ok(found) if found.is_dir() => Ok(found.join(name).display().to_string()),
        Ok(_) => bail!("not in a directory: {}\n  hint: choose another path for the socket", path.display()),
        Err(_) => {
            bail!("no directory for a socket: {}\n  hint: mkdir -p {}", path.display(), directory.display())
        }
    }
}

pub(crate) fn check_interface(name: &str) -> Result<()> {
    let all = Path::new(INTERFACES);
    let is_name = !name.is_empty() && !name.contains('/') && !matches!(name, "." | "..");
    if is_name && (!all.is_dir() || all.join(name).exists()) {
        return Ok(());
    }
    let known = fs::read_dir(all).into_iter().flatten().flatten();
    let mut known: Vec<_> = known.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    known.sort();
    let hint = match forewarn_control::similar(name, known.iter().map(String::as_str)) {
        Some(similar) => format!("did you mean {similar}?"),
        None => "`ip link` lists them; it has to be there before the server starts".to_owned(),
    };
    bail!("no such network interface: {name}\n  hint: {hint}")
}

/// A program can be started.
pub(crate) fn check_hands(hands: &Hypervisor) -> Result<()> {
    let path = match hands {
        Hypervisor::Simulated => return Ok(()),
        Hypervisor::Program(program) => &program.path,
    };
    let shown = path.display();
    if path.components().count() < 2 {
        bail!(
            "not a path: hands.program = {shown:?}\n  hint: write all of it, such as /usr/local/lib/forewarn/hands"
        );
    }
    let found = fs::metadata(path).with_context(|| format!("no such program: {shown}"))?;
    if !found.is_file() {
        bail!("not a program: {shown}\n  hint: hands.program is an executable file");
    }
    if found.permissions().mode() & EXECUTABLE == 0 {
        bail!("not executable: {shown}\n  hint: chmod +x {shown}");
    }
    Ok(())
}

/// Whether a directory has anything in it: then the fleet of a file is not read.
pub(in super::super) fn is_kept(data_dir: Option<&PathBuf>) -> bool {
    let entries = data_dir.and_then(|directory| fs::read_dir(directory).ok());
    entries.is_some_and(|mut entries| entries.next().is_some())
}

#[cfg(test)]
mod tests {
    use forewarn_hypervisor::Program;
    use std::time::Duration;

    use super::*;

    fn unix(path: &Path) -> (Door, Identity) {
        (Door::Unix { path: path.to_owned(), mode: 0o660 }, Identity::Machine("m".to_owned()))
    }

    fn problem(result: Result<()>) -> String {
        format!("{:#}", result.expect_err("it is wrong"))
    }

    #[test]
    fn nothing_listens_twice() {
        let files = tempfile::tempdir().unwrap();
        let (one, same) = (files.path().join("s"), files.path().join("./s"));
        assert!(check_doors(&[unix(&one)], &[ApiDoor::Unix(files.path().join("api"))], None).is_ok());
        let twice = problem(check_doors(&[unix(&one)], &[ApiDoor::Unix(same)], None));
        assert!(twice.contains("/s\n  hint: metadata.listen and api.socket both name it"), "{twice}");
        let tcp = |text: &str| (Door::Tcp(text.parse().unwrap()), Identity::Address);
        let api = [ApiDoor::Locked("127.0.0.1:81".parse().unwrap())];
        assert!(check_doors(&[tcp("127.0.0.1:80")], &api, None).is_ok());
        assert!(check_doors(&[tcp("127.0.0.1:81")], &api, None).is_err());
        assert!(check_doors(&[tcp("127.0.0.1:0"), tcp("127.0.0.1:0")], &api, None).is_ok());
    }

    #[test]
    fn a_socket_has_a_directory() {
        let files = tempfile::tempdir().unwrap();
        let missing =
            problem(check_doors(&[unix(&files.path().join("no/s"))], &[ApiDoor::Unix("api".into())], None));
        assert!(missing.contains("no/s\n  hint: mkdir -p "), "{missing}");
        fs::write(files.path().join("file"), "").unwrap();
        assert!(
            check_doors(&[unix(&files.path().join("file/s"))], &[ApiDoor::Unix("api".into())], None).is_err()
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_interface_is_there() {
        assert!(check_interface("lo").is_ok());
        for wrong in ["no-such-cable", "", "..", "lo/.."] {
            assert!(problem(check_interface(wrong)).contains("\n  hint: "), "{wrong}");
        }
    }

    #[test]
    fn a_program_can_be_started() {
        let files = tempfile::tempdir().unwrap();
        let path = files.path().join("hands");
        let check = |path: &Path| {
            check_hands(&Hypervisor::Program(Program {
                path: path.to_owned(),
                time_limit: Duration::from_secs(1),
            }))
        };
        assert!(problem(check(&path)).starts_with("no such program: "));
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(problem(check(&path)).contains("\n  hint: chmod +x "));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(check(&path).is_ok());
        assert!(problem(check(files.path())).starts_with("not a program: "));
        assert!(problem(check(Path::new("hands"))).starts_with("not a path: "));
        assert!(check_hands(&Hypervisor::Simulated).is_ok());
    }
}
