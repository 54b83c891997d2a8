//! What every request passes before a route sees it: an id, the right name, the right page, a principal.

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::poll_fn;
use swb_bus::gate::Gate;

use crate::auth::{self, Keyring};
use crate::failure::{Failure, unauthorized};
use crate::host::{Addressed, Names, Stranger};
use crate::metrics::Metrics;
use crate::routes;
use crate::visit::{Connected, Visit};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LONGEST_REQUEST_ID: usize = 200;
/// Room for `req-`, 20 digits, `-` and 12 digits.
const LONGEST_OWN_ID: usize = 40;
/// Requests since the start, from a number that no other process began with.
static COUNT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(getrandom::u64().unwrap_or_default()));

#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) keyring: Keyring,
    pub(crate) names: Names,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) router: Router,
    pub(crate) gate: Option<Arc<dyn Gate>>,
}

impl Front {
    /// Answers one request, whatever it is.
    pub(crate) async fn serve(
        &self,
        connected: &Connected,
        request: Request<hyper::body::Incoming>,
    ) -> Result<Response, Infallible> {
        let id = request_id(request.headers());
        let mut response = match self.admit(connected, &id, request.map(Body::new)) {
            Ok(request) => self.route(request).await,
            Err(response) => *response,
        };
        self.metrics.answered(response.status().as_u16());
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, id);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // A path may hold a token; where a link leads is nobody's business to learn from where.
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        Ok(response)
    }

    /// The request with its principal, or what to tell the stranger.
    fn admit(
        &self,
        connected: &Connected,
        id: &HeaderValue,
        mut request: Request<Body>,
    ) -> Result<Request<Body>, Box<Response>> {
        let refuse = |response: Response| Err(Box::new(response));
        let addressed = match self.names.judge(request.uri(), request.headers()) {
            Ok(addressed) => addressed,
            Err(Stranger::NoHost) => {
                return refuse(Failure::bad_request("one Host header is required").into_response());
            }
            Err(Stranger::Host) => {
                return refuse(Failure::forbidden("this is not a name of this server").into_response());
            }
            Err(Stranger::Origin) => {
                return refuse(Failure::forbidden("pages of other sites are not served").into_response());
            }
        };
        if addressed == Addressed::Page
            && request.method() == Method::GET
            && let Some(code) = request.uri().path().strip_prefix("/auth/")
        {
            return refuse(auth::sign_in(&self.keyring, code));
        }
        let mut principal = None;
        if let Some((token, rest)) = auth::split_prefix(request.uri()) {
            principal = self.keyring.owner_of_token(token);
            let rest = rest.filter(|_| principal.is_some());
            let Some(rest) = rest else { return refuse(unauthorized()) };
            *request.uri_mut() = rest;
        }
        let principal = principal.or_else(|| auth::in_headers(&self.keyring, request.headers(), addressed));
        if principal.is_none() && !is_open(request.uri()) {
            return refuse(unauthorized());
        }
        // A route for GET would answer HEAD too, and a stream would then never end.
        if request.method() == Method::HEAD {
            return refuse(routes::method_not_allowed().into_response());
        }
        if let Some(principal) = principal {
            let trace = request.headers().get("traceparent").and_then(|trace| trace.to_str().ok());
            let visit = Visit::new(connected, &principal, id, trace);
            // Commands are refused, and recorded, at the gate; the rest is refused here.
            if visit.is_impostor() && !routes::is_command(request.uri().path()) && !is_open(request.uri()) {
                return refuse(Failure::forbidden("this token is somebody else's").into_response());
            }
            request.extensions_mut().insert(visit);
        }
        Ok(request)
    }

    async fn route(&self, request: Request<Body>) -> Response {
        use tower_service::Service;
        let mut router = self.router.clone();
        let ready: Result<(), Infallible> =
            poll_fn(|cx| Service::<Request<Body>>::poll_ready(&mut router, cx)).await;
        match ready {
            Ok(()) => router.call(request).await.unwrap_or_else(|never| match never {}),
            Err(never) => match never {},
        }
    }
}

fn is_open(uri: &Uri) -> bool {
    routes::OPEN.contains(&uri.path())
}

/// The caller's own id, or a fresh one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).map(str::trim);
    let given = given.filter(|id| (1..=LONGEST_REQUEST_ID).contains(&id.len()));
    if let Some(id) = given.and_then(|id| HeaderValue::from_str(id).ok()) {
        return id;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    // Only uniqueness is wanted: the time tells the requests of one process apart when the count does not, and what the
    // count began with tells processes apart.
    let number = COUNT.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff_ffff;
    let mut id = String::with_capacity(LONGEST_OWN_ID);
    // Text always takes what is written to it.
    let _ = write!(id, "req-{nanos}-{number:012x}");
    HeaderValue::from_maybe_shared(Bytes::from(id)).unwrap_or(HeaderValue::from_static("req"))
}
