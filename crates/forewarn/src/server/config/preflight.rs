//! Checks the requirements of a configuration on this computer: directories of sockets, interfaces, the driver program.
//!
//! Without these checks, a server would report one error at a time, and the driver only at its first use.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use forewarn_metadata::{Identity, ListenAddress};
use forewarn_server::tls::{Source, examine};
use forewarn_server::{ApiListener, Hypervisor, MachineDriver};
use rustix::fs::{Access, access};

/// The list of network interfaces on Linux. On other systems they are not checked.
const INTERFACES: &str = "/sys/class/net";

/// Mode bits of an executable file.
const EXECUTABLE: u32 = 0o111;

/// Checks that listeners can be opened, and that no two share an address.
pub(in super::super) fn check_listeners(
    metadata: &[(ListenAddress, Identity)],
    api: &[ApiListener],
    arm: Option<&(SocketAddr, Source)>,
) -> Result<()> {
    let mut taken = BTreeMap::new();
    for (listener, _) in metadata {
        match listener {
            ListenAddress::Tcp(address) if address.port() == 0 => {}
            ListenAddress::Tcp(address) => take(&mut taken, address.to_string(), "metadata.listen")?,
            ListenAddress::Interface { name, address } => {
                check_interface(name)?;
                if address.port() != 0 {
                    check_shared(*address, metadata)?;
                    take(&mut taken, format!("{address} on {name}"), "metadata.listen")?;
                }
            }
            ListenAddress::Unix { path, .. } => take(&mut taken, socket(path)?, "metadata.listen")?,
        }
    }
    for listener in api {
        match listener {
            ApiListener::Tls(_, source) => drop(examine(source)?),
            ApiListener::Open(_) | ApiListener::Tokens(_) | ApiListener::Unix(_) => {}
        }
        match listener {
            ApiListener::Open(address) | ApiListener::Tokens(address) | ApiListener::Tls(address, _)
                if address.port() == 0 => {}
            ApiListener::Open(address) | ApiListener::Tokens(address) | ApiListener::Tls(address, _) => {
                take(&mut taken, address.to_string(), "api.listen")?;
            }
            ApiListener::Unix(path) => take(&mut taken, socket(path)?, "api.socket")?,
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

/// Checks that all listeners with the address of a listener on an interface are on an interface, too.
fn check_shared(address: SocketAddr, metadata: &[(ListenAddress, Identity)]) -> Result<()> {
    let is_everywhere = |(other, _): &(ListenAddress, Identity)| matches!(other, ListenAddress::Tcp(other) if *other == address);
    if metadata.iter().any(is_everywhere) {
        bail!(
            "two listeners with the same address: {address}\n  \
             hint: both entries of metadata.listen need an interface, since one without it takes all of them"
        );
    }
    Ok(())
}

fn take(taken: &mut BTreeMap<String, &'static str>, address: String, setting: &'static str) -> Result<()> {
    if let Some(other) = taken.get(&address) {
        let hint = if *other != setting {
            format!("{other} and {setting} both name it")
        } else if address.starts_with('/') {
            format!("give each entry of {setting} another path")
        } else {
            format!("give each entry of {setting} an interface of its own, or another address or port")
        };
        bail!("two listeners with the same address: {address}\n  hint: {hint}");
    }
    taken.insert(address, setting);
    Ok(())
}

/// The canonical path of a socket.
fn socket(path: &Path) -> Result<String> {
    let Some(name) = path.file_name() else { bail!("invalid path of a socket: {}", path.display()) };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match directory.canonicalize() {
        Ok(found) if found.is_dir() => Ok(found.join(name).display().to_string()),
        Ok(_) => bail!(
            "the parent of the socket is not a directory: {}\n  hint: choose another path for the socket",
            path.display()
        ),
        Err(_) => {
            bail!(
                "the directory of the socket does not exist: {}\n  hint: mkdir -p {}",
                path.display(),
                directory.display()
            )
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
        None => "`ip link` lists them; the interface must exist before the server starts".to_owned(),
    };
    bail!("no such network interface: {name}\n  hint: {hint}")
}

/// Checks that the driver program is executable.
pub(crate) fn check_driver(driver: &Hypervisor) -> Result<()> {
    let path = match &driver.machines {
        MachineDriver::Simulated => return Ok(()),
        MachineDriver::Program(program) => &program.path,
    };
    let shown = path.display();
    if path.components().count() < 2 {
        bail!(
            "not an absolute path: driver.program = {shown:?}\n  hint: write the complete path, such as /usr/local/lib/forewarn/driver"
        );
    }
    let found = fs::metadata(path).with_context(|| format!("driver program not found: {shown}"))?;
    if !found.is_file() {
        bail!("driver program is not a file: {shown}\n  hint: driver.program is an executable file");
    }
    if found.permissions().mode() & EXECUTABLE == 0 {
        bail!("driver program is not executable: {shown}\n  hint: chmod +x {shown}");
    }
    Ok(())
}

/// Checks that this user can write to the data directory, or create it.
pub(in super::super) fn check_data_directory(directory: &Path) -> Result<()> {
    let existing = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let is_there = existing == directory;
    let is_near = is_there || directory.parent() == Some(existing);
    if is_near && access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return Ok(());
    }
    let shown = directory.display();
    let (what, remedy) = if is_there {
        ("cannot write to the data directory", format!("chown -R forewarn: {shown}, or run as its owner"))
    } else {
        ("cannot create the data directory", format!("install -d -m 0700 -o forewarn -g forewarn {shown}"))
    };
    bail!("{what}: {shown}\n  hint: {remedy}")
}

/// True if the data directory is not empty: then the fleet file is not read.
pub(in super::super) fn has_data(data_dir: Option<&PathBuf>) -> bool {
    let entries = data_dir.and_then(|directory| fs::read_dir(directory).ok());
    entries.is_some_and(|mut entries| entries.next().is_some())
}

#[cfg(test)]
mod tests {
    use forewarn_hypervisor::Program;
    use forewarn_types::Name;
    use std::time::Duration;

    use super::*;

    fn unix(path: &Path) -> (ListenAddress, Identity) {
        (ListenAddress::Unix { path: path.to_owned(), mode: 0o660 }, Identity::Machine("m".to_owned()))
    }

    fn problem(result: Result<()>) -> String {
        format!("{:#}", result.expect_err("invalid"))
    }

    #[test]
    fn a_data_directory_exists_or_can_be_created() {
        let files = tempfile::tempdir().unwrap();
        assert!(check_data_directory(files.path()).is_ok());
        assert!(check_data_directory(&files.path().join("new")).is_ok());
        let deep = problem(check_data_directory(&files.path().join("no/such")));
        assert!(
            deep.starts_with("cannot create the data directory: ") && deep.contains("install -d"),
            "{deep}"
        );
    }

    #[test]
    fn two_listeners_with_one_address_are_rejected() {
        let files = tempfile::tempdir().unwrap();
        let (one, same) = (files.path().join("s"), files.path().join("./s"));
        assert!(check_listeners(&[unix(&one)], &[ApiListener::Unix(files.path().join("api"))], None).is_ok());
        let twice = problem(check_listeners(&[unix(&one)], &[ApiListener::Unix(same)], None));
        assert!(twice.contains("/s\n  hint: metadata.listen and api.socket both name it"), "{twice}");
        let by_address = Identity::Address { cluster: Name::new("default").unwrap() };
        let tcp = |text: &str| (ListenAddress::Tcp(text.parse().unwrap()), by_address.clone());
        let api = [ApiListener::Tokens("127.0.0.1:81".parse().unwrap())];
        assert!(check_listeners(&[tcp("127.0.0.1:80")], &api, None).is_ok());
        assert!(check_listeners(&[tcp("127.0.0.1:81")], &api, None).is_err());
        let interface = |text: &str| {
            let (name, address) = ("lo".to_owned(), text.parse().unwrap());
            (ListenAddress::Interface { name, address }, by_address.clone())
        };
        assert!(check_listeners(&[tcp("127.0.0.1:80"), interface("127.0.0.2:80")], &api, None).is_ok());
        let shared = problem(check_listeners(&[tcp("127.0.0.1:80"), interface("127.0.0.1:80")], &api, None));
        assert!(shared.contains("127.0.0.1:80\n  hint: both entries of metadata.listen need"), "{shared}");
        let twice = problem(check_listeners(&[tcp("127.0.0.1:80"), tcp("127.0.0.1:80")], &api, None));
        let hint =
            "hint: give each entry of metadata.listen an interface of its own, or another address or port";
        assert!(twice.ends_with(hint), "{twice}");
        let twice =
            problem(check_listeners(&[interface("127.0.0.1:80"), interface("127.0.0.1:80")], &api, None));
        assert!(twice.contains("127.0.0.1:80 on lo\n") && twice.ends_with(hint), "{twice}");
        let twice = problem(check_listeners(&[unix(&one), unix(&one)], &api, None));
        assert!(twice.ends_with("hint: give each entry of metadata.listen another path"), "{twice}");
        assert!(check_listeners(&[tcp("127.0.0.1:0"), tcp("127.0.0.1:0")], &api, None).is_ok());
    }

    #[test]
    fn the_directory_of_a_socket_must_exist() {
        let files = tempfile::tempdir().unwrap();
        let missing = problem(check_listeners(
            &[unix(&files.path().join("no/s"))],
            &[ApiListener::Unix("api".into())],
            None,
        ));
        assert!(missing.contains("no/s\n  hint: mkdir -p "), "{missing}");
        fs::write(files.path().join("file"), "").unwrap();
        assert!(
            check_listeners(&[unix(&files.path().join("file/s"))], &[ApiListener::Unix("api".into())], None)
                .is_err()
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_interface_must_exist() {
        assert!(check_interface("lo").is_ok());
        for wrong in ["no-such-cable", "", "..", "lo/.."] {
            assert!(problem(check_interface(wrong)).contains("\n  hint: "), "{wrong}");
        }
    }

    #[test]
    fn the_driver_program_must_be_executable() {
        let files = tempfile::tempdir().unwrap();
        let path = files.path().join("hands");
        let check = |path: &Path| {
            check_driver(&Hypervisor::program(Program {
                path: path.to_owned(),
                time_limit: Duration::from_secs(1),
            }))
        };
        assert!(problem(check(&path)).starts_with("driver program not found: "));
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(problem(check(&path)).contains("\n  hint: chmod +x "));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(check(&path).is_ok());
        assert!(problem(check(files.path())).starts_with("driver program is not a file: "));
        assert!(problem(check(Path::new("hands"))).starts_with("not an absolute path: "));
        assert!(check_driver(&Hypervisor::simulated()).is_ok());
    }
}
