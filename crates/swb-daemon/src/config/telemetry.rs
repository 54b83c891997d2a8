//! Settings of telemetry.

use std::collections::BTreeMap;
use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Traces for a collector. The variables of OpenTelemetry (`OTEL_EXPORTER_OTLP_ENDPOINT`,
/// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`, `OTEL_SDK_DISABLED`) say it too,
/// and count more than a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TelemetryConfig {
    /// Where a collector takes OTLP over HTTP, e.g. `http://127.0.0.1:4318`; empty for no traces at all.
    pub otlp_endpoint: String,
    /// A file of headers to send along, one `Name: value` in a line; empty for none.
    pub headers_file: String,
    /// What the collector knows this as.
    pub service_name: String,
    /// Which part of all traces is sent: 0 to 1. Who hands in a trace of their own decides about it.
    pub sample_ratio: f64,
    /// Whether arguments and results of tools and answers go along, without secrets.
    pub capture_content: bool,
    /// The address as the environment had it, to the last letter.
    #[serde(skip)]
    pub(crate) exact_endpoint: Option<String>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        TelemetryConfig {
            otlp_endpoint: String::new(),
            headers_file: String::new(),
            service_name: "switchboard".to_owned(),
            sample_ratio: 1.0,
            capture_content: false,
            exact_endpoint: None,
        }
    }
}

impl TelemetryConfig {
    /// These settings with what the variables of OpenTelemetry say.
    #[must_use]
    pub fn with_environment(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if let Some(endpoint) = set("OTEL_EXPORTER_OTLP_ENDPOINT").filter(|url| is_url(url)) {
            self.otlp_endpoint = endpoint;
        }
        self.exact_endpoint = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").filter(|url| is_url(url));
        if let Some(name) = set("OTEL_SERVICE_NAME") {
            self.service_name = name;
        }
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            (self.otlp_endpoint, self.exact_endpoint) = (String::new(), None);
        }
        self
    }

    /// Whether traces are wanted.
    pub(crate) fn is_on(&self) -> bool {
        self.exact_endpoint.is_some() || !self.otlp_endpoint.is_empty()
    }

    /// Where traces go.
    pub(crate) fn traces_endpoint(&self) -> String {
        let usual = || format!("{}/v1/traces", self.otlp_endpoint.trim_end_matches('/'));
        self.exact_endpoint.clone().unwrap_or_else(usual)
    }

    /// Whether that is on this machine, where no proxy is needed.
    pub(crate) fn is_local(&self) -> bool {
        let endpoint = self.traces_endpoint();
        let host = endpoint.split("://").nth(1).unwrap_or_default();
        ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local))
    }

    /// The headers to send along.
    pub(crate) fn headers(&self) -> io::Result<BTreeMap<String, String>> {
        if self.headers_file.is_empty() {
            return Ok(BTreeMap::new());
        }
        let text = std::fs::read_to_string(&self.headers_file)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        });
        headers.collect()
    }

    /// Values that have the right type and still make no sense.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if !self.otlp_endpoint.is_empty() && !is_url(&self.otlp_endpoint) {
            let problem = "must be an address that begins with http:// or https://".to_owned();
            return Err(("telemetry.otlp_endpoint", problem));
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Err(("telemetry.sample_ratio", "must be between 0 and 1".to_owned()));
        }
        Ok(())
    }
}

fn is_url(text: &str) -> bool {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/') && !host.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_where_and_whether() {
        let with = |variables: &[(&str, &str)]| {
            let file =
                TelemetryConfig { otlp_endpoint: "http://file:4318/".to_owned(), ..Default::default() };
            file.with_environment(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(with(&[]).traces_endpoint(), "http://file:4318/v1/traces");
        let (base, exact) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        assert_eq!(with(&[(base, "http://env:1")]).traces_endpoint(), "http://env:1/v1/traces");
        assert_eq!(with(&[(base, "http://env:1"), (exact, "https://x/t")]).traces_endpoint(), "https://x/t");
        assert_eq!(with(&[(base, "nonsense")]).traces_endpoint(), "http://file:4318/v1/traces");
        assert!(!with(&[("OTEL_SDK_DISABLED", "true"), (base, "http://env:1")]).is_on());
        assert_eq!(with(&[("OTEL_SERVICE_NAME", "mine")]).service_name, "mine");
        assert!(!TelemetryConfig::default().is_on());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (endpoint, ratio) in [("127.0.0.1:4318", 1.0), ("http://", 1.0), ("", 1.5), ("", f64::NAN)] {
            let config = TelemetryConfig {
                otlp_endpoint: endpoint.to_owned(),
                sample_ratio: ratio,
                ..Default::default()
            };
            assert!(config.check().is_err(), "{endpoint} {ratio}");
        }
    }

    #[test]
    fn headers_are_read_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headers");
        std::fs::write(&path, "# key\nAuthorization: Bearer a:b\n\nX-Scope : x\n").unwrap();
        let headers_file = path.display().to_string();
        let config = TelemetryConfig { headers_file, ..Default::default() };
        let headers = config.headers().unwrap();
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["Authorization"], "Bearer a:b");
        std::fs::write(&path, "nothing").unwrap();
        assert!(config.headers().is_err());
    }
}
