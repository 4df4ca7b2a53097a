//! Listeners: ports, addresses, interfaces, sockets, and the limit of open files.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use forewarn_metadata::{Identity, ListenAddress};
use forewarn_server::ApiListener;

use super::processes::listener;
use super::report::DoctorReport;
use crate::server::config::check_interface;
use crate::server::{files_allowed, files_needed};

/// Effects of a listener that cannot be opened.
const MACHINES: &str = "machines cannot poll for events";
const OPERATORS: &str = "operators cannot connect";
const CLIENTS: &str = "az and other Azure clients cannot connect";

pub(super) fn check_metadata(report: &mut DoctorReport, listeners: &[(ListenAddress, Identity)]) {
    for (listener, _) in listeners {
        match listener {
            ListenAddress::Tcp(address) => port(report, "metadata", *address, MACHINES),
            ListenAddress::Interface { name, address: _ } => match check_interface(name) {
                Ok(()) => report.ok("metadata", format!("interface {name} exists")),
                Err(error) => report.error("metadata", &error, MACHINES, "ip link"),
            },
            ListenAddress::Unix { path, .. } => socket(report, "metadata", path, MACHINES),
        }
    }
}

pub(super) fn check_api(report: &mut DoctorReport, listener: &ApiListener) {
    match listener {
        ApiListener::Open(address) | ApiListener::Tokens(address) | ApiListener::Tls(address, _) => {
            port(report, "api", *address, OPERATORS);
        }
        ApiListener::Unix(path) => socket(report, "api", path, OPERATORS),
    }
}

pub(super) fn check_arm(report: &mut DoctorReport, address: SocketAddr) {
    port(report, "arm", address, CLIENTS);
}

/// Checks that the current user can listen on an address.
fn port(report: &mut DoctorReport, check: &'static str, address: SocketAddr, why: &'static str) {
    let Err(error) = TcpListener::bind(address) else {
        return report.ok(check, format!("{address} is free"));
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
        let what = format!("the current user may not listen on port {port}");
        let remedy =
            "setcap cap_net_bind_service=+ep /usr/bin/forewarn (the systemd unit has AmbientCapabilities=)";
        report.finding(check, what, why, remedy);
    } else {
        report.finding(check, format!("cannot listen on {address}: {error}"), why, "ip addr; ss -lnt");
    }
}

fn taken(report: &mut DoctorReport, check: &'static str, address: SocketAddr, why: &'static str) {
    match listener(address) {
        Some(process) if process.is_ours() => {
            report.ok(check, format!("{address} is in use by {process}"));
        }
        Some(process) => {
            let what = format!("{address} is in use by {process}");
            report.finding(check, what, why, format!("kill {}, or choose another port", process.id));
        }
        None => {
            let remedy = format!("ss -lntp 'sport = :{}'", address.port());
            report.finding(check, format!("{address} is in use by another process"), why, remedy);
        }
    }
}

fn socket(report: &mut DoctorReport, check: &'static str, path: &Path, why: &'static str) {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.is_dir() {
        return report.ok(check, format!("the directory of {} exists", path.display()));
    }
    let what = format!("the directory of the socket does not exist: {}", path.display());
    report.finding(check, what, why, format!("install -d -m 0755 -o forewarn {}", directory.display()));
}

/// The settings of the service, to which the limits of its unit apply.
const SERVICE_SETTINGS: &str = "/etc/forewarn/serve.toml";

/// Places of the unit, those that count more first.
const UNITS: [&str; 3] = [
    "/etc/systemd/system/forewarn.service",
    "/usr/lib/systemd/system/forewarn.service",
    "/lib/systemd/system/forewarn.service",
];

/// The limit of open files in the unit of the service, with its drop-ins. None if there is no unit.
fn unit_limit<'a>(units: impl IntoIterator<Item = &'a str> + Clone) -> Option<u64> {
    let unit = units.clone().into_iter().find_map(|unit| fs::read_to_string(unit).ok())?;
    let drop_ins = units.into_iter().flat_map(|unit| fs::read_dir(format!("{unit}.d")).into_iter().flatten());
    let drop_ins = drop_ins.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
    let limit = |text: &str| {
        let lines = text.lines().rev();
        let value = lines.filter_map(|line| line.trim().strip_prefix("LimitNOFILE=")).next()?;
        // `soft:hard`, or one number for both.
        value.rsplit(':').next()?.trim().parse().ok()
    };
    drop_ins.filter_map(|text| limit(&text)).last().or_else(|| limit(&unit))
}

pub(super) fn check_files(report: &mut DoctorReport, settings: &Path, connections_max: u32) {
    let needed = files_needed(connections_max);
    match files_allowed() {
        Some(allowed) if allowed < needed => {
            let unit = if settings == Path::new(SERVICE_SETTINGS) { unit_limit(UNITS) } else { None };
            if let Some(unit) = unit.filter(|unit| *unit >= needed) {
                let text = format!("the unit allows {unit}, of the needed {needed} (this shell: {allowed})");
                return report.ok("open files", text);
            }
            let what = format!(
                "the limit of open files of this shell is {allowed}, but {connections_max} connections \
                 (metadata.connection.max) need {needed}"
            );
            let remedy = format!(
                "for the service, LimitNOFILE={needed} in the unit (systemctl edit forewarn); for this shell, as root: \
                 ulimit -Hn {needed}"
            );
            report.finding("open files", what, "machines are rejected under load", remedy);
        }
        Some(_) | None => report.ok("open files", format!("the limit allows the needed {needed}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_in_of_the_unit_counts_more_than_the_unit() {
        let directory = tempfile::tempdir().unwrap();
        let unit = directory.path().join("forewarn.service");
        let name = unit.to_str().unwrap();
        assert_eq!(unit_limit(["/no/such/unit"]), None);
        fs::write(&unit, "[Service]\nLimitNOFILE=65536\n").unwrap();
        assert_eq!(unit_limit(["/no/such/unit", name]), Some(65_536));
        fs::create_dir(format!("{name}.d")).unwrap();
        fs::write(format!("{name}.d/files.conf"), "[Service]\nLimitNOFILE=1024:100000\n").unwrap();
        assert_eq!(unit_limit([name]), Some(100_000));
    }
}
