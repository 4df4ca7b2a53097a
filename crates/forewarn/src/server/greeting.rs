//! What `forewarn dev` says when it is ready: what it serves, and what to type next.

use std::fmt::Write as _;
use std::path::Path;

use forewarn_control::find_machine;
use forewarn_lifecycle::{Cluster, MachineId};
use forewarn_server::Speed;

/// What is said of the fleet that is there, whether it was read from a file or kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    hosts: usize,
    tenants: usize,
    machines: usize,
    /// A machine to try things out on.
    example: Option<String>,
    /// Whom a caller is taken for that does not say who it is.
    default: Option<String>,
}

/// Where a server is, and how it is called from a shell.
pub(super) struct Places<'a> {
    /// Where machines come in.
    pub(super) metadata: &'a str,
    /// Where operators come in.
    pub(super) api: &'a str,
    /// Where clients of Azure come in, if they do.
    pub(super) arm: Option<&'a str>,
    /// This program.
    pub(super) own: &'a str,
    /// Where everything is kept, if it is.
    pub(super) data_dir: Option<&'a Path>,
}

impl Facts {
    pub(super) fn of(cluster: &Cluster, default: Option<&str>) -> Self {
        let default = default.filter(|name| find_machine(cluster, name).is_ok()).map(str::to_owned);
        let first = || cluster.machines().next().map(|(id, _)| called(cluster, id));
        Self {
            hosts: cluster.hosts().count(),
            tenants: cluster.tenants().count(),
            machines: cluster.machines().count(),
            example: default.clone().or_else(first),
            default,
        }
    }

    pub(super) fn greeting(&self, Speed(speed): Speed, places: &Places<'_>) -> String {
        let Places { metadata, api, arm, own, data_dir } = *places;
        let own = if api == crate::client::USUAL { own.to_owned() } else { format!("{own} --api {api}") };
        let clock = if speed == 0 { "frozen".to_owned() } else { format!("running {speed}x") };
        let mut text = format!(
            "forewarn {} dev: {} machines of {} tenants on {} hosts; a virtual clock, {clock}\n\n",
            env!("CARGO_PKG_VERSION"),
            self.machines,
            self.tenants,
            self.hosts,
        );
        // Writing to a text cannot fail.
        let _ = match &self.default {
            Some(name) => write!(
                text,
                "  metadata   {metadata}/metadata/scheduledevents, as {name}\n             \
                 (any machine: {metadata}/vm/NAME/metadata/…)\n"
            ),
            None => writeln!(text, "  metadata   {metadata}/vm/NAME/metadata/scheduledevents"),
        };
        let _ = writeln!(text, "  operators  {api}/v1");
        if let Some(arm) = arm {
            let _ =
                writeln!(text, "  azure      {arm}, for az: eval \"$({own} az env)\"; az login --identity");
        }
        let _ = write!(text, "\nWhat to type next, in another terminal:\n\n");
        let _ = match &self.example {
            Some(vm) => write!(
                text,
                "  curl -H Metadata:true \"{metadata}/vm/{vm}/metadata/scheduledevents?api-version=2020-07-01\"\n  \
                 {own} vm restart {vm}\n  {own} event ls\n"
            ),
            None => writeln!(text, "  {own} fleet apply FILE"),
        };
        let _ = match data_dir {
            Some(place) => writeln!(text, "\nCtrl-C ends it. Everything is kept in {}.", place.display()),
            None => writeln!(text, "\nCtrl-C ends it. Nothing is kept."),
        };
        text
    }
}

/// What a machine is called: by its name alone, where that is enough.
fn called(cluster: &Cluster, id: MachineId) -> String {
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

    fn facts(fleet: &str, default: Option<&'static str>) -> Facts {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let engine = forewarn_server::engine_with(&Fleet::parse(fleet).unwrap()).await.unwrap();
            engine.look(move |state| Facts::of(state.cluster, default)).unwrap()
        })
    }

    fn places(data_dir: Option<&'static Path>) -> Places<'static> {
        let arm = data_dir.is_none().then_some("https://a");
        Places { metadata: "http://m", api: "http://127.0.0.1:1339", arm, own: "forewarn", data_dir }
    }

    #[test]
    fn the_demo_fleet_is_told() {
        let said = facts(include_str!("demo.toml"), Some("solo")).greeting(Speed(0), &places(None));
        assert!(said.contains("14 machines of 6 tenants on 10 hosts; a virtual clock, frozen\n"), "{said}");
        assert!(said.contains("  metadata   http://m/metadata/scheduledevents, as solo\n"), "{said}");
        assert!(said.contains("  forewarn vm restart solo\n"), "{said}");
        assert!(
            said.contains(
                "  azure      https://a, for az: eval \"$(forewarn az env)\"; az login --identity\n"
            ),
            "{said}"
        );
        assert!(said.ends_with("Ctrl-C ends it. Nothing is kept.\n"), "{said}");
    }

    #[test]
    fn without_solo_it_is_the_first_machine_by_a_name_that_is_enough() {
        let twins = "host = [{ name = 'h1' }]\n\
             [[availability_set]]\nname = 'a'\nmachine = [{ name = 'm', host = 'h1' }]\n\
             [[availability_set]]\nname = 'b'\nmachine = [{ name = 'm', host = 'h1' }, { name = 'n', host = 'h1' }]";
        let said = facts(twins, None).greeting(Speed(60), &places(Some(Path::new("/data"))));
        assert!(said.contains("vm restart a/m\n") && said.contains("/vm/a/m/metadata/"), "{said}");
        assert!(said.contains("  metadata   http://m/vm/NAME/metadata/scheduledevents\n"), "{said}");
        assert!(said.ends_with("Everything is kept in /data.\n") && !said.contains("azure"), "{said}");
        let said = facts("host = [{ name = 'h1' }]\nvm = [{ name = 'v', host = 'h1' }]", Some("solo"));
        assert_eq!((said.example.as_deref(), said.default), (Some("v"), None));
    }

    #[test]
    fn without_machines_a_fleet_is_the_next_thing() {
        let said = facts("", None).greeting(Speed(1), &places(None));
        assert!(said.contains("  forewarn fleet apply FILE\n") && !said.contains("restart"), "{said}");
    }
}
