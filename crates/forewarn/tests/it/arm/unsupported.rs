//! Commands of `az vm` and `az vmss` that are about something that is not here: each says so, and none hangs or breaks.

use std::sync::Mutex;

use crate::arm::scale_sets::CREATE;
use forewarn_testkit::arm::GROUP;
use forewarn_testkit::az::{Az, AzResult};

/// How many run at the same time.
const AT_ONCE: usize = 3;

/// What is tried. `SET` and `VM` stand for the words that name them.
const COMMANDS: [&str; 46] = [
    "vm run-command invoke VM --command-id RunShellScript --scripts date",
    "vm run-command list VM-NAME",
    "vm extension set --resource-group myResourceGroup --vm-name solo --name customScript --publisher Microsoft.Azure.Extensions",
    "vm extension list --resource-group myResourceGroup --vm-name solo",
    "vm extension image list-versions --location eastus --publisher Microsoft.Azure.Extensions --name customScript",
    "vm image list-publishers --location eastus",
    "vm image list-offers --location eastus --publisher Canonical",
    "vm image list-skus --location eastus --publisher Canonical --offer UbuntuServer",
    "vm image show --location eastus --urn Canonical:UbuntuServer:18.04-LTS:latest",
    "vm encryption show VM",
    "vm boot-diagnostics get-boot-log VM",
    "vm boot-diagnostics enable VM",
    "vm disk attach --resource-group myResourceGroup --vm-name solo --name data --new",
    "vm nic list --resource-group myResourceGroup --vm-name solo",
    "vm identity assign VM",
    "vm identity show VM",
    "vm secret list VM",
    "vm user reset-ssh VM",
    "vm assess-patches VM",
    "vm install-patches VM --maximum-duration PT1H --reboot-setting Never --classifications-to-include-linux Critical",
    "vm capture VM --vhd-name-prefix x",
    "vm generalize VM",
    "vm convert VM",
    "vm resize VM --size Standard_D4s_v3",
    "vm list-usage --location eastus",
    "vm list-sizes --location eastus",
    "vm list-skus --location eastus",
    "vm list-vm-resize-options VM",
    "vm list-ip-addresses VM",
    "vm open-port VM --port 80",
    "vm host group list --resource-group myResourceGroup",
    "vm monitor log show VM --analytics-query x",
    "vmss run-command invoke SET --command-id RunShellScript --scripts date --instance-id 0",
    "vmss extension set --resource-group myResourceGroup --vmss-name myVMScaleSet --name customScript --publisher Microsoft.Azure.Extensions",
    "vmss extension list --resource-group myResourceGroup --vmss-name myVMScaleSet",
    "vmss encryption show SET",
    "vmss identity assign SET",
    "vmss list-skus SET",
    "vmss list-instance-connection-info SET",
    "vmss list-instance-public-ips SET",
    "vmss nic list --resource-group myResourceGroup --vmss-name myVMScaleSet",
    "vmss get-os-upgrade-history SET",
    "vmss rolling-upgrade get-latest SET",
    "vmss set-orchestration-service-state SET --service-name AutomaticRepairs --action Suspend",
    "vmss update-domain-walk --resource-group myResourceGroup --vmss-name myVMScaleSet --platform-update-domain 0",
    "image create --resource-group myResourceGroup --name picture --source solo",
];

fn line(command: &str) -> String {
    let machine = format!("--resource-group {GROUP} --name solo");
    let set = format!("--resource-group {GROUP} --name myVMScaleSet");
    let named = command.replace("VM-NAME", &format!("--resource-group {GROUP} --vm-name solo"));
    named
        .split(' ')
        .map(|word| match word {
            "VM" => machine.as_str(),
            "SET" => set.as_str(),
            word => word,
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether a command was done, or says why not: in the words of the server, or in its own where that did not have what it
/// looked for. That it ended, and did not break, is seen already.
fn is_clear(ran: &AzResult) -> bool {
    let error = ran.err.split("ERROR: ").nth(1).unwrap_or_default();
    ran.code == Some(0) || (error.trim().len() > 10 && [Some(1), Some(3)].contains(&ran.code))
}

/// promise: Z6
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_command_that_is_not_supported_says_so_and_ends() {
    let az = Az::start(crate::program());
    let vm = "vm create --resource-group myResourceGroup --image UbuntuLTS --admin-username azureuser --generate-ssh-keys";
    az.ok(&format!("{vm} --name solo"));
    az.ok(CREATE);
    let (left, unclear) = (Mutex::new(COMMANDS.iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = left.lock().unwrap().next();
            let Some(command) = next else { break };
            let ran = az.run(&line(command));
            if !is_clear(&ran) {
                unclear.lock().unwrap().push(format!("{ran:?}"));
            }
        }
    };
    std::thread::scope(|scope| {
        (0..AT_ONCE).for_each(|_| {
            scope.spawn(work);
        });
    });
    let unclear = unclear.into_inner().unwrap();
    assert!(unclear.is_empty(), "{} are not clear:\n{}", unclear.len(), unclear.join("\n\n"));
    // And what was there is there.
    assert!(az.server.is_there("solo") && az.server.is_there("myVMScaleSet_0"));
}
