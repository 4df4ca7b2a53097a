//! Certificates and keys: of the operator API, of Azure's, and for etcd.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use forewarn_server::tls::{SOON, Source, examine};

use super::report::DoctorReport;

/// Mode bits that give access to other users.
const OTHERS: u32 = 0o007;

/// Effects of a certificate that cannot be used.
pub(super) const NO_OPERATORS: &str = "operators cannot connect";
pub(super) const NO_ENGINE: &str = "the server cannot connect to etcd";

/// Checks a certificate; `why` is the effect if it cannot be used.
pub(super) fn check(report: &mut DoctorReport, source: &Source, why: &'static str) {
    let Source::Files { certificate, key } = source else {
        return report.ok("certificate", "the server creates its own");
    };
    private(report, key);
    let shown = certificate.display();
    let validity = match examine(source) {
        Ok(validity) => validity,
        Err(error) => {
            let error = anyhow::Error::from(error);
            let remedy = format!("ls -l {shown} {}", key.display());
            return report.error("certificate", &error, "the server does not start", &remedy);
        }
    };
    let remedy =
        format!("openssl x509 -noout -dates -in {shown}; after replacing it: systemctl reload forewarn");
    let now = SystemTime::now();
    match validity {
        None => {
            report.unknown("certificate", format!("cannot read the validity of the certificate: {shown}"));
        }
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
                return report.finding("certificate", what, why, remedy);
            }
            report.ok("certificate", format!("valid for {days} more days: {shown}"));
        }
    }
}

fn private(report: &mut DoctorReport, key: &Path) {
    let Ok(found) = fs::metadata(key) else { return };
    let mode = found.permissions().mode();
    if mode & OTHERS != 0 {
        let what =
            format!("every user can read the private key: {} has mode {:o}", key.display(), mode & 0o777);
        let why = "a process with the key can impersonate the server";
        report.finding("key", what, why, format!("chmod 0640 {}", key.display()));
    }
}
