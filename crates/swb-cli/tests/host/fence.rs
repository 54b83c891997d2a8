//! A shell in a cell makes itself at home in a folder that is fenced.

use std::fs;
use std::path::Path;

use swb_host::Walls;
use swb_host::wire::{Containment, Stream};

use crate::hosted::{Hosted, Wish, story};

/// Runs a script in a home with a fence around it. What it printed; `None` where the kernel builds no cells.
async fn at_home(home: &Path, change: impl FnOnce(&mut Walls), script: &str) -> Option<String> {
    for folder in ["project/src", ".config/editor"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    fs::write(home.join("notes"), "noted\n").unwrap();
    std::os::unix::fs::symlink("notes", home.join("link")).unwrap();
    let fenced = vec![home.to_owned(), home.join(".config"), home.join("not there")];
    let mut walls = Walls { fenced, ..Walls::default() };
    change(&mut walls);
    let script = format!("cd {}; {script}", home.display());
    let hosted = Hosted::start(&script, Wish { walls: Some(walls), ..Wish::default() }).await;
    let (mut talk, status) = hosted.connect().await;
    if matches!(status.containment, Containment::Advisory { .. }) {
        return None;
    }
    let said = talk.read_all(Stream::Stdout, 0, false).await;
    talk.exit().await;
    Some(String::from_utf8(said).unwrap())
}

fn home() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("swb-").tempdir_in("/tmp").unwrap()
}

#[test]
fn what_is_there_is_used_and_what_is_made_does_not_stay() {
    story(async {
        let home = home();
        let script = "cat link; ls -A; echo more >>notes; echo made >project/made; echo made >.config/editor/made; \
                      echo evil >.bash_login; echo evil >.config/new; mkdir -p .config/autostart; \
                      cp .bash_login x && mv x .zshenv; cat .zshenv; (cd project && echo evil >../.profile); cat .profile";
        let Some(said) = at_home(home.path(), |_| {}, script).await else { return };
        assert_eq!(said, "noted\n.config\nlink\nnotes\nproject\nevil\nevil\n");
        let mut names: Vec<_> =
            fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".config", "link", "notes", "project"]);
        assert_eq!(fs::read_dir(home.path().join(".config")).unwrap().count(), 1);
        let read = |file: &str| fs::read_to_string(home.path().join(file)).unwrap();
        assert_eq!((read("notes").as_str(), read("project/made").as_str()), ("noted\nmore\n", "made\n"));
        assert_eq!(read(".config/editor/made"), "made\n");
    });
}

#[test]
fn what_is_there_is_neither_removed_nor_replaced_and_the_fence_stands() {
    story(async {
        let home = home();
        let script = "echo other >other; mv -f other notes 2>/dev/null || echo no; rm -f notes 2>/dev/null || echo no; \
                      mv project elsewhere 2>/dev/null || echo no; umount . 2>/dev/null || echo no; cd /; \
                      unshare -Urm umount -l \"$OLDPWD\" 2>/dev/null || echo no";
        let Some(said) = at_home(home.path(), |_| {}, script).await else { return };
        assert_eq!(said, "no\n".repeat(5));
        assert_eq!(fs::read_to_string(home.path().join("notes")).unwrap(), "noted\n");
        assert!(home.path().join("project/src").is_dir());
    });
}

#[test]
fn where_work_is_done_there_is_no_fence() {
    story(async {
        let home = home();
        let open = |walls: &mut Walls| walls.leave_open(home.path());
        let Some(_) = at_home(home.path(), open, "echo made >new").await else { return };
        assert_eq!(fs::read_to_string(home.path().join("new")).unwrap(), "made\n");
    });
}
