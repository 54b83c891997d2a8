//! One client of a host: frames in, pieces of streams out, in one task.
//!
//! A client that does not read holds up its own connection only. One that is gone leaves nothing behind: what it wrote was
//! taken or was not, and what it acknowledged stays so.

use std::io;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::state::{Shared, State};
use crate::descendants;
use crate::output::Piece;
use crate::wire::{self, Reply, Request, Stream};

/// A client is sent this much before it is listened to again.
const HIGH_WATER: usize = 256 * 1024;

pub(super) struct Connection {
    shared: Arc<Shared>,
    /// What the client follows, and the next byte it wants.
    followed: Vec<(Stream, u64)>,
    greeted: bool,
    told_of_exit: bool,
    out: Vec<u8>,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Connection { shared, followed: Vec::new(), greeted: false, told_of_exit: false, out: Vec::new() }
    }

    pub(super) async fn run(mut self, mut stream: UnixStream) -> io::Result<()> {
        let mut changes = self.shared.watch();
        let mut input = Vec::with_capacity(4096);
        loop {
            changes.mark_unchanged();
            let more = self.fetch()?;
            stream.write_all(&self.out).await?;
            self.out.clear();
            self.out.shrink_to(wire::MAX_FRAME);
            // Not biased: a client that reads without end is still listened to.
            tokio::select! {
                read = stream.read_buf(&mut input) => {
                    if read? == 0 {
                        return Ok(());
                    }
                    self.take_frames(&mut input)?;
                }
                () = tokio::task::yield_now(), if more => {}
                _ = changes.changed(), if !more => {}
            }
        }
    }

    fn take_frames(&mut self, input: &mut Vec<u8>) -> io::Result<()> {
        let mut start = 0;
        while let Some((kind, body, length)) = wire::split(&input[start..]).map_err(io::Error::other)? {
            let reply = match Request::read(kind, body) {
                Ok(request) => self.serve(request),
                Err(error) => Err(error.to_string()),
            };
            let reply = reply.unwrap_or_else(|reason| Reply::Refused { kind, reason });
            reply.write(&mut self.out);
            start += length;
        }
        input.drain(..start);
        Ok(())
    }

    fn serve(&mut self, request: Request) -> Result<Reply, String> {
        let kind = request.kind();
        if !self.greeted && !matches!(request, Request::Hello { .. }) {
            return Err("hello comes first".to_owned());
        }
        match request {
            Request::Hello { .. } => {
                self.greeted = true;
                return Ok(Reply::Status(self.shared.look().status()));
            }
            Request::Status => return Ok(Reply::Status(self.shared.look().status())),
            Request::Follow { stream, from } => {
                let end = self.shared.look().output(stream).ok_or("it only goes in")?.extent().1;
                if from > end {
                    return Err(format!("only {end} bytes came so far"));
                }
                self.followed.retain(|(known, _)| *known != stream);
                self.followed.push((stream, from));
            }
            Request::Acknowledge { stream, upto } => self.shared.change(|state| {
                let output = state.output(stream).ok_or("it only goes in")?;
                if output.acknowledge(upto) { Ok(()) } else { Err("so much was never said") }
            })?,
            Request::Write { stream, number, bytes } => {
                self.shared.change(|state| input(state, stream)?.write(number, bytes))?;
                return Ok(Reply::Taken { stream, number });
            }
            Request::Close { stream } => {
                self.shared.change(|state| input(state, stream).map(|input| input.close()))?;
            }
            Request::Signal { signal, to_all } => self.signal(signal, to_all)?,
            Request::Release => self.shared.change(|state| {
                if state.exit.is_none() {
                    return Err("the child is alive");
                }
                state.released = true;
                Ok(())
            })?,
        }
        Ok(Reply::Done { kind })
    }

    fn signal(&self, signal: u8, to_all: bool) -> Result<(), String> {
        let signal = Signal::from_named_raw(i32::from(signal)).ok_or("no such signal")?;
        let state = self.shared.look();
        if state.exit.is_some() {
            return Err("the child has ended".to_owned());
        }
        if to_all {
            for process in descendants::living() {
                let _ = kill_process(process, signal);
            }
            return Ok(());
        }
        let child = i32::try_from(state.child_pid).ok().and_then(Pid::from_raw).ok_or("no child yet")?;
        kill_process(child, signal).map_err(|error| error.to_string())
    }

    /// Puts what has come into the output buffer, round by round over what is followed. True if it did not all fit.
    fn fetch(&mut self) -> io::Result<bool> {
        let mut state = self.shared.look();
        let mut any = true;
        while any && self.out.len() < HIGH_WATER {
            any = false;
            for (stream, next) in &mut self.followed {
                let Some(output) = state.output(*stream) else { continue };
                match output.read(*next)? {
                    Piece::Bytes(bytes) => {
                        wire::write_data(&mut self.out, *stream, *next, &bytes);
                        *next += bytes.len() as u64;
                        any = true;
                    }
                    Piece::Gone(to) => {
                        Reply::Gap { stream: *stream, from: *next, to }.write(&mut self.out);
                        *next = to;
                        any = true;
                    }
                    Piece::Nothing => {}
                    Piece::End => {
                        Reply::End { stream: *stream, offset: *next }.write(&mut self.out);
                        // Nothing more will come; marked by a place that no stream reaches.
                        *next = u64::MAX;
                    }
                }
            }
            self.followed.retain(|(_, next)| *next != u64::MAX);
        }
        if let Some(exit) = state.exit.filter(|_| self.greeted && !self.told_of_exit && !any) {
            self.told_of_exit = true;
            Reply::Exited(exit).write(&mut self.out);
        }
        Ok(any)
    }
}

fn input(state: &mut State, stream: Stream) -> Result<&mut super::input::Input, String> {
    state.input(stream).ok_or_else(|| "it only comes out".to_owned())
}
