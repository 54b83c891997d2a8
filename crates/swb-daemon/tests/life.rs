//! Starting, stopping, crashing.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use serde_json::json;
use swb_bus::topics::Delivery;
use swb_daemon::StartErrorKind;
use swb_proto::TopicGlob;
use swb_proto::event::GapReason;
use testkit::{Wire, World, wait};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).expect("it exists").permissions().mode() & 0o777
}

#[test]
fn folders_and_socket_are_for_their_owner_alone() {
    let mut world = World::new();
    world.start();
    let paths = world.paths();
    assert_eq!(mode(&paths.runtime), 0o700);
    assert_eq!(mode(&paths.state), 0o700);
    assert_eq!(mode(&paths.control_socket()), 0o600);
    assert_eq!(mode(&paths.sequence_file()), 0o600);
}

#[test]
fn a_clean_stop_leaves_nothing_that_misleads_the_next_start() {
    let mut world = World::new();
    world.start();
    let paths = world.paths();
    assert!(paths.control_socket().exists() && paths.description().exists());
    world.stop();
    assert!(!paths.control_socket().exists() && !paths.description().exists());
    world.start();
}

#[test]
fn what_a_crash_leaves_behind_does_not_stop_the_next_start() {
    let mut world = World::new();
    world.start();
    world.crash();
    assert!(world.paths().control_socket().exists(), "a crash removes nothing");
    world.start();
    assert_eq!(world.wire().ask(&json!({"jsonrpc":"2.0","id":1,"method":"$/ping"}))["id"], 1);
}

#[test]
fn a_second_daemon_is_refused_and_the_first_goes_on() {
    let mut world = World::new();
    world.start();
    let mut wire = world.wire();
    let ping = json!({"jsonrpc":"2.0","id":1,"method":"$/ping"});
    assert_eq!(wire.ask(&ping)["id"], 1);
    let refused = |world: &World| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime
            .block_on(swb_daemon::Daemon::start(world.paths(), &swb_daemon::Config::default()))
            .unwrap_err()
            .kind
    };
    assert!(
        matches!(refused(&world), StartErrorKind::AlreadyRunning { pid: Some(pid) } if pid == std::process::id())
    );
    // Even without the lock file, which a careless cleaner of temporary files may have taken away.
    std::fs::remove_file(world.paths().daemon_lock()).unwrap();
    assert!(matches!(refused(&world), StartErrorKind::AlreadyRunning { .. }));
    assert_eq!(wire.ask(&ping)["id"], 1, "the live socket was not touched");
}

#[test]
fn a_folder_of_somebody_else_or_a_link_is_refused() {
    let mut world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::os::unix::fs::symlink(world.folder(), world.home().join("run")).unwrap();
    let error = world.try_start().unwrap_err();
    assert!(matches!(error.kind, StartErrorKind::Folder(_)), "{error:?}");
    assert!(error.kind.to_string().contains("set SWB_HOME"), "the error says what to do: {}", error.kind);
}

#[test]
fn seq_never_goes_back_and_a_crash_is_one_gap() {
    let mut world = World::new();
    world.start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let say = |world: &World| {
        let mut wire = world.wire();
        wire.ask(
            &json!({"jsonrpc":"2.0","id":1,"method":"agents","params":{"channel_id":"c","content":"x"}}),
        );
    };
    say(&world);
    let before = world.bus().topics().head();
    world.crash_and_restart();
    let after = world.bus().topics().head();
    assert!(after > before, "{after} after {before}");
    let first = runtime
        .block_on(async { world.handle().subscribe(vec![], Some(before)).await.unwrap().next().await });
    let Some(Delivery::Gap(gap)) = first else { panic!("{first:?}") };
    assert_eq!((gap.from, gap.reason), (before + 1, GapReason::Crash));
    assert_eq!(gap.to + 1, world.bus().topics().oldest(), "the stream goes on right after the gap");

    say(&world);
    let head = world.bus().topics().head();
    world.stop();
    world.start();
    // bus.stopping and bus.ready.
    assert_eq!(world.bus().topics().head(), head + 2, "a clean stop skips nothing");
}

#[test]
fn a_connected_subscriber_survives_a_crash_and_is_told_what_it_missed() {
    let mut world = World::new();
    world.start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let handle = runtime.block_on(world.connect());
    let mut events = runtime
        .block_on(handle.subscribe(vec![TopicGlob::try_from("bus.*".to_owned()).unwrap()], None))
        .unwrap();
    world.crash_and_restart();
    let next = |events: &mut swb_bus::EventStream| {
        runtime
            .block_on(async { tokio::time::timeout(testkit::PATIENCE, events.next()).await })
            .expect("an event")
    };
    assert!(matches!(next(&mut events), Some(Delivery::Gap(gap)) if gap.reason == GapReason::Crash));
    let Some(Delivery::Event(ready)) = next(&mut events) else { panic!("bus.ready comes after the gap") };
    assert_eq!(ready.topic(), "bus.ready");
}

#[test]
fn bus_shutdown_is_answered_and_then_obeyed() {
    let mut world = World::new();
    world.start();
    let asked = world.bus();
    let mut wire = world.wire();
    let reply = wire.ask(&json!({"jsonrpc":"2.0","id":1,"method":"bus.shutdown","params":{"reason":"test"}}));
    assert_eq!(reply["result"]["pid"], std::process::id());
    drop(asked);
    world.stop();
    assert_eq!(wire.receive(), None, "the connection is closed when the daemon is gone");
}

#[test]
fn vanished_clients_leave_nothing_behind() {
    let mut world = World::new();
    world.start();
    let of_the_house = world.bus().topics().subscriptions();
    let subscribe = json!({"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{}});
    let mut wires: Vec<Wire> = (0..50).map(|_| world.wire()).collect();
    for wire in &mut wires {
        wire.ask(&subscribe);
    }
    let bus = world.bus();
    assert_eq!(bus.topics().subscriptions(), of_the_house + 50);
    drop(wires);
    wait("all connections to be gone", || {
        bus.stats().connections.load(std::sync::atomic::Ordering::Relaxed) == 0
    });
    assert_eq!(bus.topics().subscriptions(), of_the_house);
}

/// Not a test of its own: what the next test runs as another user.
#[test]
fn stranger() {
    let Some(socket) = std::env::var_os("SWB_TEST_STRANGER") else { return };
    let mut wire = Wire::connect(std::path::Path::new(&socket)).expect("the socket was opened to everyone");
    use std::io::Write;
    let _ = std::io::stdout().flush();
    assert_eq!(wire.receive(), None, "a stranger is sent away without a word");
}

#[test]
fn another_user_is_refused_even_if_the_socket_was_opened_to_everyone() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can try this as somebody else");
        return;
    }
    let mut world = World::new();
    world.start();
    let socket = world.paths().control_socket();
    for folder in socket.ancestors().skip(1).take_while(|folder| folder.starts_with(world.folder())) {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    // The test binary may lie where the other user cannot go, so it is taken along.
    let binary = world.folder().join("stranger");
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    let mut command = std::process::Command::new(&binary);
    command.args(["--exact", "stranger"]).env("SWB_TEST_STRANGER", &socket).uid(65534).current_dir("/");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let refused = world.bus().stats().refused.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(refused, 1);
}
