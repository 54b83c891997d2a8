//! What a poster may send, read strictly: a field that is not known is refused by name, keys match whatever their case.
//!
//! Parents and links are taken in the form we write (`msg_id`, `url`) and in the one that the incumbent writes (`MsgID`,
//! `URL`), and parents also as bare ids, so that what was read from either can be posted again.

use std::borrow::Cow;
use std::fmt;

use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use swb_journal::message_bus::{Draft, Link, Parent};

use super::scope::Scope;
use crate::failure::Failure;

/// The longest body of a request.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// How much of a longer one is still taken from the wire, so that its sender gets to read the answer.
const MOST_DISCARDED: usize = 16 << 20;
const DEFAULT_TYPE: &str = "USER";

/// Reads a message's body up to the limit.
pub(super) async fn read_message(body: Body) -> Result<Bytes, Failure> {
    read_body(body, MOST_BYTES).await.ok_or_else(|| Failure::bad_request("invalid json: unexpected EOF"))
}

/// Reads a request's body; none if it is cut short, or larger than `most`. What is too much is read all the same, up to
/// a point: a client that is still sending would not hear the answer.
pub(crate) async fn read_body(body: Body, most: usize) -> Option<Bytes> {
    let mut stream = body.into_data_stream();
    let mut taken = Vec::new();
    let mut discarded = 0;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.ok()?;
        if discarded == 0 && taken.len() + chunk.len() <= most {
            taken.extend_from_slice(&chunk);
            continue;
        }
        discarded += chunk.len().max(1);
        if discarded > MOST_DISCARDED {
            break;
        }
    }
    (discarded == 0).then(|| taken.into())
}

/// Reads a message for `/api/v1/messages`, which names its bus in the body.
pub(super) fn for_v1(bytes: &[u8]) -> Result<(Scope, Draft), Failure> {
    let mut named = Named::default();
    let mut draft = read(bytes, Some(&mut named))?;
    let scope = Scope::new(&named.project, Some(&named.task))?;
    draft.run_id = named.run.trim().to_owned();
    finish(draft, &scope).map(|draft| (scope, draft))
}

/// Reads a message for a bus that the path names.
pub(super) fn for_path(bytes: &[u8], scope: &Scope) -> Result<Draft, Failure> {
    finish(read(bytes, None)?, scope)
}

fn finish(mut draft: Draft, scope: &Scope) -> Result<Draft, Failure> {
    if draft.body.trim_ascii().is_empty() {
        return Err(Failure::bad_request("body is required"));
    }
    if draft.kind.trim().is_empty() {
        draft.kind = DEFAULT_TYPE.to_owned();
    }
    draft.project_id = scope.project().to_owned();
    draft.task_id = scope.task().unwrap_or_default().to_owned();
    Ok(draft)
}

/// The fields that only `/api/v1/messages` knows.
#[derive(Default)]
struct Named {
    project: String,
    task: String,
    run: String,
}

fn read(bytes: &[u8], mut named: Option<&mut Named>) -> Result<Draft, Failure> {
    if bytes.trim_ascii().is_empty() {
        return Err(invalid("EOF"));
    }
    let mut draft = Draft::default();
    for (key, value) in &serde_json::from_slice::<Fields<'_>>(bytes).map_err(invalid)?.0 {
        match (&*lower(key), named.as_deref_mut()) {
            ("project_id", Some(named)) => named.project = text(key, value)?,
            ("task_id", Some(named)) => named.task = text(key, value)?,
            ("run_id", Some(named)) => named.run = text(key, value)?,
            ("type", _) => draft.kind = text(key, value)?.trim().to_owned(),
            ("body", _) => draft.body = text(key, value)?.into_bytes(),
            ("issue_id", _) => draft.issue_id = text(key, value)?,
            ("parents", _) => draft.parents = each(key, value, parent)?,
            ("links", _) => draft.links = each(key, value, link)?,
            ("meta", _) => draft.meta = words(key, value)?,
            _ => return Err(unknown(key)),
        }
    }
    Ok(draft)
}

fn parent(key: &str, value: &RawValue) -> Result<Parent<'static>, Failure> {
    let mut parent = Parent::default();
    if !value.get().starts_with('{') {
        parent.id = text(key, value)?.into();
        return Ok(parent);
    }
    for (key, value) in &serde_json::from_str::<Fields<'_>>(value.get()).map_err(invalid)?.0 {
        match &*lower(key) {
            "msg_id" | "msgid" => parent.id = text(key, value)?.into(),
            "kind" => parent.kind = text(key, value)?.into(),
            "meta" => {
                parent.meta =
                    words(key, value)?.into_iter().map(|(name, word)| (name.into(), word.into())).collect();
            }
            _ => return Err(unknown(key)),
        }
    }
    Ok(parent)
}

fn link(_: &str, value: &RawValue) -> Result<Link<'static>, Failure> {
    let mut link = Link::default();
    for (key, value) in &serde_json::from_str::<Fields<'_>>(value.get()).map_err(invalid)?.0 {
        match &*lower(key) {
            "url" => link.url = text(key, value)?.into(),
            "label" => link.label = text(key, value)?.into(),
            "kind" => link.kind = text(key, value)?.into(),
            _ => return Err(unknown(key)),
        }
    }
    Ok(link)
}

/// A key in lower case, as nearly all are sent.
fn lower(key: &str) -> Cow<'_, str> {
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    if key.bytes().all(is_lower) { Cow::Borrowed(key) } else { Cow::Owned(key.to_lowercase()) }
}

/// A text; null is an empty one.
fn text(key: &str, value: &RawValue) -> Result<String, Failure> {
    serde_json::from_str::<Option<String>>(value.get())
        .map(Option::unwrap_or_default)
        .map_err(|_| invalid(format_args!("json: field {key:?} must be a string")))
}

fn each<T>(
    key: &str,
    list: &RawValue,
    one: fn(&str, &RawValue) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let list = serde_json::from_str::<Option<Vec<&RawValue>>>(list.get())
        .map_err(|_| invalid(format_args!("json: field {key:?} must be a list")))?;
    list.unwrap_or_default().into_iter().map(|value| one(key, value)).collect()
}

fn words(key: &str, value: &RawValue) -> Result<Vec<(String, String)>, Failure> {
    let fields = serde_json::from_str::<Option<Fields<'_>>>(value.get())
        .map_err(|_| invalid(format_args!("json: field {key:?} must be an object")))?;
    let fields = fields.map(|fields| fields.0).unwrap_or_default();
    fields.into_iter().map(|(name, value)| Ok((name.to_string(), text(&name, value)?))).collect()
}

fn invalid(why: impl fmt::Display) -> Failure {
    Failure::bad_request(format!("invalid json: {why}"))
}

fn unknown(key: &str) -> Failure {
    invalid(format_args!("json: unknown field {key:?}"))
}

/// An object as it was written: every key, in order, its value untouched.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    fields.push((key, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> String {
        format!("{:?}", for_v1(json.as_bytes()).map(|_| ()).unwrap_err())
    }

    #[test]
    fn a_message_is_read_strictly() {
        let (scope, draft) =
            for_v1(br#"{"project_id":" p ","Task_ID":"t","RUN_ID":"r","body":"x\n","type":null}"#).unwrap();
        assert_eq!((scope.project(), scope.task()), ("p", Some("t")));
        assert_eq!(
            (draft.kind.as_str(), draft.run_id.as_str(), draft.body.as_slice()),
            ("USER", "r", &b"x\n"[..])
        );
        assert!(
            refused(r#"{"project_id":"p","body":"x","colour":1}"#)
                .contains(r#"json: unknown field \"colour\""#)
        );
        assert!(refused(r#"{"project_id":"p","body":" \n"}"#).contains("body is required"));
        assert!(refused(r#"{"body":"x"}"#).contains("project_id is required"));
        assert!(refused(r#"{"project_id":"p","body":"x"} {}"#).contains("invalid json"));
        assert!(refused(r#"{"project_id":"p","body":7}"#).contains("must be a string"));
        assert!(refused("").contains("invalid json: EOF"));
        assert!(refused("[]").contains("invalid json"));
        let scope = Scope::new("p", None).unwrap();
        for field in ["project_id", "task_id", "run_id"] {
            let json = format!(r#"{{"body":"x","{field}":"y"}}"#);
            let error = format!("{:?}", for_path(json.as_bytes(), &scope).unwrap_err());
            assert!(error.contains("unknown field"), "{error}");
        }
    }

    #[test]
    fn parents_and_links_are_taken_in_both_forms() {
        let json = br#"{"body":"x","meta":{"a":"b"},"links":[{"URL":"u","Label":"","Kind":"k"},{"url":"v"}],
            "parents":["m1",{"MsgID":"m2","Kind":"","Meta":null},{"msg_id":"m3","kind":"reply_to","meta":{"n":"1"}}]}"#;
        let draft = for_path(json, &Scope::new("p", None).unwrap()).unwrap();
        let ids: Vec<_> =
            draft.parents.iter().map(|parent| (parent.id.as_ref(), parent.kind.as_ref())).collect();
        assert_eq!(ids, [("m1", ""), ("m2", ""), ("m3", "reply_to")]);
        assert_eq!(draft.links.iter().map(|link| link.url.as_ref()).collect::<Vec<_>>(), ["u", "v"]);
        assert_eq!(draft.meta, [("a".to_owned(), "b".to_owned())]);
    }
}
