//! An endpoint in memory, with a few machines behind it.

use std::sync::Arc;

use forewarn_control::{Fleet, NamedCommand};
use forewarn_lifecycle::{Command, Seed, TenantId, Timestamp};
use forewarn_metadata::fuzzing::{Script, serve_script};
use forewarn_metadata::{Endpoint, Identity, IdentityToken, Settings};
use forewarn_server::{Clock, ControlHandle, Speed, Telemetry, admit_fleet_if_empty};
use tokio::runtime::Runtime;

const FLEET: &str = "
host = [{ name = 'h1' }, { name = 'h2' }]
vm = [{ name = 'solo', host = 'h1', terminate = '5m', addresses = ['10.0.0.1'] }]
[[availability_set]]
name = 'web'
machine = [{ name = 'web_0', host = 'h1' }, { name = 'web_1', host = 'h2', update_domain = 1 }]
";

/// 2026-01-01.
const START_MILLIS: i64 = 1_767_225_600_000;

/// An endpoint whose clock stands still. Whoever does not say otherwise is the machine `solo`, which is about to be restarted.
#[derive(Debug)]
pub struct MemoryEndpoint {
    runtime: Runtime,
    endpoint: Arc<Endpoint<ControlHandle>>,
    identity: Arc<Identity>,
}

impl Default for MemoryEndpoint {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryEndpoint {
    /// Starts one.
    ///
    /// # Panics
    /// When there are no threads, or no file descriptors.
    #[must_use]
    pub fn new() -> Self {
        // Who waits for time to pass does not wait: it passes at once when there is nothing else to do.
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
        let endpoint = runtime.block_on(start());
        let identity = Arc::new(Identity::Prefix { default: Some("solo".to_owned()) });
        Self { runtime, endpoint, identity }
    }

    /// All bytes that a connection is answered.
    #[must_use]
    pub fn answer(&self, script: Script) -> Vec<u8> {
        self.runtime.block_on(serve_script(&self.endpoint, &self.identity, script))
    }
}

async fn start() -> Arc<Endpoint<ControlHandle>> {
    let clock = Clock::virtual_at(Timestamp::from_millis(START_MILLIS), Speed(0));
    let engine = ControlHandle::simulated(Seed([9; 16]), clock);
    let fleet = Fleet::parse(FLEET).expect("a fleet");
    admit_fleet_if_empty(&engine, &fleet).await.expect("a fleet that is accepted");
    for tenant in [TenantId(0), TenantId(1)] {
        engine.submit(Command::Enrol(tenant)).await.expect("a tenant of that fleet");
    }
    let restart = NamedCommand::Restart { machine: "solo".to_owned() };
    engine.run_commands(vec![restart]).await.expect("a machine of that fleet");
    let identity_token = IdentityToken::Unsigned { directory: "d".to_owned() };
    let settings = Settings { identity_token, ..Settings::default() };
    Endpoint::new(engine, settings, Arc::clone(Telemetry::new().metadata()))
}
