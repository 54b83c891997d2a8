//! Which AG-UI a client speaks. A request says it in `protocolVersion`; clients before 1.0 say nothing.

/// What may be sent to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// 1.0: subagents have events of their own, and a run may end as cancelled.
    One,
    /// 0.0.x: an event or an outcome that came with 1.0 would end the run.
    Older,
}

impl Dialect {
    /// The dialect of a request.
    pub fn of(protocol_version: Option<&str>) -> Self {
        let major = protocol_version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        if major.is_some_and(|major| major >= 1) { Dialect::One } else { Dialect::Older }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_makes_a_client_of_today() {
        assert_eq!(Dialect::of(Some("1.0")), Dialect::One);
        assert_eq!(Dialect::of(Some("2.3.1")), Dialect::One);
        for older in [None, Some(""), Some("0.0.58"), Some("x")] {
            assert_eq!(Dialect::of(older), Dialect::Older, "{older:?}");
        }
    }
}
