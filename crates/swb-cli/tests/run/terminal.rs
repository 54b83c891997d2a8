//! A terminal for tests: a pseudo-terminal with a person at its other end.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use testkit::{World, wait};

/// A run on a terminal of its own.
pub(crate) struct Terminal {
    master: Option<Arc<File>>,
    slave: File,
    process: Child,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// A run without the daemon.
    #[allow(dead_code, reason = "those who test what goes through the daemon say what they want themselves")]
    pub(crate) fn start(world: &World, arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["run", "--no-daemon"].iter().chain(arguments).copied().collect();
        Self::open(world, world.folder(), &all)
    }

    /// Any command, in this folder.
    pub(crate) fn open(world: &World, folder: &Path, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = File::options().read(true).write(true).open(name).unwrap();
        let master = Arc::new(File::from(master));
        resize(&master, 80, 24);
        // Only a process of its own session can have a terminal of its own.
        let mut command = std::process::Command::new("setsid");
        let binary = world.command(["run"]);
        command.args(["--ctty", "--wait"]).arg(binary.get_program()).args(arguments);
        command.env_clear().envs(binary.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.env("TERM", "xterm-256color").current_dir(folder);
        let end = || Stdio::from(slave.try_clone().unwrap());
        let process = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid of util-linux");
        let seen = Arc::new(Mutex::new(Vec::new()));
        // The thread must not keep the terminal open when the person closes it.
        let (reader, shared) = (Arc::downgrade(&master), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Some(master) = reader.upgrade() {
                let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                if poll(&mut [PollFd::new(&*master, PollFlags::IN)], Some(&moment)) == Ok(0) {
                    continue;
                }
                match (&*master).read(&mut bytes) {
                    Ok(count @ 1..) => shared.lock().unwrap().extend_from_slice(&bytes[..count]),
                    _ => return,
                }
            }
        });
        Terminal { master: Some(master), slave, process, seen }
    }

    /// Everything that came, as it came.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Everything that came, without sequences.
    pub(crate) fn text(&self) -> String {
        let raw = self.raw();
        let mut text = String::new();
        let mut rest = raw.as_str();
        while let Some((before, sequence)) = rest.split_once('\u{1b}') {
            text.push_str(before);
            let end = sequence.find(|c: char| c.is_ascii_alphabetic()).map_or(sequence.len(), |at| at + 1);
            rest = &sequence[end..];
        }
        text + rest
    }

    #[track_caller]
    pub(crate) fn until(&self, text: &str) {
        wait(&format!("{text:?} on the terminal"), || self.text().contains(text));
    }

    pub(crate) fn press(&mut self, keys: &str) {
        (&**self.master.as_ref().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    #[allow(dead_code, reason = "not everyone's window changes")]
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        resize(self.master.as_ref().unwrap(), columns, rows);
    }

    /// The person closes the window.
    pub(crate) fn hang_up(&mut self) {
        self.master = None;
    }

    /// Whether what is typed appears, as a shell expects it.
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(&self.slave).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    #[track_caller]
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let code = testkit::wait_for("swb run to end", || self.process.try_wait().unwrap()).code();
        if self.master.is_some() {
            self.read_to_the_end();
        }
        code
    }

    /// What was written last may still be on its way: a mark behind it says when it has come.
    fn read_to_the_end(&mut self) {
        const MARK: u8 = 0;
        self.slave.write_all(&[MARK]).unwrap();
        wait("the last words on the terminal", || {
            self.seen.lock().unwrap().pop_if(|last| *last == MARK).is_some()
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn resize(master: &File, columns: u16, rows: u16) {
    tcsetwinsize(master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}
