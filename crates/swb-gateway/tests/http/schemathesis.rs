//! Schemathesis reads the committed document and tries to prove it wrong.
//!
//! It comes from PyPI into the build folder, once. Without Python or a way to PyPI the test says so and does nothing: the
//! other tests need neither.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::house::House;

const RELEASE: &str = "schemathesis==4.32.5";
/// Seconds for getting it, and for running it.
const PATIENCE: [&str; 2] = ["60", "40"];

#[test]
fn schemathesis_finds_no_fault_with_the_document() {
    let Some(program) = installed() else { return };
    let house = House::new();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/openapi.json");
    let (url, bearer) = (format!("http://{}", house.address()), format!("Authorization: {}", house.bearer()));
    // A stream does not end. A limit that is no number means none, so nonsense there is not to be rejected. That the last
    // message must be the user's is beyond a schema.
    let runs = [
        ["--exclude-path-regex", "(/stream|^/agui)$", "--exclude-checks", "negative_data_rejection"],
        ["--include-path", "/agui", "--exclude-checks", "negative_data_rejection,positive_data_acceptance"],
    ];
    for which in runs {
        let mut command = bounded(PATIENCE[1], &program);
        command.args(["run", document, "--url", &url, "--header", &bearer, "--no-color", "--checks", "all"]);
        command.args(which);
        command.args(["--seed", "1", "--max-examples", "15", "--generation-database", "none"]);
        command.args(["--request-timeout", "10"]).current_dir(house.folder());
        let Output { status, stdout, stderr } = command.output().expect("it was installed");
        if status.code() == Some(124) {
            return skip("schemathesis took too long on this machine");
        }
        let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{said}\n{complained}");
    }
}

/// The program, installed on the first call.
fn installed() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
    let program = folder.join("bin/st");
    let done = folder.join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|release| release == RELEASE) {
        return Some(program);
    }
    let steps = "python3 -m venv \"$0\" && \"$0/bin/pip\" install --quiet --disable-pip-version-check \"$1\"";
    let output = bounded(PATIENCE[0], Path::new("sh")).args(["-c", steps]).arg(&folder).arg(RELEASE).output();
    match output {
        Ok(output) if output.status.success() => {
            std::fs::write(done, RELEASE).expect("the build folder can be written");
            Some(program)
        }
        Ok(output) => {
            skip(&format!("{RELEASE} cannot be had: {}", String::from_utf8_lossy(&output.stderr)));
            None
        }
        Err(error) => {
            skip(&format!("there is no timeout(1): {error}"));
            None
        }
    }
}

fn bounded(seconds: &str, program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg(seconds).arg(program);
    command
}

/// Past the test runner, which would keep it to itself.
fn skip(why: &str) {
    let _ =
        writeln!(std::io::stderr(), "schemathesis_finds_no_fault_with_the_document: skipped, {}", why.trim());
}
