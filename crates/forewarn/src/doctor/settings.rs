//! What a server with these settings would need here.

use std::path::Path;

use anyhow::Result;
use forewarn_control::Fleet;
use forewarn_server::{ApiDoor, engine_with};

use super::report::Report;
use super::{clock, encryption, network, storage};
use crate::server::config::check_hands;
use crate::server::serve::{Parts, parts};
use crate::server::with_fleet_line;

/// What nothing works without.
const NO_START: &str = "the server does not start";

pub(super) fn look(report: &mut Report, file: &Path) {
    let remedy = format!("forewarn serve --check --config {}", file.display());
    let Parts { data_dir, settings, doors, api, arm, hands, fleet } = match parts(file) {
        Ok(parts) => parts,
        Err(problem) => {
            clock::look(report, None);
            return report.problem("settings", &problem, NO_START, &remedy);
        }
    };
    let data_dir = or_finding(report, data_dir, &remedy).flatten();
    clock::look(report, data_dir.as_deref());
    if let Some(directory) = &data_dir {
        storage::look(report, directory);
    }
    if let Some(doors) = or_finding(report, doors, &remedy) {
        network::look_at_doors(report, &doors);
    }
    if let Some(api) = or_finding(report, api, &remedy) {
        for door in &api {
            network::look_at_api(report, door);
            if let ApiDoor::Tls(_, source) = door {
                encryption::look(report, source);
            }
        }
    }
    if let Some((address, source)) = or_finding(report, arm, &remedy).flatten().and_then(|arm| arm.listen) {
        network::look_at_arm(report, address);
        encryption::look(report, &source);
    }
    if let Some(settings) = or_finding(report, settings, &remedy) {
        network::look_at_files(report, settings.connections.max);
    }
    if let Some(hands) = or_finding(report, hands, &remedy) {
        match check_hands(&hands) {
            Ok(()) => report.well("hands", "what takes care of machines can be started"),
            Err(problem) => {
                report.problem("hands", &problem, "nothing that is due can be done to a machine", &remedy);
            }
        }
    }
    if let Some((file, fleet)) = fleet {
        let admitted = fleet.and_then(|fleet| admitted(&fleet));
        match admitted.map_err(|problem| with_fleet_line(problem, &file)) {
            Ok(()) => report.well("fleet", format!("{} is a fleet", file.display())),
            Err(problem) => report.problem("fleet", &problem, NO_START, &remedy),
        }
    }
}

/// A part of the settings, or what is wrong with it.
fn or_finding<T>(report: &mut Report, part: Result<T>, remedy: &str) -> Option<T> {
    part.inspect_err(|problem| report.problem("settings", problem, NO_START, remedy)).ok()
}

fn admitted(fleet: &Fleet) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(engine_with(fleet))?;
    Ok(())
}
