//! Decoding the arguments of a call, the same way for every tool (AQ7, AQ8, AQ9 of the tool catalogue).

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Kind, Note, Refusal};

/// Whether a number or a truth value may come as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strictness {
    /// The schema's types, except that `3.0` is the integer 3.
    #[default]
    Strict,
    /// Digits as text are taken for an integer, `"true"` and `"false"` for a truth value, and the call is marked.
    Coerce,
}

/// The arguments of one call. `null` is the same as absent; arguments that nothing asks for are ignored and noted.
#[derive(Debug)]
pub struct Args<'a> {
    map: &'a Map<String, Value>,
    strictness: Strictness,
    /// Where the object stands in the call, such as `operations[0].`; empty for the arguments themselves.
    place: String,
    pub notes: Vec<Note>,
}

impl<'a> Args<'a> {
    pub fn new(map: &'a Map<String, Value>, strictness: Strictness) -> Self {
        Args { map, strictness, place: String::new(), notes: Vec::new() }
    }

    /// The objects of a list argument, each to be decoded like arguments of its own; their notes are to be taken over
    /// with [`Args::note`]. `None` when it is absent.
    ///
    /// # Errors
    /// `args_invalid` when it is no list, or holds something else than objects.
    pub fn objects(&mut self, name: &'static str) -> Result<Option<Vec<Args<'a>>>, Refusal> {
        let all = match self.get(name) {
            None => return Ok(None),
            Some(Value::Array(all)) => all,
            Some(other) => return Err(self.wrong_type(name, "a list of objects", other)),
        };
        let object = |(index, value): (usize, &'a Value)| match value {
            Value::Object(map) => Ok(Args {
                map,
                strictness: self.strictness,
                place: format!("{}{name}[{index}].", self.place),
                notes: Vec::new(),
            }),
            other => Err(self.wrong_type(&format!("{name}[{index}]"), "an object", other)),
        };
        all.iter().enumerate().map(object).collect::<Result<_, _>>().map(Some)
    }

    /// Takes over what was noted elsewhere.
    pub fn note(&mut self, notes: impl IntoIterator<Item = Note>) {
        self.notes.extend(notes);
    }

    fn get(&self, name: &'static str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// An optional text.
    ///
    /// # Errors
    /// `args_invalid` for another type.
    pub fn text(&mut self, name: &'static str) -> Result<Option<&'a str>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, "a string", other)),
        }
    }

    /// A required text.
    ///
    /// # Errors
    /// `args_invalid` when it is absent or of another type.
    pub fn required_text(&mut self, name: &'static str) -> Result<&'a str, Refusal> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    /// A required integer, as [`Args::integer`].
    ///
    /// # Errors
    /// `args_invalid` when it is absent or of another type.
    pub fn required_integer(&mut self, name: &'static str) -> Result<i64, Refusal> {
        self.integer(name)?.ok_or_else(|| self.missing(name))
    }

    /// An optional number of a line, 1 or more. Only reads ask for one this way, so nothing is said of changes.
    ///
    /// # Errors
    /// `args_invalid` for another type, or a number below 1.
    pub fn positive(&mut self, name: &'static str) -> Result<Option<usize>, Refusal> {
        let Some(number) = self.integer(name)? else {
            return Ok(None);
        };
        match usize::try_from(number) {
            Ok(line) if line > 0 => Ok(Some(line)),
            _ => Err(Refusal::new(Kind::ArgsInvalid, format!("argument `{name}` must be 1 or more, not {number}"))
                .with_note(Note::ArgumentValue)),
        }
    }

    /// The refusal of a call without a required argument.
    pub fn missing(&self, name: &str) -> Refusal {
        Refusal::new(Kind::ArgsInvalid, format!("argument `{}{name}` is missing; nothing changed", self.place))
            .with_note(Note::ArgumentMissing)
    }

    /// The refusal of an argument whose type is right and whose value is not.
    pub fn wrong_value(&self, name: &str, why: impl AsRef<str>) -> Refusal {
        let message = format!("argument `{}{name}` {}; nothing changed", self.place, why.as_ref());
        Refusal::new(Kind::ArgsInvalid, message).with_note(Note::ArgumentValue)
    }

    /// An optional truth value, false where it is absent.
    ///
    /// # Errors
    /// `args_invalid` for another type, and for text unless the session coerces.
    pub fn flag(&mut self, name: &'static str) -> Result<bool, Refusal> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(Value::String(text))
                if self.strictness == Strictness::Coerce && ["true", "false"].contains(&text.trim()) =>
            {
                self.notes.push(Note::ArgumentCoerced);
                Ok(text.trim() == "true")
            }
            Some(other) => Err(self.wrong_type(name, "a boolean", other)),
        }
    }

    /// An optional integer. Numbers beyond 64 bits become the nearest one, which no file has a line for.
    ///
    /// # Errors
    /// `args_invalid` for another type, and for text unless the session coerces.
    pub fn integer(&mut self, name: &'static str) -> Result<Option<i64>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value {
            Value::Number(number) => {
                if let Some(integer) = number.as_i64() {
                    return Ok(Some(integer));
                }
                match number.as_f64() {
                    // A cast saturates, which is what is wanted here.
                    Some(float) if float.fract() == 0.0 => Ok(Some(float as i64)),
                    _ => Err(self.wrong_type(name, "an integer", value)),
                }
            }
            Value::String(text) => {
                let digits = text.trim();
                let number = digits.strip_prefix('-').unwrap_or(digits);
                let numeric = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
                if numeric && self.strictness == Strictness::Coerce {
                    self.notes.push(Note::ArgumentCoerced);
                    return Ok(Some(digits.parse().unwrap_or(i64::MAX)));
                }
                let refusal = self.wrong_type(name, "an integer", value);
                Err(if numeric { refusal.with_note(Note::NumberAsText) } else { refusal })
            }
            other => Err(self.wrong_type(name, "an integer", other)),
        }
    }

    /// Notes arguments that are none of the function's.
    pub fn note_unknown(&mut self, known: &[&str]) {
        if self.map.keys().any(|key| !known.contains(&key.as_str())) {
            self.notes.push(Note::ArgumentUnknown);
        }
    }

    fn wrong_type(&self, name: &str, wanted: &str, value: &Value) -> Refusal {
        let sent = match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        Refusal::new(
            Kind::ArgsInvalid,
            format!("argument `{}{name}` must be {wanted}, not {sent}; nothing changed", self.place),
        )
        .with_note(Note::ArgumentType)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn integer(value: Value, strictness: Strictness) -> Result<Option<i64>, Vec<Note>> {
        let map = json!({ "line": value }).as_object().unwrap().clone();
        Args::new(&map, strictness).integer("line").map_err(|refusal| refusal.notes)
    }

    #[test]
    fn integers_by_the_rules() {
        use Strictness::{Coerce, Strict};
        assert_eq!(integer(json!(3), Strict), Ok(Some(3)));
        assert_eq!(integer(json!(3.0), Strict), Ok(Some(3)));
        assert_eq!(integer(json!(1e40), Strict), Ok(Some(i64::MAX)));
        assert_eq!(integer(json!(u64::MAX), Strict), Ok(Some(i64::MAX)));
        assert_eq!(integer(Value::Null, Strict), Ok(None));
        assert_eq!(integer(json!("3"), Strict), Err(vec![Note::ArgumentType, Note::NumberAsText]));
        assert_eq!(integer(json!("3"), Coerce), Ok(Some(3)));
        assert_eq!(integer(json!("-1"), Coerce), Ok(Some(-1)));
        for bad in [json!("three"), json!(true), json!(2.5), json!([3]), json!("")] {
            assert_eq!(integer(bad.clone(), Strict), Err(vec![Note::ArgumentType]));
            assert_eq!(integer(bad, Coerce), Err(vec![Note::ArgumentType]));
        }
    }

    #[test]
    fn truth_values_by_the_rules() {
        let flag = |value: Value, strictness| {
            let map = json!({ "all": value }).as_object().unwrap().clone();
            Args::new(&map, strictness).flag("all").map_err(|refusal| refusal.notes)
        };
        use Strictness::{Coerce, Strict};
        assert_eq!(flag(json!(true), Strict), Ok(true));
        assert_eq!(flag(Value::Null, Strict), Ok(false));
        assert_eq!(flag(json!("false"), Coerce), Ok(false));
        assert_eq!(flag(json!("true"), Coerce), Ok(true));
        for bad in [json!("true"), json!(1), json!([])] {
            assert_eq!(flag(bad, Strict), Err(vec![Note::ArgumentType]));
        }
        assert_eq!(flag(json!("yes"), Coerce), Err(vec![Note::ArgumentType]));
    }

    #[test]
    fn objects_name_their_place() {
        let map = json!({ "operations": [{ "start": 1 }, { "start": "x" }], "none": 1 }).as_object().unwrap().clone();
        let mut args = Args::new(&map, Strictness::Strict);
        let mut all = args.objects("operations").unwrap().unwrap();
        assert_eq!(all[0].required_integer("start"), Ok(1));
        let text = all[1].integer("start").unwrap_err().text;
        assert_eq!(text, "error: argument `operations[1].start` must be an integer, not a string; nothing changed");
        assert!(all[0].required_text("content").unwrap_err().text.contains("`operations[0].content`"));
        assert!(args.objects("none").is_err());
        assert!(args.objects("absent").unwrap().is_none());
    }

    #[test]
    fn null_is_absent_and_extras_are_noted() {
        let map = json!({ "path": null, "why": 1 }).as_object().unwrap().clone();
        let mut args = Args::new(&map, Strictness::Strict);
        assert_eq!(args.text("path"), Ok(None));
        let refusal = args.required_text("path").unwrap_err();
        assert_eq!((refusal.kind, refusal.notes), (Kind::ArgsInvalid, vec![Note::ArgumentMissing]));
        args.note_unknown(&["path"]);
        assert_eq!(args.notes, [Note::ArgumentUnknown]);
    }
}
