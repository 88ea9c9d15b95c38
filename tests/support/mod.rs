//! What the black-box tests share: a scripted HTTP server that speaks the real wire formats, case sets on the fly, and
//! the built binary in a clean environment.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod by_case;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use assert_cmd::Command;
use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server that answers POSTs with the turns of a script, in order, and says 404 to everything else.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    headers: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `turns` as in the vectors: `status`, `headers`, and one of `json`, `text`, `sse`, `sse_b64`, or `stall`.
    pub(crate) fn start(turns: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let headers = Arc::new(Mutex::new(Vec::new()));
        let (seen, seen_headers) = (Arc::clone(&requests), Arc::clone(&headers));
        std::thread::spawn(move || {
            let mut turns = turns.into_iter();
            let mut stalled = Vec::new();
            for stream in listener.incoming().flatten() {
                let Some((post, head, body)) = read_request(&stream) else {
                    continue;
                };
                if !post {
                    respond(&stream, &json!({ "status": 404, "json": { "error": { "message": "not here" } } }));
                    continue;
                }
                seen.lock().expect("lock").push(serde_json::from_slice(&body).unwrap_or(Value::Null));
                seen_headers.lock().expect("lock").push(head);
                match turns.next() {
                    None => respond(
                        &stream,
                        &json!({ "status": 400, "json": { "error": { "message": "the script has ended" } } }),
                    ),
                    Some(turn) if turn["stall"] == true => stalled.push(stream),
                    Some(turn) => respond(&stream, &turn),
                }
            }
        });
        Server { url, requests, headers }
    }

    /// Bodies of the POSTs so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().expect("lock").clone()
    }

    /// Heads of the POSTs so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.headers.lock().expect("lock").clone()
    }
}

fn read_request(stream: &TcpStream) -> Option<(bool, String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length:").map(|value| value.trim().parse::<usize>())
        })
        .map_or(0, |length| length.unwrap_or(0));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head.starts_with("POST"), head, body))
}

fn respond(mut stream: &TcpStream, turn: &Value) {
    let chunks: Vec<Vec<u8>> = if let Some(chunks) = turn["sse"].as_array() {
        chunks.iter().map(|chunk| chunk.as_str().expect("text").as_bytes().to_vec()).collect()
    } else if let Some(chunks) = turn["sse_b64"].as_array() {
        chunks
            .iter()
            .map(|chunk| {
                base64::engine::general_purpose::STANDARD.decode(chunk.as_str().expect("text")).expect("base64")
            })
            .collect()
    } else if let Some(text) = turn["text"].as_str() {
        vec![text.as_bytes().to_vec()]
    } else {
        vec![turn["json"].to_string().into_bytes()]
    };
    let stream_type = turn["sse"].is_array() || turn["sse_b64"].is_array();
    let kind = if stream_type { "text/event-stream" } else { "application/json; charset=utf-8" };
    let length: usize = chunks.iter().map(Vec::len).sum();
    let mut head = format!(
        "HTTP/1.1 {} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n",
        turn["status"]
    );
    for (name, value) in turn["headers"].as_object().into_iter().flatten() {
        head.push_str(&format!("{name}: {}\r\n", value.as_str().expect("text")));
    }
    // A client that has gone is the test's business, not the server's.
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
    for chunk in chunks {
        let _ = stream.write_all(&chunk);
        let _ = stream.flush();
    }
}

/// An answer with calls, as the wire has it.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            json!({ "id": format!("c{index}"), "type": "function", "function": { "name": name, "arguments": arguments.to_string() } })
        })
        .collect();
    answer(json!({ "role": "assistant", "content": null, "tool_calls": calls }), "tool_calls")
}

/// An answer in words.
pub(crate) fn words(text: &str) -> Value {
    answer(json!({ "role": "assistant", "content": text }), "stop")
}

pub(crate) fn answer(message: Value, finish: &str) -> Value {
    json!({ "status": 200, "json": {
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": { "prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10 } } })
}

/// A directory of its own for a test: cases, output, and where the binary runs.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
        std::fs::write(&path, text).expect("written");
        path
    }

    /// A set `t` of cases `(id, before, expected)`, each with one file `f.txt`.
    pub(crate) fn cases(&self, cases: &[(&str, &str, &str)]) -> PathBuf {
        let entries: Vec<Value> = cases
            .iter()
            .map(|(id, before, expected)| {
                json!({ "id": id, "tags": ["t"], "files": { "f.txt": { "text": before } }, "task": "Do the edit.",
                        "expect": { "f.txt": { "text": expected } } })
            })
            .collect();
        let ids: Vec<&str> = cases.iter().map(|(id, _, _)| *id).collect();
        let set = json!({ "schema": 1, "set": "t", "about": "x", "subsets": { "release": ids }, "cases": entries });
        self.write("cases/t.json", set.to_string())
    }

    /// The built binary in this directory, with nothing of the environment that it would listen to.
    pub(crate) fn editgate(&self) -> Command {
        Command::from_std(self.plain())
    }

    /// The same to be started and not waited for.
    pub(crate) fn plain(&self) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("editgate"));
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("EDITGATE_") || name.ends_with("_API_KEY"))
        {
            command.env_remove(name);
        }
        for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        command.env("NO_COLOR", "1").env("CI", "1").current_dir(self.directory.path());
        command
    }

    /// `run` against a server, into `out`.
    pub(crate) fn run(&self, server: &Server) -> Command {
        let mut command = self.editgate();
        command.args(["run", "-m", "openai/mock", "--base-url", &server.url, "--out", "out", "--retry-wait", "0.01"]);
        command
    }

    /// Rows of the run in `out`.
    pub(crate) fn rows(&self, out: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(out).join("attempts.jsonl")).expect("rows");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// Standard error of a finished command.
pub(crate) fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Two cases of the set `t`, as [`Place::cases`] takes them.
pub(crate) const TWO: &[(&str, &str, &str)] = &[("a", "one\ntwo\n", "one\nTWO\n"), ("b", "x\r\ny\r\n", "x\r\nY\r\n")];

pub(crate) fn edit(line: u64, content: &str) -> Value {
    calls(&[("edit_file", json!({ "path": "f.txt", "mode": "replace", "line": line, "content": content }))])
}

pub(crate) fn code(output: &std::process::Output) -> i32 {
    output.status.code().expect("ended by itself")
}

/// Runs the stand-in over the two cases, into `out`.
pub(crate) fn builtin(place: &Place, name: &str) -> std::process::Output {
    place.cases(TWO);
    place
        .editgate()
        .args(["run", "-m", &format!("builtin/{name}"), "--subset", "release", "--out", name])
        .output()
        .expect("ran")
}
