//! The HTTP clients, one per provider, made when they are first needed.
//!
//! A client follows no redirects, because a key in a header of its own would go along to wherever it is sent. A provider
//! on this machine is reached without a proxy. TLS is rustls with the certificates of the system.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use crate::model::Unusable;
use crate::model::provider::Provider;

/// How long a server on this machine may take to open its door.
const KNOCK: Duration = Duration::from_millis(300);
const IDLE_CONNECTIONS: usize = 2;

/// What a provider is talked to with; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) http: Client,
    pub(super) genai: genai::Client,
}

/// Clients by the name of their provider.
#[derive(Debug)]
pub(crate) struct Clients {
    connect: Duration,
    made: Mutex<HashMap<String, Line>>,
}

impl Clients {
    pub(crate) fn new(connect: Duration) -> Self {
        Clients { connect, made: Mutex::default() }
    }

    /// The client of this provider.
    pub(crate) fn get(&self, provider: &Provider) -> Result<Line, Unusable> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = made.get(&provider.name) {
            return Ok(line.clone());
        }
        let line = self.make(provider)?;
        made.insert(provider.name.clone(), line.clone());
        Ok(line)
    }

    fn make(&self, provider: &Provider) -> Result<Line, Unusable> {
        let broken = |message: String| Unusable::Address { base_url: provider.base_url.clone(), message };
        let url = Url::parse(&provider.base_url).map_err(|error| broken(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(broken("only http and https will do".to_owned()));
        }
        // It fails if there is one already, which is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("swb/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(self.connect)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .tcp_nodelay(true)
            .no_gzip();
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| broken(error.to_string()))?;
        let genai = genai::Client::builder().with_reqwest(http.clone()).build();
        Ok(Line { http, genai: genai.map_err(|error| broken(error.to_string()))? })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
            address.is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// Whether somebody listens there. One that is merely slow to answer counts as there.
pub(crate) async fn answers(base_url: &str) -> bool {
    let Some((host, port)) = Url::parse(base_url).ok().and_then(|url| {
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some((host, url.port_or_known_default()?))
    }) else {
        return false;
    };
    let knock = tokio::net::TcpStream::connect((host.as_str(), port));
    !matches!(tokio::time::timeout(KNOCK, knock).await, Ok(Err(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for (url, expected) in [
            ("http://localhost:1/v1/", true),
            ("http://127.0.0.1/", true),
            ("http://127.9.9.9/", true),
            ("http://[::1]:8080/v1/", true),
            ("http://10.0.0.1/", false),
            ("https://api.example.com/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn a_closed_door_is_noticed_and_an_open_one_too() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        assert!(answers(&format!("http://{address}/v1/")).await);
        drop(listener);
        assert!(!answers(&format!("http://{address}/v1/")).await);
        assert!(!answers("not an address").await);
    }
}
