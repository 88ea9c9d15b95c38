//! `tools serve`: the official SDK's own client drives the built binary over stdio.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService, ServiceExt};
use rmcp::transport::{ConfigureCommandExt, TokioChildProcess};
use serde_json::{Value, json};
use support::Place;

async fn client(place: &Place, tool: &str, options: &str) -> RunningService<RoleClient, ()> {
    let command = tokio::process::Command::new(env!("CARGO_BIN_EXE_editgate")).configure(|command| {
        command.args(["tools", "serve", tool, "--options", options, "--root"]).arg(place.path("ws"));
    });
    ().serve(TokioChildProcess::new(command).expect("started")).await.expect("a handshake")
}

async fn call(client: &RunningService<RoleClient, ()>, name: &str, arguments: Value) -> (bool, String, Value) {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
    let result: CallToolResult = client.call_tool(request).await.expect("answered");
    let value = serde_json::to_value(&result).expect("JSON");
    let text = value["content"][0]["text"].as_str().expect("text").to_owned();
    (value["isError"] == true, text, value["_meta"]["editgate/receipt"].clone())
}

#[tokio::test]
async fn a_client_lists_reads_and_edits() {
    let place = Place::new();
    place.write("ws/f.txt", "one\r\ntwo\r\n");
    let client = client(&place, "edit_file", "{}").await;
    let tools = client.list_all_tools().await.expect("listed");
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["edit_file", "read_file"]);
    assert_eq!(tools[0].input_schema["required"], json!(["path", "mode", "content"]));
    let hints: Vec<Value> = tools.iter().map(|tool| serde_json::to_value(&tool.annotations).expect("JSON")).collect();
    assert_eq!((&hints[0]["readOnlyHint"], &hints[1]["readOnlyHint"]), (&json!(false), &json!(true)));

    let (error, text, _) = call(&client, "read_file", json!({ "path": "f.txt" })).await;
    assert_eq!((error, text.as_str()), (false, "1\tone\n2\ttwo\n[end of file]"));
    let edit = json!({ "path": "f.txt", "mode": "replace", "content": "TWO", "line": 2 });
    let (error, text, receipt) = call(&client, "edit_file", edit).await;
    assert_eq!((error, text.as_str()), (false, "replaced at line 2 of f.txt; now 10 bytes; line 2 now: \"TWO\""));
    assert_eq!(
        receipt["files"],
        json!([{ "path": "f.txt", "mode": "replace", "created": false, "bytesBefore": 10, "bytesAfter": 10 }])
    );
    let (error, text, receipt) =
        call(&client, "edit_file", json!({ "path": "../x", "mode": "write", "content": "" })).await;
    assert!(error && text.starts_with("error: cannot write ../x"), "{text}");
    assert_eq!((&receipt["kind"], &receipt["files"]), (&json!("path_denied"), &json!([])));
    // What was not offered is a fault of the caller, not an answer of the tool.
    assert!(client.call_tool(CallToolRequestParams::new("rm")).await.is_err());
    client.cancel().await.expect("closed");
    assert_eq!(place.read("ws/f.txt"), "one\r\nTWO\r\n");
}

#[tokio::test]
async fn one_process_is_one_session() {
    let place = Place::new();
    place.write("ws/f.txt", "one\n");
    let client = client(&place, "EditFile", "{\"arguments\": \"coerce\"}").await;
    let edit = json!({ "path": "f.txt", "old": "one", "new": "two", "replace_all": "true" });
    let (error, _, receipt) = call(&client, "EditFile", edit.clone()).await;
    assert!(error);
    assert_eq!(receipt["kind"], "not_read");
    call(&client, "ReadFile", json!({ "path": "f.txt" })).await;
    let (error, text, receipt) = call(&client, "EditFile", edit).await;
    assert!(!error && text.starts_with("edited f.txt"), "{text}");
    assert_eq!(receipt["notes"], json!(["argument_coerced"]));
    client.cancel().await.expect("closed");
}

#[tokio::test]
async fn calls_made_at_once_all_land() {
    let place = Place::new();
    place.write("ws/f.txt", (0..20).map(|n| format!("<{n}>\n")).collect::<String>());
    let client = client(&place, "filesystem_write", "{}").await;
    let edit =
        |n: usize| json!({ "action": "edit", "path": "f.txt", "old": format!("<{n}>"), "new": format!("[{n}]") });
    let calls = (0..20).map(|n| call(&client, "filesystem_write", edit(n)));
    for (error, text, _) in futures_util::future::join_all(calls).await {
        assert!(!error, "{text}");
    }
    client.cancel().await.expect("closed");
    assert_eq!(place.read("ws/f.txt"), (0..20).map(|n| format!("[{n}]\n")).collect::<String>());
}

#[test]
fn what_is_no_client_is_told_so() {
    let place = Place::new();
    place.write("ws/f.txt", "");
    let mut serve = place.editgate();
    let output = serve.args(["tools", "serve", "edit_file", "--root", "ws"]).write_stdin("").output().expect("ran");
    assert!(output.status.success(), "{}", support::stderr(&output));
    let mut bad = place.editgate();
    let output = bad.args(["tools", "serve", "edit_file", "--root", "nowhere"]).output().expect("ran");
    assert_eq!(output.status.code(), Some(2));
}
