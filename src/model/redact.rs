//! Keys never reach a record, report or log.

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";
/// A shorter key is a placeholder such as `none`, and replacing it everywhere would only garble texts.
const SHORTEST_KEY: usize = 6;

/// What must never be shown: keys and the values of headers.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<SecretString>);

impl Secrets {
    pub fn new(values: Vec<SecretString>) -> Self {
        Secrets(values)
    }

    /// Text that may be shown.
    pub fn redact(&self, text: &str) -> String {
        redact(&self.without(text), None)
    }

    /// Text as it came but for the secrets themselves.
    pub fn without(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| without_key(&text, Some(secret.expose_secret())))
    }
}

/// `text` without the secret, without the values of URL query parameters that carry keys, and without the user part of URLs.
pub fn redact(text: &str, secret: Option<&str>) -> String {
    let mut out = without_key(text, secret);
    for name in ["key", "api_key", "api-key", "apikey", "token", "access_token"] {
        for mark in ['?', '&'] {
            out = without_values(&out, &format!("{mark}{name}="));
        }
    }
    without_user(&out)
}

/// `text` without the key itself, and nothing else changed: for what must otherwise stay as it came.
pub fn without_key(text: &str, secret: Option<&str>) -> String {
    match secret {
        Some(secret) if secret.len() >= SHORTEST_KEY => {
            let escaped = Value::from(secret).to_string();
            text.replace(secret, REDACTED).replace(escaped.trim_matches('"'), REDACTED)
        }
        _ => text.to_owned(),
    }
}

/// JSON without the texts of fields whose names say that they are secret.
pub fn masked(value: &Value) -> Value {
    let secret = |name: &str| {
        let name = name.to_lowercase();
        ["key", "token", "secret", "password", "authorization"].iter().any(|word| name.contains(word))
    };
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| match value {
                Value::String(_) if secret(name) => (name.clone(), Value::from(REDACTED)),
                other => (name.clone(), masked(other)),
            })
            .collect(),
        Value::Array(list) => list.iter().map(masked).collect(),
        other => other.clone(),
    }
}

fn without_values(text: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(prefix) {
        let (before, after) = rest.split_at(at + prefix.len());
        out.push_str(before);
        let end = after
            .find(|c: char| c == '&' || c == '#' || c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | ','))
            .unwrap_or(after.len());
        out.push_str(REDACTED);
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

fn without_user(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end =
            after.find(|c: char| matches!(c, '/' | '?' | '#' | '"' | '\'') || c.is_whitespace()).unwrap_or(after.len());
        let host = match after[..end].rfind('@') {
            Some(user) => {
                out.push_str(REDACTED);
                user
            }
            None => 0,
        };
        out.push_str(&after[host..end]);
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_left() {
        let key = Some("sk-test-0000");
        assert_eq!(
            redact("401: Incorrect API key provided: sk-test-0000.", key),
            "401: Incorrect API key provided: [redacted]."
        );
        assert_eq!(redact("{'api_key': 'sk-test-0000'}", key), "{'api_key': '[redacted]'}");
        assert_eq!(
            redact("POST https://h.example/v1?key=abc123&x=1", key),
            "POST https://h.example/v1?key=[redacted]&x=1"
        );
        assert_eq!(redact("http://me:pw@h/v1?x=1&token=a", None), "http://[redacted]@h/v1?x=1&token=[redacted]");
        assert_eq!(redact("a@b and http://h/x@y", None), "a@b and http://h/x@y");
        assert_eq!(redact("a test", Some("test")), "a test");
        assert_eq!(without_key(r#"{"a": "x a\"bcdef y"}"#, Some("a\"bcdef")), r#"{"a": "x [redacted] y"}"#);
        let body = serde_json::json!({ "api_key": "s", "max_tokens": 3, "a": [{ "x-token": "s" }] });
        assert_eq!(
            masked(&body),
            serde_json::json!({ "api_key": "[redacted]", "max_tokens": 3, "a": [{ "x-token": "[redacted]" }] })
        );
        assert_eq!(without_key("http://me:pw@h?token=a sk-test-0000", key), "http://me:pw@h?token=a [redacted]");
    }
}
