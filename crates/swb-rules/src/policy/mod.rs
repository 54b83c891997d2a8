//! The policy: may this be done, must somebody agree, or not at all?
//!
//! ```text
//! Input (who, what, to what, with which facts) ─ request ─► Cedar ─ decide, twice at most ─► Decision
//! rule files ─ load, slices ─► Rules (permit, forbid)  +  Restrictions of a project or a session (forbid, ask)
//! ```
//!
//! Rules are Cedar policies over one committed schema (`switchboard.cedarschema`); what everyone starts with is
//! `default.cedar`. A question is asked once as it is; if it is not permitted, and a rule looks at `context.approved`, it
//! is asked a second time as if somebody had agreed. Permitted at once: allow. Permitted then: an approval is needed.
//! Else: deny. A subagent is judged as every agent above it too, and the strictest answer counts.
//!
//! Invariants: `forbid` wins; no rules, an action that nobody knows, or a rule that fails while it is evaluated mean deny;
//! rules of a project or a session can only take away; loading gives a whole new rule set or a list of errors, never
//! half of one. Nothing here reads a file or a clock.
//! Fast: only rules that can apply to this kind of actor, action and resource are evaluated ([`Rules`] keeps them sorted).
//! Proof: `tests/policy_*.rs` (tables over the default rules, properties over random inputs and rules), `benches/policy`.

mod actor;
mod decide;
mod decision;
mod dry_run;
mod explain;
mod facts;
mod grant;
mod input;
mod load;
mod measure;
mod request;
mod resource;
mod rule;
mod slices;
mod text;
mod vocabulary;

pub use actor::{Actor, ActorKind, Ancestor};
pub use decide::{Approved, Restrictions, Rules};
pub use decision::{Answer, Decision, Spoke, Why};
pub use dry_run::{Difference, DryRun, Recorded, dry_run};
pub use explain::{Change, Explanation, Remedy};
pub use facts::ShellFacts;
pub use grant::{Grant, GrantScope};
pub use input::Input;
pub use load::{LoadError, Loaded, MAX_FILE_BYTES, MAX_RULES, Source};
pub use resource::Resource;
pub use rule::{Effect, Layer, RuleInfo};
pub use vocabulary::{actions, fits, is_action};

/// The schema that rules are checked against, for `swb policy check` and editors.
pub const SCHEMA: &str = include_str!("switchboard.cedarschema");
/// The rules everyone starts with.
pub const DEFAULT_RULES: &str = include_str!("default.cedar");
