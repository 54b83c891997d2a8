//! What every answer has, and what the small routes say.

use crate::house::House;

#[test]
fn every_answer_has_an_id_of_its_own_or_the_callers() {
    let house = House::new();
    for path in ["/healthz", "/nowhere", "/api/projects/p/messages"] {
        let own = house.ask("GET", path, &[("X-Request-ID", "  mine-1 ")], None);
        assert_eq!(own.header("x-request-id"), Some("mine-1"), "{path}");
        let made = house.get(path);
        let id = made.header("x-request-id").expect("an id").to_owned();
        let parts: Vec<_> = id.split('-').collect();
        assert!(parts[0] == "req" && parts[1].parse::<u128>().is_ok() && parts[2].len() == 12, "{id}");
        assert_ne!(house.get(path).header("x-request-id"), Some(id.as_str()));
    }
    let long = "x".repeat(500);
    assert_ne!(
        house.ask("GET", "/healthz", &[("X-Request-ID", &long)], None).header("x-request-id"),
        Some(long.as_str())
    );
    let stream = house.stream("", &[("X-Request-ID", "s1")]);
    assert!(stream.headers.contains(&("x-request-id".to_owned(), "s1".to_owned())));
}

#[test]
fn other_methods_are_not_allowed_and_other_paths_not_found() {
    let house = House::new();
    for (method, path) in [
        ("PUT", "/api/v1/messages"),
        ("DELETE", "/api/projects/p/messages"),
        ("POST", "/api/projects/p/messages/stream"),
        ("PATCH", "/healthz"),
        ("OPTIONS", "/api/v1/messages"),
    ] {
        let answer = house.ask(method, path, &[], None);
        assert_eq!(
            (answer.status, answer.error().0.as_str()),
            (405, "METHOD_NOT_ALLOWED"),
            "{method} {path}"
        );
        assert!(answer.header("allow").is_some(), "{method} {path}");
    }
    let mut connection = crate::client::Connection::open(house.address());
    connection.request("HEAD", "/api/v1/messages?project_id=p", &[("Authorization", &house.bearer())], None);
    assert_eq!(connection.head().0, 405);
    let answer = house.get("/api/nowhere");
    assert_eq!((answer.status, answer.error().0.as_str()), (404, "NOT_FOUND"));
    assert!(answer.text().ends_with("}\n"));
}

#[test]
fn metrics_count_what_happens() {
    let house = House::new();
    let page = house.get("/metrics");
    assert!(page.header("content-type").unwrap().starts_with("text/plain"));
    for line in page.text().lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').expect("name and value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    house.say("one");
    house.say("two");
    house.get("/nowhere");
    assert_eq!(house.metric("swb_messagebus_appends_total "), 2.0);
    assert_eq!(
        house.metric("conductor_messagebus_appends_total "),
        2.0,
        "the name that dashboards know, and not dead"
    );
    assert_eq!(house.metric("swb_http_requests_total{status=\"4xx\"} "), 1.0);
}

#[test]
fn a_cause_inside_the_house_stays_inside() {
    let house = House::new();
    let folder = house.options.root.join("p");
    std::fs::create_dir_all(&folder).unwrap();
    // A folder in the place of the file is refused without its path.
    std::fs::create_dir(folder.join("PROJECT-MESSAGE-BUS.md")).unwrap();
    let answer = house.get("/api/projects/p/messages");
    assert_eq!(answer.status, 403);
    assert!(!answer.text().contains(house.folder().to_str().unwrap()), "{}", answer.text());
}
