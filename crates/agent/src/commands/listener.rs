//! Requests to the listener of the agent that runs on this machine.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use forewarn_client::http::{HttpClient, HttpResponse, Limits, Request, Trust, Url};
use forewarn_types::TcpAddress;

use super::GlobalOptions;
use crate::config::Config;
use crate::status::Status;

/// Size limit of a response.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Timeouts of a request.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(2), answer: Duration::from_secs(5), body_bytes: BYTES_MAX };

/// The option of the commands that talk to a running agent.
#[derive(Debug, Args)]
pub(super) struct ListenerOption {
    /// Address of the agent's listener; overrides the settings [default: 127.0.0.1:9911]
    #[arg(long, value_name = "ADDRESS")]
    at: Option<TcpAddress>,
}

/// The listener of the agent on this machine.
pub(super) struct AgentListener {
    address: SocketAddr,
}

impl ListenerOption {
    pub(super) fn listener(&self, options: &GlobalOptions) -> Result<AgentListener> {
        let address = match self.at {
            Some(TcpAddress(address)) => address,
            None => configured_address(&options.load()?)?,
        };
        Ok(AgentListener { address })
    }
}

impl AgentListener {
    /// The response to a request, if its status is 200.
    pub(super) async fn send(&self, request: &Request) -> Result<String> {
        let address = self.address;
        let mut client = HttpClient::new(Url::parse(&format!("http://{address}"))?, Trust::system());
        let response = client.send(request, LIMITS).await.map_err(|error| {
            anyhow!(
                "cannot connect to the agent at {address}: {error}\n  \
                 hint: systemctl status forewarn-agent; or name the settings of the agent that runs: --config FILE, or \
                 --at ADDRESS"
            )
        })?;
        let HttpResponse { status, body, .. } = response;
        if status != 200 {
            bail!(
                "the service at {address} is no agent of this version: {} returned {status}",
                request.target
            );
        }
        String::from_utf8(body.to_vec()).context("the agent returned a response that is not UTF-8")
    }

    /// The status of the agent, as JSON.
    pub(super) async fn status_text(&self) -> Result<String> {
        self.send(&Request::get("/status")).await
    }

    pub(super) async fn status(&self) -> Result<Status> {
        read_status(&self.status_text().await?)
    }
}

pub(super) fn read_status(text: &str) -> Result<Status> {
    serde_json::from_str(text).context("the agent returned an invalid status")
}

fn configured_address(config: &Config) -> Result<SocketAddr> {
    let Some(mut address) = config.listen else {
        bail!("an agent with these settings has no listener: listen = \"off\"")
    };
    // An agent that listens on all addresses is reached on loopback.
    if address.ip().is_unspecified() {
        let here =
            if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        address.set_ip(here);
    }
    Ok(address)
}
