//! Looking at runs: which one is meant, how it stands, and what it waits for.

use swb_proto::BusError;
use swb_proto::error::ERR_INVALID_PARAMS;
use swb_proto::id::{RunId, SessionId};
use swb_proto::run::{Run, RunState, RunView, Wait, Waits};
use swb_rules::approval::Approval;
use tokio::sync::oneshot;

use super::kept::{self, KeptRun};
use super::order::Order;
use super::{House, Runs};
use crate::telemetry::RunCounts;

/// How runs stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) running: u64,
    pub(crate) queued: u64,
    pub(crate) slots: u64,
    pub(crate) free: u64,
}

impl Runs {
    /// The run that is meant: by its id, or the one under way in a session, or the last one there.
    pub(crate) fn which(
        &self,
        run: Option<&RunId>,
        session: Option<&SessionId>,
    ) -> Result<KeptRun, BusError> {
        let estate = self.0.records.look();
        if let Some(run) = run {
            return estate.run(run).cloned();
        }
        let Some(session) = session else {
            return Err(BusError::new(ERR_INVALID_PARAMS, "which run? run_id or session_id names it"));
        };
        let session = &estate.session(session)?.session_id;
        let live = estate.runs_of(session).find(|kept| kept::is_live(kept)).cloned();
        live.or_else(|| estate.runs_of(session).next_back().cloned()).ok_or_else(|| {
            BusError::new(ERR_INVALID_PARAMS, format!("nothing has run in {session} yet"))
                .because("RUN_NOT_FOUND")
        })
    }

    /// `agent.get`: a run and what it waits for.
    pub(crate) async fn view(&self, kept: KeptRun) -> RunView {
        let mut view = RunView { run: kept.run, waits: Vec::new(), text: String::new() };
        let session = view.run.session_id.clone();
        let (done, looked) = oneshot::channel();
        if view.run.state.is_over() || self.0.order(session.as_str(), Order::Look { done }).await.is_err() {
            return view;
        }
        let Ok(look) = looked.await else { return view };
        match look {
            Some(look) if look.run == view.run.run_id => {
                (view.text, view.run.usage) = (look.text, look.usage);
                if look.is_starting || look.calls.is_empty() {
                    view.waits.push(Wait { what: Waits::Model, since: look.since });
                }
                for (call_id, name, since) in look.calls {
                    view.waits.push(Wait { what: Waits::Tool { name, call_id }, since });
                }
                let of_session = |approval: &Approval| {
                    approval.request.session_id.as_deref() == Some(session.as_str())
                        && approval.outcome.is_none()
                };
                for approval in self.0.approvals.list(of_session) {
                    view.waits.extend(wait_for_approval(&approval));
                }
                if let Some((messages, since)) = self.0.office.held(session.as_str()) {
                    view.waits.push(Wait { what: Waits::Person { messages }, since });
                }
            }
            Some(look) => {
                let since = view.run.created_at.clone();
                view.waits.push(Wait { what: Waits::Run { run_id: look.run }, since });
            }
            None => {
                let estate = self.0.records.look();
                let queued =
                    |kept: &&KeptRun| kept.run.state == RunState::Queued && kept.run.run_id < view.run.run_id;
                let behind = estate.runs.iter().filter(queued).count() as u64;
                let since = view.run.created_at.clone();
                view.waits.push(Wait { what: Waits::Slot { behind }, since });
            }
        }
        view
    }

    /// What runs have done since the daemon began.
    pub(crate) fn counts(&self) -> &RunCounts {
        &self.0.counts
    }

    /// How many work and wait, and how many could work.
    pub(crate) fn standing(&self) -> Standing {
        let House { records, slots, agents, .. } = &*self.0;
        let (mut running, mut queued) = (0, 0);
        for kept in records.look().runs.iter() {
            match kept.run.state {
                RunState::Running => running += 1,
                RunState::Queued => queued += 1,
                _ => {}
            }
        }
        Standing { running, queued, slots: agents.slots() as u64, free: slots.available_permits() as u64 }
    }

    /// All runs that fit.
    pub(crate) fn list(&self, wanted: impl Fn(&Run) -> bool) -> Vec<Run> {
        let estate = self.0.records.look();
        estate.runs.iter().map(|kept| &kept.run).filter(|run| wanted(run)).cloned().collect()
    }
}

fn wait_for_approval(approval: &Approval) -> Option<Wait> {
    let since = crate::approvals::timestamp(approval.requested_at);
    let approval_id = approval.request.id.clone().try_into().ok()?;
    Some(Wait { what: Waits::Approval { approval_id, about: approval.request.reason.clone() }, since })
}
