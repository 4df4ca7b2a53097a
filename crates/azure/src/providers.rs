//! Resource providers: namespaces, types and their api-versions.
//!
//! Clients without a version of their own query them. Other types are shown as well: the store accepts any type and
//! version.

use serde_json::{Value, json};

/// Namespaces, their versions (the newest first), and their types.
const PROVIDERS: &[(&str, &[&str], &[&str])] = &[
    (
        "Microsoft.Compute",
        &[
            "2026-04-01",
            "2025-11-01",
            "2025-04-01",
            "2024-11-01",
            "2024-07-01",
            "2024-03-01",
            "2023-09-01",
            "2022-11-01",
            "2021-03-01",
            "2019-03-01",
            "2018-10-01",
        ],
        &[
            "availabilitySets",
            "virtualMachines",
            "virtualMachineScaleSets",
            "virtualMachineScaleSets/virtualMachines",
            "locations/operations",
            "locations/usages",
            "locations/vmSizes",
        ],
    ),
    (
        "Microsoft.Network",
        &["2024-07-01", "2022-01-01", "2019-03-01", "2015-06-15"],
        &[
            "applicationGateways",
            "loadBalancers",
            "networkInterfaces",
            "networkSecurityGroups",
            "publicIPAddresses",
            "virtualNetworks",
            "virtualNetworks/subnets",
        ],
    ),
    (
        "Microsoft.Resources",
        &["2024-11-01", "2022-09-01", "2021-04-01"],
        &["deployments", "resourceGroups", "resources", "subscriptions", "tenants"],
    ),
    ("Microsoft.Maintenance", &["2023-09-01-preview", "2021-05-01"], &["scheduledevents"]),
];

/// Versions of namespaces that are not listed.
const OTHER_VERSIONS: &[&str] = &["2024-07-01"];

pub fn namespaces() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|(namespace, _, _)| *namespace)
}

/// A namespace as clients see it.
///
/// ```
/// let shown = forewarn_azure::providers::provider("microsoft.compute", "eastus");
/// assert_eq!(shown["namespace"], "Microsoft.Compute");
/// assert_eq!(shown["resourceTypes"][0]["apiVersions"][0], "2026-04-01");
/// ```
#[must_use]
pub fn provider(namespace: &str, location: &str) -> Value {
    let (name, kinds) = find(namespace).map_or((namespace, &[] as &[_]), |(name, _, kinds)| (*name, *kinds));
    let kinds: Vec<_> = kinds.iter().map(|kind| resource_type(name, kind, location)).collect();
    json!({
        "namespace": name,
        "registrationState": "Registered",
        "registrationPolicy": "RegistrationRequired",
        "resourceTypes": kinds,
    })
}

/// A type as clients see it.
#[must_use]
pub fn resource_type(namespace: &str, kind: &str, location: &str) -> Value {
    let versions = find(namespace).map_or(OTHER_VERSIONS, |(_, versions, _)| versions);
    json!({ "resourceType": kind, "locations": [location], "apiVersions": versions })
}

fn find(
    namespace: &str,
) -> Option<&'static (&'static str, &'static [&'static str], &'static [&'static str])> {
    PROVIDERS.iter().find(|(name, _, _)| name.eq_ignore_ascii_case(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiVersion;

    #[test]
    fn versions_are_versions_and_the_newest_comes_first() {
        for (namespace, versions, _) in PROVIDERS {
            let read: Vec<_> = versions.iter().map(|version| ApiVersion::parse(version).unwrap()).collect();
            assert!(read.is_sorted_by(|one, other| one > other), "{namespace}");
        }
    }

    #[test]
    fn unlisted_providers_are_shown() {
        let shown = provider("Contoso.Things", "here");
        assert_eq!((&shown["namespace"], &shown["resourceTypes"]), (&json!("Contoso.Things"), &json!([])));
        assert_eq!(resource_type("Contoso.Things", "things", "here")["apiVersions"], json!(OTHER_VERSIONS));
        assert!(namespaces().all(|namespace| provider(namespace, "here")["resourceTypes"][0].is_object()));
    }
}
