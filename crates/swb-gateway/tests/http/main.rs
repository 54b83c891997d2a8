//! The gateway as a program on the other side of a TCP connection sees it.

mod client;
mod daemon;
mod doors;
mod following;
mod house;
mod layout;
mod messages;
mod openapi;
mod posting;
mod schemathesis;
mod stream;
mod surface;
