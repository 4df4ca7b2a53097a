//! Sizes of machines, which clients look up. All are equivalent, and any other name is accepted.

use serde_json::{Value, json};

/// Name, family, processors, memory in MiB, data disks.
const SIZES: [(&str, &str, u32, u32, u32); 10] = [
    ("Standard_B1s", "standardBSFamily", 1, 1_024, 2),
    ("Standard_B2s", "standardBSFamily", 2, 4_096, 4),
    ("Standard_DS1_v2", "standardDSv2Family", 1, 3_584, 4),
    ("Standard_DS2_v2", "standardDSv2Family", 2, 7_168, 8),
    ("Standard_D2s_v3", "standardDSv3Family", 2, 8_192, 4),
    ("Standard_D4s_v3", "standardDSv3Family", 4, 16_384, 8),
    ("Standard_D2s_v5", "standardDSv5Family", 2, 8_192, 4),
    ("Standard_D4s_v5", "standardDSv5Family", 4, 16_384, 8),
    ("Standard_E2s_v5", "standardESv5Family", 2, 16_384, 4),
    ("Standard_F2s_v2", "standardFSv2Family", 2, 4_096, 4),
];

/// Quota of every resource: more than any client needs.
const LIMIT: u32 = 1_000_000;

/// Sizes in each location, with their zones.
///
/// ```
/// let skus = forewarn_azure::sizes::skus(&["eastus"]);
/// assert_eq!(skus[0]["locationInfo"][0]["zones"][2], "3");
/// ```
#[must_use]
pub fn skus(locations: &[&str]) -> Vec<Value> {
    let of = |location: &str| SIZES.map(|size| sku(size, location));
    locations.iter().flat_map(|location| of(location)).collect()
}

fn sku((name, family, cores, memory, disks): (&str, &str, u32, u32, u32), location: &str) -> Value {
    let capability = |name: &str, value: String| json!({ "name": name, "value": value });
    json!({
        "resourceType": "virtualMachines",
        "name": name,
        "tier": "Standard",
        "size": name.trim_start_matches("Standard_"),
        "family": family,
        "locations": [location],
        "locationInfo": [{ "location": location, "zones": ["1", "2", "3"], "zoneDetails": [] }],
        "capabilities": [
            capability("vCPUs", cores.to_string()),
            capability("MemoryGB", (f64::from(memory) / 1_024.0).to_string()),
            capability("MaxDataDiskCount", disks.to_string()),
            capability("HyperVGenerations", "V1,V2".to_owned()),
            capability("CpuArchitectureType", "x64".to_owned()),
            capability("LowPriorityCapable", "True".to_owned()),
            capability("PremiumIO", "True".to_owned()),
        ],
        "restrictions": [],
    })
}

/// Sizes in the older list, without zones.
#[must_use]
pub fn vm_sizes() -> Vec<Value> {
    let size = |(name, _, cores, memory, disks): (&str, &str, u32, u32, u32)| {
        json!({
            "name": name,
            "numberOfCores": cores,
            "osDiskSizeInMB": 1_047_552,
            "resourceDiskSizeInMB": memory * 2,
            "memoryInMB": memory,
            "maxDataDiskCount": disks,
        })
    };
    SIZES.map(size).to_vec()
}

/// Usage and quota, given the numbers of machines, availability sets and scale sets.
#[must_use]
pub fn usages(machines: usize, availability_sets: usize, scale_sets: usize) -> Vec<Value> {
    let usage = |(name, shown, count): (&str, &str, usize)| {
        json!({
            "unit": "Count",
            "currentValue": count,
            "limit": LIMIT,
            "name": { "value": name, "localizedValue": shown },
        })
    };
    let all = [
        ("availabilitySets", "Availability Sets", availability_sets),
        ("virtualMachines", "Virtual Machines", machines),
        ("virtualMachineScaleSets", "Virtual Machine Scale Sets", scale_sets),
    ];
    all.map(usage).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_in_every_place_and_in_both_lists() {
        let skus = skus(&["here", "there"]);
        let sizes = vm_sizes();
        assert_eq!((skus.len(), sizes.len()), (2 * SIZES.len(), SIZES.len()));
        assert_eq!(
            (&skus[0]["name"], &skus[0]["capabilities"][1]["value"]),
            (&sizes[0]["name"], &json!("1"))
        );
        assert_eq!(usages(3, 1, 2)[1]["currentValue"], 3);
    }
}
