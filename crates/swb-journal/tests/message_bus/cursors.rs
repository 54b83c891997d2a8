//! Named readers.

use swb_journal::message_bus::CursorErrorKind;

use crate::support::{World, bodies, draft};

#[test]
fn marks_move_forward_and_never_back() {
    let world = World::new();
    let bus = world.rotating_bus(600);
    let posted: Vec<_> =
        (0..9).map(|n| bus.append(&draft(n.to_string())).unwrap().id.into_string()).collect();
    assert!(!world.archives().is_empty(), "the order must hold across archives");
    assert_eq!(bus.reader("ada").unwrap().read, None);
    assert_eq!(bus.unread("ada").unwrap().len(), 9);
    bus.mark_read("ada", &posted[7]).unwrap();
    let cursor = bus.acknowledge("ada", &posted[2]).unwrap();
    assert_eq!(cursor.read.unwrap().msg_id, posted[7]);
    assert_eq!(cursor.acked.unwrap().msg_id, posted[2]);
    let cursor = world.bus().acknowledge("ada", &posted[0]).unwrap();
    assert_eq!(cursor.acked.unwrap().msg_id, posted[2], "an older mark is harmless");
    assert_eq!(bodies(&bus.unread("ada").unwrap()), ["8"]);
    let cursor = bus.acknowledge("bob.2", &posted[8]).unwrap();
    assert_eq!(cursor.read, cursor.acked, "acknowledging is having read");
    let readers: Vec<_> = bus.readers().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(readers, ["ada", "bob.2"]);
}

#[test]
fn unknown_messages_and_unusable_names_are_refused() {
    let world = World::new();
    let bus = world.bus();
    bus.append(&draft("x")).unwrap();
    assert!(matches!(bus.mark_read("ada", "MSG-none").unwrap_err().kind, CursorErrorKind::Bus(_)));
    for name in ["", ".hidden", "a/b", "..", "ü", &"x".repeat(81)] {
        assert!(matches!(bus.reader(name).unwrap_err().kind, CursorErrorKind::Name { .. }), "{name:?}");
    }
    assert!(bus.readers().unwrap().is_empty());
}
