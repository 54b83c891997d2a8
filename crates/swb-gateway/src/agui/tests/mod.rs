//! The translator and the encoder, held against a model of what real clients take.

mod any_events;
mod bus;
mod examples;
mod verifier;
