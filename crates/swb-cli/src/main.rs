//! `swb`: parse, run, say how it ended.

fn main() -> std::process::ExitCode {
    swb_cli::main()
}
