use super::*;
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader};
use std::sync::Arc;

fn question(options: &[&str], free_text: bool) -> Question {
    Question {
        subject: json!({ "tool": "t" }),
        risk: Risk::Low,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        free_text,
        reason: "why".to_owned(),
        patience: None,
    }
}

fn chosen(option: &str) -> Answer {
    Answer { option: Some(option.to_owned()), ..Answer::default() }
}

fn said(text: &str) -> Answer {
    Answer { text: Some(text.to_owned()), ..Answer::default() }
}

/// A parent that sees what it is asked.
struct Parent {
    asks: Arc<Asks>,
    frames: BufReader<PipeReader>,
}

impl Parent {
    fn new(patience: Duration) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        let output = Output::start(File::from(std::os::fd::OwnedFd::from(writer))).unwrap();
        Parent { asks: Arc::new(Asks::new(Some(output), patience)), frames: BufReader::new(reader) }
    }

    fn ask(&self, question: Question) -> tokio::task::JoinHandle<Result<Answer, Unanswered>> {
        let asks = Arc::clone(&self.asks);
        tokio::spawn(async move { asks.put(question).await })
    }

    async fn frame(&mut self) -> Value {
        // The asking task runs on this thread, too.
        tokio::task::yield_now().await;
        let mut line = String::new();
        self.frames.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn asked(&mut self) -> String {
        let frame = self.frame().await;
        assert_eq!(frame["type"], "ask", "{frame}");
        frame["ask_id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn an_answer_fits_its_question_and_counts_once() {
    let mut parent = Parent::new(Duration::from_secs(60));
    let waiting = parent.ask(question(&["red", "blue"], false));
    let id = parent.asked().await;
    assert!(matches!(parent.asks.answer(&id, chosen("green")), Err(AnswerError::NoSuchOption(_))));
    assert!(matches!(parent.asks.answer(&id, said("green")), Err(AnswerError::NoFreeText)));
    assert!(matches!(parent.asks.answer(&id, Answer::default()), Err(AnswerError::Empty)));
    parent.asks.answer(&id, chosen("blue")).unwrap();
    assert!(matches!(parent.asks.answer(&id, chosen("red")), Err(AnswerError::NotOpen)));
    assert_eq!(waiting.await.unwrap(), Ok(chosen("blue")));
}

#[tokio::test]
async fn a_question_may_be_declined() {
    let mut parent = Parent::new(Duration::from_secs(60));
    let waiting = parent.ask(question(&["a"], false));
    let id = parent.asked().await;
    parent.asks.answer(&id, Answer { declined: true, ..Answer::default() }).unwrap();
    assert_eq!(waiting.await.unwrap(), Err(Unanswered::Declined));
}

#[tokio::test]
async fn words_are_taken_where_they_are_welcome() {
    let mut parent = Parent::new(Duration::from_secs(60));
    let waiting = parent.ask(question(&[], true));
    let id = parent.asked().await;
    parent.asks.answer(&id, said("green")).unwrap();
    assert_eq!(waiting.await.unwrap(), Ok(said("green")));
}

#[tokio::test(start_paused = true)]
async fn a_question_expires_and_the_parent_is_told() {
    let mut parent = Parent::new(Duration::from_secs(60));
    let waiting = parent.ask(Question { patience: Some(Duration::from_secs(5)), ..question(&["a"], false) });
    let id = parent.asked().await;
    let asked = tokio::time::Instant::now();
    assert_eq!(waiting.await.unwrap(), Err(Unanswered::Expired));
    assert_eq!(asked.elapsed().as_secs(), 5, "its own patience is shorter");
    let closed = parent.frame().await;
    assert_eq!(closed, json!({ "type": "ask_closed", "ask_id": id, "outcome": "expired" }));
    assert!(matches!(parent.asks.answer(&id, chosen("a")), Err(AnswerError::NotOpen)));
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_is_closed() {
    let mut parent = Parent::new(Duration::from_secs(60));
    let waiting = parent.ask(question(&["a"], false));
    let id = parent.asked().await;
    waiting.abort();
    assert!(waiting.await.is_err());
    assert_eq!(parent.frame().await["outcome"], "cancelled");
    assert!(matches!(parent.asks.answer(&id, chosen("a")), Err(AnswerError::NotOpen)));
}

#[tokio::test]
async fn ids_differ_between_processes_and_there_are_not_too_many() {
    let nobody = Asks::new(None, Duration::from_secs(60));
    assert_eq!(nobody.put(question(&["a"], false)).await, Err(Unanswered::Nobody));
    let mut parent = Parent::new(Duration::from_secs(60));
    let mut other = Parent::new(Duration::from_secs(60));
    let (_one, _two) = (parent.ask(question(&["a"], false)), other.ask(question(&["a"], false)));
    assert_ne!(parent.asked().await, other.asked().await);
    let open: Vec<_> = (1..MAX_OPEN).map(|_| parent.ask(question(&["a"], false))).collect();
    for _ in &open {
        parent.asked().await;
    }
    assert_eq!(parent.ask(question(&["a"], false)).await.unwrap(), Err(Unanswered::TooMany));
}
