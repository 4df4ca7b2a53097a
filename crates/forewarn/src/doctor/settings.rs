//! The requirements of a configuration on this computer.

use std::path::Path;

use anyhow::Result;
use forewarn_control::Fleet;
use forewarn_server::{ApiListener, Hypervisor, MachineDriver, control_with_fleet};

use super::encryption::NO_OPERATORS;
use super::report::DoctorReport;
use super::{clock, encryption, engine, network, storage};
use crate::server::config::check_driver;
use crate::server::serve::{SettingsParts, parts};
use crate::server::with_fleet_line;

/// The effect of most findings.
const NO_START: &str = "the server does not start";

pub(super) fn check(report: &mut DoctorReport, file: &Path) {
    let remedy = format!("forewarn serve --check --config {}", file.display());
    let SettingsParts { data_dir, settings, listeners, api, arm, driver, fleet, realm, engine_certificate } =
        match parts(file) {
            Ok(parts) => parts,
            Err(error) => {
                clock::check(report, None);
                return report.error("settings", &error, NO_START, &remedy);
            }
        };
    let data_dir = or_finding(report, data_dir, &remedy).flatten();
    clock::check(report, data_dir.as_deref());
    if let Some(directory) = &data_dir {
        storage::check(report, directory);
    }
    if let Some(realm) = or_finding(report, realm, &remedy).flatten() {
        engine::check(report, &realm, engine_certificate.as_ref());
    }
    if let Some(listeners) = or_finding(report, listeners, &remedy) {
        network::check_metadata(report, &listeners);
    }
    if let Some(api) = or_finding(report, api, &remedy) {
        for listener in &api {
            network::check_api(report, listener);
            if let ApiListener::Tls(_, source) = listener {
                encryption::check(report, source, NO_OPERATORS);
            }
        }
    }
    if let Some((address, source)) = or_finding(report, arm, &remedy).flatten().and_then(|arm| arm.listen) {
        network::check_arm(report, address);
        encryption::check(report, &source, NO_OPERATORS);
    }
    if let Some(settings) = or_finding(report, settings, &remedy) {
        network::check_files(report, file, settings.connections.max);
    }
    if let Some(driver) = or_finding(report, driver, &remedy) {
        match check_driver(&driver) {
            Ok(()) => report.ok("driver", driver_state(&driver)),
            Err(error) => {
                report.error("driver", &error, "no operation on a machine can run", &remedy);
            }
        }
    }
    if fleet.is_none() && data_dir.as_deref().is_none_or(is_unused) {
        report.unknown(
            "fleet",
            "no fleet file, and no data yet: every machine gets a 403 until the fleet has it",
        );
    }
    if let Some((file, fleet)) = fleet {
        let admitted = fleet.and_then(|fleet| admitted(&fleet));
        match admitted.map_err(|error| with_fleet_line(error, &file)) {
            Ok(()) => report.ok("fleet", format!("{} is valid", file.display())),
            Err(error) => report.error("fleet", &error, NO_START, &remedy),
        }
    }
}

/// The effect of the driver on machines.
fn driver_state(driver: &Hypervisor) -> &'static str {
    match driver.machines {
        MachineDriver::Simulated => "simulated: events change no machine",
        MachineDriver::Program(_) => "driver program is executable",
    }
}

/// Returns true for a data directory that no server has used.
fn is_unused(directory: &Path) -> bool {
    directory.read_dir().map_or(true, |mut entries| entries.next().is_none())
}

/// A part of the settings. Adds a finding if it is invalid.
fn or_finding<T>(report: &mut DoctorReport, part: Result<T>, remedy: &str) -> Option<T> {
    part.inspect_err(|error| report.error("settings", error, NO_START, remedy)).ok()
}

fn admitted(fleet: &Fleet) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(control_with_fleet(fleet))?;
    Ok(())
}
