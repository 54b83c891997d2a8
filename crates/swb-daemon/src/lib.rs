//! The house: the subsystems that live on the bus, and the life of the process they live in.
//!
//! * [`Daemon`] – everything from taking the lock to removing the socket, in one value; tests start it in process.
//! * [`process`] – a daemon as a process of its own: runtime, signals, log.
//! * [`watch`] – the tiny parent that starts a crashed daemon again, and the line between the two.
//! * [`paths`], [`config`] – where things lie, and how they are set.
//! * [`policy`] – which rules hold: files, reloading, projects, sessions.
//! * [`approvals`] – questions that people answer, kept and waited for.
//! * `gate` – what every command passes before a subsystem sees it; [`containment`] – what an agent in a cell does not see.
//! * `runs` – agents at work behind hosts. `completion` – one question to a model.
//! * `telemetry` – figures of all this.
//! * `subsystems` – one file per prefix; `records` what they keep, `recovery` what becomes of it after a crash; `record` what happened.
//!
//! Invariants: one daemon per runtime folder (an flock decides, not a file's existence); a socket is unlinked only by the
//! holder of that lock and only when nobody answers on it; after a clean stop neither socket nor description is left.

pub mod approvals;
mod completion;
pub mod config;
pub mod containment;
mod daemon;
mod description;
mod door;
mod gate;
mod git;
mod http;
mod keeper;
mod lock;
mod log;
mod mint;
pub mod paths;
pub mod policy;
mod private_dir;
pub mod process;
pub mod record;
mod records;
mod recovery;
pub mod redaction;
mod runs;
mod subsystems;
mod telemetry;
pub mod trust;
pub mod watch;

pub use config::Config;
pub use daemon::{Daemon, StartError, StartErrorKind};
pub use description::Description;
pub use paths::Paths;
