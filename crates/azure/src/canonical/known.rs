//! Known members by resource type: their path and type. `list[]` descends into each item of a list, `object{}` into
//! each member of an object.

use super::super::kind::ResourceKind;
use super::MemberType::{self, Any, Count, Flag, Text, Word};

/// Path and type of a member.
type Member = (&'static str, MemberType);

/// Members of a resource type, each list under a prefix.
pub(super) fn members(kind: ResourceKind) -> impl Iterator<Item = (&'static str, &'static [Member])> {
    let own: &[(&str, &[Member])] = match kind {
        ResourceKind::Machine => &[("properties", MACHINE), ("properties", PROFILE), ("properties", POLICY)],
        ResourceKind::Instance => &[("properties", INSTANCE), ("properties", PROFILE)],
        ResourceKind::ScaleSet => &[
            ("properties", SCALE_SET),
            ("properties", POLICY),
            ("properties.virtualMachineProfile", PROFILE),
            ("properties.virtualMachineProfile", BILLING),
        ],
        ResourceKind::AvailabilitySet => &[("properties", AVAILABILITY_SET), ("properties", POLICY)],
        ResourceKind::Other => &[],
    };
    [("", RESOURCE)].into_iter().chain(own.iter().copied())
}

/// Members that only the server sets.
pub(super) fn of_the_server(kind: ResourceKind) -> impl Iterator<Item = &'static str> {
    let own: &[&str] = match kind {
        ResourceKind::Machine => {
            &["resources", "properties.vmId", "properties.timeCreated", "properties.instanceView"]
        }
        ResourceKind::Instance => &[
            "instanceId",
            "resources",
            "properties.vmId",
            "properties.timeCreated",
            "properties.instanceView",
            "properties.latestModelApplied",
            "properties.modelDefinitionApplied",
        ],
        ResourceKind::ScaleSet => {
            &["properties.uniqueId", "properties.timeCreated", "properties.virtualMachineProfile.timeCreated"]
        }
        ResourceKind::AvailabilitySet => &["properties.virtualMachines", "properties.statuses"],
        ResourceKind::Other => &[],
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

const PRIORITY: MemberType = Word(&["Regular", "Low", "Spot", "SpotPlus"]);
const EVICTION: MemberType = Word(&["Deallocate", "Delete"]);
const CACHING: MemberType = Word(&["None", "ReadOnly", "ReadWrite"]);
const CREATION: MemberType = Word(&["Attach", "Copy", "Empty", "FromImage", "Restore"]);
const DELETION: MemberType = Word(&["Delete", "Detach"]);
const STORAGE: MemberType = Word(&[
    "Standard_LRS",
    "Premium_LRS",
    "StandardSSD_LRS",
    "UltraSSD_LRS",
    "Premium_ZRS",
    "StandardSSD_ZRS",
    "PremiumV2_LRS",
]);
const ADDRESS: MemberType = Word(&["IPv4", "IPv6"]);
const REPAIR: MemberType = Word(&["Replace", "Restart", "Reimage"]);

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

/// Members of a machine: in its properties, or in the model of a scale set.
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
