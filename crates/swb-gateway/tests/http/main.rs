//! The gateway as a program on the other side of a TCP connection sees it.

mod agents;
mod agui;
#[path = "../agui_client/mod.rs"]
mod agui_client;
mod agui_clients;
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
