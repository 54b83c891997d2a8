//! The general reader: any YAML mapping with the known keys, under a budget.
//!
//! Header text comes from files that anyone may have written, so the parser runs with limits on events, nesting and
//! aliases; a header over budget is a header that does not decode.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Budget, Options, Spanned};

use super::Header;
use crate::message_bus::record::{Link, Parent, Record};
use crate::message_bus::timestamp::Timestamp;

fn options() -> Options {
    let mut budget = Budget::default();
    budget.max_events = 10_000;
    budget.max_aliases = 100;
    budget.max_anchors = 100;
    budget.flow_nesting_limit = 16;
    let mut options = Options::default();
    options.budget = Some(budget);
    options
}

/// Decodes the text between two delimiter lines, or says that it is no header.
pub(in crate::message_bus) fn decode(text: &[u8]) -> Option<Header<'static>> {
    let text = std::str::from_utf8(text).ok()?;
    let fields: Fields = serde_saphyr::from_str_with_options(text, options()).ok()?;
    let timestamp = match fields.ts {
        None => None,
        Some(ts) => read_time(text, &ts)?,
    };
    Some(Header::from_fields(Record {
        id: fields.msg_id.into_cow(),
        timestamp,
        kind: fields.kind.into_cow(),
        project_id: fields.project_id.into_cow(),
        task_id: fields.task_id.into_cow(),
        run_id: fields.run_id.into_cow(),
        issue_id: fields.issue_id.into_cow(),
        parents: fields.parents.0,
        links: fields.links.unwrap_or_default().into_iter().map(LinkFields::into_link).collect(),
        meta: fields.meta.map(|meta| meta.0).unwrap_or_default(),
        ..Record::default()
    }))
}

/// Null gives no time; a quoted value must be full RFC 3339, an unquoted one may be looser. `None` drops the record.
#[expect(clippy::option_option, reason = "outer: does the record stand; inner: does it have a time")]
fn read_time(text: &str, ts: &Spanned<Option<String>>) -> Option<Option<Timestamp>> {
    let Some(value) = &ts.value else { return Some(None) };
    let offset = ts.defined.span().byte_offset().and_then(|offset| usize::try_from(offset).ok());
    let quoted =
        offset.and_then(|at| text.as_bytes().get(at)).is_some_and(|byte| matches!(byte, b'"' | b'\''));
    let time = if quoted { Timestamp::parse_rfc3339(value) } else { Timestamp::parse_unquoted(value) };
    time.map(Some)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    msg_id: Text,
    ts: Option<Spanned<Option<String>>>,
    #[serde(rename = "type")]
    kind: Text,
    project_id: Text,
    task_id: Text,
    run_id: Text,
    issue_id: Text,
    parents: Parents,
    links: Option<Vec<LinkFields>>,
    meta: Option<Pairs>,
}

/// A scalar as its source text; null is empty.
#[derive(Default)]
struct Text(String);

impl Text {
    fn into_cow(self) -> Cow<'static, str> {
        Cow::Owned(self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<String>::deserialize(deserializer).map(|text| Self(text.unwrap_or_default()))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LinkFields {
    url: Text,
    label: Text,
    kind: Text,
}

impl LinkFields {
    fn into_link(self) -> Link<'static> {
        Link { url: self.url.into_cow(), label: self.label.into_cow(), kind: self.kind.into_cow() }
    }
}

/// A mapping of scalars in file order.
#[derive(Default)]
struct Pairs(Vec<(Cow<'static, str>, Cow<'static, str>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of scalars")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text, Text>()? {
                    pairs.push((key.into_cow(), value.into_cow()));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ParentFields {
    msg_id: Text,
    kind: Text,
    meta: Option<Pairs>,
}

/// Parents in either of their two spellings; the first element decides which. A mixed list, a bare scalar, null or
/// an empty list means no parents and does not cost the record.
#[derive(Default)]
struct Parents(Vec<Parent<'static>>);

impl<'de> Deserialize<'de> for Parents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParentsVisitor)
    }
}

struct ParentsVisitor;

impl<'de> Visitor<'de> for ParentsVisitor {
    type Value = Parents;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of message ids or of parents")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Parents, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<ParentItem>()? {
            items.push(item);
        }
        let scalars = matches!(items.first(), Some(ParentItem::Id(_)));
        let mut parents = Vec::with_capacity(items.len());
        for item in items {
            match item {
                ParentItem::Id(id) if scalars => {
                    if !id.is_empty() {
                        parents.push(Parent { id: Cow::Owned(id), ..Parent::default() });
                    }
                }
                ParentItem::Parent(parent) if !scalars => parents.push(parent),
                _ => return Ok(Parents::default()),
            }
        }
        Ok(Parents(parents))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parents, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Parents::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parents, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Parents, E> {
        Ok(Parents::default())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Parents, E> {
        Ok(Parents::default())
    }

    fn visit_none<E: de::Error>(self) -> Result<Parents, E> {
        Ok(Parents::default())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Parents, E> {
        Ok(Parents::default())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Parents, E> {
        Ok(Parents::default())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Parents, E> {
        Ok(Parents::default())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Parents, E> {
        Ok(Parents::default())
    }
}

enum ParentItem {
    Id(String),
    Parent(Parent<'static>),
    Neither,
}

impl<'de> Deserialize<'de> for ParentItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParentItemVisitor)
    }
}

struct ParentItemVisitor;

impl<'de> Visitor<'de> for ParentItemVisitor {
    type Value = ParentItem;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message id or a parent")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ParentItem, A::Error> {
        let fields = ParentFields::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(ParentItem::Parent(Parent {
            id: fields.msg_id.into_cow(),
            kind: fields.kind.into_cow(),
            meta: fields.meta.map(|meta| meta.0).unwrap_or_default(),
        }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ParentItem, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ParentItem::Neither)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<ParentItem, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: de::Error>(self, id: &str) -> Result<ParentItem, E> {
        Ok(ParentItem::Id(id.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<ParentItem, E> {
        Ok(ParentItem::Id(String::new()))
    }

    fn visit_none<E: de::Error>(self) -> Result<ParentItem, E> {
        Ok(ParentItem::Id(String::new()))
    }

    fn visit_bool<E: de::Error>(self, id: bool) -> Result<ParentItem, E> {
        Ok(ParentItem::Id(id.to_string()))
    }

    fn visit_i64<E: de::Error>(self, id: i64) -> Result<ParentItem, E> {
        Ok(ParentItem::Id(id.to_string()))
    }

    fn visit_u64<E: de::Error>(self, id: u64) -> Result<ParentItem, E> {
        Ok(ParentItem::Id(id.to_string()))
    }

    fn visit_f64<E: de::Error>(self, id: f64) -> Result<ParentItem, E> {
        Ok(ParentItem::Id(id.to_string()))
    }
}
