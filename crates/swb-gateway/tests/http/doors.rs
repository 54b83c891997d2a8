//! Who gets in: tokens, names, pages, links; and that no name leads out of the root.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;
use swb_gateway::GatewayError;
use swb_gateway::auth::Principal;

use crate::client::{Connection, Events};
use crate::house::House;

const LIST: &str = "/api/v1/messages?project_id=p";

#[test]
fn nothing_is_served_without_a_token_but_what_says_nothing() {
    let house = House::new();
    for (method, path) in [
        ("GET", LIST),
        ("POST", "/api/v1/messages"),
        ("GET", "/api/projects/p/messages/stream"),
        ("GET", "/metrics"),
        ("GET", "/api/openapi.json"),
        ("GET", "/"),
        ("GET", "/nowhere"),
        ("OPTIONS", LIST),
        ("HEAD", LIST),
        ("GET", "//healthz"),
    ] {
        let mut connection = Connection::open(house.address());
        connection.request(method, path, &[("X-Request-ID", "r1")], None);
        let answer = if method == "HEAD" { connection.head().into() } else { connection.answer() };
        assert_eq!(answer.status, 401, "{method} {path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"switchboard\""));
        assert_eq!(answer.header("x-request-id"), Some("r1"));
        if method != "HEAD" {
            assert_eq!(answer.text(), r#"{"error":"unauthorized","message":"valid API key required"}"#);
        }
    }
    for path in ["/healthz", "/api/v1/health"] {
        assert_eq!(house.bare("GET", path, &[], None).text(), "{\"status\":\"ok\"}\n");
    }
    assert_eq!(
        house.bare("GET", "/api/v1/version", &[], None).json(),
        json!({ "version": env!("CARGO_PKG_VERSION") })
    );
}

#[test]
fn a_token_opens_by_either_header_or_by_the_path() {
    let house = House::new();
    let token = house.token();
    let bearer = format!("Bearer {token}");
    for headers in [[("Authorization", bearer.as_str())], [("X-API-Key", token.as_str())]] {
        assert_eq!(house.bare("GET", LIST, &headers, None).status, 200, "{headers:?}");
    }
    assert_eq!(house.bare("GET", &format!("/t/{token}{LIST}"), &[], None).status, 200);
    house.say("hello");
    let mut events =
        Events::open(house.address(), &format!("/t/{token}/api/projects/p/messages/stream"), &[]);
    assert_eq!(events.message().body(), "hello");
}

#[test]
fn a_wrong_token_opens_nothing_anywhere() {
    let house = House::new();
    let token = house.token();
    let almost = format!("{}0", &token[..token.len() - 1]);
    let almost = if almost == token { format!("{}1", &token[..token.len() - 1]) } else { almost };
    for wrong in ["", "swb_", &token[..20], &almost, &format!("{token}x"), &token.to_uppercase()] {
        for header in [
            ("Authorization", format!("Bearer {wrong}")),
            ("X-API-Key", wrong.to_owned()),
            ("Authorization", format!("Basic {token}")),
        ] {
            assert_eq!(house.bare("GET", LIST, &[(header.0, &header.1)], None).status, 401, "{header:?}");
        }
        assert_eq!(house.bare("GET", &format!("/t/{wrong}{LIST}"), &[], None).status, 401, "{wrong}");
    }
    let cookie = format!("swb={token}");
    assert_eq!(house.bare("GET", LIST, &[("Cookie", &cookie)], None).status, 401, "a token is no cookie");
    // A wrong token in the path is not made good by what follows.
    assert_eq!(house.bare("GET", "/t/wrong/healthz", &[], None).status, 401);
}

#[test]
fn each_principal_has_a_token_of_its_own_and_acts_under_its_name() {
    let house = House::new();
    let ada = house.keyring().token(&Principal::agent("ada").unwrap()).unwrap();
    assert_ne!(ada, house.token());
    let body = br#"{"body":"x"}"#;
    assert_eq!(
        house.bare("POST", "/api/projects/p/messages", &[("X-API-Key", &ada)], Some(body)).status,
        201
    );
    house.say("y");
    let events = house.topics.read(Vec::new(), None, 10).unwrap().events;
    let actors: Vec<_> =
        events.iter().map(|event| serde_json::to_value(event).unwrap()["actor"].clone()).collect();
    assert_eq!(
        actors,
        [json!({ "kind": "agent", "id": "ada" }), json!({ "kind": "user", "id": "user_local" })]
    );
    let mode = std::fs::metadata(house.options.tokens.join("agent.ada.token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_file(house.options.tokens.join("agent.ada.token")).unwrap();
    assert_eq!(
        house.bare("GET", LIST, &[("X-API-Key", &ada)], None).status,
        401,
        "a removed token is revoked"
    );
}

#[test]
fn a_link_signs_a_browser_in_once_and_its_cookie_holds_on_our_name_alone() {
    let mut house = House::new();
    let port = house.address().port();
    let link = house.keyring().link(&Principal::User, port).unwrap();
    let (host, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let (host, path) = (host.to_owned(), format!("/{path}"));
    assert!(host.ends_with(&format!(".localhost:{port}")), "{host}");
    assert_eq!(house.bare("GET", &path, &[], None).status, 401, "on another name the link is nothing");
    let signed = house.bare("GET", &path, &[("Host", &host)], None);
    assert_eq!((signed.status, signed.header("location")), (303, Some("/")));
    let set = signed.header("set-cookie").unwrap().to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(word), "{set}");
    }
    assert!(!set.contains("Domain"), "a cookie of this very host");
    assert_eq!(house.bare("GET", &path, &[("Host", &host)], None).status, 410, "once");
    let cookie = format!("theme=dark; {}", set.split(';').next().unwrap());
    house.say("hello");
    let origin = format!("http://{host}");
    let as_browser = [
        ("Host", host.as_str()),
        ("Cookie", &cookie),
        ("Origin", &origin),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    let mut events = Events::open(house.address(), "/api/projects/p/messages/stream", &as_browser);
    assert_eq!(events.message().body(), "hello");
    assert_eq!(house.bare("GET", "/", &as_browser, None).status, 200);
    assert_eq!(
        house.bare("GET", LIST, &[("Cookie", &cookie)], None).status,
        401,
        "not on 127.0.0.1, where every port gets it"
    );
    house.stop(std::time::Duration::ZERO);
    house.start();
    assert_eq!(house.bare("GET", "/", &as_browser, None).status, 200, "a restart signs nobody out");
}

#[test]
fn a_name_that_was_rebound_is_not_ours() {
    let house = House::new();
    let bearer = house.bearer();
    for host in ["evil.example", "evil.example:14355", "x.localhost", "192.0.2.1", "localhost.evil.example"] {
        let answer = house.bare("GET", LIST, &[("Host", host), ("Authorization", &bearer)], None);
        assert_eq!((answer.status, answer.error().0.as_str()), (403, "FORBIDDEN"), "{host}");
        assert_eq!(house.bare("GET", "/healthz", &[("Host", host)], None).status, 403, "{host}");
    }
    for host in ["localhost", "LOCALHOST:1", "[::1]:14355", "127.0.0.1"] {
        assert_eq!(
            house.bare("GET", LIST, &[("Host", host), ("Authorization", &bearer)], None).status,
            200,
            "{host}"
        );
    }
    let mut connection = crate::client::Connection::open(house.address());
    connection.send(b"GET /healthz HTTP/1.1\r\n\r\n");
    assert_eq!(connection.answer().status, 400, "no Host");
    let absolute = house.bare("GET", "http://evil.example/healthz", &[("Host", "localhost")], None);
    assert_eq!(absolute.status, 403);
}

#[test]
fn pages_of_other_sites_are_turned_away_even_with_a_token() {
    let house = House::new();
    let bearer = house.bearer();
    for header in [("Origin", "http://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")] {
        let answer = house.bare("GET", LIST, &[("Authorization", &bearer), header], None);
        assert_eq!(answer.status, 403, "{header:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let origin = format!("http://{}", house.address());
    let own = house.bare("GET", LIST, &[("Authorization", &bearer), ("Origin", &origin)], None);
    assert_eq!((own.status, own.header("access-control-allow-origin")), (200, None), "CORS is off");
}

#[test]
fn no_link_leads_out_of_the_root() {
    let house = House::new();
    let outside = house.folder().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("PROJECT-MESSAGE-BUS.md"), "---\nmsg_id: secret\n---\nsecret\n").unwrap();
    std::fs::write(outside.join("TASK-MESSAGE-BUS.md"), "---\nmsg_id: secret\n---\nsecret\n").unwrap();
    symlink(&outside, house.options.root.join("linked")).unwrap();
    std::fs::create_dir_all(house.options.root.join("p")).unwrap();
    symlink(&outside, house.options.root.join("p/linked")).unwrap();
    std::fs::create_dir_all(house.options.root.join("q")).unwrap();
    symlink(outside.join("PROJECT-MESSAGE-BUS.md"), house.options.root.join("q/PROJECT-MESSAGE-BUS.md"))
        .unwrap();
    for bus in
        ["/api/projects/linked/messages", "/api/projects/p/tasks/linked/messages", "/api/projects/q/messages"]
    {
        for (method, path) in
            [("GET", bus.to_owned()), ("POST", bus.to_owned()), ("GET", format!("{bus}/stream"))]
        {
            let body = (method == "POST").then_some(br#"{"body":"x"}"#.as_slice());
            let answer = house.ask(method, &path, &[], body);
            assert_eq!((answer.status, answer.error().0.as_str()), (403, "FORBIDDEN"), "{method} {path}");
        }
    }
    let text = std::fs::read_to_string(outside.join("PROJECT-MESSAGE-BUS.md")).unwrap();
    assert!(!text.contains('x'), "nothing was written there: {text}");
}

#[test]
fn no_spelling_of_a_path_leads_out_of_the_root() {
    let house = House::new();
    let cases = [
        ("/api/projects/%2e%2e/messages", 400),
        ("/api/projects/../messages", 400),
        ("/api/projects/a%2fb/messages", 404),
        ("/api/projects/%252e%252e/messages", 400),
        ("/api/projects/a%252fb/messages", 400),
        ("/api/projects/a%5cb/messages", 400),
        ("/api/projects/a%00b/messages", 400),
        ("/api/projects/%20/messages", 400),
        ("/api/projects/%ff/messages", 400),
        ("/api/v1/messages?project_id=..", 400),
        ("/api/v1/messages?project_id=%2e%2e%2fx", 400),
        ("/api/v1/messages?project_id=p&task_id=%252e%252e", 400),
        ("/api/v1/messages", 400),
    ];
    for (path, status) in cases {
        assert_eq!(house.get(path).status, status, "{path}");
    }
    assert_eq!(house.get(&format!("/api/projects/{}/messages", "x".repeat(300))).status, 400);
}

#[test]
fn listening_beyond_this_machine_needs_a_key() {
    let house = House::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut options = house.options.clone();
    options.host = "0.0.0.0".to_owned();
    options.port = 0;
    let start = |options: &_| runtime.block_on(house.gateway(options));
    assert!(matches!(start(&options).unwrap_err(), GatewayError::Unguarded { .. }));
    let key = house.folder().join("key");
    std::fs::write(&key, "correct horse battery staple\n").unwrap();
    options.key_file = Some(key.clone());
    assert!(matches!(start(&options).unwrap_err(), GatewayError::Keyring(_)), "others can read it");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let gateway = start(&options).unwrap();
    let mut connection = crate::client::Connection::open(([127, 0, 0, 1], gateway.address().port()).into());
    let headers = [("Host", "192.0.2.1"), ("X-API-Key", "correct horse battery staple")];
    connection.request("GET", LIST, &headers, None);
    assert_eq!(connection.answer().status, 200);
    runtime.block_on(gateway.stop(std::time::Duration::ZERO));
}

#[test]
fn a_taken_port_is_not_fought_over() {
    let house = House::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let second = runtime.block_on(house.gateway(&house.options)).unwrap();
    assert!(second.address().port() > house.address().port(), "the next free one");
    runtime.block_on(second.stop(std::time::Duration::ZERO));
}
