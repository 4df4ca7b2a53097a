//! Certificates and keys of the operator API.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use forewarn_server::tls::{SOON, Source, examine};

use super::report::Report;

/// Bits of the mode of a file that let others than its owner and its group read it.
const OTHERS: u32 = 0o007;

pub(super) fn look(report: &mut Report, source: &Source) {
    let Source::Files { certificate, key } = source else {
        return report.well("certificate", "the server makes its own");
    };
    private(report, key);
    let why = "operators cannot come in";
    let shown = certificate.display();
    let validity = match examine(source) {
        Ok(validity) => validity,
        Err(problem) => {
            let problem = anyhow::Error::from(problem);
            let remedy = format!("ls -l {shown} {}", key.display());
            return report.problem("certificate", &problem, "the server does not start", &remedy);
        }
    };
    let remedy =
        format!("openssl x509 -noout -dates -in {shown}; after replacing it: systemctl reload forewarn");
    let now = SystemTime::now();
    match validity {
        None => report.unknown("certificate", format!("its dates cannot be read: {shown}")),
        Some(validity) if validity.until <= now => {
            report.finding("certificate", format!("the certificate has expired: {shown}"), why, remedy);
        }
        Some(validity) if validity.from > now => {
            report.finding("certificate", format!("the certificate is not valid yet: {shown}"), why, remedy);
        }
        Some(validity) => {
            let left = validity.until.duration_since(now).unwrap_or_default();
            let days = left.as_secs() / 86_400;
            if left <= SOON {
                let what = format!("the certificate expires in {days} days: {shown}");
                return report.finding("certificate", what, "then operators cannot come in", remedy);
            }
            report.well("certificate", format!("good for {days} more days: {shown}"));
        }
    }
}

fn private(report: &mut Report, key: &Path) {
    let Ok(found) = fs::metadata(key) else { return };
    let mode = found.permissions().mode();
    if mode & OTHERS != 0 {
        let what = format!("anybody may read the key: {} has mode {:o}", key.display(), mode & 0o777);
        let why = "whoever has it can pass for the server";
        report.finding("key", what, why, format!("chmod 0640 {}", key.display()));
    }
}
