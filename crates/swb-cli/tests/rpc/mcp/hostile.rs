//! A server that misbehaves: this test program itself, started once more with `MISBEHAVE` set.
//!
//! It speaks plain lines and knows nothing of any library, so that it can break every rule. Each of its tools does one
//! thing wrong; the value of `MISBEHAVE` says what is wrong with the server as a whole.

use std::io::{BufRead, Write};
use std::path::Path;

use serde_json::{Value, json};

/// The tools that are there from the start.
const TOOLS: [&str; 15] = [
    "big",
    "cancelled",
    "change",
    "deaf",
    "die",
    "env",
    "fail",
    "flood",
    "fork",
    "garbage",
    "good",
    "huge",
    "progress",
    "refuse",
    "stall",
];

/// The lines of a configuration that start this server under a name.
pub(crate) fn config(name: &str, misbehave: &str, more: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let program = json!(program.to_str().unwrap());
    // Its name in whichever test program this is.
    let (_, here) = module_path!().split_once("::").unwrap();
    format!(
        "[mcp.{name}]\ncommand = {program}\nargs = [\"--ignored\", \"--exact\", \"{here}::serve\"]\n\
         {more}\n[mcp.{name}.env]\nMISBEHAVE = \"{misbehave}\"\n"
    )
}

#[test]
#[ignore = "not a test but the misbehaving server that tests start"]
fn serve() {
    let Ok(misbehave) = std::env::var("MISBEHAVE") else { return };
    if let Ok(file) = std::env::var("STARTED") {
        std::fs::write(Path::new(&file), std::process::id().to_string()).unwrap();
    }
    match misbehave.as_str() {
        "exit" => {
            complain("no configuration; password=hunter2hunter2");
            leave(4);
        }
        "silent" => for_ever(),
        _ => Server { misbehave, extra: Vec::new(), cancelled: Vec::new() }.run(),
    }
}

struct Server {
    misbehave: String,
    /// Tools that came later.
    extra: Vec<&'static str>,
    cancelled: Vec<Value>,
}

impl Server {
    fn run(mut self) {
        for line in std::io::stdin().lock().lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let id = message["id"].clone();
            match message["method"].as_str() {
                Some("initialize") if self.misbehave == "refuses" => {
                    say(
                        &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": "go away" } }),
                    );
                }
                Some("initialize") => answer(
                    &id,
                    json!({ "protocolVersion": message["params"]["protocolVersion"],
                        "capabilities": { "tools": { "listChanged": true } },
                        "serverInfo": { "name": "hostile", "version": "0" } }),
                ),
                Some("ping") => answer(&id, json!({})),
                Some("tools/list") => self.list(&id, &message["params"]["cursor"]),
                Some("tools/call") => self.call(&id, &message["params"]),
                Some("notifications/cancelled") => {
                    self.cancelled.push(message["params"]["reason"].clone());
                }
                Some(_) if !id.is_null() => {
                    say(
                        &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "what?" } }),
                    );
                }
                _ => {}
            }
        }
    }

    fn list(&self, id: &Value, cursor: &Value) {
        if self.misbehave == "pages" {
            let page = cursor.as_str().map_or(0, |page| page.parse::<u64>().unwrap()) + 1;
            let tools: Vec<_> = (0..10).map(|at| tool(&format!("tool {page}.{at}"))).collect();
            return answer(id, json!({ "tools": tools, "nextCursor": page.to_string() }));
        }
        let tools: Vec<_> = TOOLS.iter().chain(&self.extra).map(|name| tool(name)).collect();
        answer(id, json!({ "tools": tools }));
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        match params["name"].as_str().unwrap() {
            "big" => answer(id, text(&"x".repeat(3 * 1024 * 1024))),
            "cancelled" => answer(id, text(&json!(self.cancelled).to_string())),
            "change" => {
                self.extra.push("new");
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                answer(id, text("changed"));
            }
            "deaf" => for_ever(),
            "die" => {
                complain("out of luck; password=hunter2hunter2");
                leave(3);
            }
            "env" => {
                let names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
                answer(id, text(&names.join(" ")));
            }
            "fail" => {
                let content = json!([{ "type": "text", "text": "no such row" }]);
                answer(id, json!({ "content": content, "isError": true }));
            }
            "flood" => loop {
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": { "level": "info", "data": "again" } }));
            },
            "fork" => {
                #[expect(clippy::zombie_processes, reason = "an orphan is what is wanted")]
                let sleep = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
                answer(id, text(&sleep.id().to_string()));
            }
            "garbage" => {
                say_bytes(
                    b"\xff\xfe\x00 not json\n{\"jsonrpc\":\n[1,2\n\n\"text\"\n{\"id\":99999,\"result\":{}}\n",
                );
                say(&json!({ "jsonrpc": "2.0", "id": "nobody", "result": { "content": [] } }));
                answer(id, text("found my way"));
            }
            "huge" => loop {
                say_bytes(&[b'x'; 65536]);
            },
            "progress" => {
                for step in 1..=2 {
                    say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
                        "progressToken": params["_meta"]["progressToken"], "progress": step, "total": 2,
                        "message": "step" } }));
                }
                answer(id, text("walked"));
            }
            "refuse" => say(&json!({ "jsonrpc": "2.0", "id": id,
                "error": { "code": -32602, "message": "wrong arguments" } })),
            "stall" => {}
            name => answer(id, text(&format!("{name} did it"))),
        }
    }
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "What could go wrong?", "inputSchema": { "type": "object" } })
}

fn answer(id: &Value, result: Value) {
    say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn say(message: &Value) {
    say_bytes(format!("{message}\n").as_bytes());
}

fn say_bytes(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        // Nobody listens any more.
        leave(0);
    }
}

/// Past the test runner, which would keep it to itself.
fn complain(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

#[expect(clippy::disallowed_methods, reason = "this is a program that ends badly")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}

fn for_ever() -> ! {
    loop {
        std::thread::park();
    }
}
