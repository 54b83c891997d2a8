//! Agents that start agents: nobody gets more rights by asking another one.

use serde_json::json;

use crate::house::House;

/// The result of the last call of a tool.
fn result(house: &House, prompt: &str) -> String {
    let story = house.story(prompt);
    let last = story.of_kind("tool").filter(|piece| piece["tool"]["status"] == "done").last().unwrap();
    last["tool"]["result"].as_str().unwrap().to_owned()
}

fn swb(house: &House, method: &str, params: &serde_json::Value) -> String {
    let binary = env!("CARGO_BIN_EXE_swb");
    let command = format!("{binary} --json call --workspace {} {method} '{params}'", house.workspace);
    format!("!tool bash {}\n!then\n!say done", json!({ "command": command }))
}

#[test]
fn an_agent_starts_agents_below_it_and_commands_no_others() {
    let house = House::new();
    // What its shell says goes through the gate as the agent; that a shell runs `swb` is nothing the rules mind here.
    let rules = house.world.paths().policy();
    std::fs::create_dir_all(&rules).unwrap();
    let permit = "@id(\"t\") permit (principal is Agent, action == Action::\"tool.bash\", resource);";
    std::fs::write(rules.join("t.cedar"), permit).unwrap();
    house.world.swb(["restart"]).ok();
    let (_, mine, _) = house.run("!say mine");
    for (method, params) in [
        ("agent.run", json!({ "session_id": mine, "prompt": "!say stolen" })),
        ("agent.cancel", json!({ "session_id": mine })),
    ] {
        let said = result(&house, &swb(&house, method, &params));
        assert!(said.contains("NOT_BELOW"), "{method}: {said}");
    }
    let wish = json!({ "project_id": house.project, "prompt": "!say below" });
    let said = result(&house, &swb(&house, "agent.run", &wish));
    assert!(said.contains("sess_"), "{said}");
    let sessions = house.call("session.list", &json!({ "ended": true }));
    let below =
        sessions["sessions"].as_array().unwrap().iter().filter(|one| one["parent_session_id"].is_string());
    assert_eq!(below.count(), 1, "{sessions}");
}
