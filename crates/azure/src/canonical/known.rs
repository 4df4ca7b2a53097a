//! The members that are known, by type: where they stand, and what they are. `list[]` goes on in each item of a list,
//! `object{}` in each member of an object.

use super::super::kind::Kind;
use super::Sort::{self, Any, Count, Flag, Text, Word};

/// A member: where, and what.
type Member = (&'static str, Sort);

/// Members of a type, each list under a prefix.
pub(super) fn members(kind: Kind) -> impl Iterator<Item = (&'static str, &'static [Member])> {
    let own: &[(&str, &[Member])] = match kind {
        Kind::Machine => &[("properties", MACHINE), ("properties", PROFILE), ("properties", POLICY)],
        Kind::Instance => &[("properties", INSTANCE), ("properties", PROFILE)],
        Kind::ScaleSet => &[
            ("properties", SCALE_SET),
            ("properties", POLICY),
            ("properties.virtualMachineProfile", PROFILE),
            ("properties.virtualMachineProfile", BILLING),
        ],
        Kind::AvailabilitySet => &[("properties", AVAILABILITY_SET), ("properties", POLICY)],
        Kind::Other => &[],
    };
    [("", RESOURCE)].into_iter().chain(own.iter().copied())
}

/// What only the server says, by type.
pub(super) fn of_the_server(kind: Kind) -> impl Iterator<Item = &'static str> {
    let own: &[&str] = match kind {
        Kind::Machine => {
            &["resources", "properties.vmId", "properties.timeCreated", "properties.instanceView"]
        }
        Kind::Instance => &[
            "instanceId",
            "resources",
            "properties.vmId",
            "properties.timeCreated",
            "properties.instanceView",
            "properties.latestModelApplied",
            "properties.modelDefinitionApplied",
        ],
        Kind::ScaleSet => {
            &["properties.uniqueId", "properties.timeCreated", "properties.virtualMachineProfile.timeCreated"]
        }
        Kind::AvailabilitySet => &["properties.virtualMachines", "properties.statuses"],
        Kind::Other => &[],
    };
    ["id", "name", "type", "etag", "systemData", "properties.provisioningState"]
        .into_iter()
        .chain(own.iter().copied())
}

const RESOURCE: &[Member] = &[
    ("location", Text),
    ("tags{}", Text),
    ("zones[]", Text),
    ("sku.name", Text),
    ("sku.tier", Text),
    ("sku.capacity", Count),
    ("identity.type", Word(&["None", "SystemAssigned", "UserAssigned", "SystemAssigned, UserAssigned"])),
];

const PRIORITY: Sort = Word(&["Regular", "Low", "Spot", "SpotPlus"]);
const EVICTION: Sort = Word(&["Deallocate", "Delete"]);
const CACHING: Sort = Word(&["None", "ReadOnly", "ReadWrite"]);
const CREATION: Sort = Word(&["Attach", "Copy", "Empty", "FromImage", "Restore"]);
const DELETION: Sort = Word(&["Delete", "Detach"]);
const STORAGE: Sort = Word(&[
    "Standard_LRS",
    "Premium_LRS",
    "StandardSSD_LRS",
    "UltraSSD_LRS",
    "Premium_ZRS",
    "StandardSSD_ZRS",
    "PremiumV2_LRS",
]);
const ADDRESS: Sort = Word(&["IPv4", "IPv6"]);
const REPAIR: Sort = Word(&["Replace", "Restart", "Reimage"]);

const MACHINE: &[Member] = &[
    ("priority", PRIORITY),
    ("evictionPolicy", EVICTION),
    ("availabilitySet.id", Any),
    ("virtualMachineScaleSet.id", Any),
    ("platformFaultDomain", Count),
    ("additionalCapabilities.ultraSSDEnabled", Flag),
    ("additionalCapabilities.hibernationEnabled", Flag),
    ("networkProfile.networkInterfaces[].properties.primary", Flag),
    ("networkProfile.networkInterfaces[].properties.deleteOption", DELETION),
    ("networkProfile.networkInterfaces[].primary", Flag),
];

const INSTANCE: &[Member] = &[
    ("protectionPolicy.protectFromScaleIn", Flag),
    ("protectionPolicy.protectFromScaleSetActions", Flag),
    ("networkProfile.networkInterfaces[].properties.primary", Flag),
    ("additionalCapabilities.ultraSSDEnabled", Flag),
];

const BILLING: &[Member] = &[("priority", PRIORITY), ("evictionPolicy", EVICTION)];

const AVAILABILITY_SET: &[Member] = &[
    ("platformUpdateDomainCount", Count),
    ("platformFaultDomainCount", Count),
    ("proximityPlacementGroup.id", Any),
];

const SCALE_SET: &[Member] = &[
    ("orchestrationMode", Word(&["Uniform", "Flexible"])),
    ("singlePlacementGroup", Flag),
    ("overprovision", Flag),
    ("doNotRunExtensionsOnOverprovisionedVMs", Flag),
    ("constrainedMaximumCapacity", Flag),
    ("zoneBalance", Flag),
    ("platformFaultDomainCount", Count),
    ("upgradePolicy.mode", Word(&["Automatic", "Manual", "Rolling"])),
    ("upgradePolicy.rollingUpgradePolicy.maxBatchInstancePercent", Count),
    ("upgradePolicy.rollingUpgradePolicy.maxUnhealthyInstancePercent", Count),
    ("upgradePolicy.rollingUpgradePolicy.maxUnhealthyUpgradedInstancePercent", Count),
    ("upgradePolicy.rollingUpgradePolicy.pauseTimeBetweenBatches", Any),
    ("upgradePolicy.rollingUpgradePolicy.enableCrossZoneUpgrade", Flag),
    ("upgradePolicy.rollingUpgradePolicy.prioritizeUnhealthyInstances", Flag),
    ("upgradePolicy.rollingUpgradePolicy.rollbackFailedInstancesOnPolicyBreach", Flag),
    ("upgradePolicy.rollingUpgradePolicy.maxSurge", Flag),
    ("upgradePolicy.automaticOSUpgradePolicy.enableAutomaticOSUpgrade", Flag),
    ("upgradePolicy.automaticOSUpgradePolicy.disableAutomaticRollback", Flag),
    ("upgradePolicy.automaticOSUpgradePolicy.useRollingUpgradePolicy", Flag),
    ("upgradePolicy.automaticOSUpgradePolicy.osRollingUpgradeDeferral", Flag),
    ("scaleInPolicy.rules[]", Word(&["Default", "OldestVM", "NewestVM"])),
    ("scaleInPolicy.forceDeletion", Flag),
    ("scaleInPolicy.prioritizeUnhealthyVMs", Flag),
    ("automaticRepairsPolicy.enabled", Flag),
    ("automaticRepairsPolicy.repairAction", REPAIR),
    ("spotRestorePolicy.enabled", Flag),
    ("priorityMixPolicy.baseRegularPriorityCount", Count),
    ("priorityMixPolicy.regularPriorityPercentageAboveBase", Count),
    ("resiliencyPolicy.resilientVMCreationPolicy.enabled", Flag),
    ("resiliencyPolicy.resilientVMDeletionPolicy.enabled", Flag),
    ("additionalCapabilities.ultraSSDEnabled", Flag),
    ("additionalCapabilities.hibernationEnabled", Flag),
];

const POLICY: &[Member] = &[
    ("scheduledEventsPolicy.userInitiatedReboot.automaticallyApprove", Flag),
    ("scheduledEventsPolicy.userInitiatedRedeploy.automaticallyApprove", Flag),
    ("scheduledEventsPolicy.allInstancesDown.automaticallyApprove", Flag),
    (
        "scheduledEventsPolicy.scheduledEventsAdditionalPublishingTargets.eventGridAndResourceGraph.enable",
        Flag,
    ),
    (
        "scheduledEventsPolicy.scheduledEventsAdditionalPublishingTargets.eventGridAndResourceGraph.scheduledEventsApiVersion",
        Any,
    ),
];

/// What a machine is made from: the properties of one, or the model of a scale set.
const PROFILE: &[Member] = &[
    ("scheduledEventsProfile.terminateNotificationProfile.enable", Flag),
    ("scheduledEventsProfile.terminateNotificationProfile.notBeforeTimeout", Any),
    ("scheduledEventsProfile.osImageNotificationProfile.enable", Flag),
    ("scheduledEventsProfile.osImageNotificationProfile.notBeforeTimeout", Any),
    ("hardwareProfile.vmSize", Text),
    ("hardwareProfile.vmSizeProperties.vCPUsAvailable", Count),
    ("hardwareProfile.vmSizeProperties.vCPUsPerCore", Count),
    ("osProfile.computerName", Text),
    ("osProfile.computerNamePrefix", Text),
    ("osProfile.adminUsername", Text),
    ("osProfile.allowExtensionOperations", Flag),
    ("osProfile.requireGuestProvisionSignal", Flag),
    ("osProfile.linuxConfiguration.disablePasswordAuthentication", Flag),
    ("osProfile.linuxConfiguration.provisionVMAgent", Flag),
    ("osProfile.linuxConfiguration.enableVMAgentPlatformUpdates", Flag),
    ("osProfile.linuxConfiguration.patchSettings.patchMode", Word(&["ImageDefault", "AutomaticByPlatform"])),
    (
        "osProfile.linuxConfiguration.patchSettings.assessmentMode",
        Word(&["ImageDefault", "AutomaticByPlatform"]),
    ),
    ("osProfile.windowsConfiguration.provisionVMAgent", Flag),
    ("osProfile.windowsConfiguration.enableAutomaticUpdates", Flag),
    ("osProfile.windowsConfiguration.patchSettings.enableHotpatching", Flag),
    (
        "osProfile.windowsConfiguration.patchSettings.patchMode",
        Word(&["Manual", "AutomaticByOS", "AutomaticByPlatform"]),
    ),
    ("storageProfile.imageReference.id", Any),
    ("storageProfile.imageReference.publisher", Text),
    ("storageProfile.imageReference.offer", Text),
    ("storageProfile.imageReference.sku", Text),
    ("storageProfile.imageReference.version", Text),
    ("storageProfile.imageReference.sharedGalleryImageId", Any),
    ("storageProfile.imageReference.communityGalleryImageId", Any),
    ("storageProfile.diskControllerType", Word(&["SCSI", "NVMe"])),
    ("storageProfile.osDisk.osType", Word(&["Linux", "Windows"])),
    ("storageProfile.osDisk.caching", CACHING),
    ("storageProfile.osDisk.createOption", CREATION),
    ("storageProfile.osDisk.deleteOption", DELETION),
    ("storageProfile.osDisk.diskSizeGB", Count),
    ("storageProfile.osDisk.writeAcceleratorEnabled", Flag),
    ("storageProfile.osDisk.managedDisk.storageAccountType", STORAGE),
    ("storageProfile.osDisk.diffDiskSettings.option", Word(&["Local"])),
    ("storageProfile.dataDisks[].lun", Count),
    ("storageProfile.dataDisks[].caching", CACHING),
    ("storageProfile.dataDisks[].createOption", CREATION),
    ("storageProfile.dataDisks[].deleteOption", DELETION),
    ("storageProfile.dataDisks[].diskSizeGB", Count),
    ("storageProfile.dataDisks[].toBeDetached", Flag),
    ("storageProfile.dataDisks[].writeAcceleratorEnabled", Flag),
    ("storageProfile.dataDisks[].managedDisk.storageAccountType", STORAGE),
    ("networkProfile.networkInterfaceConfigurations[].properties.primary", Flag),
    ("networkProfile.networkInterfaceConfigurations[].properties.deleteOption", DELETION),
    ("networkProfile.networkInterfaceConfigurations[].properties.enableAcceleratedNetworking", Flag),
    ("networkProfile.networkInterfaceConfigurations[].properties.enableIPForwarding", Flag),
    (
        "networkProfile.networkInterfaceConfigurations[].properties.ipConfigurations[].properties.primary",
        Flag,
    ),
    (
        "networkProfile.networkInterfaceConfigurations[].properties.ipConfigurations[].properties.privateIPAddressVersion",
        ADDRESS,
    ),
    (
        "networkProfile.networkInterfaceConfigurations[].properties.ipConfigurations[].properties.publicIPAddressConfiguration.properties.idleTimeoutInMinutes",
        Count,
    ),
    ("extensionProfile.extensions[].properties.autoUpgradeMinorVersion", Flag),
    ("extensionProfile.extensions[].properties.enableAutomaticUpgrade", Flag),
    ("extensionProfile.extensions[].properties.suppressFailures", Flag),
    ("diagnosticsProfile.bootDiagnostics.enabled", Flag),
    ("securityProfile.securityType", Word(&["Standard", "TrustedLaunch", "ConfidentialVM"])),
    ("securityProfile.encryptionAtHost", Flag),
    ("securityProfile.uefiSettings.secureBootEnabled", Flag),
    ("securityProfile.uefiSettings.vTpmEnabled", Flag),
];
