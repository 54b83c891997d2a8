//! A request and whoever sent it, on its way through the gate of the house.
//!
//! Who connected was asked once, when the connection came; a token says as whom a request wants to act. The gate knows
//! better if the two do not fit: a user's token in the hands of an agent is worth nothing.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use swb_bus::gate::{Admission, Command, Guest, Receipt};
use swb_bus::{Bus, BusCallError, BusHandle, Caller, Started};
use swb_proto::error::{
    ERR_CURSOR_AHEAD, ERR_HANDLER, ERR_INTERNAL, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_OVERLOADED,
    ERR_POLICY_DENIED, ERR_SESSION_NOT_FOUND, ERR_SHUTTING_DOWN, ERR_UNAUTHORIZED,
};
use swb_proto::id::SessionId;
use swb_proto::method::Method;
use swb_proto::trace::TraceParent;
use swb_proto::{Actor, BusError, BusPayload, BusResult, Meta};

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
    /// `trace` is the trace that the request says it is part of.
    pub(crate) fn new(
        guest: Option<Arc<dyn Guest>>,
        principal: &Principal,
        request_id: &str,
        trace: Option<&str>,
    ) -> Self {
        let correlation_id = trace.and_then(TraceParent::correlation);
        let context = Meta { actor: Some(principal.actor()), correlation_id, ..Meta::default() };
        let caller = match &guest {
            Some(guest) => guest.caller(context),
            None => Caller::new(context),
        };
        Visit { guest, caller: Arc::new(caller), request_id: request_id.to_owned() }
    }

    /// The same request, in a session.
    pub(crate) fn within(&self, session_id: &SessionId) -> Self {
        let actor = self.caller.claimed().unwrap_or(self.caller.actor()).clone();
        let context = Meta {
            actor: Some(actor),
            session_id: Some(session_id.clone()),
            correlation_id: self.caller.correlation().cloned(),
            ..Meta::default()
        };
        let caller = match &self.guest {
            Some(guest) => guest.caller(context),
            None => Caller::new(context),
        };
        Visit { caller: Arc::new(caller), ..self.clone() }
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
        self.pass_about(method, &About { project: scope.project(), task: scope.task(), kind }, work).await
    }

    /// The same for anything else; `about` is what is recorded of it.
    pub(crate) async fn pass_about<T>(
        &self,
        method: &str,
        about: &impl Serialize,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let params: Option<Box<RawValue>> = to_raw_value(about).ok();
        let receipt = self.admitted(method, params.as_deref(), &BusPayload::Empty).await?;
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

    /// Has a command of the bus carried out, if it may be, and recorded before it is told.
    pub(crate) async fn call<M: Method>(
        &self,
        bus: &Arc<Bus>,
        params: M::Params,
    ) -> Result<M::Response, BusError> {
        let raw = to_raw_value(&params).map_err(|error| BusError::new(ERR_INTERNAL, error.to_string()))?;
        let payload: BusPayload = params.into();
        let receipt = self.admitted(M::NAME, Some(&raw), &payload).await?;
        let result = match bus.start(&self.caller, None, M::NAME.to_owned(), payload) {
            Ok(Started::Done(result)) => result,
            Ok(Started::Pending(call)) => call.answer().await.unwrap_or_else(unanswered),
            Err(error) => unanswered(error),
        };
        let result = match receipt {
            Some(receipt) => receipt.close(result).settled().await?,
            None => result?,
        };
        let kind = result.kind();
        M::Response::try_from(result)
            .map_err(|_| BusError::new(ERR_INTERNAL, format!("the answer to {} is a {kind}", M::NAME)))
    }

    /// Looks something up on behalf of a command that has passed, or is about to.
    pub(crate) fn handle(&self, bus: &Arc<Bus>) -> BusHandle {
        bus.handle().with(self.caller.meta().clone())
    }

    async fn admitted(
        &self,
        method: &str,
        params: Option<&RawValue>,
        payload: &BusPayload,
    ) -> Result<Option<Box<dyn Receipt>>, BusError> {
        let Some(guest) = &self.guest else { return Ok(None) };
        let command = Command { id: Some(&self.request_id), method, params, payload, can_wait: true };
        let admitted = match guest.admit(&self.caller, &command) {
            Admission::Go(receipt) => receipt,
            Admission::Wait(agreed) => agreed.await?,
            Admission::Refused(error) => return Err(error),
        };
        Ok(Some(admitted))
    }
}

/// Nobody will answer: the bus is closed, or the handler is gone.
fn unanswered(error: BusCallError) -> BusResult {
    Err(match error {
        BusCallError::Send => BusError::new(ERR_SHUTTING_DOWN, "the daemon is stopping"),
        BusCallError::Recv | BusCallError::Full => {
            BusError::new(ERR_HANDLER, "the handler ended without an answer")
        }
    })
}

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        match error.code {
            ERR_POLICY_DENIED | ERR_UNAUTHORIZED => Failure::forbidden(error.message),
            ERR_SESSION_NOT_FOUND => Failure::new(ErrorCode::NotFound, error.message),
            ERR_INVALID_PARAMS | ERR_INVALID_REQUEST | ERR_CURSOR_AHEAD => {
                Failure::bad_request(error.message)
            }
            ERR_OVERLOADED => Failure::new(ErrorCode::TooManyRequests, error.message),
            ERR_SHUTTING_DOWN => Failure::new(ErrorCode::Unavailable, error.message),
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
