//! Names this server answers to, and pages it answers: the guard against rebinding and against other sites.
//!
//! A page on a hostile site can make its own name resolve to 127.0.0.1 and then read from us as from its own server. The
//! name it was reached by stands in `Host`, so only names that cannot be rebound are accepted: addresses, `localhost`, and
//! our own random name below `localhost`. A page that does reach us says where it comes from in `Origin` or
//! `Sec-Fetch-Site`; only our own pages may go on.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

/// What a request was addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addressed {
    /// The machine: an address or `localhost`.
    Machine,
    /// Our own name for pages; cookies count only here.
    Page,
}

/// The names that are accepted.
#[derive(Debug)]
pub(crate) struct Names {
    page: String,
    /// What the configuration says to listen on, if that is a name.
    configured: Option<String>,
    /// Whether other machines are served, and so any address may be ours.
    wide: bool,
}

/// Why a request was turned away at the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// No `Host`, or several.
    NoHost,
    /// A name that is not ours.
    Host,
    /// A page of somebody else.
    Origin,
}

impl Names {
    pub(crate) fn new(page: &str, host: &str, wide: bool) -> Self {
        let configured = host.parse::<IpAddr>().is_err().then(|| host.to_ascii_lowercase());
        Names { page: format!("{page}.localhost"), configured, wide }
    }

    /// Judges a request by what it says of itself.
    pub(crate) fn judge(&self, uri: &Uri, headers: &HeaderMap) -> Result<Addressed, Stranger> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(Stranger::NoHost) };
        let host = host.to_str().map_err(|_| Stranger::Host)?;
        let addressed = self.addressed(host).ok_or(Stranger::Host)?;
        // A request to a proxy names its target twice; ours must be the target in both places.
        if uri.authority().is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(host)) {
            return Err(Stranger::Host);
        }
        let own_page = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
        };
        for origin in headers.get_all(header::ORIGIN) {
            if !origin.to_str().is_ok_and(own_page) {
                return Err(Stranger::Origin);
            }
        }
        for site in headers.get_all("sec-fetch-site") {
            if site != "same-origin" && site != "none" {
                return Err(Stranger::Origin);
            }
        }
        Ok(addressed)
    }

    fn addressed(&self, host: &str) -> Option<Addressed> {
        let name = without_port(host)?;
        if name.eq_ignore_ascii_case(&self.page) {
            return Some(Addressed::Page);
        }
        let ours = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || self.wide,
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    || self.configured.as_deref().is_some_and(|ours| name.eq_ignore_ascii_case(ours))
            }
        };
        ours.then_some(Addressed::Machine)
    }
}

/// The name in `name:port`, `name`, `[v6]:port` or `[v6]`. The port may be any: tunnels change it.
fn without_port(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(inner) => host.split_at(inner.find(']')? + 2),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port_is_number = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (!name.is_empty() && (rest.is_empty() || rest.strip_prefix(':').is_some_and(port_is_number)))
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(wide: bool, headers: &[(&'static str, &str)]) -> Result<Addressed, Stranger> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Names::new("abc", if wide { "box.lan" } else { "127.0.0.1" }, wide)
            .judge(&Uri::from_static("/x"), &map)
    }

    #[test]
    fn only_names_that_cannot_be_rebound_are_ours() {
        for host in
            ["127.0.0.1:14355", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:14355", "[::1]", "127.9.9.9"]
        {
            assert_eq!(judge(false, &[("host", host)]), Ok(Addressed::Machine), "{host}");
        }
        assert_eq!(judge(false, &[("host", "abc.localhost:14355")]), Ok(Addressed::Page));
        for host in [
            "evil.example",
            "evil.example:14355",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "x.localhost",
            "192.168.0.7",
            "box.lan",
            "",
            ":80",
            "localhost:80:80",
            "localhost:x",
            "[::1",
            "localhost.",
        ] {
            assert_eq!(judge(false, &[("host", host)]), Err(Stranger::Host), "{host}");
        }
        assert_eq!(judge(false, &[]), Err(Stranger::NoHost));
        assert_eq!(judge(false, &[("host", "localhost"), ("host", "localhost")]), Err(Stranger::NoHost));
    }

    #[test]
    fn a_server_for_other_machines_answers_to_addresses_and_its_own_name_only() {
        for host in ["192.168.0.7:14355", "box.lan"] {
            assert_eq!(judge(true, &[("host", host)]), Ok(Addressed::Machine), "{host}");
        }
        assert_eq!(judge(true, &[("host", "evil.example")]), Err(Stranger::Host));
    }

    #[test]
    fn pages_of_others_are_turned_away() {
        let ours = ("host", "abc.localhost:9");
        assert!(
            judge(false, &[ours, ("origin", "http://abc.localhost:9"), ("sec-fetch-site", "same-origin")])
                .is_ok()
        );
        for origin in ["http://abc.localhost:8", "https://abc.localhost:9", "null", "http://evil.example", ""]
        {
            assert_eq!(judge(false, &[ours, ("origin", origin)]), Err(Stranger::Origin), "{origin}");
        }
        assert_eq!(judge(false, &[ours, ("sec-fetch-site", "cross-site")]), Err(Stranger::Origin));
        assert_eq!(judge(false, &[ours, ("sec-fetch-site", "same-site")]), Err(Stranger::Origin));
    }
}
