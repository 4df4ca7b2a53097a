//! Discovery documents: the endpoints of the cloud, and the aliases of images.
//!
//! The endpoints have three shapes, by api-version. Every address in them is one of this server: no request of a client
//! leaves this computer.

use serde_json::{Value, json};

use crate::{ApiVersion, ArmError};

/// Name of the cloud. Clients of `AzureCloud` would log in elsewhere.
const CLOUD: &str = "Forewarn";

/// First version whose shape is a list of clouds.
const LISTED: ApiVersion = ApiVersion::new(2018, 1, 1);

/// First version whose shape is one cloud.
const ONE: ApiVersion = ApiVersion::new(2022, 9, 1);

/// Audiences of tokens. `az` asks for the first.
const AUDIENCES: [&str; 2] = ["https://management.core.windows.net/", "https://management.azure.com/"];

/// The endpoints in the shape of an api-version. `base` is the address with TLS, `https://HOST:PORT`.
pub(super) fn endpoints(base: &str, version: Option<&str>) -> Result<Value, ArmError> {
    let Some(text) = version.filter(|text| !text.is_empty()) else {
        return Err(ArmError::new(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        ));
    };
    let version = ApiVersion::parse(text).map_err(|_| {
        ArmError::new(400, "InvalidApiVersionParameter", format!("The api-version '{text}' is invalid."))
    })?;
    if version < LISTED {
        let authentication = json!({ "loginEndpoint": format!("{base}/"), "audiences": AUDIENCES });
        return Ok(json!({
            "galleryEndpoint": format!("{base}/"),
            "graphEndpoint": format!("{base}/"),
            "portalEndpoint": format!("{base}/"),
            "authentication": authentication,
        }));
    }
    let one = cloud(base);
    Ok(if version < ONE { json!([one]) } else { one })
}

/// Services that this server does not have. Clients insist on an address, and get that of this server.
const ELSEWHERE: [&str; 16] = [
    "activeDirectoryDataLake",
    "appInsightsResourceId",
    "appInsightsTelemetryChannelResourceId",
    "appServiceResourceId",
    "attestationResourceId",
    "batch",
    "gallery",
    "graph",
    "graphAudience",
    "logAnalyticsResourceId",
    "media",
    "microsoftGraphResourceId",
    "ossrdbmsResourceId",
    "portal",
    "sqlManagement",
    "synapseAnalyticsResourceId",
];

fn cloud(base: &str) -> Value {
    let authentication = json!({
        "loginEndpoint": base,
        "audiences": AUDIENCES,
        "tenant": "common",
        "identityProvider": "AAD",
    });
    // Names below `localhost` resolve to this computer.
    let suffixes = json!({
        "acrLoginServer": "acr.localhost",
        "keyVaultDns": "vault.localhost",
        "mhsmDns": "managedhsm.localhost",
        "mysqlServerEndpoint": "mysql.localhost",
        "postgresqlServerEndpoint": "postgres.localhost",
        "sqlServerHostname": "database.localhost",
        "storage": "storage.localhost",
        "storageSyncEndpointSuffix": "afs.localhost",
    });
    let mut cloud = json!({
        "name": CLOUD,
        "resourceManager": base,
        "authentication": authentication,
        "suffixes": suffixes,
        "vmImageAliasDoc": format!("{base}/aliases.json"),
    });
    for name in ELSEWHERE {
        cloud[name] = json!(base);
    }
    cloud
}

/// Aliases of images: system, alias, publisher, offer, SKU. Retired images are here too,
/// because documentation still names them.
const ALIASES: [(&str, &str, &str, &str, &str); 18] = [
    ("Linux", "UbuntuLTS", "Canonical", "UbuntuServer", "18.04-LTS"),
    ("Linux", "Ubuntu2204", "Canonical", "0001-com-ubuntu-server-jammy", "22_04-lts-gen2"),
    ("Linux", "Ubuntu2404", "Canonical", "ubuntu-24_04-lts", "server"),
    ("Linux", "Ubuntu2404Pro", "Canonical", "ubuntu-24_04-lts", "ubuntu-pro"),
    ("Linux", "Debian", "Debian", "debian-10", "10"),
    ("Linux", "Debian11", "Debian", "debian-11", "11-backports-gen2"),
    ("Linux", "Debian12", "Debian", "debian-12", "12-gen2"),
    ("Linux", "CentOS", "OpenLogic", "CentOS", "7.5"),
    ("Linux", "CentOS85Gen2", "OpenLogic", "CentOS", "8_5-gen2"),
    ("Linux", "RHEL", "RedHat", "RHEL", "7-LVM"),
    ("Linux", "RHELRaw8LVMGen2", "RedHat", "RHEL", "8-lvm-gen2"),
    ("Linux", "SLES", "SUSE", "sles-15-sp3", "gen2"),
    ("Linux", "OpenSuseLeap154Gen2", "SUSE", "openSUSE-leap-15-4", "gen2"),
    ("Linux", "FlatcarLinuxFreeGen2", "kinvolk", "flatcar-container-linux-free", "stable-gen2"),
    ("Windows", "Win2022Datacenter", "MicrosoftWindowsServer", "WindowsServer", "2022-datacenter-g2"),
    (
        "Windows",
        "Win2022AzureEditionCore",
        "MicrosoftWindowsServer",
        "WindowsServer",
        "2022-datacenter-azure-edition-core",
    ),
    ("Windows", "Win2019Datacenter", "MicrosoftWindowsServer", "WindowsServer", "2019-datacenter-gensecond"),
    ("Windows", "Win2016Datacenter", "MicrosoftWindowsServer", "WindowsServer", "2016-datacenter-gensecond"),
];

/// The document with the aliases of images, in the shape of template outputs.
pub(super) fn aliases() -> Value {
    let mut value = json!({});
    for (system, name, publisher, offer, sku) in ALIASES {
        value[system][name] = json!({
            "publisher": publisher,
            "offer": offer,
            "sku": sku,
            "version": "latest",
            "architecture": "x64",
        });
    }
    json!({ "outputs": { "aliases": { "type": "object", "value": value } } })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://localhost:1340";

    #[test]
    fn endpoints_have_three_shapes() {
        let first = endpoints(BASE, Some("2015-01-01")).unwrap();
        assert_eq!(first["authentication"]["loginEndpoint"], format!("{BASE}/"));
        assert!(
            ["galleryEndpoint", "graphEndpoint", "portalEndpoint"].iter().all(|key| first[key].is_string())
        );
        let list = endpoints(BASE, Some("2019-05-01")).unwrap();
        let one = endpoints(BASE, Some("2022-09-01")).unwrap();
        assert_eq!(list, json!([one]));
        assert_eq!((&one["name"], &one["resourceManager"]), (&json!("Forewarn"), &json!(BASE)));
        assert_eq!(one["vmImageAliasDoc"], format!("{BASE}/aliases.json"));
        for (version, code) in [
            (None, "MissingApiVersionParameter"),
            (Some(""), "MissingApiVersionParameter"),
            (Some("latest"), "InvalidApiVersionParameter"),
        ] {
            assert_eq!(endpoints(BASE, version).unwrap_err().code, code, "{version:?}");
        }
    }

    /// promise: Z5
    #[test]
    fn nothing_sends_a_client_elsewhere() {
        fn check(value: &Value, path: &str) {
            match value {
                Value::String(text) => {
                    let is_here = text.starts_with(BASE) || text.ends_with(".localhost");
                    let is_name = ["/name", "/authentication/tenant", "/authentication/identityProvider"];
                    let is_audience = path.starts_with("/authentication/audiences");
                    assert!(is_here || is_name.contains(&path) || is_audience, "{path}: {text}");
                }
                Value::Array(all) => all.iter().for_each(|one| check(one, path)),
                Value::Object(all) => {
                    all.iter().for_each(|(name, one)| check(one, &format!("{path}/{name}")));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        for version in ["2015-01-01", "2022-09-01"] {
            check(&endpoints(BASE, Some(version)).unwrap(), "");
        }
    }

    #[test]
    fn an_image_has_all_that_a_machine_needs_of_it() {
        let aliases = aliases();
        let value = &aliases["outputs"]["aliases"]["value"];
        assert_eq!(value["Linux"]["UbuntuLTS"]["offer"], "UbuntuServer");
        for images in ["Linux", "Windows"] {
            for (name, image) in value[images].as_object().unwrap() {
                let has = |key: &&str| image[*key].as_str().is_some_and(|text| !text.is_empty());
                let all = ["publisher", "offer", "sku", "version", "architecture"];
                assert!(all.iter().all(has), "{name}");
            }
        }
        let count: usize =
            value.as_object().unwrap().values().map(|one| one.as_object().unwrap().len()).sum();
        assert_eq!(count, ALIASES.len(), "no name is there twice");
    }
}
