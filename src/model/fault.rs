//! What can go wrong between a request and its answer, and what a status and an error body mean.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// Characters of a server's message that are kept.
const MAX_MESSAGE: usize = 400;

/// No usable answer: what kind, and a text without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Fault { kind, message: message.into() }
    }
}

/// What kind of fault. All but [`FaultKind::BadCall`] are infrastructure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    Auth,
    RateLimit,
    Server,
    Network,
    Timeout,
    /// The time of the whole attempt ran out while the server was not to blame.
    OutOfTime,
    Request,
    Response,
    /// What came is not of the promised format at all, or too large: worth another try.
    Garbled,
    Template,
    Context,
    Recording,
    /// The server could not parse the call that the model wrote: the model's fault, whatever the status.
    BadCall,
    /// This stand-in cannot take the case.
    Unsupported,
}

impl FaultKind {
    /// Whether the same request may well be answered another time.
    pub fn is_transient(self) -> bool {
        use FaultKind::{Garbled, Network, RateLimit, Server, Timeout};
        matches!(self, RateLimit | Server | Network | Timeout | Garbled)
    }
}

/// What a status and an error body mean. `body` is the whole body; its `error` may be an object or a text.
///
/// Google's streams are lists, and so are the errors in their place.
pub(super) fn fault_of(status: u16, body: &Value, url: &str) -> Fault {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let message = match error {
        Value::String(text) => text.as_str(),
        _ if !text("message").is_empty() => text("message"),
        _ => body.as_str().unwrap_or_default(),
    };
    let code = error.get("code").and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    let code = code.and_then(|code| u16::try_from(code).ok());
    let inside_good = (200..300).contains(&status);
    let effective = if inside_good { code.unwrap_or(status) } else { status };
    let names = format!("{} {} {}", text("type"), text("code"), text("status")).to_lowercase();
    let kind = kind_of(effective, inside_good, &names, message);
    let shown: String = message.chars().take(MAX_MESSAGE).collect();
    let mut shown = if shown.trim().is_empty() { "no message".to_owned() } else { shown };
    // Some tell only here which parameter they refuse.
    if !text("param").is_empty() && !shown.contains(text("param")) {
        shown = format!("{shown} (parameter {})", text("param"));
    }
    Fault::new(kind, format!("{url}: {status}: {}", shown.split_whitespace().collect::<Vec<_>>().join(" ")))
}

fn kind_of(status: u16, inside_good: bool, names: &str, message: &str) -> FaultKind {
    let lower = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    // Several servers answer 500 when they cannot parse the call that the model wrote (ollama/ollama#12064,
    // llama.cpp "Failed to parse tool call"), Groq 400 (console.groq.com/docs/tool-use, `tool_use_failed`): that is the
    // model's failure.
    let bad_call = [
        "error parsing tool call",
        "failed to parse tool call",
        "parse tool call arguments",
        "failed to parse input at pos",
    ];
    if says(&bad_call) || names.contains("tool_use_failed") {
        return FaultKind::BadCall;
    }
    let overflow = [
        "context size",
        "context length",
        "context window",
        "maximum context",
        "prompt is too long",
        "too many tokens",
        "context limit",
        "exceeds the maximum number of tokens",
    ];
    if names.contains("exceed_context_size")
        || names.contains("context_length_exceeded")
        || (status != 429 && says(&overflow))
    {
        return FaultKind::Context;
    }
    if status >= 400 && says(&["jinja", "chat template", "chat_template"]) {
        return FaultKind::Template;
    }
    // Behind a good status only the name tells, as in Anthropic's error events (platform.claude.com/docs, "Errors") or
    // Google's status words.
    let named = |words: &[&str]| inside_good && words.iter().any(|word| names.contains(word));
    match status {
        _ if named(&["overloaded", "api_error", "unavailable", "server_error", "timeout_error"]) => FaultKind::Server,
        _ if named(&["rate_limit", "resource_exhausted"]) => FaultKind::RateLimit,
        _ if named(&["authentication_error", "permission_error", "billing_error"]) => FaultKind::Auth,
        // Google answers 400 to a wrong key.
        400 if lower.contains("api key not valid") => FaultKind::Auth,
        401..=403 => FaultKind::Auth,
        429 if names.contains("insufficient_quota") => FaultKind::Auth,
        429 => FaultKind::RateLimit,
        408 | 500..=599 => FaultKind::Server,
        _ if inside_good => FaultKind::Response,
        _ => FaultKind::Request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn statuses_and_bodies_have_their_meaning() {
        let kind = |status: u16, body: Value| fault_of(status, &body, "u").kind;
        let message = |text: &str| json!({ "error": { "message": text } });
        assert_eq!(kind(401, message("Invalid API Key")), FaultKind::Auth);
        assert_eq!(kind(402, json!("pay")), FaultKind::Auth);
        assert_eq!(kind(429, message("slow down")), FaultKind::RateLimit);
        assert_eq!(kind(429, json!({ "error": { "message": "x", "code": "insufficient_quota" } })), FaultKind::Auth);
        assert_eq!(kind(503, message("Loading model")), FaultKind::Server);
        assert_eq!(kind(400, message("'messages' is required")), FaultKind::Request);
        assert_eq!(kind(404, json!({ "error": "model not found" })), FaultKind::Request);
        assert_eq!(kind(500, message("Jinja Exception: roles out of order")), FaultKind::Template);
        assert_eq!(kind(500, message("error parsing tool call: raw='x'")), FaultKind::BadCall);
        assert_eq!(
            kind(400, json!({ "error": { "message": "x", "type": "exceed_context_size_error" } })),
            FaultKind::Context
        );
        assert_eq!(kind(400, message("maximum context length is 4096, got 5000")), FaultKind::Context);
        assert_eq!(kind(200, message("prompt is too long")), FaultKind::Context);
        assert_eq!(kind(200, json!({ "error": { "code": 429, "message": "x" } })), FaultKind::RateLimit);
        assert_eq!(kind(200, json!({ "error": { "code": 400, "message": "x" } })), FaultKind::Response);
        assert_eq!(kind(200, message("generation failed")), FaultKind::Response);
    }

    #[test]
    fn messages_are_found_in_lists_and_name_the_parameter() {
        let message = |body: Value| fault_of(400, &body, "u").message;
        assert_eq!(message(json!([{ "error": { "code": 400, "message": "no such model" } }])), "u: 400: no such model");
        let refused = json!({ "error": { "message": "Unsupported parameter.", "param": "include" } });
        assert_eq!(message(refused), "u: 400: Unsupported parameter. (parameter include)");
        for odd in [json!(null), json!([]), json!(3), json!("down"), json!({ "error": [] }), json!([[1]])] {
            assert!(message(odd).starts_with("u: 400: "));
        }
    }

    #[test]
    fn names_tell_where_the_status_does_not() {
        let kind = |status: u16, error: Value| fault_of(status, &json!({ "error": error }), "u").kind;
        assert_eq!(kind(200, json!({ "type": "overloaded_error", "message": "Overloaded" })), FaultKind::Server);
        for name in ["overloaded", "timeout_error", "server_error", "internal_server_error", "api_error"] {
            assert_eq!(kind(200, json!({ "type": name, "message": "x" })), FaultKind::Server, "{name}");
            assert_eq!(kind(200, json!({ "code": name, "message": "x" })), FaultKind::Server, "{name}");
        }
        assert_eq!(kind(200, json!({ "code": "503", "message": "x" })), FaultKind::Server);
        assert_eq!(kind(200, json!({ "type": "rate_limit_error", "message": "x" })), FaultKind::RateLimit);
        assert_eq!(
            kind(400, json!({ "message": "Failed to call a function.", "code": "tool_use_failed" })),
            FaultKind::BadCall
        );
        assert_eq!(
            kind(400, json!({ "code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT" })),
            FaultKind::Auth
        );
        assert_eq!(
            kind(
                400,
                json!({ "message": "The input token count (9) exceeds the maximum number of tokens allowed (5)." })
            ),
            FaultKind::Context
        );
    }
}
