//! The case-set file as it is written: strict serde types, one to one with the documented keys.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Moment, Source, Split, Target, Variant};

/// The version of the format that this reader knows.
pub const SCHEMA: u64 = 1;

/// A case-set file; its cases are read one by one, so that each knows its place in the file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetFile<'a> {
    pub schema: u64,
    pub set: String,
    pub about: String,
    #[serde(default)]
    pub subsets: UniqueMap<Vec<String>>,
    #[serde(borrow)]
    pub cases: Vec<&'a RawValue>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseEntry {
    pub id: String,
    pub tags: Vec<String>,
    pub files: UniqueMap<Content>,
    pub task: String,
    pub expect: Option<UniqueMap<Option<Content>>>,
    pub expect_any: Option<Vec<UniqueMap<Option<Content>>>>,
    #[serde(default)]
    pub seen: UniqueMap<Content>,
    #[serde(default)]
    pub then: Vec<RewriteEntry>,
    pub target: Option<Target>,
    pub split: Option<Split>,
    /// Files beside the workspace.
    #[serde(default)]
    pub outside: UniqueMap<Content>,
    pub variant: Option<Variant>,
    pub source: Option<Source>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RewriteEntry {
    pub after: Moment,
    #[serde(default = "first")]
    pub nth: usize,
    pub files: UniqueMap<Content>,
}

fn first() -> usize {
    1
}

/// Exactly one of `text`, `fixture`, `base64` and `symlink`; `mode` with the first three.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    pub text: Option<String>,
    pub fixture: Option<String>,
    pub base64: Option<String>,
    pub symlink: Option<String>,
    pub mode: Option<String>,
}

/// A JSON object in which a repeated key is an error, where serde's own maps let the last one win in silence.
pub(super) struct UniqueMap<T>(pub BTreeMap<String, T>);

impl<T> Default for UniqueMap<T> {
    fn default() -> Self {
        UniqueMap(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for UniqueMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unique<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Unique<T> {
            type Value = UniqueMap<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut map = BTreeMap::new();
                while let Some(key) = access.next_key::<String>()? {
                    if map.contains_key(&key) {
                        return Err(de::Error::custom(format!("duplicate key `{key}`")));
                    }
                    map.insert(key, access.next_value()?);
                }
                Ok(UniqueMap(map))
            }
        }

        deserializer.deserialize_map(Unique(PhantomData))
    }
}
