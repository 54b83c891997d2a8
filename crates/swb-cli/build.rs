//! How the binary is linked.
//!
//! It is not position-independent. There may be a host for each agent, and each is this whole binary: a binary that can
//! be loaded anywhere is patched in fifty thousand places whenever it is, which costs each process a megabyte that it
//! shares with nobody, another for the list of the places, and a millisecond. Stack, heap and libraries are still found
//! at random addresses, and there is no unsafe code of ours.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bin=swb=-no-pie");
    }
}
