//! What was allowed for a session.

use swb_bus::BusHandle;
use swb_proto::grant::{Grant, List, ListGrantsParams, Revoke, RevokeParams};

use super::find;
use super::list::{risk, since};
use crate::commands::sessions::columns;
use crate::failure::Failure;
use crate::io::{BOLD, DIM, Io, NAME};
use crate::plain;

pub(super) async fn list(handle: &BusHandle, io: &Io) -> Result<(), Failure> {
    let grants = handle.call::<List>(ListGrantsParams::default()).await?.grants;
    if io.json {
        return grants.iter().try_for_each(|grant| io.json_line(grant));
    }
    if grants.is_empty() {
        io.note(format!("{DIM}nothing is allowed beyond what the rules allow{DIM:#}"));
    }
    for grant in &grants {
        io.line(lines(grant, columns()))?;
    }
    Ok(())
}

fn lines(grant: &Grant, columns: usize) -> String {
    let Grant { grant_id, agent, action, granted_by, granted_at, expires_at, .. } = grant;
    let scope = serde_json::to_string(&grant.scope).unwrap_or_default();
    let (agent, by) = (plain::line(agent, 60), plain::line(granted_by, 60));
    let what = plain::line(&format!("{action}  {scope}"), columns.saturating_sub(2));
    let risk = risk(grant.risk);
    let since = since(granted_at);
    format!(
        "{NAME}{grant_id}{NAME:#}  {agent}  up to {risk}  {DIM}given by {by} {since} ago, until {expires_at}{DIM:#}\n  {BOLD}{what}{BOLD:#}"
    )
}

pub(super) async fn revoke(handle: &BusHandle, wanted: &str, io: &Io) -> Result<(), Failure> {
    let grants = handle.call::<List>(ListGrantsParams::default()).await?.grants;
    let ids = grants.iter().map(|grant| grant.grant_id.as_str());
    let id = find::one(ids, wanted, "grant", "`swb approvals grants` lists them")?.to_owned();
    let meant = grants.into_iter().find(|grant| grant.grant_id.as_str() == id);
    let Some(Grant { grant_id, .. }) = meant else {
        return Err(Failure::new(format!("there is no grant {id}")));
    };
    let revoked = handle.call::<Revoke>(RevokeParams { grant_id }).await?;
    if io.json { io.object(&revoked) } else { io.line(format!("took back {}", revoked.grant_id)) }
}
