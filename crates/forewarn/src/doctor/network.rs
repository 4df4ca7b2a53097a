//! Where a server would listen: ports, addresses, interfaces, sockets, and how many connections the system allows.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use forewarn_metadata::{Door, Identity};
use forewarn_server::ApiDoor;

use super::processes::listener;
use super::report::Report;
use crate::server::config::check_interface;
use crate::server::{files_allowed, files_needed};

/// What the server cannot do if it cannot listen.
const MACHINES: &str = "machines cannot ask for their events";
const OPERATORS: &str = "operators cannot come in";
const CLIENTS: &str = "az and other clients of Azure cannot come in";

pub(super) fn look_at_doors(report: &mut Report, doors: &[(Door, Identity)]) {
    for (door, _) in doors {
        match door {
            Door::Tcp(address) => port(report, "metadata", *address, MACHINES),
            Door::Interface { name, address: _ } => match check_interface(name) {
                Ok(()) => report.well("metadata", format!("the interface {name} is there")),
                Err(problem) => report.problem("metadata", &problem, MACHINES, "ip link"),
            },
            Door::Unix { path, .. } => socket(report, "metadata", path, MACHINES),
        }
    }
}

pub(super) fn look_at_api(report: &mut Report, door: &ApiDoor) {
    match door {
        ApiDoor::Open(address) | ApiDoor::Locked(address) | ApiDoor::Tls(address, _) => {
            port(report, "api", *address, OPERATORS);
        }
        ApiDoor::Unix(path) => socket(report, "api", path, OPERATORS),
    }
}

pub(super) fn look_at_arm(report: &mut Report, address: SocketAddr) {
    port(report, "arm", address, CLIENTS);
}

/// Whether somebody could listen there, who is who is asking.
fn port(report: &mut Report, check: &'static str, address: SocketAddr, why: &'static str) {
    let Err(error) = TcpListener::bind(address) else {
        return report.well(check, format!("{address} is free"));
    };
    let (ip, port) = (address.ip(), address.port());
    let kind = error.kind();
    if kind == ErrorKind::AddrInUse {
        taken(report, check, address, why);
    } else if kind == ErrorKind::AddrNotAvailable {
        let length = if ip.is_ipv4() { 32 } else { 128 };
        let remedy =
            format!("ip addr add {ip}/{length} dev lo (or the bridge of the machines instead of lo)");
        report.finding(check, format!("no interface has the address {ip}"), why, remedy);
    } else if kind == ErrorKind::PermissionDenied {
        let what = format!("this user may not listen on port {port}");
        let remedy =
            "setcap cap_net_bind_service=+ep /usr/bin/forewarn (the systemd unit has AmbientCapabilities=)";
        report.finding(check, what, why, remedy);
    } else {
        report.finding(check, format!("cannot listen on {address}: {error}"), why, "ip addr; ss -lnt");
    }
}

fn taken(report: &mut Report, check: &'static str, address: SocketAddr, why: &'static str) {
    match listener(address) {
        Some(process) if process.is_ours() => {
            report.well(check, format!("{address} is in use by {process}"));
        }
        Some(process) => {
            let what = format!("{address} is taken by {process}");
            report.finding(check, what, why, format!("kill {}, or choose another port", process.id));
        }
        None => {
            let remedy = format!("ss -lntp 'sport = :{}'", address.port());
            report.finding(check, format!("{address} is taken"), why, remedy);
        }
    }
}

fn socket(report: &mut Report, check: &'static str, path: &Path, why: &'static str) {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.is_dir() {
        return report.well(check, format!("there is a directory for {}", path.display()));
    }
    let what = format!("no directory for a socket: {}", path.display());
    report.finding(check, what, why, format!("install -d -m 0755 -o forewarn {}", directory.display()));
}

pub(super) fn look_at_files(report: &mut Report, connections_max: u32) {
    let needed = files_needed(connections_max);
    match files_allowed() {
        Some(allowed) if allowed < needed => {
            let what = format!(
                "{allowed} open files are allowed here, and {connections_max} connections (metadata.connection.max) need {needed}"
            );
            let remedy = format!(
                "LimitNOFILE={needed} in the unit (systemctl edit forewarn), or: ulimit -Hn {needed}"
            );
            report.finding("open files", what, "machines would be refused while there are many", remedy);
        }
        Some(_) | None => report.well("open files", format!("{needed} are needed and allowed")),
    }
}
