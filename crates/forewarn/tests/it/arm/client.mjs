// What a program does with the compute client of Azure for JavaScript: `client.mjs CLIENTS URL SUBSCRIPTION PART`. Prints JSON.

import { createRequire } from "node:module";

const [clients, endpoint, subscription, part] = process.argv.slice(2);
const require = createRequire(`${clients}/package.json`);
const { ComputeManagementClient } = require("@azure/arm-compute");
const { ManagedIdentityCredential } = require("@azure/identity");

const GROUP = "myResourceGroup";
const SET = "myVMScaleSet";
const client = new ComputeManagementClient(new ManagedIdentityCredential(), subscription, {
    endpoint,
    credentials: { scopes: ["https://management.core.windows.net//.default"] },
});
const sets = client.virtualMachineScaleSets;

async function listed() {
    const instances = [];
    for await (const shown of client.virtualMachineScaleSetVMs.list(GROUP, SET)) {
        instances.push([shown.instanceId, shown.latestModelApplied]);
    }
    return instances;
}

const PARTS = {
    /** Made with a PUT, changed with a PATCH, upgraded. */
    async scaleSet() {
        await sets.createOrUpdate(GROUP, SET, {
            location: "eastus",
            sku: { name: "Standard_D2s_v3", tier: "Standard", capacity: 3 },
            orchestrationMode: "Uniform",
            upgradePolicy: { mode: "Manual" },
            virtualMachineProfile: { osProfile: { computerNamePrefix: "web", adminUsername: "azureuser" } },
        });
        const changed = await sets.update(GROUP, SET, {
            virtualMachineProfile: {
                scheduledEventsProfile: { terminateNotificationProfile: { enable: true, notBeforeTimeout: "PT10M" } },
            },
        });
        const before = await listed();
        await sets.updateInstances(GROUP, SET, { instanceIds: ["*"] });
        const profile = changed.virtualMachineProfile.scheduledEventsProfile.terminateNotificationProfile;
        return { profile, before, after: await listed() };
    },

    /** Waits until two machines have agreed. */
    async deleteInstances() {
        await sets.deleteInstances(GROUP, SET, { instanceIds: ["1", "2"] });
        return listed();
    },

    /** What is not there. */
    async missing() {
        try {
            await sets.get(GROUP, "nothing");
        } catch (problem) {
            return [problem.statusCode, problem.code];
        }
        return null;
    },
};

console.log(JSON.stringify(await PARTS[part]()));
