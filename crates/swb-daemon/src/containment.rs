//! What an agent in a cell does not see: the house's own folders, and the doors to other people's programs.
//!
//! In place of the house's folders there is the control socket, on which it is recognised by its ancestry (through a
//! folder of its own, so that it is always that of the daemon that runs now), and the message bus of its project. What a
//! shell reads when it starts can be read but not changed: it would run outside of the cell. For the same reason nothing
//! new stays in the home folder and in its `.config`, unless the project is that folder; what is there can be written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use swb_host::Walls;

use crate::door;
use crate::paths::Paths;

/// Files that shells and logins run.
const START_FILES: [&str; 23] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".ssh",
    ".tmux.conf",
];

/// The walls around an agent. `message_bus` is the folder of its project on the message bus.
pub fn walls(paths: &Paths, message_bus: Option<&Path>) -> Walls {
    let uid = rustix::process::geteuid().as_raw();
    build(paths, message_bus, uid, |name| std::env::var_os(name))
}

fn build(
    paths: &Paths,
    message_bus: Option<&Path>,
    uid: u32,
    env: impl Fn(&str) -> Option<OsString>,
) -> Walls {
    let Paths { config, state, data, runtime, sockets, .. } = paths;
    // Where a folder really lies, if a link leads there: links are not hidden, and lead nowhere then.
    let mut hidden: Vec<PathBuf> = [config, state, data, runtime, sockets]
        .map(|folder| std::fs::canonicalize(folder).unwrap_or_else(|_| folder.clone()))
        .to_vec();
    let variable = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user_runtime = variable("XDG_RUNTIME_DIR").unwrap_or_else(|| format!("/run/user/{uid}").into());
    hidden.extend(["bus", "dbus-1", "systemd", "gnupg", "keyring"].map(|name| user_runtime.join(name)));
    hidden.extend(variable("SSH_AUTH_SOCK"));
    hidden.extend(env("DBUS_SESSION_BUS_ADDRESS").as_deref().and_then(|at| at.to_str()).and_then(bus_path));
    let tmux = variable("TMUX_TMPDIR").unwrap_or_else(|| "/tmp".into());
    hidden.push(tmux.join(format!("tmux-{uid}")));
    hidden.sort();
    hidden.dedup();
    let home = variable("HOME").filter(|home| home.parent().is_some());
    Walls {
        // A place below another hidden one is hidden with it, and cannot be mounted on any more.
        hidden: hidden
            .iter()
            .filter(|path| !hidden.iter().any(|above| above != *path && path.starts_with(above)))
            .cloned()
            .collect(),
        shown: std::iter::once(paths.door()).chain(message_bus.map(Path::to_owned)).collect(),
        read_only: std::iter::once(paths.door())
            .chain(home.iter().flat_map(|home| START_FILES.map(|name| home.join(name))))
            .collect(),
        // What is not there yet cannot be made so that it stays.
        fenced: home.iter().flat_map(|home| [home.clone(), home.join(".config")]).collect(),
        links: vec![(paths.control_socket(), door::socket(paths))],
    }
}

/// The socket in an address such as `unix:path=/run/user/1000/bus,guid=…`.
fn bus_path(address: &str) -> Option<PathBuf> {
    let path = address.split(';').find_map(|one| one.strip_prefix("unix:path="))?;
    path.split(',').next().map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_and_the_doors_of_others_are_hidden() {
        let paths = Paths::under(Path::new("/h/swb"));
        let bus = Path::new("/h/swb/data/projects/mine");
        let walls = build(&paths, Some(bus), 7, |name| match name {
            "HOME" => Some("/h".into()),
            "SSH_AUTH_SOCK" => Some("/tmp/ssh-1/agent".into()),
            "DBUS_SESSION_BUS_ADDRESS" => Some("unix:path=/run/elsewhere/bus,guid=1".into()),
            _ => None,
        });
        for path in [
            "/h/swb/config",
            "/h/swb/state",
            "/h/swb/data",
            "/h/swb/run",
            "/run/user/7/bus",
            "/tmp/ssh-1/agent",
            "/run/elsewhere/bus",
            "/tmp/tmux-7",
        ] {
            assert!(walls.hidden.contains(&PathBuf::from(path)), "{path} in {:?}", walls.hidden);
        }
        assert_eq!(walls.shown, [paths.door(), bus.to_owned()]);
        assert!(walls.read_only.contains(&paths.door()));
        assert_eq!(walls.links, [(paths.control_socket(), paths.door().join("control.sock"))]);
        assert!(walls.read_only.contains(&PathBuf::from("/h/.bashrc")));
        assert_eq!(walls.fenced, ["/h", "/h/.config"].map(PathBuf::from));
    }

    #[test]
    fn nothing_is_hidden_twice() {
        let paths = Paths::under(Path::new("/run/user/7/bus/swb"));
        let walls = build(&paths, None, 7, |_| None);
        for path in &walls.hidden {
            assert_eq!(walls.hidden.iter().filter(|above| path.starts_with(above)).count(), 1, "{path:?}");
        }
    }
}
