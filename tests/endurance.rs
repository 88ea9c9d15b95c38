//! A run survives what happens to it: faults of the server, kills, interrupts, limits.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::hash::{BuildHasher, RandomState};
use std::process::{Command as Plain, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::by_case::{Fault, Scripted};
use support::{Place, code, stderr, stdout};

/// Attempts of the long tests; `EDITGATE_ENDURANCE=500` makes them as long as the figures in the notes.
fn attempts() -> usize {
    std::env::var("EDITGATE_ENDURANCE").ok().and_then(|count| count.parse().ok()).unwrap_or(60)
}

/// A set of so many cases: each asks for the word of its number in the second line.
fn many(place: &Place, count: usize) {
    let cases: Vec<Value> = (0..count)
        .map(|number| {
            json!({ "id": format!("case-{number:04}"), "tags": ["t"], "files": { "f.txt": { "text": "one\ntwo\n" } },
                    "task": format!("Put word {number} into line 2."),
                    "expect": { "f.txt": { "text": format!("one\nword {number}\n") } } })
        })
        .collect();
    place.write(
        "cases/t.json",
        json!({ "schema": 1, "set": "t", "about": "x", "subsets": {}, "cases": cases }).to_string(),
    );
}

fn run_against(place: &Place, server: &Scripted, out: &str) -> Plain {
    let mut command = place.plain();
    command.args(["run", "-m", "openai/mock", "--base-url", &server.url, "--out", out, "-j", "8", "--no-gate"]);
    command.args(["--retry-wait", "0.01", "--max-retry-wait", "0.05", "--max-retries", "20"]);
    command.args(["--request-timeout", "1", "--idle-timeout", "0.5"]);
    command
}

/// What a row says apart from how long things took and how often they were tried.
fn essence(rows: &[Value]) -> Vec<Value> {
    rows.iter()
        .map(|row| {
            let mut row = row.clone();
            for name in ["elapsed_ms", "model_ms", "first_byte_ms", "retries"] {
                row[name] = Value::Null;
            }
            row
        })
        .collect()
}

#[test]
fn faults_of_the_server_change_no_verdict() {
    let place = Place::new();
    many(&place, attempts());
    let calm = Scripted::start(|_| None);
    assert_eq!(run_against(&place, &calm, "calm").output().expect("ran").status.code(), Some(0));
    let wild = Scripted::start(|number| (number % 10 < 3).then(|| Fault::ALL[number / 10 % Fault::ALL.len()]));
    let output = run_against(&place, &wild, "wild").output().expect("ran");
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(essence(&place.rows("calm")), essence(&place.rows("wild")));
    let rows = place.rows("wild");
    let passed = rows.iter().filter(|row| row["verdict"] == "pass").count();
    assert_eq!(passed, attempts() / 10 * 9, "one in ten is answered wrongly");
    assert!(rows.iter().any(|row| row["retries"] != 0));
}

#[test]
fn a_killed_run_goes_on_to_the_same_end() {
    let place = Place::new();
    many(&place, attempts());
    let server = Scripted::start(|_| None);
    let began = Instant::now();
    assert_eq!(run_against(&place, &server, "whole").output().expect("ran").status.code(), Some(0));
    // Now and then long enough for a fiftieth of the run and more, after the process has started.
    let longest = began.elapsed() / 25 + Duration::from_millis(100);
    let (mut kills, dice) = (0, RandomState::new());
    for round in 0..400_u32 {
        let mut command = match place.path("cut/run.json").exists() {
            false => run_against(&place, &server, "cut"),
            true => {
                let mut command = place.plain();
                command.args(["run", "--resume", "cut", "-j", "4"]);
                command
            }
        };
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        // At a random moment, wherever the run is just then.
        let moment = Instant::now() + longest.mul_f64(f64::from(dice.hash_one(round) as u32) / f64::from(u32::MAX));
        loop {
            if let Some(status) = child.try_wait().expect("a child") {
                assert_eq!(status.code(), Some(0), "round {round}");
                break;
            }
            if Instant::now() >= moment {
                child.kill().expect("killed");
                child.wait().expect("ended");
                kills += 1;
                break;
            }
            std::thread::yield_now();
        }
        // Half a line, as a full disk or a power cut leaves it.
        if round % 3 == 1 && place.path("cut/attempts.jsonl").exists() {
            let text = place.read("cut/attempts.jsonl") + "{\"case\": \"ca";
            place.write("cut/attempts.jsonl", text);
        }
        if place.path("cut/run.json").exists() && place.read("cut/run.json").contains("\"complete\"") {
            break;
        }
    }
    assert!(kills >= 1, "the run was never disturbed");
    println!("{kills} kills");
    let output = place.editgate().args(["run", "--resume", "cut"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert_eq!(essence(&place.rows("whole")), essence(&place.rows("cut")));
    let transcripts = |out: &str| place.read(&format!("{out}/transcripts/attempts.jsonl")).lines().count();
    assert_eq!(transcripts("whole"), transcripts("cut"));
}

#[test]
fn only_errors_are_made_again_when_asked() {
    let place = Place::new();
    many(&place, 4);
    let server = Scripted::start(|number| (number < 3).then_some(Fault::Refused));
    let mut command = run_against(&place, &server, "out");
    let output = command.args(["-j", "1"]).output().expect("ran");
    assert_eq!(output.status.code(), Some(4), "{}", stdout(&output));
    let errors = |rows: &[Value]| rows.iter().filter(|row| row["verdict"] == "error").count();
    assert_eq!(errors(&place.rows("out")), 3);
    let before = server.answered();
    let again = place.editgate().args(["run", "--resume", "out"]).output().expect("ran");
    assert_eq!(code(&again), 4, "nothing is left to do but the errors");
    assert_eq!(server.answered(), before);
    let again = place.editgate().args(["run", "--resume", "out", "--retry-errors"]).output().expect("ran");
    assert_eq!(code(&again), 0, "{}{}", stdout(&again), stderr(&again));
    let rows = place.rows("out");
    assert_eq!((rows.len(), errors(&rows)), (4, 0));
}

#[test]
fn another_run_is_not_resumed() {
    let place = Place::new();
    many(&place, 3);
    let server = Scripted::start(|_| None);
    let mut command = run_against(&place, &server, "out");
    assert_eq!(command.args(["--token-limit", "1", "-j", "1"]).output().expect("ran").status.code(), Some(4));
    let rows = place.rows("out");
    assert_eq!(rows.iter().filter(|row| row["class"] == "skipped.limit").count(), 2, "{rows:?}");
    let refused = |args: &[&str], why: &str| {
        let output = place.editgate().args(["run", "--resume", "out"]).args(args).output().expect("ran");
        assert_eq!(code(&output), 2, "{}", stdout(&output));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    };
    refused(&["--temperature", "1"], "this has changed: models (openai/mock)");
    refused(&["--max-turns", "3"], "this has changed: conversation (max_turns)");
    many(&place, 4);
    refused(&[], "this has changed: sets (t)");
    many(&place, 3);
    let output = place.editgate().args(["run", "--resume", "out", "--token-limit", "1000000"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert_eq!(place.rows("out").len(), 3);
    let missing = place.editgate().args(["run", "--resume", "nowhere"]).output().expect("ran");
    assert_eq!(code(&missing), 2);
}

#[test]
fn every_run_is_a_recording() {
    let place = Place::new();
    many(&place, 12);
    let server = Scripted::start(|_| None);
    assert_eq!(run_against(&place, &server, "out").output().expect("ran").status.code(), Some(0));
    let output = place.editgate().args(["replay", "out"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("12 unchanged"), "{}", stdout(&output));
    let output =
        place.editgate().args(["run", "-m", "replay/out", "--no-gate", "--out", "again"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let classes = |out: &str| -> Vec<Value> { place.rows(out).iter().map(|row| row["class"].clone()).collect() };
    assert_eq!(classes("out"), classes("again"));
    // The case asks for other bytes now: the recorded answers no longer lead there.
    let set = place.read("cases/t.json").replace("word 3\\n", "word three\\n");
    place.write("cases/t.json", set);
    let output = place.editgate().args(["replay", "out"]).output().expect("ran");
    assert_eq!(code(&output), 101, "{}{}", stdout(&output), stderr(&output));
    let screen = stdout(&output);
    assert!(screen.contains("1 broken") && screen.contains("t/case-0003"), "{screen}");
}

#[test]
fn nothing_secret_is_traced() {
    let place = Place::new();
    many(&place, 1);
    let server = Scripted::start(|_| None);
    let config = format!(
        "[models.m]\nspec = \"openai/mock\"\nbase_url = \"{}\"\napi_key_env = \"SECRET_KEY\"\nheaders = {{ \"x-team\" = \"team-${{TEAM}}\" }}\nprice = {{ input = 1.0, output = 2.0 }}\n",
        server.url.replace("http://", "http://user:passw0rd@")
    );
    place.write("editgate.toml", config);
    let mut command = place.editgate();
    command.env("SECRET_KEY", "sk-verysecret").env("TEAM", "hushhush");
    let output = command.args(["run", "-m", "m", "--out", "out", "-v", "--no-gate"]).output().expect("ran");
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("asking") && said.contains("answered") && said.contains("attempt ended"), "{said}");
    let head = server.heads().last().cloned().expect("a request");
    assert!(head.contains("team-hushhush"), "{head}");
    let mut all = said + &stdout(&output);
    for name in ["run.json", "attempts.jsonl", "transcripts/attempts.jsonl", "report.md"] {
        all += &place.read(&format!("out/{name}"));
    }
    for secret in ["verysecret", "hushhush", "passw0rd"] {
        assert!(!all.contains(secret), "{secret}");
    }
    let rows = place.rows("out");
    assert!(rows[0]["cost_usd"].as_f64().expect("priced") > 0.0);
}
