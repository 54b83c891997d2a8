//! `swb config`, `doctor`, `completion`, `man`, `schema`.

use serde_json::json;
use testkit::World;

fn world() -> World {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    std::fs::create_dir_all(world.home().join("config")).expect("a folder for the file");
    world
}

fn setting(world: &World, key: &str) -> serde_json::Value {
    world.swb(["config", key, "--json"]).ok().json()
}

#[test]
fn settings_come_from_files_environment_and_flags_in_that_order() {
    let world = world();
    assert_eq!(setting(&world, "log.level")["origin"]["from"], "default");
    std::fs::write(world.paths().config_file(), "[log]\nlevel = \"warn\"\nkeep = 9\n").unwrap();
    assert_eq!(setting(&world, "log.level")["value"], "warn");
    std::fs::create_dir_all(world.folder().join(".switchboard")).unwrap();
    std::fs::write(world.folder().join(".switchboard/config.toml"), "[log]\nlevel = \"error\"\n").unwrap();
    assert_eq!(setting(&world, "log.level")["value"], "error");
    let by_env = world.command(["config", "log.level"]).env("SWB_LOG_LEVEL", "debug").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&by_env.stdout), "debug\n");
    let by_flag = world
        .command(["config", "log.level", "--set", "log.level=trace"])
        .env("SWB_LOG_LEVEL", "debug")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&by_flag.stdout), "trace\n");
    assert_eq!(setting(&world, "log.keep")["value"], 9);
}

#[test]
fn unknown_keys_are_warned_about_by_path_and_wrong_values_stop_the_start() {
    let world = world();
    std::fs::write(world.paths().config_file(), "[log]\nlevle = \"warn\"\n").unwrap();
    let config = world.swb(["config"]).ok();
    assert!(config.stderr.contains("log.levle") && config.stderr.contains("config.toml"), "{config:?}");
    let up = world.swb(["up"]).ok();
    assert!(up.stderr.contains("log.levle"), "{up:?}");
    world.swb(["down"]).ok();
    std::fs::write(world.paths().config_file(), "[log]\nlevel = \"loud\"\n").unwrap();
    let up = world.swb(["up"]);
    assert_eq!(up.code, Some(6), "{up:?}");
    assert!(up.stderr.contains("log.level") && up.stderr.contains("debug"), "it says what would do: {up:?}");
}

#[test]
fn doctor_finds_what_is_wrong_and_says_what_to_do() {
    let world = world();
    let idle = world.swb(["doctor", "--json"]).ok().json();
    assert_eq!(idle["healthy"], true);
    world.swb(["up"]).ok();
    let text = world.swb(["doctor"]).ok().stdout;
    assert!(text.contains("daemon") && text.contains("watch") && !text.contains('✗'), "{text}");
    std::fs::write(world.paths().config_file(), "nonsense [").unwrap();
    let ill = world.swb(["doctor", "--json"]);
    assert_eq!((ill.code, &ill.json()["healthy"]), (Some(1), &json!(false)));
    std::fs::remove_file(world.paths().config_file()).unwrap();
}

#[test]
fn completions_pages_and_schemas_are_printed() {
    let world = world();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.swb(["completion", shell]).ok().stdout;
        assert!(script.contains("swb") && script.contains("events"), "{shell}");
        assert!(!script.contains("--adopt"), "hidden commands stay hidden in {shell}");
    }
    assert!(world.swb(["man"]).ok().stdout.contains(".TH swb 1"));
    assert!(world.swb(["man", "events"]).ok().stdout.contains("follow"));
    assert!(world.swb(["man", "bus", "post"]).ok().stdout.contains("reply"));
    assert_eq!(world.swb(["man", "nonsense"]).code, Some(2));
    let folder = world.folder().join("man");
    world.swb(["man", "--out", folder.to_str().unwrap()]).ok();
    assert!(folder.join("swb-up.1").exists() && !folder.join("swb-watch.1").exists());
    assert_eq!(world.swb(["schema"]).ok().json()["info"]["version"], "helios.localbus.v1");
    assert!(world.swb(["schema", "config"]).ok().json()["properties"]["log"].is_object());
    assert!(
        world.swb(["schema", "envelope"]).ok().json()["components"]["schemas"]["EventEnvelope"].is_object()
    );
}

#[test]
fn help_teaches() {
    let world = world();
    let help = world.swb(["--help"]).ok().stdout;
    for word in ["up", "down", "status", "call", "events", "doctor", "SWB_HOME", "Exit codes"] {
        assert!(help.contains(word), "{word} is missing from the help");
    }
    assert!(!help.contains("watch "), "hidden commands stay hidden");
    assert!(world.swb(["call", "--help"]).ok().stdout.contains("Examples:"));
    assert_eq!(world.swb(["nonsense"]).code, Some(2));
}
