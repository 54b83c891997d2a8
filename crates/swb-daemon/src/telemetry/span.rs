//! A span as the house thinks of it, and the ids it goes by.
//!
//! All ids follow from ids that are kept anyway, so a daemon that comes after a crash gives the same thing the same id, and
//! what belongs to one correlation is one trace, whichever daemon tells of it.

use opentelemetry::trace::{SpanId, SpanKind, TraceId};
use opentelemetry::{KeyValue, Value};
use swb_proto::trace::TraceParent;

/// Text that goes along is cut here, in bytes.
pub(super) const LONGEST_TEXT: usize = 4 * 1024;
/// Things that are told to have happened within one span.
const MOST_EVENTS: usize = 64;

/// A moment: microseconds since 1970.
pub(super) type Micros = i64;

/// The trace that something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) id: TraceId,
    /// The span of somebody else that all of it is below of.
    pub(super) above: Option<SpanId>,
    /// Whether whoever began it keeps it; none if we began it.
    pub(super) sampled: Option<bool>,
}

impl Trace {
    /// The trace of a correlation: the caller's own, if it is one.
    pub(super) fn of(correlation: &str) -> Self {
        match TraceParent::parse(correlation) {
            Some(TraceParent { trace, span, sampled }) => Trace {
                id: TraceId::from_bytes(trace),
                above: Some(SpanId::from_bytes(span)),
                sampled: Some(sampled),
            },
            None => Trace {
                id: TraceId::from_bytes(first(&hash(&["trace", correlation]))),
                above: None,
                sampled: None,
            },
        }
    }

    /// Whether it is kept, if `ratio` of all traces are.
    #[allow(clippy::cast_precision_loss, reason = "a ratio is not exact either")]
    pub(super) fn is_kept(&self, ratio: f64) -> bool {
        self.sampled.unwrap_or_else(|| {
            let number = u64::from_be_bytes(first(&self.id.to_bytes()[8..]));
            ratio >= 1.0 || (number as f64) < ratio * (u64::MAX as f64)
        })
    }
}

/// The id of the span of something that goes by these ids.
pub(super) fn span_id(of: &[&str]) -> SpanId {
    SpanId::from_bytes(first(&hash(of)))
}

fn hash(of: &[&str]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in of {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut taken = [0; N];
    taken.copy_from_slice(&bytes[..N]);
    taken
}

/// Something that took its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) trace: Trace,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) kind: SpanKind,
    pub(super) name: String,
    pub(super) start: Micros,
    pub(super) end: Micros,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) events: Vec<Happened>,
    /// Why it did not work; what sort of error it was is an attribute.
    pub(super) error: Option<String>,
}

/// Something that happened within it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Happened {
    pub(super) name: &'static str,
    pub(super) at: Micros,
    pub(super) attributes: Vec<KeyValue>,
}

impl Span {
    pub(super) fn new(trace: Trace, id: SpanId, kind: SpanKind, name: String, start: Micros) -> Self {
        Span {
            trace,
            id,
            parent: trace.above,
            kind,
            name,
            start,
            end: start,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        }
    }

    #[must_use]
    pub(super) fn below(mut self, parent: SpanId) -> Self {
        self.parent = Some(parent);
        self
    }

    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push(KeyValue::new(name, value));
        self
    }

    /// The same, if there is a value. Texts are cut to a bearable length.
    #[must_use]
    pub(super) fn with_text(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value[..value.floor_char_boundary(LONGEST_TEXT)].to_owned()),
            None => self,
        }
    }

    #[must_use]
    pub(super) fn with_count(self, name: &'static str, value: u64) -> Self {
        self.with(name, i64::try_from(value).unwrap_or(i64::MAX))
    }

    pub(super) fn happened(&mut self, name: &'static str, at: Micros, attributes: Vec<KeyValue>) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(Happened { name, at, attributes });
        }
    }

    /// It ended then. A clock that was set back makes it end when it began.
    #[must_use]
    pub(super) fn until(mut self, end: Micros) -> Self {
        self.end = end.max(self.start);
        self
    }

    #[must_use]
    pub(super) fn failed(mut self, kind: &str, message: &str) -> Self {
        self.error = Some(message[..message.floor_char_boundary(LONGEST_TEXT)].to_owned());
        self.with(super::names::ERROR_TYPE, kind.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_what_they_are_ids_of() {
        assert_eq!(Trace::of("run_1"), Trace::of("run_1"));
        assert_ne!(Trace::of("run_1").id, Trace::of("run_2").id);
        assert_ne!(span_id(&["tool", "ab", "c"]), span_id(&["tool", "a", "bc"]));
        let theirs = Trace::of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(theirs.id.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(theirs.above.map(|span| span.to_string()).as_deref(), Some("b7ad6b7169203331"));
    }

    #[test]
    fn a_ratio_keeps_its_part_and_whoever_began_a_trace_decides() {
        let kept = |ratio| (0..1000).filter(|n| Trace::of(&format!("c{n}")).is_kept(ratio)).count();
        assert_eq!((kept(1.0), kept(0.0)), (1000, 0));
        assert!((200..300).contains(&kept(0.25)), "{}", kept(0.25));
        let theirs =
            |flag| Trace::of(&format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flag}"));
        assert!(theirs("01").is_kept(0.0) && !theirs("00").is_kept(1.0));
    }
}
