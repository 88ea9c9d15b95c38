//! The built binary from the outside: runs, gates, what is left on disk.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{Place, Server, TWO, answer, builtin, calls, code, edit, repository, stderr, stdout, words};

#[test]
fn the_stand_ins_prove_the_scorer_on_the_shipped_cases() {
    let place = Place::new();
    // Garbage is slow where it is long, and the release subsets have every shape.
    let some = ["--subset", "release"];
    for (name, all, which, least) in
        [("oracle", true, &[][..], 1_300), ("noop", false, &[][..], 1_300), ("garbage", false, &some[..], 300)]
    {
        let output = place
            .editgate()
            .args(["run", "-m", &format!("builtin/{name}"), "--no-gate", "--out", name])
            .args(["--tool", "edit_file", "--tool", "EditFile", "--tool", "filesystem_write", "--cases"])
            .arg(repository().join("cases"))
            .args(which)
            .output()
            .expect("ran");
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let rows = place.rows(name);
        assert!(rows.len() >= least, "{} rows", rows.len());
        for row in &rows {
            // Where leaving the files as they are is right, whoever changes nothing is right.
            let (verdict, class) = (&row["verdict"], &row["class"]);
            match all {
                true => assert!(verdict == "pass" || class == "skipped.unsupported", "{name}: {row}"),
                false => assert!(verdict == "fail" || class == "pass.untouched", "{name}: {row}"),
            }
        }
        let untouched = rows.iter().filter(|row| row["class"] == "pass.untouched").count();
        assert!((3..120).contains(&untouched), "{name}: {untouched}");
        if name == "noop" {
            let fails = rows.iter().filter(|row| row["verdict"] == "fail");
            assert!(fails.clone().all(|row| row["harm"] == false && row["class"] == "fail.no_call"));
        }
        let run: Value = serde_json::from_str(&place.read(&format!("{name}/run.json"))).expect("JSON");
        let totals = &run["totals"];
        let sum: u64 =
            ["passed", "failed", "errors", "skipped"].iter().map(|name| totals[name].as_u64().expect("count")).sum();
        assert_eq!(totals["planned"], json!(sum));
        assert_eq!(run["status"], "complete");
    }
    for escaped in ["/tmp/editgate-garbage-escaped", "/etc/editgate-garbage-escaped"] {
        assert!(!Path::new(escaped).exists(), "{escaped}");
    }
}

/// What a tool cannot express is skipped with the reason, named on the screen and in the report, and in no rate.
#[test]
fn what_a_tool_cannot_express_is_no_failure() {
    let place = Place::new();
    let case = |id: &str, expect: Value| json!({ "id": id, "tags": ["t"], "files": { "a.txt": { "text": "a\n" } }, "task": "Do it.", "expect": expect });
    let cases = [
        case("gone", json!({ "a.txt": null })),
        case("mode", json!({ "a.txt": { "text": "a\n", "mode": "0755" } })),
        case("new", json!({ "d/b.txt": { "text": "b\n" } })),
    ];
    place.write(
        "cases/t.json",
        json!({ "schema": 1, "set": "t", "about": "x", "subsets": {}, "cases": cases }).to_string(),
    );
    let tools = ["--tool", "edit_file", "--tool", "EditFile", "--tool", "filesystem_write"];
    let output =
        place.editgate().args(["run", "-m", "builtin/oracle", "--out", "o"]).args(tools).output().expect("ran");
    let (screen, report) = (support::stdout(&output), place.read("o/report.md"));
    assert_eq!(code(&output), 0, "{screen}{}", stderr(&output));
    let verdicts = |tool: &str| -> Vec<String> {
        let rows = place.rows("o").into_iter().filter(|row| row["tool"] == tool);
        rows.map(|row| row["class"].as_str().expect("class").to_owned()).collect()
    };
    let (skipped, first) = ("skipped.unsupported", "pass.first");
    assert_eq!(verdicts("edit_file"), [skipped, skipped, skipped]);
    assert_eq!(verdicts("EditFile"), [skipped, skipped, first]);
    assert_eq!(verdicts("filesystem_write"), [first, skipped, first]);
    for text in ["planned 9 = passed 3 + failed 0 + errors 0 + skipped 6", "3 of 3 passed", "6 attempts were skipped"] {
        assert!(screen.contains(text), "{screen}");
    }
    assert!(screen.contains("EditFile cannot delete a.txt"), "{screen}");
    assert!(
        report.contains("What cannot be expressed") && report.contains("cannot change the mode or kind of a.txt"),
        "{report}"
    );
    // Where nothing at all can be measured, nothing is judged.
    let output = place.editgate().args(["run", "-m", "builtin/oracle", "--out", "none"]).output().expect("ran");
    assert_eq!(code(&output), 4, "{}", support::stdout(&output));
}

#[test]
fn a_conversation_leaves_row_transcript_and_report() {
    let place = Place::new();
    place.cases(TWO);
    let read = calls(&[("read_file", json!({ "path": "f.txt" }))]);
    let server = Server::start(vec![read, edit(2, "TWO"), words("Done."), edit(1, "Y"), words("Done?")]);
    let output = place.run(&server).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let rows = place.rows("out");
    assert_eq!(rows[0]["class"], "pass.first");
    assert_eq!(rows[0]["turns"], 3);
    assert_eq!(rows[0]["usage"], json!({ "input": 24, "output": 6, "cached": null, "reasoning": null, "total": 30 }));
    assert_eq!(rows[1]["class"], "fail.wrong.target");
    assert_eq!(rows[1]["harm"], true);
    assert_eq!(rows[1]["diagnosis"], json!(["off_by_one", "wrong_target"]));
    assert_eq!(rows[1]["conduct"], json!(["no_read", "asked"]));
    assert_eq!(place.read("out/work/openai/mock/edit_file/t/b.0/f.txt"), "Y\r\ny\r\n");
    let report = place.read("out/report.md");
    assert!(report.contains("\n+y␍␊\n"), "{report}");
    assert!(report.contains("planned 2 = passed 1 + failed 1 + errors 0 + skipped 0"), "{report}");
    let transcript = place.read("out/transcripts/attempts.jsonl");
    assert!(transcript.contains("replaced at line 1 of f.txt"));
    // What the model is told names neither the workspace's real path nor a time: the conversation is the same anywhere.
    let first = &server.requests()[0];
    assert_eq!(first["messages"][1]["content"], "Do the edit.");
    let names: Vec<&Value> =
        first["tools"].as_array().expect("tools").iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["edit_file", "read_file"]);
    let properties: Vec<&String> =
        first["tools"][0]["function"]["parameters"]["properties"].as_object().expect("object").keys().collect();
    assert_eq!(properties, ["path", "mode", "content", "line", "find"]);
    for request in server.requests() {
        assert!(!request.to_string().contains("/shm"), "{request}");
        assert!(!request.to_string().contains("/tmp"), "{request}");
    }
}

#[test]
fn floors_decide_the_exit_code() {
    let place = Place::new();
    assert_eq!(code(&builtin(&place, "oracle")), 0);
    let set = place
        .editgate()
        .args(["floors", "set", "oracle", "--method", "measured", "--floors", "new/floors.json"])
        .output()
        .expect("ran");
    assert_eq!(code(&set), 0, "{}", stderr(&set));
    let gate = |floors: &str| place.editgate().args(["gate", "oracle", "--floors", floors]).output().expect("ran");
    fs::rename(place.path("new/floors.json"), place.path("floors.json")).expect("moved");
    let met = gate("floors.json");
    assert_eq!(code(&met), 0);
    assert!(stdout(&met).contains("PASS: 2 of 2 passed"), "{}", stdout(&met));

    let text = place.read("floors.json");
    place.write("above.json", text.replace("\"floor\": 2", "\"floor\": 3"));
    let missed = gate("above.json");
    assert_eq!(code(&missed), 100);
    assert!(stdout(&missed).contains("FAIL: 2 of 2 passed"), "{}", stdout(&missed));

    let digest = text.split("\"digest\": \"").nth(1).expect("a digest").split('"').next().expect("its end").to_owned();
    place.write("other.json", text.replace(&digest, &digest.chars().rev().collect::<String>()));
    for output in [
        gate("other.json"),
        place
            .editgate()
            .args(["run", "-m", "builtin/oracle", "--subset", "release", "--floors", "other.json"])
            .output()
            .expect("ran"),
    ] {
        assert_eq!(code(&output), 2);
        let told = stderr(&output);
        assert!(told.contains("builtin/oracle × edit_file × t/release (plain) is not comparable"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }

    // A floor under other conditions, or of another count, is none either.
    let turns = place
        .editgate()
        .args(["run", "-m", "builtin/oracle", "--subset", "release", "--max-turns", "4", "--floors", "floors.json"])
        .output()
        .expect("ran");
    assert_eq!(code(&turns), 2);
    assert!(stderr(&turns).contains("under conditions"), "{}", stderr(&turns));
    let repeats = place
        .editgate()
        .args(["run", "-m", "builtin/oracle", "--subset", "release", "--repeat", "2", "--floors", "floors.json"])
        .output()
        .expect("ran");
    assert_eq!(code(&repeats), 2);
    // A narrowed selection is not gated, and says so.
    let narrowed = place
        .editgate()
        .args([
            "run",
            "-m",
            "builtin/oracle",
            "--subset",
            "release",
            "--case",
            "a",
            "--floors",
            "floors.json",
            "--out",
            "n",
        ])
        .output()
        .expect("ran");
    assert_eq!(code(&narrowed), 0);
    assert!(stdout(&narrowed).contains("NOT GATED"));
    assert!(stdout(&narrowed).contains("1 recorded floor was not judged"), "{}", stdout(&narrowed));
}

#[test]
fn errors_are_no_failures_and_make_a_run_incomplete() {
    let place = Place::new();
    place.cases(TWO);
    let refusal = json!({ "status": 400, "json": { "error": { "message": "no such model" } } });
    let server = Server::start(vec![edit(2, "TWO"), words("Done."), refusal]);
    let output = place.run(&server).output().expect("ran");
    assert_eq!(code(&output), 4);
    assert!(stdout(&output).contains("planned 2 = passed 1 + failed 0 + errors 1 + skipped 0"), "{}", stdout(&output));
    assert!(stdout(&output).contains("INCOMPLETE: 1 errors, 0 allowed"), "{}", stdout(&output));
    assert!(stderr(&output).contains("error: t/b: error.request: "), "{}", stderr(&output));
}

#[test]
fn an_allowance_lets_errors_pass_but_never_an_empty_run() {
    let place = Place::new();
    place.cases(TWO);
    let refusal = json!({ "status": 400, "json": { "error": { "message": "no such model" } } });
    let server = Server::start(vec![edit(2, "TWO"), words("Done."), refusal.clone()]);
    let output = place.run(&server).args(["--fail-on-error", "1"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    let server = Server::start(vec![refusal.clone(), refusal]);
    let mut command = place.editgate();
    command.args(["run", "-m", "openai/mock", "--base-url", &server.url, "--out", "none", "--fail-on-error", "5"]);
    let output = command.output().expect("ran");
    assert_eq!(code(&output), 4, "{}", stdout(&output));
}

#[test]
fn a_wrong_key_stops_early_and_is_never_shown() {
    let place = Place::new();
    let many: Vec<(String, &str, &str)> = (0..20).map(|n| (format!("c{n}"), "a\n", "b\n")).collect();
    let many: Vec<(&str, &str, &str)> = many.iter().map(|(id, before, after)| (id.as_str(), *before, *after)).collect();
    place.cases(&many);
    let refused =
        json!({ "status": 401, "json": { "error": { "message": "Incorrect API key provided: sk-secret-123" } } });
    let server = Server::start(vec![refused; 20]);
    let output =
        place.run(&server).env("MY_KEY", "sk-secret-123").args(["--api-key-env", "MY_KEY"]).output().expect("ran");
    assert_eq!(code(&output), 4);
    assert!(server.heads()[0].to_lowercase().contains("authorization: bearer sk-secret-123"));
    assert_eq!(server.requests().len(), 5, "stopped early");
    assert!(stderr(&output).contains("error.auth"), "{}", stderr(&output));
    let rows = place.rows("out");
    assert_eq!(rows.iter().filter(|row| row["class"] == "skipped.stopped").count(), 15);
    for entry in walkdir::WalkDir::new(place.path("out")) {
        let entry = entry.expect("readable");
        if entry.file_type().is_file() {
            let text = fs::read_to_string(entry.path()).expect("text");
            assert!(!text.contains("sk-secret-123"), "{}", entry.path().display());
        }
    }
    assert!(!stdout(&output).contains("sk-secret") && !stderr(&output).contains("sk-secret"));
}

#[test]
fn what_a_model_writes_is_run_as_it_came_and_only_keys_are_cut_from_the_record() {
    let place = Place::new();
    let after = "url = \"postgres://app:pw@db/app?token=abc\"\n";
    place.cases(&[("a", "url = \"\"\n", after)]);
    let server = Server::start(vec![edit(1, after.trim_end()), words("Done.")]);
    let output = place.run(&server).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(place.rows("out")[0]["class"], "pass.first");
    assert!(place.read("out/transcripts/attempts.jsonl").contains("postgres://app:pw@db/app?token=abc"));
}

#[test]
fn a_recording_replays_to_the_same_rows_and_tells_when_it_cannot() {
    let place = Place::new();
    place.cases(TWO);
    let turns = vec![edit(2, "TWO"), words("Done."), edit(9, "Y"), words("Done.")];
    let server = Server::start(turns);
    let output = place.run(&server).args(["--record", "rec", "--subset", "release"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let again = place.editgate().args(["run", "-m", "replay/rec", "--out", "again"]).output().expect("ran");
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert!(stdout(&again).contains("recording rec of openai/mock, made "), "{}", stdout(&again));
    let strip = |mut row: Value| {
        row["elapsed_ms"] = Value::Null;
        row["model_ms"] = Value::Null;
        row
    };
    let live: Vec<Value> = place.rows("out").into_iter().map(strip).collect();
    let replayed: Vec<Value> = place.rows("again").into_iter().map(strip).collect();
    assert_eq!(live, replayed);

    let other =
        place.editgate().args(["run", "-m", "replay/rec", "--prompt", "directed", "--out", "x"]).output().expect("ran");
    assert_eq!(code(&other), 2);
    assert!(stderr(&other).contains("the recording was made with --prompt plain"), "{}", stderr(&other));

    // Another task is another conversation: no answer of the recording belongs to it.
    let set = place.read("cases/t.json").replacen("Do the edit.", "Do another edit.", 1);
    place.write("cases/t.json", set);
    let diverged = place.editgate().args(["run", "-m", "replay/rec", "--out", "diverged"]).output().expect("ran");
    assert_eq!(code(&diverged), 4);
    assert_eq!(place.rows("diverged")[0]["class"], "error.recording");
    assert_eq!(place.rows("diverged")[1]["class"], "fail.refused.line_range");
}

#[test]
fn a_recording_of_some_cases_replays_those() {
    let place = Place::new();
    place.cases(TWO);
    let server = Server::start(vec![edit(2, "Y"), words("Done.")]);
    let output = place.run(&server).args(["--record", "rec", "--case", "b"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let again = place.editgate().args(["run", "-m", "replay/rec", "--out", "again"]).output().expect("ran");
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    let rows = place.rows("again");
    assert_eq!((rows.len(), &rows[0]["case"], &rows[0]["class"]), (1, &json!("b"), &json!("pass.first")));
}

/// `--stop-after edit` ends an attempt when there were as many edits as the case has places, no sooner.
#[test]
fn an_attempt_of_several_places_ends_after_as_many_edits() {
    let place = Place::new();
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n{last}\n");
    place.cases(&[
        ("two", &lines("one", "seven"), &lines("ONE", "SEVEN")),
        ("one", &lines("one", "7"), &lines("ONE", "7")),
    ]);
    let server = Server::start(vec![edit(1, "ONE"), edit(7, "SEVEN"), edit(1, "ONE")]);
    let output = place.run(&server).args(["--stop-after", "edit"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let rows = place.rows("out");
    assert_eq!(rows.iter().map(|row| row["turns"].as_u64()).collect::<Vec<_>>(), [Some(2), Some(1)]);
    assert!(rows.iter().all(|row| row["verdict"] == "pass"), "{rows:?}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn files_change_under_the_model_when_the_case_says_so() {
    let place = Place::new();
    let set = json!({ "schema": 1, "set": "t", "about": "x", "subsets": {}, "cases": [
        { "id": "seen", "tags": [], "files": { "f.txt": { "text": "new\none\ntwo\n" } }, "seen": { "f.txt": { "text": "one\ntwo\n" } },
          "task": "x", "expect": { "f.txt": { "text": "new\none\nTWO\n" } } },
        { "id": "then", "tags": [], "files": { "f.txt": { "text": "one\ntwo\n" } },
          "then": [{ "after": "read", "nth": 1, "files": { "f.txt": { "text": "new\none\ntwo\n" } } }],
          "task": "x", "expect": { "f.txt": { "text": "new\none\nTWO\n" } } } ] });
    place.write("cases/t.json", set.to_string());
    let stale = calls(&[(
        "edit_file",
        json!({ "path": "f.txt", "mode": "replace", "line": 2, "find": "two", "content": "TWO" }),
    )]);
    let read = calls(&[("read_file", json!({ "path": "f.txt" }))]);
    let server = Server::start(vec![stale.clone(), words("Done."), read, stale.clone(), words("Done.")]);
    let output = place.run(&server).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for row in place.rows("out") {
        assert_eq!(row["class"], "pass.assisted", "{row}");
        assert_eq!(row["conduct"], json!(["line_moved"]));
    }
    let first = &server.requests()[0]["messages"];
    assert_eq!(first[2]["tool_calls"][0]["function"]["name"], "read_file");
    assert_eq!(first[3]["content"], "1\tone\n2\ttwo\n[end of file]");

    // A model that edits without reading meets the changed file as well.
    let server = Server::start(vec![stale, words("Done.")]);
    let mut blind = place.editgate();
    blind.args(["run", "-m", "openai/mock", "--base-url", &server.url, "--case", "then", "--out", "blind"]);
    assert_eq!(code(&blind.output().expect("ran")), 0);
    assert_eq!(place.rows("blind")[0]["class"], "pass.assisted");
    assert_eq!(place.rows("blind")[0]["conduct"], json!(["line_moved", "no_read"]));
}

#[test]
fn one_byte_anywhere_in_the_tree_fails() {
    let place = Place::new();
    let case = |id: &str, files: Value, expect: Value| json!({ "id": id, "tags": [], "files": files, "task": "x", "expect": expect });
    let file = |text: &str| json!({ "text": text });
    let base64 = |text: &str| json!({ "base64": text });
    let set = json!({ "schema": 1, "set": "t", "about": "x", "subsets": {}, "cases": [
        case("bom-crlf", json!({ "f.txt": file("\u{FEFF}a\r\nb\r\n") }), json!({ "f.txt": file("\u{FEFF}a\r\nB\r\n") })),
        case("latin1", json!({ "f.txt": base64("Y2Fm6QpiCg==") }), json!({ "f.txt": base64("Y2Fm6QpCCg==") })),
        case("lone-cr", json!({ "f.txt": file("a\rb\r") }), json!({ "f.txt": file("a\rB\r") })),
        case("no-newline", json!({ "f.txt": file("a\nb") }), json!({ "f.txt": file("a\nB") })),
        case("kept", json!({ "f.txt": { "text": "a\nb\n", "mode": "0755" } }), json!({ "f.txt": file("a\nB\n") })),
        case("mode", json!({ "f.txt": { "text": "a\nb\n", "mode": "0755" } }), json!({ "f.txt": { "text": "a\nB\n", "mode": "0644" } })),
        case("other", json!({ "f.txt": file("a\nb\n"), "g.txt": file("x") }), json!({ "f.txt": file("a\nB\n"), "g.txt": file("y") })),
    ] });
    place.write("cases/t.json", set.to_string());
    let mut turns = Vec::new();
    for _ in 0..7 {
        turns.extend([edit(2, "B"), words("Done.")]);
    }
    let server = Server::start(turns);
    let output = place.run(&server).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let classes: Vec<Value> = place.rows("out").into_iter().map(|row| row["class"].clone()).collect();
    assert_eq!(
        classes,
        ["pass.first", "pass.first", "pass.first", "pass.first", "pass.first", "fail.wrong.meta", "fail.wrong.partial"]
    );
}

#[test]
fn hostile_output_is_inert_in_every_output() {
    let place = Place::new();
    place.cases(TWO);
    let nasty = "\u{1B}[31m<script>alert(1)</script>\u{202E} @everyone | `x` ```\n```";
    let call = calls(&[("edit_file", json!({ "path": "f.txt", "mode": "write", "content": nasty }))]);
    let unknown = answer(
        json!({ "role": "assistant", "content": nasty, "tool_calls": [{ "id": "1", "type": "function", "function": { "name": nasty, "arguments": nasty } }] }),
        "tool_calls",
    );
    let server = Server::start(vec![call, words(nasty), unknown, words(nasty)]);
    let output = place.run(&server).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let report = place.read("out/report.md");
    for text in [&report, &stdout(&output), &stderr(&output)] {
        assert!(!text.contains('\u{1B}') && !text.contains('\u{202E}'), "{text}");
    }
    // Markup only ever stands in code, where it is text.
    let mut fence = String::new();
    for line in report.lines() {
        let ticks: String = line.chars().take_while(|c| *c == '`').collect();
        if ticks.len() >= 3 && (fence.is_empty() || line.trim_end() == fence) {
            fence = if fence.is_empty() { ticks } else { String::new() };
        } else if fence.is_empty() {
            assert!(!line.contains("<script>") || line.contains('`'), "{line}");
        }
    }
    assert!(fence.is_empty(), "an open code block");
}

#[test]
fn a_report_is_bounded_whatever_the_run() {
    let place = Place::new();
    let long = "x".repeat(1500);
    let before: String = (0..60).map(|n| format!("{n} {long}\n")).collect();
    let many: Vec<(String, String)> =
        (0..80).map(|n| (format!("case-{n}-{}", "y".repeat(100)), format!("{before}{n}"))).collect();
    let cases: Vec<(&str, &str, &str)> =
        many.iter().map(|(id, after)| (id.as_str(), before.as_str(), after.as_str())).collect();
    place.cases(&cases);
    let output = place.editgate().args(["run", "-m", "builtin/garbage", "--out", "g"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let size = fs::metadata(place.path("g/report.md")).expect("report").len();
    assert!(size < 60_000, "{size} bytes");
    assert!(place.read("g/report.md").contains("more in `attempts.jsonl`"));
}

#[test]
fn the_order_on_disk_does_not_depend_on_concurrency() {
    let place = Place::new();
    let rows = |jobs: &str| {
        let output = place
            .editgate()
            .args(["run", "-m", "builtin/oracle", "--no-gate", "--repeat", "2", "-j", jobs, "--out", jobs, "--cases"])
            .arg(repository().join("cases"))
            .output()
            .expect("ran");
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        place
            .rows(jobs)
            .into_iter()
            .map(|row| format!("{}/{}/{}", row["set"], row["case"], row["repeat"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(rows("1"), rows("16"));
    let keys = |out: &str| {
        let text = place.read(&format!("{out}/transcripts/attempts.jsonl"));
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["key"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(keys("1"), keys("16"));
}

#[test]
fn an_interrupt_leaves_a_whole_record_and_no_workspace() {
    let place = Place::new();
    place.cases(TWO);
    fs::create_dir(place.path("boxes")).expect("made");
    let server = Server::start(vec![json!({ "stall": true })]);
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("editgate"));
    command
        .current_dir(place.path("."))
        .args(["run", "-m", "openai/mock", "--base-url", &server.url, "--out", "out", "--sandbox-dir", "boxes"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("started");
    while server.requests().is_empty() {
        std::thread::yield_now();
    }
    let interrupt = || {
        let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    };
    interrupt();
    // Wait until the first one has been told, so that the two are two.
    let mut line = String::new();
    let mut told = std::io::BufReader::new(child.stderr.as_mut().expect("stderr"));
    std::io::BufRead::read_line(&mut told, &mut line).expect("a line");
    assert!(line.contains("interrupted"), "{line}");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    let status = child.wait().expect("ended");
    assert_eq!(status.code(), Some(130));
    let run: Value = serde_json::from_str(&place.read("out/run.json")).expect("JSON");
    assert_eq!(run["status"], "interrupted");
    assert_eq!(run["totals"]["skipped"], 2);
    assert!(place.rows("out").iter().all(|row| row["class"] == "skipped.interrupted"));
    assert_eq!(fs::read_dir(place.path("boxes")).expect("there").count(), 0);
}
