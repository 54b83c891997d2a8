//! `swb token`: what opens the HTTP interface.

use serde_json::json;
use swb_daemon::Paths;
use swb_gateway::auth::{Keyring, KeyringError, Principal};
use swb_proto::comms::Empty;
use swb_proto::control::Status;

use crate::args::TokenArgs;
use crate::connect::connect_if_running;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

pub(crate) async fn run(args: &TokenArgs, io: &Io) -> Result<u8, Failure> {
    let principal = match &args.agent {
        Some(id) => Principal::agent(id).map_err(|error| {
            Failure::new(format!("{id:?} names no agent")).because(error).code(exit_code::USAGE)
        })?,
        None => Principal::User,
    };
    let keyring = Keyring::open(&Paths::from_env()?.tokens())?;
    if args.link {
        return link(&keyring, &principal, io).await;
    }
    let token = keyring.token(&principal)?;
    if io.json {
        io.object(&json!({ "agent": args.agent, "token": token }))?;
    } else {
        io.line(token)?;
    }
    Ok(exit_code::SUCCESS)
}

/// A link leads to a running server, so there must be one.
async fn link(keyring: &Keyring, principal: &Principal, io: &Io) -> Result<u8, Failure> {
    let handle = connect_if_running().await?.ok_or_else(Failure::not_running)?;
    let status = handle.call::<Status>(Empty {}).await?;
    let port =
        status.http.as_deref().and_then(|url| url.rsplit(':').next()).and_then(|port| port.parse().ok());
    let Some(port) = port else {
        let failure = Failure::new("the daemon serves no HTTP");
        return Err(failure
            .hint(status.http_error.unwrap_or_else(|| "set http.enabled and `swb restart`".to_owned())));
    };
    let link = keyring.link(principal, port)?;
    if io.json {
        io.object(&json!({ "link": link }))?;
    } else {
        io.line(link)?;
    }
    Ok(exit_code::SUCCESS)
}

impl From<KeyringError> for Failure {
    fn from(error: KeyringError) -> Self {
        Failure::new("the tokens cannot be used").because(error).hint("`swb doctor` looks for the reason")
    }
}
