//! Figures, and the text form in which Prometheus reads them.
//!
//! A family is a name with its meaning, and its samples are the numbers under it. Names are ours and fit the rules of the
//! form; values of labels come from anywhere, so they are escaped.

use std::fmt::{self, Write};

/// How a figure moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until the process ends. Its name ends in `_total`.
    Counter,
    /// It is what it is now.
    Gauge,
}

/// One number.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What sets it apart from the others of its family.
    pub labels: Vec<(&'static str, String)>,
    /// The number.
    pub value: f64,
}

/// Numbers of one meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Its name, with its unit.
    pub name: &'static str,
    /// What it says, in one line.
    pub help: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// The numbers. None: there is nothing to say yet, and the family is left out.
    pub samples: Vec<Sample>,
}

/// Whoever has figures for the page.
pub trait Figures: Send + Sync + fmt::Debug {
    /// What they are now. May wait for the disk, so it is called on a thread that may.
    fn figures(&self) -> Vec<Family>;
}

impl Sample {
    /// A number with one label.
    pub fn of(label: &'static str, name: impl Into<String>, value: f64) -> Self {
        Sample { labels: vec![(label, name.into())], value }
    }

    /// The same with one more.
    #[must_use]
    pub fn and(mut self, label: &'static str, name: impl Into<String>) -> Self {
        self.labels.push((label, name.into()));
        self
    }
}

impl Family {
    /// A counter with these numbers.
    pub fn counter(name: &'static str, help: &'static str, samples: Vec<Sample>) -> Self {
        Family { name, help, kind: Kind::Counter, samples }
    }

    /// A counter that is one number.
    pub fn count(name: &'static str, help: &'static str, value: f64) -> Self {
        Family { name, help, kind: Kind::Counter, samples: vec![Sample { labels: Vec::new(), value }] }
    }

    /// A gauge that is one number.
    pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Family { name, help, kind: Kind::Gauge, samples: vec![Sample { labels: Vec::new(), value }] }
    }
}

/// The page of these families.
pub(crate) fn page(families: &[Family]) -> String {
    let mut page = String::with_capacity(8 * 1024);
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        let Family { name, help, kind, samples } = family;
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for Sample { labels, value } in samples {
            page.push_str(name);
            for (at, (label, text)) in labels.iter().enumerate() {
                let _ = write!(page, "{}{label}=\"", if at == 0 { '{' } else { ',' });
                escape(text, &mut page);
                page.push('"');
            }
            let _ = writeln!(page, "{} {value}", if labels.is_empty() { "" } else { "}" });
        }
    }
    page
}

fn escape(text: &str, page: &mut String) {
    for letter in text.chars() {
        match letter {
            '\\' => page.push_str("\\\\"),
            '"' => page.push_str("\\\""),
            '\n' => page.push_str("\\n"),
            _ => page.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_stands_in_a_label_stays_in_it() {
        let samples = vec![
            Sample::of("model", "a\"b\\c\nd} 7", 3.0).and("kind", "x"),
            Sample::of("model", "plain", 0.25),
        ];
        assert_eq!(
            page(&[Family::counter("swb_x_total", "Some.", samples)]),
            "# HELP swb_x_total Some.\n# TYPE swb_x_total counter\n\
             swb_x_total{model=\"a\\\"b\\\\c\\nd} 7\",kind=\"x\"} 3\nswb_x_total{model=\"plain\"} 0.25\n"
        );
    }

    #[test]
    fn a_family_without_numbers_is_left_out_and_large_numbers_are_whole() {
        let none = Family::counter("swb_none_total", "None.", Vec::new());
        let many = Family::gauge("swb_many", "Many.", 1e15);
        assert_eq!(
            page(&[none, many]),
            "# HELP swb_many Many.\n# TYPE swb_many gauge\nswb_many 1000000000000000\n"
        );
    }
}
