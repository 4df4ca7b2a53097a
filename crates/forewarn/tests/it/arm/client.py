"""What a program does with the compute client of Azure for Python: `client.py URL SUBSCRIPTION PART`. Prints JSON."""

import json
import sys

from azure.core.exceptions import HttpResponseError
from azure.identity import ManagedIdentityCredential
from azure.mgmt.compute import ComputeManagementClient

GROUP, SET = "myResourceGroup", "myVMScaleSet"
ALL = {"instanceIds": ["*"]}


def notification(length):
    profile = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": length}}
    return {"virtualMachineProfile": {"scheduledEventsProfile": profile}}


def scale_set(client):
    """Made with a PUT, changed with a PATCH, upgraded, read in every way."""
    sets, instances = client.virtual_machine_scale_sets, client.virtual_machine_scale_set_vms
    wanted = {
        "location": "eastus",
        "sku": {"name": "Standard_D2s_v3", "tier": "Standard", "capacity": 3},
        "properties": {
            "orchestrationMode": "Uniform",
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {"osProfile": {"computerNamePrefix": "web", "adminUsername": "azureuser"}},
        },
    }
    made = sets.begin_create_or_update(GROUP, SET, wanted).result()
    changed = sets.begin_update(GROUP, SET, {"properties": notification("PT15M")}).result()
    profile = changed.properties.virtual_machine_profile.scheduled_events_profile.terminate_notification_profile
    before = [shown.properties.latest_model_applied for shown in instances.list(GROUP, SET)]
    sets.begin_update_instances(GROUP, SET, ALL).result()
    after = [shown.properties.latest_model_applied for shown in instances.list(GROUP, SET)]
    view = instances.get_instance_view(GROUP, SET, "1")
    return {
        "state": made.properties.provisioning_state,
        "capacity": sets.get(GROUP, SET).sku.capacity,
        "enable": profile.enable,
        "notBeforeTimeout": profile.not_before_timeout,
        "before": before,
        "after": after,
        "names": [shown.name for shown in sets.list(GROUP)],
        "everywhere": [shown.name for shown in sets.list_all()],
        "power": view.statuses[1].code,
        "refused": refused(lambda: sets.begin_update(GROUP, SET, {"properties": notification("PT16M")}).result()),
        "missing": refused(lambda: sets.get(GROUP, "nothing")),
    }


def delete_instances(client):
    """Waits until two machines have agreed."""
    client.virtual_machine_scale_sets.begin_delete_instances(GROUP, SET, {"instanceIds": ["1", "2"]}).result()
    return [shown.instance_id for shown in client.virtual_machine_scale_set_vms.list(GROUP, SET)]


def machine(client):
    """A machine in an availability set."""
    wanted = {"location": "eastus", "sku": {"name": "Aligned"}, "properties": {"platformFaultDomainCount": 2, "platformUpdateDomainCount": 3}}
    group = client.availability_sets.create_or_update(GROUP, "db", wanted)
    wanted = {
        "location": "eastus",
        "properties": {"hardwareProfile": {"vmSize": "Standard_D2s_v3"}, "availabilitySet": {"id": group.id}},
    }
    made = client.virtual_machines.begin_create_or_update(GROUP, "db-0", wanted).result()
    members = client.availability_sets.get(GROUP, "db").properties.virtual_machines
    return {"state": made.properties.provisioning_state, "members": [member.id.split("/")[-1] for member in members]}


def restart(client):
    """Waits until the machine has agreed."""
    client.virtual_machines.begin_restart(GROUP, "db-0").result()
    view = client.virtual_machines.instance_view(GROUP, "db-0")
    return {"power": view.statuses[1].code}


def delete(client):
    client.virtual_machines.begin_delete(GROUP, "db-0").result()
    client.availability_sets.delete(GROUP, "db")
    return [shown.name for shown in client.virtual_machines.list(GROUP)]


def refused(call):
    try:
        call()
    except HttpResponseError as problem:
        return [problem.status_code, problem.error.code]
    return None


PARTS = [scale_set, delete_instances, machine, restart, delete]


def main():
    url, subscription, part = sys.argv[1:]
    scopes = ["https://management.core.windows.net//.default"]
    client = ComputeManagementClient(ManagedIdentityCredential(), subscription, base_url=url, credential_scopes=scopes)
    print(json.dumps({part.__name__: part for part in PARTS}[part](client)))


main()
