//! Who is at the other end of a connection: found out, not claimed.
//!
//! A process below a host is that host's agent. Everybody else of this user is a person, who may also speak in the name
//! of an agent or a service: that only makes the answer stricter.

use std::path::Path;

use swb_bus::Caller;
use swb_bus::gate::Visitor;
use swb_host::lineage::{self, Above};
use swb_host::tcp_peer;
use swb_proto::{Actor, Meta};

/// Who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// No host stands above it.
    Person,
    /// The agent of a host.
    Agent {
        /// Which one.
        actor: Actor,
        /// Whether it is in a cell.
        contained: bool,
    },
    /// Somebody whom the house has met before.
    Known(Actor),
    /// It cannot be told, so it is nobody.
    Nobody,
}

impl Identity {
    pub(super) fn of(visitor: &Visitor<'_>) -> Self {
        let (above, contained) = match visitor {
            Visitor::Local(stream) => (lineage::above_peer(stream), lineage::peer_is_in_cell(stream)),
            // Nobody decides about tools over the network.
            Visitor::Network { from, to } => (tcp_peer::above_tcp_peer(*from, *to), false),
        };
        match above {
            Above::NoHost => Identity::Person,
            Above::Host(socket) => match agent_of(&socket) {
                Some(actor) => Identity::Agent { actor, contained },
                None => Identity::Nobody,
            },
            Above::Unclear => Identity::Nobody,
        }
    }

    /// The caller that it is in a context.
    pub(super) fn caller(&self, context: Meta) -> Caller {
        match self {
            Identity::Agent { actor, contained } => {
                Caller::known(context, actor.clone()).contained(*contained)
            }
            Identity::Known(actor) => Caller::known(context, actor.clone()),
            Identity::Person if context.actor.as_ref().is_none_or(may_be_named) => Caller::new(context),
            Identity::Person | Identity::Nobody => Caller::known(context, Actor::local_user()),
        }
    }
}

/// The daemon speaks for itself.
fn may_be_named(actor: &Actor) -> bool {
    actor.kind != Actor::system().kind
}

/// A host's socket lies in a folder that is named after its session, and the session is the agent.
fn agent_of(socket: &Path) -> Option<Actor> {
    Actor::new("agent", socket.parent()?.file_name()?.to_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(kind: &str) -> Meta {
        Meta { actor: Some(Actor::new(kind, "x").unwrap()), ..Meta::default() }
    }

    #[test]
    fn an_agent_is_itself_whatever_it_claims() {
        let ada = agent_of(Path::new("/run/hosts/sess_ada/host.sock")).unwrap();
        let agent = Identity::Agent { actor: ada.clone(), contained: true };
        assert_eq!(agent.caller(Meta::default()).actor(), &ada);
        assert_eq!(agent.caller(Meta::default()).claimed(), None);
        assert!(agent.caller(Meta::default()).is_contained());
        let impostor = agent.caller(claims("user"));
        assert_eq!((impostor.actor(), impostor.meta().actor.as_ref()), (&ada, Some(&ada)));
        assert_eq!(impostor.claimed().unwrap().kind.as_str(), "user");
    }

    #[test]
    fn a_person_may_speak_for_agents_and_services_but_not_for_the_house() {
        assert_eq!(Identity::Person.caller(Meta::default()).actor(), &Actor::local_user());
        for kind in ["user", "agent", "service"] {
            let caller = Identity::Person.caller(claims(kind));
            assert_eq!((caller.actor().kind.as_str(), caller.claimed()), (kind, None));
        }
        assert!(Identity::Person.caller(claims("system")).claimed().is_some());
    }

    #[test]
    fn a_folder_that_is_no_id_names_no_agent() {
        for socket in ["/host.sock", "host.sock", "/run/a b/host.sock", "/run/../host.sock"] {
            assert_eq!(agent_of(Path::new(socket)), None, "{socket}");
        }
    }
}
