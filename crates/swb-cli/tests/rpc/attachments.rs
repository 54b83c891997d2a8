//! Attachments: files of the parent that the model gets to see, and those that it does not.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::World;

use crate::child::{Child, kinds, text, world};

const GIF: &[u8] = b"GIF89a\x05\0\x06\0\0\0;";

fn file(world: &World, name: &str, bytes: &[u8]) -> PathBuf {
    let path = world.folder().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn prompt(child: &mut Child, id: &str, message: &str, paths: &[&Path]) {
    let attachments: Vec<Value> = paths.iter().map(|path| json!({ "path": path, "mime": "x/y" })).collect();
    child.send(json!({ "type": "prompt", "id": id, "message": message, "attachments": attachments }));
}

/// The one frame that answers a prompt whose files are refused.
#[track_caller]
fn refusal(child: &mut Child, paths: &[&Path]) -> String {
    prompt(child, "p", "look", paths);
    let error = child.next();
    assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("p")), "{error}");
    child.send(json!({ "type": "get_state", "id": "s" }));
    assert_eq!(child.next()["command"], "get_state", "the error is all that is said");
    error["message"].as_str().unwrap().to_owned()
}

#[test]
fn the_model_gets_pictures_documents_and_text_and_the_history_names_them() {
    let world = world();
    let (note, picture) = (file(&world, "note.txt", "first line\n".as_bytes()), file(&world, "a.png", GIF));
    let pdf = file(&world, "b", b"%PDF-1.4\n%%EOF\n");
    let mut child = Child::start(&world, &[]);
    prompt(&mut child, "p", "look at these", &[&note, &picture, &pdf]);
    let frames = child.until_response("p");
    assert_eq!(
        frames.last().unwrap(),
        &json!({ "type": "response", "id": "p", "command": "prompt", "ok": true })
    );
    let said = text(&frames);
    for part in [
        "note.txt (text/plain, 11 bytes, begins with \"first line\\n\")",
        "a.png (image/gif, 13 bytes)",
        "b (application/pdf, 15 bytes)",
        "look at these",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let kept = child.messages()[0]["content"].take();
    assert_eq!(
        (&kept[0]["title"], &kept[1]["source"]["media_type"]),
        (&json!("note.txt"), &json!("image/gif"))
    );
    assert_eq!(kept[3], json!({ "type": "text", "text": "look at these" }));
}

#[test]
fn a_session_goes_on_with_its_files_after_a_crash_and_without_the_originals() {
    let world = world();
    let note = file(&world, "note.txt", b"kept");
    let mut child = Child::start(&world, &[]);
    prompt(&mut child, "p", "!say a\n!stall", &[&note]);
    child.until("the text", |frame| frame["event"]["delta"] == "a");
    child.signal(Signal::KILL);
    child.exit_code();
    std::fs::remove_file(&note).unwrap();
    let mut again = Child::start(&world, &["--continue", &child.session_id]);
    let said = text(&again.turn("q", "!files"));
    assert!(said.contains("note.txt (text/plain, 4 bytes, begins with \"kept\")"), "{said}");
    again.close_stdin();
    again.exit_code();
    // Without the copies as well, only the words are left.
    std::fs::remove_file(&stored_files(&world)[0]).unwrap();
    let mut third = Child::start(&world, &["--continue", &child.session_id]);
    assert!(text(&third.turn("r", "!files")).contains("nothing"));
}

#[test]
fn refused_files_leave_everything_as_it_was() {
    let world = world();
    let note = file(&world, "note.txt", b"x");
    let link = world.folder().join("link.txt");
    symlink(&note, &link).unwrap();
    let fifo = world.folder().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let secret = file(&world, ".env", b"TOKEN=1");
    symlink(&secret, world.folder().join("harmless")).unwrap();
    std::fs::create_dir_all(world.folder().join(".ssh")).unwrap();
    let key = file(&world, ".ssh/known", b"x");
    symlink(world.folder().join(".ssh"), world.folder().join("around")).unwrap();
    let through = world.folder().join("around/known");
    let mut child = Child::start(&world, &[]);
    for (path, wanted) in [
        (PathBuf::from("note.txt"), "attachment path must be absolute: note.txt".to_owned()),
        (world.folder().join("../x"), "attachment path must not contain ..: ".to_owned()),
        (link, "cannot be used: it is a symbolic link".to_owned()),
        (fifo, "cannot be used: it is a pipe, not a regular file".to_owned()),
        (world.folder().to_owned(), "it is a folder, not a regular file".to_owned()),
        ("/dev/zero".into(), "it is a device, not a regular file".to_owned()),
        (world.folder().join("nothing"), "No such file".to_owned()),
        (file(&world, "empty", b""), "is empty".to_owned()),
        (
            file(&world, "elf", b"\x7fELF\0"),
            "Unsupported binary attachment; use an image, PDF, or UTF-8 text file".to_owned(),
        ),
        (secret, "may hold secrets".to_owned()),
        (key, "may hold secrets".to_owned()),
        (through, "may hold secrets".to_owned()),
    ] {
        let message = refusal(&mut child, &[&note, &path]);
        assert!(message.contains(&wanted), "{message:?} does not say {wanted:?}");
    }
    assert!(refusal(&mut child, &[note.as_path(); 9]).contains("the limit is 8"));
    assert_eq!(child.messages().len(), 0);
    assert_eq!(stored_files(&world), Vec::<PathBuf>::new());
}

#[test]
fn the_mode_full_may_attach_what_looks_like_a_secret() {
    let world = world();
    let secret = file(&world, ".env", b"TOKEN=1");
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    prompt(&mut child, "p", "!files", &[&secret]);
    assert!(text(&child.until_response("p")).contains(".env (text/plain, 7 bytes"));
}

#[test]
fn files_of_a_compacted_conversation_are_removed() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    prompt(&mut child, "p", "!files", &[&file(&world, "note.txt", b"x")]);
    child.until_response("p");
    assert_eq!(stored_files(&world).len(), 1);
    assert_eq!(child.ask(json!({ "type": "compact", "id": "c" }))["ok"], true);
    assert_eq!(stored_files(&world).len(), 0);
    assert!(text(&child.turn("q", "!files")).contains("nothing"));
}

#[test]
fn a_conversation_has_room_for_so_many_files_and_no_more() {
    let world = world();
    let mut pdf = b"%PDF-1.4 %%EOF".to_vec();
    pdf.resize(8 * 1024 * 1024, b' ');
    let one = file(&world, "one.pdf", &pdf);
    pdf.push(b'.');
    let two = file(&world, "two.pdf", &pdf);
    let mut child = Child::start(&world, &[]);
    prompt(&mut child, "p", "!files", &[&one]);
    assert_eq!(kinds(&child.until_response("p")).last(), Some(&"response"));
    assert!(refusal(&mut child, &[&two]).contains("20 MiB; compact it"));
}

fn stored_files(world: &World) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![world.home()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if folder.extension().is_some_and(|ending| ending == "files") {
                found.push(entry.path());
            }
        }
    }
    found
}
