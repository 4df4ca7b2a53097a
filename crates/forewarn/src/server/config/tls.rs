//! `[api.tls]` and `[arm.tls]`: the source of a listener's certificate.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use forewarn_server::tls::Source;
use serde::Deserialize;

/// The directory of the self-signed CA, below the data directory.
pub(in super::super) const TLS_DIRECTORY: &str = "tls";

/// The maximum number of names in a certificate.
const NAMES_MAX: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsTable {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(default)]
    self_signed: bool,
    /// Additional names and addresses in a self-signed certificate.
    #[serde(default)]
    names: Vec<String>,
}

impl TlsTable {
    /// The default: a self-signed certificate.
    pub(super) fn default_self_signed() -> Self {
        Self { self_signed: true, ..Self::default() }
    }

    /// True if the certificate is from files.
    pub(super) fn has_files(&self) -> bool {
        self.certificate.is_some() || self.key.is_some()
    }

    /// The source of the certificate; a self-signed CA is stored below `data_dir`. `table` is the name of the TOML
    /// table.
    pub(super) fn source(
        &self,
        table: &str,
        data_dir: Option<&Path>,
        address: IpAddr,
        host_names: &[String],
    ) -> Result<Source> {
        match (&self.certificate, &self.key, self.self_signed) {
            (Some(certificate), Some(key), false) if self.names.is_empty() => {
                Ok(Source::Files { certificate: certificate.clone(), key: key.clone() })
            }
            (Some(_), Some(_), false) => {
                bail!("{table}.names needs self_signed: a certificate from a file has its own names")
            }
            (None, None, true) => {
                let Some(data_dir) = data_dir else {
                    bail!("{table}.self_signed needs data_dir, to store the CA");
                };
                let names: Vec<_> = host_names.iter().chain(&self.names).cloned().collect();
                if names.len() > NAMES_MAX {
                    bail!("too many names in the certificate: {}\n  hint: at most {NAMES_MAX}", names.len());
                }
                if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
                    bail!("invalid name in the certificate: {wrong:?}\n  hint: a host name or an IP address");
                }
                Ok(Source::SelfSigned {
                    directory: data_dir.join(TLS_DIRECTORY),
                    names,
                    address: Some(address),
                })
            }
            (Some(_) | None, Some(_) | None, true | false) => bail!(
                "needs either certificate and key, or self_signed: {table}\n  \
                 hint: certificate = \"/etc/forewarn/tls/api.pem\" and key = \"/etc/forewarn/tls/api-key.pem\""
            ),
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    name.parse::<IpAddr>().is_ok() || !name.is_empty() && name.len() < 254 && name.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str, data_dir: Option<&str>) -> Result<Source> {
        let table: TlsTable = toml::from_str(text).unwrap();
        table.source("api.tls", data_dir.map(Path::new), "10.0.0.1".parse().unwrap(), &["a.b".to_owned()])
    }

    #[test]
    fn a_certificate_is_loaded_or_created() {
        assert!(matches!(source("certificate='c'\nkey='k'", None), Ok(Source::Files { .. })));
        let made = source("self_signed = true\nnames = ['10.0.0.2']", Some("/data")).unwrap();
        let Source::SelfSigned { directory, names, address } = made else { panic!("{made:?}") };
        assert_eq!(
            (directory.as_path(), names.join(" ")),
            (Path::new("/data/tls"), "a.b 10.0.0.2".to_owned())
        );
        assert_eq!(address, Some("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn incomplete_settings_are_rejected() {
        for wrong in ["", "certificate='c'", "key='k'", "certificate='c'\nkey='k'\nself_signed=true"] {
            let problem = source(wrong, Some("/data")).unwrap_err().to_string();
            assert!(problem.contains("hint: "), "{wrong}: {problem}");
        }
        assert!(source("self_signed = true", None).is_err(), "no directory for the CA");
        assert!(source("self_signed = true\nnames = ['a b']", Some("/data")).is_err());
        assert!(source("certificate='c'\nkey='k'\nnames=['x']", None).is_err());
    }
}
