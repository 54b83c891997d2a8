//! Opening.
fn main() {}
