//! A small cluster for tests of what operators wish for.

use forewarn_lifecycle::{Cluster, Command, Now, Seed};
use serde_json::{Value, json};

use crate::command::named::NamedCommand;
use crate::command::resolve::Resolved;
use crate::placement::instances::leaving;
use crate::placement::scale_set::ScaleSetCommand;
use crate::view::sets::{ScaleSetView, scale_set_view};

/// A cluster whose rules have to accept what comes of a wish.
pub(crate) struct Town {
    pub(crate) cluster: Cluster,
    pub(crate) now: Now,
}

impl Town {
    pub(crate) fn new(hosts: u32) -> Self {
        let mut town = Self { cluster: Cluster::new(Seed([1; 16])), now: Now::at_millis(0) };
        for host in 1..=hosts {
            town.order(&json!({ "command": "admit_host", "name": format!("h{host}") }));
        }
        town
    }

    pub(crate) fn submit(&mut self, command: &Command) {
        let changes = self.cluster.decide(self.now, command).expect("the rules accept it");
        changes.iter().for_each(|change| drop(self.cluster.evolve(self.now, change)));
    }

    pub(crate) fn obey(&mut self, command: &NamedCommand) {
        match command.resolve(&self.cluster).expect("a command") {
            Resolved::Rules(command) | Resolved::Admit(command, _) => self.submit(&command),
            Resolved::Describe(..) | Resolved::Site(_) | Resolved::Jam(_) => panic!("not of the rules"),
        }
    }

    pub(crate) fn order(&mut self, command: &Value) {
        self.obey(&serde_json::from_value(command.clone()).expect("a command"));
    }

    /// Has a wish come true; says of how many commands it consists.
    pub(crate) fn wish(&mut self, wish: &ScaleSetCommand) -> usize {
        let commands = wish.commands(&self.cluster).expect("a wish that can be had");
        commands.iter().for_each(|command| self.obey(command));
        commands.len()
    }

    pub(crate) fn create(&mut self, more: &Value) {
        let mut new = json!({ "name": "web" });
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.wish(&ScaleSetCommand::CreateScaleSet(serde_json::from_value(new).expect("a scale set")));
    }

    pub(crate) fn view(&self) -> ScaleSetView {
        let id = self.cluster.scale_set_named("web").unwrap();
        scale_set_view(&self.cluster, id, &leaving(&self.cluster)).unwrap()
    }

    /// Host, update domain and fault domain of each.
    pub(crate) fn places(&self) -> Vec<(String, u16, u16)> {
        let instances = self.view().instances.into_iter().map(|instance| instance.member);
        instances.map(|one| (one.host, one.update_domain, one.fault_domain)).collect()
    }

    pub(crate) fn enrol(&mut self) {
        let tenants: Vec<_> = self.cluster.tenants().map(|(id, _)| id).collect();
        tenants.into_iter().for_each(|tenant| self.submit(&Command::Enrol(tenant)));
    }
}
