//! The catalogue's vectors for small pure inputs: counts of a run, loading of a set, cutting of secrets, joining of URLs.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use base64::Engine as _;
use editgate::case::fixtures::Fixtures;
use editgate::case::load;
use editgate::model::protocol;
use editgate::model::redact::redact;
use editgate::verdict::gate::{Counts, Judgement, judge, rate};
use serde_json::{Value, json};

fn vectors(check: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_slice(include_bytes!("data/vectors.json")).expect("JSON");
    let mine: Vec<Value> = all.into_iter().filter(|vector| vector["request"]["check"] == check).collect();
    assert!(!mine.is_empty(), "no vector for {check}");
    mine
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn score() {
    for vector in vectors("score") {
        let request = &vector["request"];
        let results: Vec<&str> =
            request["results"].as_array().expect("list").iter().map(|each| each.as_str().expect("text")).collect();
        let count = |verdict: &str| results.iter().filter(|each| **each == verdict).count();
        let counts = Counts {
            planned: results.len(),
            passed: count("pass"),
            failed: count("fail"),
            errors: count("error"),
            missing: 0,
            unsupported: 0,
        };
        let number = |name: &str| request[name].as_u64().map(|value| usize::try_from(value).expect("small"));
        let judgement = judge(counts, number("floor"), number("allowed_errors").unwrap_or(0));
        let (met, exit) = match judgement {
            Judgement::Passed { .. } => (json!(true), 0),
            Judgement::Below { .. } => (json!(false), 100),
            Judgement::Ungated => (Value::Null, 0),
            Judgement::Inconclusive { .. } => (json!(false), 0),
            Judgement::Incomplete { .. } => (Value::Null, 4),
        };
        let have = json!({ "planned": counts.planned, "passed": counts.passed, "failed": counts.failed, "errors": counts.errors,
            "rate_pct": rate(counts).expect("planned") * 100.0, "floor_met": met, "exit_code": exit });
        for (name, want) in vector["outcome"].as_object().expect("outcome") {
            assert_eq!(have[name], *want, "{}: {name}", vector["id"]);
        }
    }
}

#[test]
fn load_sets() {
    for vector in vectors("load") {
        let file = &vector["request"]["file"];
        let bytes = match file["base64"].as_str() {
            Some(text) => base64::engine::general_purpose::STANDARD.decode(text).expect("base64"),
            None => text(file, "content").as_bytes().to_vec(),
        };
        let (set, faults) = load::parse(Path::new(text(file, "path")), &bytes, &Fixtures::new("fixtures"));
        let loaded = match faults.into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(set.expect("a set")),
        };
        match (loaded, vector["outcome"]["load"][0].as_str()) {
            (Ok(set), Some("ok")) => assert_eq!(json!(set.cases.len()), vector["outcome"]["load"][1]),
            (Err(error), Some("error")) => {
                let why = vector["outcome"]["load"][1].as_str().expect("words");
                assert!(error.to_string().contains(why), "{}: {error}", vector["id"]);
            }
            (loaded, _) => panic!("{}: {loaded:?}", vector["id"]),
        }
    }
}

#[test]
fn redact_secrets() {
    for vector in vectors("redact") {
        let request = &vector["request"];
        assert_eq!(redact(text(request, "text"), Some(text(request, "secret"))), text(&vector["outcome"], "text"));
    }
}

#[test]
fn join_urls() {
    for vector in vectors("join_url") {
        for pair in vector["request"]["pairs"].as_array().expect("pairs") {
            let chat = protocol::named(protocol::FIRST).expect("known");
            assert_eq!(json!(chat.url(pair[0].as_str().expect("base"), "m", false)), pair[1]);
        }
    }
}
