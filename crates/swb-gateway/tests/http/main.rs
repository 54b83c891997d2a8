//! The gateway as a program on the other side of a TCP connection sees it.

mod client;
mod daemon;
mod doors;
mod following;
mod house;
mod messages;
mod openapi;
mod schemathesis;
mod stream;
mod surface;
