//! A client without a library: the same code asks the echo and the control socket.

use std::collections::VecDeque;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::figures;
use crate::words::Words;

pub(crate) struct RawClient {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    asked: u64,
}

impl RawClient {
    pub(crate) async fn connect(address: &str) -> std::io::Result<Self> {
        let stream = UnixStream::connect(address).await?;
        Ok(RawClient { stream, input: Vec::with_capacity(64 * 1024), output: Vec::new(), asked: 0 })
    }

    /// The median time of a round trip, in nanoseconds.
    pub(crate) async fn sequential(&mut self, words: &Words, calls: usize) -> f64 {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let started = Instant::now();
            self.ask(words);
            self.flush().await;
            let mut answers = VecDeque::new();
            while answers.is_empty() {
                self.read(words, &mut answers).await;
            }
            assert_eq!(answers, [self.asked]);
            times.push(started.elapsed().as_secs_f64() * 1e9);
        }
        figures::median(times.into_iter())
    }

    /// Nanoseconds per request with `window` of them under way. Each answer makes room for the next question; what can
    /// be written together is.
    pub(crate) async fn in_flight(&mut self, words: &Words, calls: usize, window: usize) -> f64 {
        let started = Instant::now();
        let mut answers = VecDeque::new();
        let mut answered = 0;
        for _ in 0..window {
            self.ask(words);
        }
        let mut left = calls - window;
        while answered < calls {
            self.flush().await;
            self.read(words, &mut answers).await;
            answered += answers.len();
            for _ in answers.drain(..).take(left) {
                self.ask(words);
                left -= 1;
            }
        }
        started.elapsed().as_secs_f64() * 1e9 / calls as f64
    }

    fn ask(&mut self, words: &Words) {
        self.asked += 1;
        (words.write)(&mut self.output, self.asked);
    }

    async fn flush(&mut self) {
        self.stream.write_all(&self.output).await.expect("the server lives");
        self.output.clear();
    }

    /// Reads what there is and collects the numbers of the whole lines in it.
    async fn read(&mut self, words: &Words, answers: &mut VecDeque<u64>) {
        let n = self.stream.read_buf(&mut self.input).await.expect("the server lives");
        assert!(n > 0, "the server closed the connection");
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &self.input) {
            answers.push_back((words.read)(&self.input[start..end]));
            start = end + 1;
        }
        self.input.drain(..start);
    }
}
