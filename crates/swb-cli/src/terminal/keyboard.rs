//! Single keys of a person at the terminal, and the terminal as it was when we leave.
//!
//! Keys are read from the terminal itself and not from standard input, which may be a pipe with the prompt in it. They
//! come one by one and are not echoed, because an echo would land in the middle of what is drawn; the keys that send
//! signals still do. Only a program in the foreground may do this: in the background there is no keyboard.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};
use tokio::sync::mpsc;

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Backspace,
    /// Ctrl-W.
    EraseWord,
    /// Ctrl-U.
    EraseLine,
    /// Ctrl-D.
    End,
}

/// The keyboard, ours until dropped.
#[derive(Debug)]
pub(crate) struct Keyboard {
    terminal: Arc<File>,
    before: Termios,
    keys: mpsc::Receiver<Key>,
}

impl Keyboard {
    /// Takes the keyboard; `None` if there is none for us.
    pub(crate) fn take() -> Option<Self> {
        let terminal = Arc::new(File::options().read(true).write(true).open("/dev/tty").ok()?);
        if !in_foreground(&terminal) {
            return None;
        }
        let before = tcgetattr(&*terminal).ok()?;
        let (sender, keys) = mpsc::channel(64);
        let keyboard = Keyboard { terminal: Arc::clone(&terminal), before, keys };
        keyboard.quieten();
        std::thread::spawn(move || read(&terminal, &sender));
        Some(keyboard)
    }

    /// The next key. Waits for ever once the terminal has gone.
    pub(crate) async fn next(&mut self) -> Key {
        match self.keys.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// Forgets what was pressed so far: it was meant for something else.
    pub(crate) fn forget(&mut self) {
        let _ = tcflush(&*self.terminal, QueueSelector::IFlush);
        while self.keys.try_recv().is_ok() {}
    }

    /// The terminal as it was, for as long as we are stopped.
    pub(crate) fn restore(&self) {
        if !in_foreground(&self.terminal) {
            return;
        }
        let _ = tcsetattr(&*self.terminal, OptionalActions::Now, &self.before);
    }

    /// Keys one by one, and without an echo.
    pub(crate) fn quieten(&self) {
        // Changing the terminal would stop a program in the background.
        if !in_foreground(&self.terminal) {
            return;
        }
        let mut quiet = self.before.clone();
        quiet.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        let _ = tcsetattr(&*self.terminal, OptionalActions::Now, &quiet);
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.restore();
    }
}

fn in_foreground(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}

fn read(mut terminal: &File, sender: &mpsc::Sender<Key>) {
    let mut decoder = Decoder::default();
    let mut bytes = [0; 256];
    loop {
        match terminal.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                for key in bytes[..count].iter().filter_map(|byte| decoder.take(*byte)) {
                    // More than anybody can have meant is dropped.
                    let _ = sender.try_send(key);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Bytes to keys. Keys that send a sequence (arrows and the like) mean nothing here.
#[derive(Debug, Default)]
struct Decoder {
    escape: Escape,
    character: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy)]
enum Escape {
    #[default]
    None,
    Begun,
    Sequence,
}

impl Decoder {
    fn take(&mut self, byte: u8) -> Option<Key> {
        match (self.escape, byte) {
            (_, 0x1b) => self.escape = Escape::Begun,
            (Escape::Begun, b'[' | b'O') => self.escape = Escape::Sequence,
            (Escape::Begun, _) | (Escape::Sequence, 0x40..=0x7e) => self.escape = Escape::None,
            (Escape::Sequence, _) => {}
            (Escape::None, byte) => return self.key(byte),
        }
        self.character.clear();
        None
    }

    fn key(&mut self, byte: u8) -> Option<Key> {
        match byte {
            b'\r' | b'\n' => Some(Key::Enter),
            0x08 | 0x7f => Some(Key::Backspace),
            0x15 => Some(Key::EraseLine),
            0x17 => Some(Key::EraseWord),
            0x04 => Some(Key::End),
            0..0x20 => None,
            byte => {
                self.character.push(byte);
                match std::str::from_utf8(&self.character) {
                    Ok(text) => {
                        let key = text.chars().next().map(Key::Char);
                        self.character.clear();
                        key
                    }
                    Err(error) => {
                        if error.error_len().is_some() {
                            self.character.clear();
                        }
                        None
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_keys_and_sequences_nothing() {
        let mut decoder = Decoder::default();
        let keys: Vec<_> = b"y\x1b[A\x1b[1;5C\x1bOP\x1bx\xc3\xa4\xff\xe6\xbc\xa2\r\x7f\x15\x17\x04\x01"
            .iter()
            .filter_map(|byte| decoder.take(*byte))
            .collect();
        use Key::*;
        assert_eq!(keys, [Char('y'), Char('ä'), Char('漢'), Enter, Backspace, EraseLine, EraseWord, End]);
    }
}
