//! The door of clients of Azure: a listener with TLS.
//!
//! It is taken before any other door is opened, and opened after all of them: whoever asks operators' doors where it is has to
//! be told its port.

use std::sync::Arc;

use crate::api_door::{Bound, Opened};
use crate::arm::{ArmPlan, Door, Entrance};
use crate::clients::{Dialect, ListenerContext};
use crate::engine::Engine;
use crate::operator::HostNames;
use crate::service::StartError;
use crate::tls::Tls;

/// What clients of Azure are to come in by; the address is taken already.
#[derive(Default)]
pub(crate) struct Taken {
    host_names: HostNames,
    entrance: Option<Arc<Entrance>>,
    bound: Option<(Bound, Arc<Tls>)>,
}

/// What they come in by.
#[derive(Debug, Default)]
pub(crate) struct ArmDoor {
    pub(crate) host_names: HostNames,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) opened: Option<Opened>,
}

impl Taken {
    /// Takes what a plan says, if there is one.
    pub(crate) fn new(plan: Option<ArmPlan>) -> Result<Self, StartError> {
        let Some(plan) = plan else { return Ok(Self::default()) };
        let bound = match &plan.listen {
            None => None,
            Some((address, source)) => {
                let tls = Tls::open(source.clone())?;
                let bound = Bound::at(*address);
                Some((bound.map_err(|source| StartError::Arm(address.to_string(), source))?, tls))
            }
        };
        let listener = bound.as_ref().map(|(bound, tls)| (bound.address.port(), Arc::clone(tls)));
        let entrance = Entrance::new(&plan, listener).map_err(StartError::Key)?;
        let host_names = HostNames::new(plan.host_names);
        Ok(Self { host_names, entrance: Some(Arc::new(entrance)), bound })
    }

    /// Where it will be: `https://ADDRESS`.
    pub(crate) fn url(&self) -> Option<String> {
        self.bound.as_ref().map(|(bound, _)| format!("https://{}", bound.address))
    }

    /// What it shares with the doors of operators.
    pub(crate) fn entrance(&self) -> Option<Arc<Entrance>> {
        self.entrance.clone()
    }

    /// Lets clients in.
    pub(crate) fn open(self, engine: &Engine, context: ListenerContext) -> ArmDoor {
        let Self { host_names, entrance, bound } = self;
        let (Some(entrance), Some((bound, tls))) = (entrance, bound) else {
            return ArmDoor { host_names, ..ArmDoor::default() };
        };
        let door = Door::of_listener(engine, host_names.clone(), &entrance);
        let opened = bound.open("arm", Dialect::Azure, Some(&tls), door.router(), context);
        ArmDoor { host_names, tls: Some(tls), opened: Some(opened) }
    }
}
