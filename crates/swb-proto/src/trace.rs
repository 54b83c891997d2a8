//! The trace that a caller is part of: W3C `traceparent`, version 00.
//!
//! It is a valid correlation id as it stands, and travels as one: through runs and what they start, through events and into
//! the record. Whoever looks at a correlation id can tell which it is.

use crate::id::CorrelationId;

/// A trace, and the span in it that something is below of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
    /// Whether whoever began the trace keeps it.
    pub sampled: bool,
}

impl TraceParent {
    /// Reads it; none if it is not one. What a later version adds behind is not looked at.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [version, trace, span, flags] = [(); 4].map(|()| parts.next().unwrap_or_default());
        let [version] = bytes::<1>(version)?;
        let (trace, span, [flags]) = (bytes::<16>(trace)?, bytes::<8>(span)?, bytes::<1>(flags)?);
        let is_whole = version != 0xff && (version != 0 || parts.next().is_none());
        let is_named = trace != [0; 16] && span != [0; 8];
        (is_whole && is_named).then_some(TraceParent { trace, span, sampled: flags & 1 == 1 })
    }

    /// The correlation id that it is.
    pub fn correlation(text: &str) -> Option<CorrelationId> {
        Self::parse(text).and_then(|_| CorrelationId::try_from(text.to_owned()).ok())
    }
}

/// Small hexadecimal letters, as many as there are.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |letter: u8| match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    };
    let letters = text.as_bytes();
    if letters.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(letters.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_standard_allows_is_read_and_nothing_else() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let read = TraceParent::parse(good).unwrap();
        assert_eq!((read.trace[0], read.span[7], read.sampled), (0x0a, 0x31, true));
        assert_eq!(TraceParent::correlation(good).unwrap().as_str(), good);
        assert!(!TraceParent::parse(&good.replace("-01", "-00")).unwrap().sampled);
        assert!(TraceParent::parse(&format!("{}-more", good.replacen("00", "01", 1))).is_some());
        for bad in [
            "",
            "req-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319é-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }
}
