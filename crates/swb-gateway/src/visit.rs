//! A request and whoever sent it, on its way through the gate of the house.
//!
//! Who connected was asked once, when the connection came; a token says as whom a request wants to act. The gate knows
//! better if the two do not fit: a user's token in the hands of an agent is worth nothing. Whom the two make together is
//! kept until a request comes with another token, or as part of something.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderValue;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use swb_bus::gate::{Admission, Command, Guest, Receipt};
use swb_bus::{Bus, BusCallError, BusHandle, Caller, Started};
use swb_proto::error::{
    ERR_CURSOR_AHEAD, ERR_HANDLER, ERR_INTERNAL, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_OVERLOADED,
    ERR_POLICY_DENIED, ERR_SESSION_NOT_FOUND, ERR_SHUTTING_DOWN, ERR_UNAUTHORIZED,
};
use swb_proto::id::{CorrelationId, SessionId};
use swb_proto::method::Method;
use swb_proto::trace::TraceParent;
use swb_proto::{Actor, BusError, BusPayload, BusResult, Meta};

use crate::auth::Principal;
use crate::failure::{ErrorCode, Failure};
use crate::messages::Scope;

/// Whoever is at the other end of a connection.
#[derive(Debug)]
pub(crate) struct Connected {
    guest: Option<Arc<dyn Guest>>,
    /// As whom it acted last. Nearly all connections act as one principal from the first request to the last.
    last: Mutex<Option<(Principal, Arc<Caller>)>>,
}

impl Connected {
    /// Without a guest there is no gate, and a token says it all.
    pub(crate) fn new(guest: Option<Arc<dyn Guest>>) -> Self {
        Connected { guest, last: Mutex::default() }
    }

    fn caller(&self, principal: &Principal, correlation_id: Option<CorrelationId>) -> Arc<Caller> {
        let make = |correlation_id| {
            let context = Meta { actor: Some(principal.actor()), correlation_id, ..Meta::default() };
            Arc::new(in_context(self.guest.as_ref(), context))
        };
        if correlation_id.is_some() {
            return make(correlation_id);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, caller)) if known == principal => Arc::clone(caller),
            _ => {
                let caller = make(None);
                *last = Some((principal.clone(), Arc::clone(&caller)));
                caller
            }
        }
    }
}

/// Who somebody is in a context: the gate knows, where there is one.
fn in_context(guest: Option<&Arc<dyn Guest>>, context: Meta) -> Caller {
    match guest {
        Some(guest) => guest.caller(context),
        None => Caller::new(context),
    }
}

/// A request, by whom and under which id.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    guest: Option<Arc<dyn Guest>>,
    caller: Arc<Caller>,
    request_id: HeaderValue,
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
        connected: &Connected,
        principal: &Principal,
        request_id: &HeaderValue,
        trace: Option<&str>,
    ) -> Self {
        let caller = connected.caller(principal, trace.and_then(TraceParent::correlation));
        Visit { guest: connected.guest.clone(), caller, request_id: request_id.clone() }
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
        Visit { caller: Arc::new(in_context(self.guest.as_ref(), context)), ..self.clone() }
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
        // It is visible text: what is not would not have been taken.
        let id = self.request_id.to_str().ok();
        let command = Command { id, method, params, payload, can_wait: true };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_acts_is_kept_until_it_is_somebody_else_or_part_of_something() {
        let connected = Connected::new(None);
        let ada = Principal::agent("ada").unwrap();
        let first = connected.caller(&Principal::User, None);
        assert!(Arc::ptr_eq(&first, &connected.caller(&Principal::User, None)));
        for principal in [&ada, &Principal::User, &ada, &ada, &Principal::User] {
            assert_eq!(connected.caller(principal, None).actor(), &principal.actor());
        }
        let part = CorrelationId::try_from("cor_1".to_owned()).unwrap();
        assert_eq!(connected.caller(&Principal::User, Some(part.clone())).correlation(), Some(&part));
        assert_eq!(connected.caller(&Principal::User, None).correlation(), None);
        assert_eq!(connected.caller(&ada, Some(part)).actor(), &ada.actor());
        assert_eq!(connected.caller(&Principal::User, None).actor(), &Principal::User.actor());
    }
}
