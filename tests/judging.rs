//! Judgement from the outside: floors from history, paired checks, comparisons, and what reports make of hostile output.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use serde_json::{Value, json};
use support::by_case::Scripted;
use support::{Place, code, stderr, stdout};

const CASES: usize = 20;

/// A set whose cases ask for the word of their number; the first half is the subset `half`.
fn place() -> Place {
    let place = Place::new();
    let id = |number: usize| format!("case-{number:02}");
    let cases: Vec<Value> = (0..CASES)
        .map(|number| {
            json!({ "id": id(number), "tags": ["t"], "files": { "f.txt": { "text": "one\ntwo\n" } },
                    "task": format!("Put word {number} into line 2."),
                    "expect": { "f.txt": { "text": format!("one\nword {number}\n") } } })
        })
        .collect();
    let half: Vec<String> = (0..CASES / 2).map(id).collect();
    let set = json!({ "schema": 1, "set": "t", "about": "x", "subsets": { "half": half }, "cases": cases });
    place.write("cases/t.json", set.to_string());
    place
}

/// Runs the set against a server that answers rightly as it is told; exit code and screen.
fn run(
    place: &Place,
    out: &str,
    right: impl Fn(usize, usize) -> bool + Send + Sync + 'static,
    args: &[&str],
) -> (i32, String) {
    let server = Scripted::answering(|_| None, right);
    let mut command = place.editgate();
    command.args(["run", "-m", "openai/mock", "--base-url", &server.url, "--out", out, "-j", "4"]);
    let output = command.args(args).output().expect("ran");
    (code(&output), stdout(&output) + &stderr(&output))
}

fn editgate(place: &Place, args: &[&str]) -> (i32, String) {
    let output = place.editgate().args(args).output().expect("ran");
    (code(&output), stdout(&output) + &stderr(&output))
}

#[test]
fn a_paired_check_fails_what_is_significantly_worse() {
    let place = place();
    assert_eq!(run(&place, "base", |number, _| number < 18, &[]).0, 0);
    let (exit, screen) = run(&place, "same", |number, _| number < 18, &["--against", "base"]);
    assert!(exit == 0 && screen.contains("0 lost, 0 gained, p = 1.000"), "{exit} {screen}");
    // Three lost of twenty prove nothing, and cannot be ruled out either.
    let (exit, screen) = run(&place, "few", |number, _| number < 15, &["--against", "base"]);
    assert!(exit == 0 && screen.contains("INCONCLUSIVE") && screen.contains("t/case-15"), "{exit} {screen}");
    assert_eq!(editgate(&place, &["gate", "few", "--against", "base", "--strict"]).0, 102);
    let (exit, screen) = run(&place, "worse", |number, _| number < 8, &["--against", "base"]);
    assert!(exit == 101 && screen.contains("10 lost, 0 gained, p = 0.002"), "{exit} {screen}");
    assert_eq!(editgate(&place, &["gate", "worse", "--against", "base"]).0, 101);
    let (exit, page) = editgate(&place, &["report", "worse", "--against", "base", "--format", "md"]);
    assert!(exit == 0 && page.contains("Lost: 10") && page.contains("what broke them"), "{page}");
    // Other conditions are another measurement.
    let (exit, screen) = run(&place, "hot", |_, _| true, &["--against", "base", "--temperature", "1"]);
    assert!(
        exit == 2 && screen.contains("the settings of the model") && screen.contains("--allow-mismatch"),
        "{screen}"
    );
    assert_eq!(editgate(&place, &["gate", "hot", "--against", "base", "--allow-mismatch"]).0, 0);
    let (exit, screen) = editgate(&place, &["gate", "worse", "--against", "nowhere"]);
    assert!(exit == 2 && screen.contains("nowhere"), "{screen}");
}

#[test]
fn flips_are_confirmed_before_they_block() {
    let place = place();
    assert_eq!(run(&place, "base", |_, _| true, &[]).0, 0);
    // Ten cases fail at their first attempt only.
    let slip = |number: usize, before: usize| number >= 10 || before > 0;
    let (exit, screen) = run(&place, "slip", slip, &["--against", "base"]);
    assert_eq!(exit, 101, "{screen}");
    let (exit, screen) = run(&place, "shaky", slip, &["--against", "base", "--confirm", "3"]);
    assert!(exit == 0 && screen.contains("10 flips were not confirmed"), "{exit} {screen}");
    assert_eq!(place.rows("shaky").len(), CASES);
    assert_eq!(place.rows("shaky/confirm").len(), 30);
    let (exit, screen) = run(&place, "broken", |number, _| number >= 10, &["--against", "base", "--confirm", "2"]);
    assert!(exit == 101 && screen.contains("0 flips were not confirmed"), "{exit} {screen}");
    assert_eq!(editgate(&place, &["run", "-m", "builtin/oracle", "--confirm", "2"]).0, 2);
}

#[test]
fn floors_come_from_history_and_are_raised_only_when_asked() {
    let place = place();
    for (out, passing) in [("a", 17), ("b", 16), ("c", 18)] {
        run(&place, out, move |number, _| number < passing, &[]);
    }
    let (exit, screen) = editgate(&place, &["floors", "suggest", "a", "b", "c"]);
    assert!(exit == 0 && screen.contains("17 16 18") && screen.contains("asked for: at most 5.0 %"), "{screen}");
    let (exit, screen) = editgate(&place, &["floors", "set", "a", "b", "c", "--dry-run"]);
    assert!(exit == 0 && screen.contains("+ openai/mock × edit_file × t (plain): 14 of 20"), "{screen}");
    assert!(!place.path("reports/floors.json").exists());
    assert_eq!(editgate(&place, &["floors", "set", "a", "b", "c"]).0, 0);
    let floors: Value = serde_json::from_str(&place.read("reports/floors.json")).expect("JSON");
    let floor = &floors["floors"][0];
    assert_eq!((&floor["floor"], &floor["n"]), (&json!(14), &json!(20)));
    assert!(floor["false_alarm"].as_f64().expect("a share") <= 0.05 && floor["detects"].is_number());
    assert_eq!(floor["evidence"].as_array().expect("runs").len(), 3);
    assert_eq!(editgate(&place, &["gate", "b"]).0, 0);
    // Better evidence raises nothing by itself; worse evidence lowers, as a change to review.
    for out in ["d", "e", "f"] {
        run(&place, out, |_, _| true, &["--no-gate"]);
    }
    let (_, screen) = editgate(&place, &["floors", "set", "d", "e", "f"]);
    assert!(screen.contains("stays at 14 of 20") && screen.contains("nothing was written"), "{screen}");
    let (_, screen) = editgate(&place, &["floors", "set", "d", "e", "f", "--raise"]);
    assert!(
        screen.contains("- openai/mock × edit_file × t (plain): 14 of 20") && screen.contains("+ openai"),
        "{screen}"
    );
    let (exit, screen) = editgate(&place, &["gate", "b"]);
    assert!(exit == 100 && screen.contains("BELOW"), "{screen}");
    // The seed's way: the count of one run as it is.
    let (_, screen) = editgate(&place, &["floors", "set", "b", "--method", "measured"]);
    assert!(screen.contains("+ openai/mock × edit_file × t (plain): 16 of 20 (measured once)"), "{screen}");
    // A run of other cases is no evidence, and that is said.
    let set = place.read("cases/t.json").replace("word 3\\n", "word three\\n");
    place.write("cases/t.json", set);
    run(&place, "other", |_, _| true, &["--no-gate"]);
    let (exit, screen) = editgate(&place, &["floors", "suggest", "a", "other"]);
    assert!(exit == 0 && screen.contains("left out") && screen.contains("other cases"), "{screen}");
    for args in
        [&["floors", "suggest"][..], &["floors", "suggest", "a", "--false-alarm", "2"], &["floors", "suggest", "x"]]
    {
        assert_eq!(editgate(&place, args).0, 2, "{args:?}");
    }
}

#[test]
fn a_whole_set_is_judged_by_its_subsets_floors_too() {
    let place = place();
    run(&place, "half", |_, _| true, &["--subset", "half"]);
    editgate(&place, &["floors", "set", "half", "--method", "measured"]);
    // The other half fails: the floor speaks of the subset alone.
    let (exit, screen) = run(&place, "good", |number, _| number < 10, &[]);
    assert!(exit == 0 && screen.contains("t/half") && screen.contains("1 of 1 floors met"), "{screen}");
    assert!(screen.contains("planned 20 = passed 10 + failed 10"), "{screen}");
    let (exit, screen) = run(&place, "bad", |number, _| number != 3, &[]);
    assert!(exit == 100 && screen.contains("1 of 1 floors missed"), "{screen}");
}

#[test]
fn approved_cases_must_go_on_passing() {
    let place = place();
    run(&place, "a", |number, _| number < 12, &[]);
    run(&place, "b", |number, _| number < 10, &[]);
    let (exit, screen) = editgate(&place, &["floors", "approve", "a", "b", "--at-least", "2/2"]);
    assert!(exit == 0 && screen.contains("10 cases approved"), "{screen}");
    let (exit, screen) = run(&place, "c", |number, _| number > 0, &["--require-approved"]);
    assert!(
        exit == 100 && screen.contains("1 approved case no longer passes") && screen.contains("t/case-00"),
        "{screen}"
    );
    assert_eq!(run(&place, "d", |number, _| number < 10, &["--require-approved"]).0, 0);
    assert_eq!(editgate(&place, &["floors", "approve", "a", "--at-least", "3/2"]).0, 2);
}

#[test]
fn comparisons_put_flips_first() {
    let place = place();
    run(&place, "a", |number, _| number < 15, &[]);
    run(&place, "b", |number, _| number < 8 || number == 19, &[]);
    let (exit, screen) = editgate(&place, &["compare", "a", "b"]);
    assert!(exit == 0 && screen.starts_with("lost") && screen.contains("INCONCLUSIVE"), "{exit} {screen}");
    assert_eq!(editgate(&place, &["compare", "a", "b", "--strict"]).0, 102);
    assert_eq!(editgate(&place, &["compare", "a", "b", "--alpha", "0.1"]).0, 101);
    let (_, text) = editgate(&place, &["compare", "a", "b", "--format", "json"]);
    let compared: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&compared["by"], &compared["pairs"][0]["lost"]), (&json!("run"), &json!(7)));
    assert_eq!(compared["pairs"][0]["lost_cases"][0]["case"], "case-08");
    let (_, page) = editgate(&place, &["compare", "a", "b", "--format", "md"]);
    assert!(page.contains("| `t/case-19` |") && page.contains("Newcombe"), "{page}");
    // Three contestants that cannot be told apart, and what cannot be compared.
    run(&place, "c", |number, _| number < 15, &[]);
    run(&place, "d", |number, _| number < 14, &[]);
    let (exit, screen) = editgate(&place, &["compare", "a", "c", "d"]);
    assert!(exit == 0 && screen.contains("No pair can be told apart."), "{screen}");
    assert_eq!(editgate(&place, &["compare", "a"]).0, 2);
    assert_eq!(editgate(&place, &["compare", "a", "a"]).0, 2);
    run(&place, "hot", |_, _| true, &["--temperature", "1"]);
    assert_eq!(editgate(&place, &["compare", "a", "hot"]).0, 2);
    assert_eq!(editgate(&place, &["compare", "a", "hot", "--allow-mismatch"]).0, 0);
}

#[test]
fn a_history_grows_and_its_trend_is_rebuilt() {
    let place = place();
    run(&place, "a", |number, _| number < 15, &[]);
    run(&place, "b", |number, _| number < 18, &[]);
    editgate(&place, &["floors", "set", "a", "--method", "measured"]);
    let (exit, screen) = editgate(&place, &["history", "add", "a", "b"]);
    assert!(exit == 0 && screen.contains("2 lines added, 2 in all"), "{screen}");
    let (_, screen) = editgate(&place, &["history", "add", "b"]);
    assert!(screen.contains("0 lines added, 2 in all"), "{screen}");
    let page = place.read("reports/TREND.md");
    assert!(page.contains("| 18/20 ") && page.contains("charts/trend-000.svg"), "{page}");
    assert!(place.read("reports/charts/trend-000-dark.svg").starts_with("<svg"));
    let badge: Value = serde_json::from_str(&place.read("reports/badge.json")).expect("JSON");
    assert_eq!((&badge["schemaVersion"], &badge["label"]), (&json!(1), &json!("editgate")));
    let (_, screen) = editgate(&place, &["floors", "suggest", "--history", "reports/history.jsonl"]);
    assert!(screen.contains("15 18"), "{screen}");
    place.write("reports/history.jsonl", "{\n");
    assert_eq!(editgate(&place, &["history", "add", "a"]).0, 2);
    assert_eq!(place.read("reports/history.jsonl"), "{\n");
}

/// What a model might write to get out of a report.
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \u{1B}[31mred\u{1B}]0;t\u{7} \u{202E}txt\u{2066} \u{0} ]]> --> ::error::x | `` [a](javascript:1) @all";

#[test]
fn hostile_output_is_inert_in_every_format() {
    let place = place();
    run(&place, "out", |number, _| number < 2, &[]);
    // As if the model had said it in every place where it can say something.
    let long = "y".repeat(1_000_000);
    let edit = |name: &str, change: &dyn Fn(&mut Value)| {
        let lines: Vec<String> = place
            .read(name)
            .lines()
            .map(|line| {
                let mut value: Value = serde_json::from_str(line).expect("JSON");
                change(&mut value);
                value.to_string() + "\n"
            })
            .collect();
        place.write(name, lines.concat());
    };
    edit("out/attempts.jsonl", &|row| {
        row["error"] = json!(HOSTILE);
        row["tags"] = json!([HOSTILE]);
        for name in ["tool_error", "last_edit", "answer", "diff", "task"] {
            if row["detail"].is_object() {
                let more = if row["case"] == "case-05" { long.as_str() } else { "" };
                row["detail"][name] = json!(format!("{HOSTILE}\n{HOSTILE}{more}"));
            }
        }
    });
    edit("out/transcripts/attempts.jsonl", &|told| {
        let long = if told["key"]["case"] == "case-05" { long.as_str() } else { "" };
        for message in told["messages"].as_array_mut().expect("messages") {
            message["text"] = json!(format!("{HOSTILE}{long}"));
        }
        for file in told.get_mut("files").and_then(Value::as_array_mut).into_iter().flatten() {
            file["path"] = json!(HOSTILE);
            file["actual"] = json!({ "text": { "text": format!("{HOSTILE}{long}\n"), "mode": 420 } });
        }
    });
    place.write("summary.md", "");
    let mut all = Vec::new();
    for format in ["terminal", "md", "html", "junit", "json", "github"] {
        let mut command = place.editgate();
        command.env("GITHUB_STEP_SUMMARY", place.path("summary.md"));
        let output =
            command.args(["report", "out", "--format", format, "--comment", "comment.md"]).output().expect("ran");
        assert_eq!(code(&output), 0, "{format}: {}", stderr(&output));
        all.push((format, stdout(&output)));
    }
    all.push(("summary", place.read("summary.md")));
    all.push(("comment", place.read("comment.md")));
    editgate(&place, &["report", "out", "--out", "files"]);
    for name in ["report.md", "report.html", "junit.xml", "summary.json"] {
        all.push(("file", place.read(&format!("files/{name}"))));
    }
    for (format, text) in &all {
        for bad in ['\u{0}', '\u{7}', '\u{1B}', '\u{202E}', '\u{2066}'] {
            assert!(!text.contains(bad), "{format} holds {bad:?}");
        }
        assert!(text.len() < 2_000_000, "{format}: {} bytes", text.len());
        assert!(text.contains("passed") || text.contains("testsuite"), "{format} says something");
    }
    let of = |wanted: &str| all.iter().find(|(format, _)| *format == wanted).expect("rendered").1.clone();
    // Scripts end once each, and they are the page's own.
    let page = of("html");
    assert_eq!(page.matches("</script>").count(), page.matches("<script").count());
    assert!(!page.contains("<script>alert") && !page.contains("<img src=x"));
    for format in ["md", "summary", "comment"] {
        // A bracket behind a backslash is only a bracket.
        let outside: String = outside_of_code(&of(format)).replace("\\]", "");
        for bad in ["<script", "<img src=x", "](javascript", "@all"] {
            assert!(!outside.contains(bad), "{format}: {bad}");
        }
    }
    assert!(!of("junit").contains("<script>alert") && !of("junit").contains("]]>"));
    assert!(
        of("github").lines().all(|line| line.starts_with("::notice ")
            || line.starts_with("::error ")
            || line.starts_with("::warning "))
    );
    assert!(of("md").len() <= 60_000 && of("comment").len() <= 60_000);
}

/// Markdown without fenced blocks and code spans.
fn outside_of_code(text: &str) -> String {
    let (mut out, mut fence) = (String::new(), String::new());
    for line in text.lines() {
        let marks: String = line.chars().take_while(|c| *c == '`').collect();
        if fence.is_empty() && marks.len() >= 3 {
            fence = marks;
        } else if !fence.is_empty() {
            if line.trim_end() == fence {
                fence.clear();
            }
        } else {
            out.push_str(&without_spans(line));
            out.push('\n');
        }
    }
    out
}

fn without_spans(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let marks = rest[at..].chars().take_while(|c| *c == '`').count();
        let fence = "`".repeat(marks);
        let after = &rest[at + marks..];
        let mut from = 0;
        let end = loop {
            let Some(found) = after[from..].find(&fence).map(|found| from + found) else {
                break None;
            };
            let run = after[found..].chars().take_while(|c| *c == '`').count();
            if run == marks {
                break Some(found);
            }
            from = found + run;
        };
        let Some(end) = end else {
            break;
        };
        // An escaped mark opens nothing.
        out.push_str(&rest[..at]);
        rest = &after[end + marks..];
    }
    out + rest
}

#[test]
fn repeats_show_what_is_flaky() {
    let place = place();
    let (_, _) = run(&place, "out", |number, before| number % 4 != 0 || before % 2 == 0, &["--repeat", "4", "-j", "1"]);
    let (_, page) = editgate(&place, &["report", "out", "--format", "md"]);
    assert!(page.contains("pass@4 100 %, pass^4 75 %") && page.contains("`PFPF`"), "{page}");
    let (_, xml) = editgate(&place, &["report", "out", "--format", "junit"]);
    assert!(xml.contains("tests=\"20\"") && xml.matches("<flakyFailure").count() == 10, "{xml}");
}

#[test]
fn the_summary_is_what_its_schema_says() {
    let place = place();
    run(&place, "base", |_, _| true, &[]);
    run(&place, "out", |number, _| number < 12, &["--repeat", "1"]);
    let (_, text) = editgate(&place, &["report", "out", "--against", "base", "--format", "json"]);
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    let schema: Value = serde_json::from_str(include_str!("../docs/summary.schema.json")).expect("JSON");
    conforms(&summary, &schema, &schema, "$");
    assert_eq!((&summary["gate"]["word"], &summary["totals"]["passed"]), (&json!("regressed"), &json!(12)));
}

/// The part of JSON schema that the document uses: type, properties, required, additionalProperties, items, enum, $ref.
fn conforms(value: &Value, schema: &Value, whole: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").expect("a definition");
        return conforms(value, &whole["$defs"][name], whole, at);
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => panic!("{at}: the schema says no type"),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = kinds.contains(&kind) || (kind == "integer" && kinds.contains(&"number"));
    assert!(fits, "{at}: {kind} is none of {kinds:?}");
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at}: {value}");
    }
    if let Value::Object(fields) = value {
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(fields.contains_key(name.as_str().expect("a name")), "{at}: {name} is missing");
        }
        for (name, field) in fields {
            let known = &schema["properties"][name];
            match (known, &schema["additionalProperties"]) {
                (Value::Null, Value::Object(_)) => {
                    conforms(field, &schema["additionalProperties"], whole, &format!("{at}.{name}"))
                }
                (Value::Null, Value::Bool(true)) => {}
                (Value::Null, _) => panic!("{at}.{name} is not in the schema"),
                (known, _) => conforms(field, known, whole, &format!("{at}.{name}")),
            }
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        conforms(item, &schema["items"], whole, &format!("{at}[{index}]"));
    }
}
