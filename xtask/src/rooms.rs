//! The table of rooms in ARCHITECTURE.md against what the manifests really say.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cargo;

/// A row of the table: a room and the rooms it may use.
#[derive(Debug, PartialEq, Eq)]
struct Room {
    name: String,
    uses: BTreeSet<String>,
}

fn table() -> Vec<Room> {
    let page = include_str!("../../ARCHITECTURE.md");
    let section = page.split("## Rooms").nth(1).expect("a section on rooms");
    let section = section.split("\n## ").next().expect("its end");
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            let name = names(cells[1]).first().expect("a room has a name").clone();
            Room { name, uses: names(cells[3]).into_iter().collect() }
        })
        .collect()
}

/// Packages of the workspace and those of them each depends on to run.
fn manifests() -> Vec<Room> {
    let output = cargo::cargo(&["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .output()
        .expect("cargo tells about the workspace");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("as JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    let uses = |package: &Value| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().expect("a list of dependencies");
        all.iter()
            .filter(|dependency| dependency["kind"].is_null())
            .map(name)
            .filter(|used| ours.contains(used))
            .collect()
    };
    packages.iter().map(|package| Room { name: name(package), uses: uses(package) }).collect()
}

#[test]
fn the_table_of_rooms_says_what_the_manifests_say() {
    let table = table();
    for room in manifests() {
        let row = table.iter().find(|row| row.name == room.name);
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for the room {}", room.name));
        assert_eq!(
            row.uses, room.uses,
            "edit the column \"May use\" of {} in ARCHITECTURE.md, or its manifest",
            room.name
        );
    }
    assert_eq!(table.len(), manifests().len(), "ARCHITECTURE.md has a row for a room that is gone");
}

#[test]
fn a_room_uses_only_rooms_above_it() {
    let table = table();
    for (at, room) in table.iter().enumerate() {
        for used in &room.uses {
            assert!(
                table[..at].iter().any(|above| above.name == *used),
                "{} stands above {used}, which it uses",
                room.name
            );
        }
    }
}
