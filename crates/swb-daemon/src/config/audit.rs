//! Settings of the record.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swb_journal::audit::{AuditOptions, Durability, MIN_RETENTION_DAYS};

/// The record of what happened. Not read from a project's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditConfig {
    /// When something counts as recorded: `written` (it outlives the daemon) or `synced` (it outlives a power cut).
    pub durability: String,
    /// How many days records are kept: 30 or more.
    pub retention_days: u32,
    /// The size at which a segment is closed.
    pub segment_bytes: u64,
    /// The age, in hours, at which a segment is closed.
    pub segment_hours: u32,
    /// Start although the record is damaged, in a new segment behind the damage, which stays and is shown.
    pub accept_damage: bool,
    /// Run by `sh -c` with the end of the record on standard input, when a segment is closed and when the daemon stops;
    /// empty for none.
    pub anchor_command: String,
}

impl Default for AuditConfig {
    fn default() -> Self {
        AuditConfig {
            durability: "written".to_owned(),
            retention_days: 90,
            segment_bytes: 16 * 1024 * 1024,
            segment_hours: 24,
            accept_damage: false,
            anchor_command: String::new(),
        }
    }
}

impl AuditConfig {
    /// How the log is written.
    pub(crate) fn options(&self) -> AuditOptions {
        AuditOptions {
            durability: if self.durability == "synced" { Durability::Synced } else { Durability::Written },
            segment_bytes: self.segment_bytes,
            segment_age: Duration::from_secs(u64::from(self.segment_hours) * 3600),
            accept_damage: self.accept_damage,
            ..AuditOptions::default()
        }
    }

    /// Values that have the right type and still make no sense.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if !matches!(self.durability.as_str(), "written" | "synced") {
            return Err(("audit.durability", "must be written or synced".to_owned()));
        }
        if self.retention_days < MIN_RETENTION_DAYS {
            let problem = format!("must be at least {MIN_RETENTION_DAYS}: records are not to vanish sooner");
            return Err(("audit.retention_days", problem));
        }
        if self.segment_bytes < 64 * 1024 {
            return Err(("audit.segment_bytes", "must be at least 65536".to_owned()));
        }
        if self.segment_hours == 0 {
            return Err(("audit.segment_hours", "must be at least 1".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_make_no_sense_are_refused_with_their_key() {
        type Change = fn(&mut AuditConfig);
        let broken: [(&str, Change); 4] = [
            ("audit.durability", |config| config.durability = "sometimes".to_owned()),
            ("audit.retention_days", |config| config.retention_days = 29),
            ("audit.segment_bytes", |config| config.segment_bytes = 100),
            ("audit.segment_hours", |config| config.segment_hours = 0),
        ];
        AuditConfig::default().check().unwrap();
        for (key, change) in broken {
            let mut config = AuditConfig::default();
            change(&mut config);
            assert_eq!(config.check().unwrap_err().0, key);
        }
    }
}
