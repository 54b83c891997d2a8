//! A shell in a cell tries to reach what is not there.

use swb_host::Walls;
use swb_host::wire::{Containment, Exit, Stream};

use crate::hosted::{Hosted, Wish, story};

/// Runs a script in a cell that hides `secret/` but shows `secret/shown`, and protects `start-file`. What it printed;
/// `None` where the kernel builds no cells.
async fn in_cell(script: &str) -> Option<(String, Exit)> {
    let place = tempfile::Builder::new().prefix("swb-").tempdir_in("/tmp").unwrap();
    let secret = place.path().join("secret");
    std::fs::create_dir_all(secret.join("shown")).unwrap();
    std::fs::write(secret.join("key"), "sesame").unwrap();
    std::fs::write(secret.join("shown/letter"), "dear agent\n").unwrap();
    std::fs::write(place.path().join("start-file"), "as it was\n").unwrap();
    let walls = Walls {
        hidden: vec![secret.clone(), place.path().join("not there")],
        shown: vec![secret.join("shown")],
        read_only: vec![place.path().join("start-file")],
        fenced: Vec::new(),
        links: vec![(secret.join("link"), secret.join("shown/letter"))],
    };
    let script = format!("cd {}; {script}", place.path().display());
    let hosted = Hosted::start(&script, Wish { walls: Some(walls), ..Wish::default() }).await;
    let (mut talk, status) = hosted.connect().await;
    if let Containment::Advisory { reason } = status.containment {
        assert!(!reason.is_empty());
        return None;
    }
    let said = talk.read_all(Stream::Stdout, 0, false).await;
    let exit = talk.exit().await;
    assert_eq!(std::fs::read_to_string(place.path().join("start-file")).unwrap(), "as it was\n");
    assert_eq!(std::fs::read_to_string(secret.join("key")).unwrap(), "sesame");
    Some((String::from_utf8(said).unwrap(), exit))
}

#[test]
fn hidden_is_not_there_and_shown_is() {
    story(async {
        let Some((said, exit)) =
            in_cell("ls secret; cat secret/link; echo hi >secret/shown/reply && echo wrote").await
        else {
            return;
        };
        assert_eq!((said.as_str(), exit), ("link\nshown\ndear agent\nwrote\n", Exit::Code(0)));
    });
}

#[test]
fn the_walls_cannot_be_taken_down_from_inside() {
    story(async {
        let script = "umount secret || echo no; umount -l secret || echo no; mount --bind /etc secret || echo no; \
                      unshare -Urm sh -c 'umount secret; umount -l secret; cat secret/key' || echo no; \
                      echo x >secret/new || echo no; echo changed >start-file || echo no; \
                      unshare -Urm sh -c 'umount start-file; mount -o remount,rw,bind start-file; echo changed >start-file' || echo no";
        let Some((said, _)) = in_cell(script).await else { return };
        assert_eq!(said, "no\n".repeat(7));
    });
}

#[test]
fn processes_outside_are_not_seen_and_capabilities_are_gone() {
    story(async {
        let script = "ls /proc | grep -c '^[0-9]*$'; test -e /proc/1/root/secret || echo no; \
                      grep -h -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -d '\\t'";
        let Some((said, _)) = in_cell(script).await else { return };
        let mut lines = said.lines();
        // Process 1, the shell, and the two of the pipe.
        let processes: usize = lines.next().unwrap().parse().unwrap();
        assert!((3..=5).contains(&processes), "{said}");
        let rest: Vec<&str> = lines.collect();
        assert_eq!(rest, ["no", "CapEff:0000000000000000", "CapBnd:0000000000000000", "NoNewPrivs:1"]);
    });
}

#[test]
fn a_child_in_a_cell_ends_as_it_ended() {
    story(async {
        let Some((_, exit)) = in_cell("exit 137").await else { return };
        assert_eq!(exit, Exit::Code(137));
        assert_eq!(in_cell("kill -9 $$").await.unwrap().1, Exit::Signal(9));
        assert_eq!(in_cell("sleep 1000 & exit 4").await.unwrap().1, Exit::Code(4));
    });
}
