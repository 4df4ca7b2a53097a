//! The greeting of `forewarn dev`: its addresses, and first commands to try.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use forewarn_control::find_machine;
use forewarn_lifecycle::{Cluster, MachineId};
use forewarn_server::{Speed, State};

use super::machine_names::{find_in_clusters, split_cluster};
use crate::machine_url::{ListenerReach, MachineUrl};

/// The size of the fleet, and machines for examples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FleetSummary {
    hosts: usize,
    tenants: usize,
    machines: usize,
    /// A machine for example commands. None without machines.
    example: Option<String>,
    /// The machine of requests without `/vm/NAME`.
    default: Option<String>,
    /// A machine with an address, by which callers beyond loopback are identified.
    addressed: Option<AddressedMachine>,
}

/// A machine, and its first address.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AddressedMachine {
    name: String,
    address: IpAddr,
}

/// The addresses of a server, and the program for commands.
pub(super) struct ServerUrls<'a> {
    pub(super) metadata: &'a str,
    pub(super) api: &'a str,
    /// None without a listener for Azure clients.
    pub(super) arm: Option<&'a str>,
    /// The path of this program, as it was called.
    pub(super) program: &'a str,
    /// The address that commands use without `--api`.
    pub(super) looked_up: &'a str,
    /// None for a server in memory.
    pub(super) data_dir: Option<&'a Path>,
}

impl FleetSummary {
    pub(super) fn of(state: &State<'_>, default: Option<&str>) -> Self {
        let cluster = state.cluster;
        let default = default.filter(|name| find_in_clusters(state.all, name).is_ok()).map(str::to_owned);
        let first = || cluster.machines().next().map(|(id, _)| unique_name(cluster, id));
        Self {
            hosts: cluster.hosts().count(),
            tenants: cluster.tenants().count(),
            machines: cluster.machines().count(),
            // A command for a machine of another cluster would need --cluster.
            example: default.clone().filter(|name| split_cluster(name).is_none()).or_else(first),
            default,
            addressed: cluster.machines().find_map(|(id, _)| {
                let address = *state.durable.details_of(id).addresses.first()?;
                Some(AddressedMachine { name: unique_name(cluster, id), address })
            }),
        }
    }

    pub(super) fn greeting(&self, Speed(speed): Speed, urls: &ServerUrls<'_>) -> String {
        let ServerUrls { metadata, api, arm, program, looked_up, data_dir } = *urls;
        let forewarn = if api == looked_up { program.to_owned() } else { format!("{program} --api {api}") };
        let clock = if speed == 0 { "frozen".to_owned() } else { format!("running {speed}x") };
        let mut text = format!(
            "forewarn {} dev: {} machines of {} tenants on {} hosts; virtual clock, {clock}\n\n",
            env!("CARGO_PKG_VERSION"),
            self.machines,
            self.tenants,
            self.hosts,
        );
        // Writing to a string cannot fail.
        let reach = ListenerReach::of_url(metadata);
        let addressed = match reach {
            ListenerReach::Loopback => None,
            ListenerReach::Everywhere | ListenerReach::BeyondLoopback => self.addressed.as_ref(),
        };
        let _ = match &self.default {
            _ if addressed.is_some() => {
                let by_path = match reach {
                    ListenerReach::Everywhere => "             (on loopback: /vm/NAME/metadata/…)\n",
                    ListenerReach::Loopback | ListenerReach::BeyondLoopback => "",
                };
                write!(
                    text,
                    "  metadata   {metadata}/metadata/scheduledevents, for callers with the address of a machine\n{by_path}"
                )
            }
            Some(name) => write!(
                text,
                "  metadata   {metadata}/metadata/scheduledevents, as {name}\n             \
                 (for another machine: {metadata}/vm/NAME/metadata/…)\n"
            ),
            None => writeln!(text, "  metadata   {metadata}/vm/NAME/metadata/scheduledevents"),
        };
        let _ = write!(text, "  operators  {api}/v1\n  dashboard  {api}/\n");
        if let Some(arm) = arm {
            let _ = writeln!(
                text,
                "  azure      {arm}, for az: eval \"$({forewarn} az env)\"; az login --identity"
            );
        }
        let _ = write!(text, "\nTry in another terminal:\n\n");
        let example = match (addressed, &self.example) {
            (Some(AddressedMachine { name, address }), _) => Some((name, vec![*address])),
            (None, Some(name)) => Some((name, Vec::new())),
            (None, None) => None,
        };
        let _ = match example {
            Some((vm, addresses)) => {
                let own = MachineUrl::at(metadata, vm, &addresses);
                let from = own.from.map(|address| format!("  # from {address}")).unwrap_or_default();
                write!(text, "  {}{from}\n  {forewarn} vm restart {vm}\n  {forewarn} event ls\n", own.curl())
            }
            None => writeln!(text, "  {forewarn} fleet apply FILE"),
        };
        let _ = match data_dir {
            Some(path) => {
                writeln!(text, "\nCtrl-C stops the server. Its data directory is {}.", path.display())
            }
            None => writeln!(text, "\nCtrl-C stops the server. Its state is only in memory."),
        };
        text
    }
}

/// NAME of a machine, or TENANT/NAME if NAME is ambiguous.
fn unique_name(cluster: &Cluster, id: MachineId) -> String {
    let Some(machine) = cluster.machine(id) else { return id.to_string() };
    let name = machine.name.to_string();
    match (find_machine(cluster, &name), cluster.tenant(machine.tenant)) {
        (Err(_), Some(tenant)) => format!("{}/{name}", tenant.name),
        (Ok(_), _) | (Err(_), None) => name,
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::Fleet;

    use super::*;

    fn summary(fleet: &str, default: Option<&'static str>) -> FleetSummary {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let control = forewarn_server::control_with_fleet(&Fleet::parse(fleet).unwrap()).await.unwrap();
            control.look(move |state| FleetSummary::of(state, default)).unwrap()
        })
    }

    fn urls(data_dir: Option<&'static Path>) -> ServerUrls<'static> {
        let arm = data_dir.is_none().then_some("https://a");
        ServerUrls {
            metadata: if data_dir.is_some() { "http://10.0.0.1:80" } else { "http://m" },
            api: "http://127.0.0.1:1339",
            arm,
            program: "forewarn",
            looked_up: "http://127.0.0.1:1339",
            data_dir,
        }
    }

    #[test]
    fn the_greeting_describes_the_demo_fleet() {
        let greeting = summary(include_str!("demo.toml"), Some("solo")).greeting(Speed(0), &urls(None));
        assert!(
            greeting.contains("14 machines of 6 tenants on 10 hosts; virtual clock, frozen\n"),
            "{greeting}"
        );
        assert!(greeting.contains("  metadata   http://m/metadata/scheduledevents, as solo\n"), "{greeting}");
        assert!(
            greeting.contains("  operators  http://127.0.0.1:1339/v1\n  dashboard  http://127.0.0.1:1339/\n"),
            "{greeting}"
        );
        assert!(greeting.contains("  forewarn vm restart solo\n"), "{greeting}");
        assert!(
            greeting.contains(
                "  azure      https://a, for az: eval \"$(forewarn az env)\"; az login --identity\n"
            ),
            "{greeting}"
        );
        assert!(greeting.ends_with("Ctrl-C stops the server. Its state is only in memory.\n"), "{greeting}");
    }

    #[test]
    fn without_solo_the_example_is_the_first_machine_by_its_unique_name() {
        let twins = "host = [{ name = 'h1' }]\n\
             [[availability_set]]\nname = 'a'\nmachine = [{ name = 'm', host = 'h1' }]\n\
             [[availability_set]]\nname = 'b'\nmachine = [{ name = 'm', host = 'h1' }, { name = 'n', host = 'h1' }]";
        let greeting = summary(twins, None).greeting(Speed(60), &urls(Some(Path::new("/data"))));
        assert!(
            greeting.contains("vm restart a/m\n") && greeting.contains("/vm/a/m/metadata/"),
            "{greeting}"
        );
        assert!(
            greeting.contains("  metadata   http://10.0.0.1:80/vm/NAME/metadata/scheduledevents\n"),
            "{greeting}"
        );
        assert!(
            greeting.ends_with("Its data directory is /data.\n") && !greeting.contains("azure"),
            "{greeting}"
        );
        let greeting = summary("host = [{ name = 'h1' }]\nvm = [{ name = 'v', host = 'h1' }]", Some("solo"));
        assert_eq!((greeting.example.as_deref(), greeting.default), (Some("v"), None));
    }

    #[test]
    fn beyond_loopback_machines_with_addresses_are_mentioned() {
        let fleet =
            |more: &str| format!("host = [{{ name = 'h1' }}]\nvm = [{{ name = 'v', host = 'h1'{more} }}]");
        let of = |more: &str, data_dir| summary(&fleet(more), None).greeting(Speed(1), &urls(data_dir));
        let (open, addresses) = (Some(Path::new("/data")), ", addresses = ['10.0.0.4']");
        assert!(of(addresses, open).contains(", for callers with the address of a machine\n"));
        assert!(!of(addresses, open).contains("/vm/"), "no caller is on loopback: {}", of(addresses, open));
        let poll = "scheduledevents?api-version=2020-07-01\"  # from 10.0.0.4\n  forewarn vm restart v\n";
        assert!(of(addresses, open).contains(poll), "the poll comes first: {}", of(addresses, open));
        assert!(of("", open).contains("/vm/v/") && of(addresses, None).contains("/vm/v/"));
        let everywhere = ServerUrls { metadata: "http://0.0.0.0:80", ..urls(open) };
        let everywhere = summary(&fleet(addresses), None).greeting(Speed(1), &everywhere);
        assert!(everywhere.contains("(on loopback: /vm/NAME/metadata/…)\n"), "{everywhere}");
        assert!(everywhere.contains("\"http://0.0.0.0:80/vm/v/metadata/scheduledevents?"), "{everywhere}");
    }

    #[test]
    fn without_machines_the_example_applies_a_fleet() {
        let greeting = summary("", None).greeting(Speed(1), &urls(None));
        assert!(
            greeting.contains("  forewarn fleet apply FILE\n") && !greeting.contains("restart"),
            "{greeting}"
        );
    }
}
