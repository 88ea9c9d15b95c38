//! The catalogue's harness-side vectors of every tool: a scripted server answers the built binary, and the row says what
//! must be reported. Waits that a server asks for are kept short; their lengths are unit-tested.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use serde_json::{Value, json};
use support::{Place, Server};

/// Vectors that wait as long as a server asks: seven seconds, and a minute. They are run by `--ignored`.
const LONG: [&str; 2] = ["h-429-1", "h-429-5"];

fn entries(files: &Value) -> Value {
    let map: serde_json::Map<String, Value> = files
        .as_array()
        .into_iter()
        .flatten()
        .map(|file| (file["path"].as_str().expect("path").to_owned(), json!({ "text": file["content"] })))
        .collect();
    Value::Object(map)
}

/// A case whose goal differs from its files; where the vector has none, any other text will do.
fn case_set(vector: &Value) -> String {
    let request = &vector["request"];
    let goal = if request["goal"].is_array() { &request["goal"] } else { &vector["expected"] };
    let mut expect = entries(goal);
    // A goal that equals the files is no case; the vector wants to see the edit fail to reach it, so ask for more.
    if expect == entries(&vector["files"]) {
        expect = json!({ "f.txt": { "text": "another goal\n" } });
    }
    let files = entries(&vector["files"]);
    let mut case = json!({ "id": "v", "tags": [], "files": files, "task": "Do the edit.", "expect": expect });
    for path in request["seen"].as_array().into_iter().flatten() {
        let path = path.as_str().expect("a path");
        case["seen"][path] = case["files"][path].clone();
    }
    json!({ "schema": 1, "set": "t", "about": "x", "subsets": {}, "cases": [case] }).to_string()
}

fn run(vector: &Value) -> Vec<String> {
    let request = &vector["request"];
    let policy = &request["policy"];
    let place = Place::new();
    place.write("cases/t.json", case_set(vector));
    let server = Server::start(request["turns"].as_array().expect("turns").clone());
    let mut command = place.run(&server);
    let tool = request["tool"].as_str().expect("a tool");
    command.args(["--request-timeout", "1", "--max-retries", "2", "--tool", tool]);
    let number = |name: &str| policy[name].as_u64().map(|value| value.to_string());
    if let Some(turns) = number("max_turns") {
        command.args(["--max-turns", &turns]);
    }
    if let Some(limit) = number("identical_limit") {
        command.args(["--identical-limit", &limit]);
    }
    if policy["text_calls"] == "parse" {
        command.args(["--text-calls", "accept"]);
    }
    if policy["arguments"] == "coerce" {
        command.args(["--tool-options", "{\"arguments\": \"coerce\"}"]);
    }
    if request["send_optional"] == true {
        command
            .args(["--extra-body", "{\"parallel_tool_calls\": true, \"stream_options\": {\"include_usage\": true}}"])
            .arg("--strict-tools");
    }
    let output = command.output().expect("ran");
    let rows = place.rows("out");
    let [row] = rows.as_slice() else { panic!("{}: {} rows: {}", vector["id"], rows.len(), support::stderr(&output)) };
    let mut faults = compare(vector, row, &server.requests());
    let transcript: Value = serde_json::from_str(&place.read("out/transcripts/attempts.jsonl")).expect("JSON");
    let turns = transcript["turns"].as_array().expect("turns").iter();
    let waits: Vec<&Value> =
        turns.flat_map(|turn| turn["retries"].as_array().into_iter().flatten()).map(|retry| &retry["wait_s"]).collect();
    // Where the server names no wait, ours has jitter.
    let named =
        request["turns"].as_array().into_iter().flatten().any(|turn| turn["headers"]["Retry-After"].is_string());
    if let Some(want) = vector["outcome"]["retry_waits_s"].as_array().filter(|_| named)
        && waits != want.iter().collect::<Vec<_>>()
    {
        faults.push(format!("waited {waits:?}, want {want:?}"));
    }
    faults
}

fn compare(vector: &Value, row: &Value, requests: &[Value]) -> Vec<String> {
    let outcome = &vector["outcome"];
    let calls = row["calls"].as_array().expect("calls");
    let ran = calls
        .iter()
        .filter(|call| !["json_invalid", "unknown_tool"].contains(&call["kind"].as_str().unwrap_or_default()))
        .count();
    let results: Vec<Value> =
        calls.iter().map(|call| if call["ok"] == true { json!("ok") } else { call["kind"].clone() }).collect();
    let have = json!({
        "verdict": row["verdict"],
        "class": row["class"],
        "harm": row["harm"],
        "diagnosis": row["diagnosis"],
        "tool_calls_executed": ran,
        "http_requests": requests.len(),
        "tool_results": results,
        "dropped_params": row["dropped_params"],
        "tokens": row["usage"]["total"],
    });
    let mut faults = Vec::new();
    for (name, want) in outcome.as_object().expect("outcome") {
        if ["retry_waits_s", "sent_checks"].contains(&name.as_str()) {
            continue;
        }
        let fits = want["any"].as_array().map_or(have[name] == *want, |any| any.contains(&have[name]));
        if !fits {
            faults.push(format!("{name}: have {}, want {want} ({})", have[name], row["error"]));
        }
    }
    for check in outcome["sent_checks"].as_array().into_iter().flatten() {
        let request = &requests[usize::try_from(check["request"].as_u64().expect("n-th")).expect("small")];
        faults.extend(sent(check, request));
    }
    faults.extend(requests.iter().flat_map(invariants));
    faults
}

/// The values that a check names, in the first message of its role.
fn sent(check: &Value, request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    let message = messages.iter().find(|message| message["role"] == check["role"]).unwrap_or(&Value::Null);
    let mut faults = Vec::new();
    for (path, want) in check["equals"].as_object().into_iter().flatten() {
        let have = path.split('.').fold(message, |value, name| match name.parse::<usize>() {
            Ok(index) => &value[index],
            Err(_) => &value[name],
        });
        if have != want {
            faults.push(format!("{path}: sent {have}, want {want}"));
        }
    }
    if let Some(count) = check["calls"].as_u64() {
        let results = messages.iter().filter(|message| message["role"] == "tool").count() as u64;
        if results != count {
            faults.push(format!("{results} results, want {count}"));
        }
    }
    faults
}

/// What holds for every request: one system message, first; calls and results pair up in order; arguments are JSON.
fn invariants(request: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let messages = request["messages"].as_array().expect("messages");
    let systems = messages.iter().filter(|message| message["role"] == "system").count();
    if systems != 1 || messages[0]["role"] != "system" {
        faults.push(format!("{systems} system messages"));
    }
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().expect("id");
            if open.is_empty() || open.remove(0) != id {
                faults.push(format!("result {id} has no call, or comes out of order"));
            }
            continue;
        }
        if !open.is_empty() {
            faults.push(format!("calls without a result: {open:?}"));
        }
        open = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| call["id"].as_str().expect("id"))
            .collect();
        let mut distinct = open.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() != open.len() || open.iter().any(|id| id.is_empty()) {
            faults.push(format!("ids {open:?}"));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().expect("a string");
            if serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_err() {
                faults.push(format!("arguments {arguments:?}"));
            }
        }
        if message["content"].is_null() {
            faults.push("null content".to_owned());
        }
    }
    faults
}

#[test]
fn harness_vectors_hold() {
    let vectors: Value = serde_json::from_slice(include_bytes!("data/vectors.json")).expect("JSON");
    let mine: Vec<&Value> = vectors
        .as_array()
        .expect("list")
        .iter()
        .filter(|vector| {
            vector["side"] == "harness"
                && vector["request"]["turns"].is_array()
                && !LONG.iter().any(|id| vector["id"] == *id)
        })
        .collect();
    assert!(mine.len() >= 64, "{} vectors", mine.len());
    let bad: Vec<String> = mine
        .iter()
        .filter_map(|vector| {
            let faults = run(vector);
            (!faults.is_empty()).then(|| format!("{}: {}", vector["id"], faults.join("; ")))
        })
        .collect();
    assert!(bad.is_empty(), "{} of {} vectors do not hold:\n{}", bad.len(), mine.len(), bad.join("\n"));
}

#[test]
#[ignore = "waits for more than a minute, as the server asks"]
fn long_waits_are_kept_and_capped() {
    let vectors: Value = serde_json::from_slice(include_bytes!("data/vectors.json")).expect("JSON");
    let long = vectors.as_array().expect("list").iter().filter(|vector| LONG.iter().any(|id| vector["id"] == *id));
    let faults: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = long.map(|vector| scope.spawn(|| run(vector))).collect();
        assert_eq!(runs.len(), LONG.len());
        runs.into_iter().flat_map(|run| run.join().expect("ran")).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
