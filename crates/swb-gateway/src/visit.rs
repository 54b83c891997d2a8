//! A request and whoever sent it, on its way through the gate of the house.
//!
//! Who connected was asked once, when the connection came; a token says as whom a request wants to act. The gate knows
//! better if the two do not fit: a user's token in the hands of an agent is worth nothing.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use swb_bus::Caller;
use swb_bus::gate::{Admission, Command, Guest, Receipt};
use swb_proto::error::{ERR_HANDLER, ERR_INVALID_PARAMS, ERR_POLICY_DENIED, ERR_UNAUTHORIZED};
use swb_proto::{Actor, BusError, BusPayload, Meta};

use crate::auth::Principal;
use crate::failure::{ErrorCode, Failure};
use crate::messages::Scope;

/// A request, by whom and under which id.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    guest: Option<Arc<dyn Guest>>,
    caller: Arc<Caller>,
    request_id: String,
}

/// What is recorded of a command about messages. Their texts are not the record's business.
#[derive(Debug, Serialize)]
struct About<'a> {
    project: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
}

impl Visit {
    pub(crate) fn new(guest: Option<Arc<dyn Guest>>, principal: &Principal, request_id: &str) -> Self {
        let context = Meta { actor: Some(principal.actor()), ..Meta::default() };
        let caller = match &guest {
            Some(guest) => guest.caller(context),
            None => Caller::new(context),
        };
        Visit { guest, caller: Arc::new(caller), request_id: request_id.to_owned() }
    }

    /// Whether it came with the token of somebody else.
    pub(crate) fn is_impostor(&self) -> bool {
        self.caller.claimed().is_some()
    }

    /// Who acts.
    pub(crate) fn actor(&self) -> &Actor {
        self.caller.actor()
    }

    /// Does something with the messages of a scope, if that may be done, and has it recorded before it is told.
    pub(crate) async fn pass<T>(
        &self,
        method: &str,
        scope: &Scope,
        kind: Option<&str>,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let about = About { project: scope.project(), task: scope.task(), kind };
        let receipt = self.admitted(method, &about).await?;
        let done = work.await;
        let Some(receipt) = receipt else { return done };
        let told = match &done {
            Ok(_) => Ok(BusPayload::Empty),
            Err(failure) => Err(BusError::from(failure)),
        };
        match (receipt.close(told).settled().await, done) {
            // The work was done, but nobody may be told.
            (Err(error), Ok(_)) => Err(error.into()),
            (_, done) => done,
        }
    }

    async fn admitted(&self, method: &str, about: &About<'_>) -> Result<Option<Box<dyn Receipt>>, Failure> {
        let Some(guest) = &self.guest else { return Ok(None) };
        let params: Option<Box<RawValue>> = to_raw_value(about).ok();
        let command = Command {
            id: Some(&self.request_id),
            method,
            params: params.as_deref(),
            payload: &BusPayload::Empty,
            can_wait: true,
        };
        let admission = guest.admit(&self.caller, &command);
        let admitted = match admission {
            Admission::Go(receipt) => Ok(receipt),
            Admission::Wait(agreed) => agreed.await,
            Admission::Refused(error) => Err(error),
        };
        Ok(Some(admitted?))
    }
}

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        match error.code {
            ERR_POLICY_DENIED | ERR_UNAUTHORIZED => Failure::forbidden(error.message),
            _ => Failure::new(ErrorCode::Internal, error.message),
        }
    }
}

impl From<&Failure> for BusError {
    fn from(failure: &Failure) -> Self {
        let code = if failure.is_internal() { ERR_HANDLER } else { ERR_INVALID_PARAMS };
        BusError::new(code, failure.message())
    }
}
