//! A value that is recorded as the text it already is.
//!
//! Most of what a record holds was JSON before it came here, and goes to the file as JSON: taking it apart and putting it
//! together again in between would be the larger half of the work.
//!
//! Invariant: valid JSON on one line, because a line is a record.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// JSON on one line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// What it says.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or_default()
    }

    /// A member of an object that is text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.value().get(name)?.as_str().map(str::to_owned)
    }

    /// The text, to be passed on.
    #[must_use]
    pub fn into_raw(self) -> Box<RawValue> {
        self.0
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        // The names of a value's members are text, and nothing else can fail.
        Json(to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Json::from(&value)
    }
}

impl From<Box<RawValue>> for Json {
    fn from(text: Box<RawValue>) -> Self {
        // Inside of strings there are none; between values they are only layout.
        if memchr::memchr2(b'\n', b'\r', text.get().as_bytes()).is_none() {
            return Json(text);
        }
        let line = RawValue::from_string(text.get().replace(['\n', '\r'], " "));
        Json(line.unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get() || self.value() == other.value()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_one_line_however_it_was_laid_out() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        for (text, kept) in [
            ("{\n\"a\" : [1,\r\n 2]\n}", r#"{ "a" : [1,   2] }"#),
            ("[1e999,\n2]", "[1e999, 2]"),
            (r#"{"a" : "x\ny"}"#, r#"{"a" : "x\ny"}"#),
            ("\"\u{7f}\u{2028}\"", "\"\u{7f}\u{2028}\""),
        ] {
            let json = Json::from(raw(text));
            assert_eq!(json.get(), kept);
            assert_eq!(json.value(), serde_json::from_str::<Value>(text).unwrap_or_default());
        }
    }

    #[test]
    fn it_is_written_and_read_as_what_it_is() {
        let json = Json::from(json!({ "a": ["\n", null] }));
        let text = serde_json::to_string(&json).unwrap();
        assert_eq!(text, json.get());
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), json);
        assert_eq!(
            Json::from(json!([1, 2])),
            Json::from(RawValue::from_string("[1 , 2]".to_owned()).unwrap())
        );
    }
}
