//! Streams of answers: server-sent events, or a JSON object a line. Bytes are joined first and decoded when they are whole.

use bstr::ByteSlice;
use eventsource_stream::Eventsource;
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::Value;

use super::Protocol;
use crate::model::{Fault, FaultKind};

/// A text that begins as an event stream does, or holds a JSON object a line.
pub(super) fn is_stream(text: &str) -> bool {
    is_events(text) || is_lines(text)
}

fn is_events(text: &str) -> bool {
    let start = text.trim_start();
    ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| start.starts_with(field))
}

/// More than one line, and the first one is a whole object.
fn is_lines(text: &str) -> bool {
    let text = text.trim();
    text.split_once('\n').is_some_and(|(first, _)| is_object(first))
}

fn is_object(line: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok() && line.trim_start().starts_with('{')
}

/// Joins a whole stream to the body that an unstreamed answer would have had; an error in it comes back as it is.
///
/// # Errors
/// What is wrong with the stream: not the promised format, or cut before its end.
pub(super) fn join(protocol: &dyn Protocol, body: &[u8]) -> Result<Value, Fault> {
    let bad = |message: String| Fault::new(FaultKind::Response, message);
    let (mut chunks, mut done) = (Vec::new(), false);
    for data in data(body)? {
        let data = data.trim();
        if data == "[DONE]" {
            done = true;
            break;
        }
        if data.is_empty() {
            continue;
        }
        let chunk: Value = serde_json::from_str(data).map_err(|error| match error.is_eof() {
            true => Fault::new(FaultKind::Network, "the stream was cut in the middle of an event"),
            false => bad(format!("an event is not JSON: {error}")),
        })?;
        if let Some(error) = protocol.error_in(&chunk) {
            return Ok(error);
        }
        chunks.push(chunk);
    }
    protocol.join(&chunks, done)
}

/// The data of each event.
fn data(body: &[u8]) -> Result<Vec<String>, Fault> {
    let text = String::from_utf8_lossy(body);
    if !is_events(&text) {
        return Ok(text.lines().map(str::to_owned).collect());
    }
    let events = stream::iter([Ok::<_, std::io::Error>(body)]).eventsource().collect::<Vec<_>>();
    // Everything is there already, so there is nothing to wait for.
    let events = events.now_or_never().unwrap_or_default();
    let read = |event: Result<eventsource_stream::Event, _>| match event {
        Ok(event) => Ok(event.data),
        Err(error) => Err(Fault::new(FaultKind::Response, format!("the event stream cannot be read: {error}"))),
    };
    events.into_iter().map(read).collect()
}

/// The data of the event that ends with these bytes, if one does.
pub(super) fn last_data(body: &[u8]) -> Option<String> {
    let events = [(&b"\n\n"[..]), b"\r\n\r\n"].into_iter().find_map(|end| Some((body.strip_suffix(end)?, end)));
    if let Some((before, end)) = events {
        let event = &before[before.rfind(end).map_or(0, |at| at + end.len())..];
        let event = String::from_utf8_lossy(event);
        return Some(event.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start).collect());
    }
    let lines = body.strip_suffix(b"\n")?;
    let line = &lines[lines.rfind_byte(b'\n').map_or(0, |at| at + 1)..];
    line.starts_with(b"{").then(|| String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_is_known_by_its_end() {
        assert_eq!(last_data(b"data: a\n\ndata: [DONE]\n\n").as_deref(), Some("[DONE]"));
        assert_eq!(last_data(b"event: x\r\ndata: b\r\n\r\n").as_deref(), Some("b"));
        assert_eq!(last_data(b"data: [DONE]"), None);
        assert_eq!(last_data(b"data: [DONE]\n"), None);
        assert_eq!(last_data(b"{\"a\":1}\n{\"done\":true}\n").as_deref(), Some("{\"done\":true}"));
        assert_eq!(last_data(b""), None);
    }

    #[test]
    fn a_stream_is_known_by_its_beginning() {
        assert!(is_stream("data: {}\n\n") && is_stream(": comment\n\n") && is_stream("{\"a\":1}\n{\"b\":2}\n"));
        assert!(!is_stream("{\n\"a\": 1}") && !is_stream("<html>\n</html>") && !is_stream("{\"a\":1}\n"));
    }
}
