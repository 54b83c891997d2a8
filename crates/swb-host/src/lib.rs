//! Children: starting them in a group of their own, and ending everything they have started.
//!
//! * [`group`] – one child and its process group; dropping it ends the group.
//! * [`descendants`] – whatever this process has brought into the world, also what left its group or its parent.
//!
//! This room knows nothing of what the children are for. Proof: unit tests beside each part, with real processes.

pub mod descendants;
pub mod group;

pub use group::Group;
