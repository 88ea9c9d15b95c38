//! Case sets from the outside: the shipped ones hold, each kind of fault is told with its place, and new cases are made
//! from variants, histories and files.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command as Program;

use serde_json::{Value, json};
use support::{Place, code, repository, stderr, stdout};

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

/// Cases and release cases of each shipped set at least.
const SHIPPED: [(&str, usize, usize); 9] = [
    ("replace", 120, 36),
    ("whitespace", 40, 12),
    ("crlf", 60, 16),
    ("stale-line", 60, 16),
    ("encoding", 12, 4),
    ("multi-edit", 20, 6),
    ("large", 10, 4),
    ("literal", 20, 7),
    ("safety", 16, 5),
];

#[test]
fn the_shipped_sets_have_no_fault_and_their_counts() {
    let place = Place::new();
    let cases = repository().join("cases");
    let check = place.editgate().current_dir(repository()).args(["cases", "check", "--cases"]).arg(&cases).output();
    let check = check.expect("ran");
    assert!(check.status.success(), "{}{}", stdout(&check), stderr(&check));
    assert!(stdout(&check).contains("sets: no fault"), "{}", stdout(&check));
    let list = place.editgate().args(["cases", "list", "--cases"]).arg(&cases).output().expect("ran");
    let listed = stdout(&list);
    for (set, least, release) in SHIPPED {
        let row: Vec<&str> = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|row| row.first() == Some(&set))
            .unwrap_or_default();
        let count: usize = row.get(1).and_then(|count| count.parse().ok()).unwrap_or_default();
        assert!(count >= least, "{set}: {count} cases, {least} wanted\n{listed}");
        let members =
            read_json(&cases.join(format!("{set}.json")))["subsets"]["release"].as_array().map_or(0, Vec::len);
        assert!(members >= release, "{set}: {members} in release, {release} wanted");
    }
}

/// A small set that has no fault, one entry a line from line 4 on.
fn sound() -> Value {
    json!({
        "schema": 1, "set": "s", "about": "x", "subsets": { "release": ["one", "two"] },
        "cases": [
            { "id": "one", "tags": ["t"], "files": { "a.txt": { "text": "alpha = 1\nbeta = 2\n" } },
              "task": "In a.txt, change the line `alpha = 1` to `alpha = 3`.",
              "expect": { "a.txt": { "text": "alpha = 3\nbeta = 2\n" } },
              "target": { "path": "a.txt", "line": 1, "content": "alpha = 3" } },
            { "id": "two", "tags": ["u"], "files": { "b.txt": { "fixture": "s/b.txt" } },
              "task": "In b.txt, change `one` to `two`.", "expect": { "b.txt": { "text": "two\n" } } }
        ]
    })
}

/// Runs `cases check` on a set in a place of its own; the answer is stdout.
fn check(set: &str, more: &[(&str, &str)], arguments: &[&str]) -> (i32, String) {
    let place = Place::new();
    place.write("cases/s.json", set);
    place.write("fixtures/s/b.txt", "one\n");
    for (path, text) in more {
        place.write(path, text);
    }
    let output = place.editgate().args(["cases", "check"]).args(arguments).output().expect("ran");
    (code(&output), stdout(&output))
}

#[test]
fn each_kind_of_fault_is_told_with_file_and_line() {
    let pretty = |set: &Value| format!("{set:#}\n");
    assert_eq!(check(&pretty(&sound()), &[], &[]).0, 0, "{}", check(&pretty(&sound()), &[], &[]).1);
    // The line of the first piece of text, counted in the file that is checked.
    let fault = |break_it: &dyn Fn(&mut Value), at: &str, want: &str| {
        let mut set = sound();
        break_it(&mut set);
        let text = pretty(&set);
        let at = text.find(at).unwrap_or_else(|| panic!("{at} in {text}"));
        let line = text[..at].matches('\n').count() + 1;
        let (exit, told) = check(&text, &[], &[]);
        assert_eq!(exit, 2, "{want}: {told}");
        let found = told.lines().any(|each| each.starts_with(&format!("cases/s.json:{line}:")) && each.contains(want));
        assert!(found, "wanted line {line}: {want}\n{told}");
    };
    let case = |key: &'static str, value: Value| move |set: &mut Value| set["cases"][0][key] = value.clone();
    fault(&|set| set["schema"] = json!(9), "\"schema\"", "schema 9 is not known");
    fault(&|set| set["set"] = json!("a b"), "\"set\"", "a name is made of");
    fault(&case("extra", json!(1)), "\"extra\"", "unknown field `extra`");
    fault(&|set| set["cases"][1]["id"] = json!("one"), "\"two\"", "names `two`, and the set has no such case");
    fault(&|set| set["subsets"]["release"] = json!(["two", "one", "one"]), "\"one\"\n", "names `one` twice");
    fault(&|set| set["subsets"]["release"] = json!(["one"]), "\"release\"", "no case of tag `u`; the set has 1");
    fault(&case("tags", json!([])), "\"tags\"", "no tag says what shape it is");
    fault(
        &case("expect", json!({ "a.txt": { "text": "alpha = 1\nbeta = 2\n" } })),
        "\"expect\"",
        "doing nothing would pass",
    );
    fault(&case("expect", json!({ "gone.txt": null })), "\"gone.txt\"", "there is no such file");
    fault(
        &|set| set["cases"][1]["files"]["b.txt"] = json!({ "fixture": "s/none.txt" }),
        "{\n          \"fixture\"",
        "No such file",
    );
    fault(
        &|set| {
            set["cases"][0]["expect_any"] = json!([{ "a.txt": { "text": "alpha = 1\nbeta = 2\n" } }]);
            set["cases"][0].as_object_mut().unwrap().remove("expect");
        },
        "\"expect_any\"",
        "equals the files before",
    );
    fault(&case("tags", json!(["t", "t"])), "\"tags\"", "tag `t` is there twice");
    fault(
        &case("task", json!("In a.txt, change `alpha = 1`, which is there twice, to `alpha = 3`.")),
        "\"task\"",
        "says \"there twice\"",
    );
    fault(
        &|set| {
            set["cases"][0]["files"]["c.txt"] = json!({ "text": "x" });
            set["cases"][0]["expect"]["c.txt"] = json!({ "text": "alpha" });
        },
        "\"target\"",
        "it says nothing of c.txt",
    );
    fault(&case("split", json!("held-out")), "\"split\"", "by the hash of its id this case is public");
    fault(&case("task", json!("Change something.")), "\"task\"", "names none of the files");
    fault(
        &case("task", json!("In a.txt, change `gamma` to `alpha = 3`.")),
        "\"task\"",
        "quotes `gamma`, which stands in no file",
    );
    fault(&case("task", json!("In a.txt, change ` = ` to `alpha = 3`.")), "\"task\"", "stands 2 times in a.txt");
    fault(&case("task", json!("In a.txt, make it `alpha = 3`.")), "\"task\"", "quotes no text of the place");
    let target = |line: usize, content: &str| json!({ "path": "a.txt", "line": line, "content": content });
    fault(&case("target", target(1, "alpha = 4")), "\"target\"", "does not give the bytes of a.txt that are expected");
    fault(&case("target", target(7, "x")), "\"target\"", "has 2 lines");
    fault(
        &case("expect", json!({ "a.txt": { "text": "alpha = 3\nbeta = 2\n", "mode": "0755" } })),
        "\"expect\"",
        "no tool can express it",
    );
    fault(&case("variant", json!({ "of": "two", "bytes": "crlf" })), "\"variant\"", "it is not what `two` gives");
    fault(
        &|set| {
            let mut twin = set["cases"][0].clone();
            twin["id"] = json!("twin");
            set["cases"].as_array_mut().unwrap().push(twin);
        },
        "\"twin\"",
        "the same files, task and outcome as `one`",
    );
    fault(
        &|set| {
            // The file is back as it was after the second rewrite, so a model that does nothing would be right.
            let file = |text: &str| json!({ "a.txt": { "text": text } });
            set["cases"][0]["then"] = json!([{ "after": "read", "files": file("alpha = 9\nbeta = 2\n") }]);
            set["cases"][0]["expect"] = file("alpha = 1\nbeta = 2\n");
            set["cases"][0]["task"] = json!("In a.txt, change `alpha = 9` to `alpha = 1`.");
            set["cases"][0]["target"] = Value::Null;
        },
        "\"expect\"",
        "doing nothing would pass, and it does not say that it may",
    );
}

#[test]
fn a_set_without_a_sound_case_tells_its_faults_too() {
    let mut set = sound();
    set["subsets"] = json!({});
    set["cases"].as_array_mut().unwrap().truncate(1);
    set["cases"][0]["tag"] = json!(1);
    let (exit, told) = check(&format!("{set:#}"), &[("fixtures/s/b.txt", "one\n")], &[]);
    assert!(exit == 2 && told.contains("cases/s.json:") && told.contains("unknown field `tag`"), "{exit} {told}");
    set["cases"] = json!([]);
    let (exit, told) = check(&format!("{set:#}"), &[], &[]);
    assert!(exit == 2 && told.contains("no case in this set"), "{exit} {told}");
}

#[test]
fn all_faults_are_told_at_once_and_those_of_other_files_too() {
    let mut set = sound();
    set["cases"][0]["tags"] = json!([]);
    set["cases"][1]["task"] = json!("In b.txt, change `one` and `none`.");
    let floors = json!({ "format": 1, "floors": [{ "model": "m", "tool": "edit_file", "set": "s", "subset": "release",
        "prompt": "plain", "digest": "0", "n": 2, "floor": 1, "runs": [], "method": "x", "false_alarm": null }] });
    let more =
        [("fixtures/s/unused.txt", "x"), ("reports/floors.json", &format!("{floors:#}")), ("cases/bad.json", "{")];
    let (exit, told) = check(&format!("\u{FEFF}{set:#}"), &more, &[]);
    assert_eq!(exit, 2);
    let starts: Vec<&str> = told.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(starts.len(), 5, "{told}");
    assert!(starts[0].starts_with("cases/bad.json:1:"), "{told}");
    assert!(starts[1..3].iter().all(|start| start.starts_with("cases/s.json:")), "{told}");
    assert!(starts[3].ends_with("fixtures/s/unused.txt") && told.contains("no case reads this fixture"), "{told}");
    assert!(starts[4].starts_with("reports/floors.json:") && told.contains("was measured on other cases"), "{told}");
}

#[test]
fn variants_hold_and_are_compared_with_their_originals() {
    let place = Place::new();
    let mut set = sound();
    set["cases"][0]["files"]["a.txt"] = json!({ "text": "alpha = 1\nbeta:\n  gamma = 1\ndelta\n" });
    set["cases"][0]["expect"] = json!({ "a.txt": { "text": "alpha = 3\nbeta:\n  gamma = 1\ndelta\n" } });
    place.write("cases/s.json", set.to_string());
    place.write("fixtures/s/b.txt", "one\n");
    let vary = |arguments: &[&str]| place.editgate().args(["cases", "vary"]).args(arguments).output().expect("ran");
    let made = vary(&["--out", "varied/v.json"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    assert!(stderr(&made).contains("2 cases and"), "{}", stderr(&made));
    // What is there is not lost.
    assert_eq!(code(&vary(&["--out", "varied/v.json"])), 2);
    let varied = read_json(&place.path("varied/v.json"));
    let ids: Vec<&str> = varied["cases"].as_array().unwrap().iter().filter_map(|case| case["id"].as_str()).collect();
    assert!(ids.contains(&"one.crlf") && ids.contains(&"one.tabs") && ids.contains(&"two.bom"), "{ids:?}");
    assert!(!ids.contains(&"two.tabs") && !ids.contains(&"one.lf"), "{ids:?}");
    let one = varied["cases"].as_array().unwrap().iter().find(|case| case["id"] == "one.crlf").unwrap();
    assert_eq!(one["expect"]["a.txt"]["text"], "alpha = 3\r\nbeta:\r\n  gamma = 1\r\ndelta\r\n");
    let checked = place.editgate().args(["cases", "check", "--cases", "varied"]).output().expect("ran");
    assert_eq!(code(&checked), 0, "{}", stdout(&checked));
    // A variant that has drifted from its original is a fault.
    let text = place.read("varied/v.json").replace("alpha = 3\\r\\nbeta", "alpha = 4\\r\\nbeta");
    place.write("drifted/v.json", text);
    let drifted = place.editgate().args(["cases", "check", "--cases", "drifted"]).output().expect("ran");
    assert!(stdout(&drifted).contains("variant: it is not what `one` gives"), "{}", stdout(&drifted));
    let run = place
        .editgate()
        .args(["run", "-m", "builtin/oracle", "--no-gate", "--cases", "varied", "--out", "out"])
        .output()
        .expect("ran");
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    let report = place.read("out/report.md");
    let row = report.lines().find(|line| line.starts_with("| crlf ")).unwrap_or_else(|| panic!("{report}"));
    assert_eq!(row, "| crlf (every line ends in CRLF) | 2 | 2 | 2 | 0 | 0 | 0 % | – |");
    assert!(stdout(&run).contains("as they were"), "{}", stdout(&run));
    let none = vary(&["--case", "two", "--to", "tabs"]);
    assert_eq!(code(&none), 3, "{}", stderr(&none));
}

/// A git repository whose every commit changes one file; `edits` are the contents, one after another.
fn history(place: &Place, license: Option<&str>, edits: &[(&str, &str)]) {
    let git = |arguments: &[&str]| {
        let done = Program::new("git")
            .arg("-C")
            .arg(place.path("repo"))
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
            .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    place.write("repo/README", "a history\n");
    git(&["init", "-q"]);
    if let Some(license) = license {
        place.write("repo/LICENSE", license);
    }
    for (index, (path, text)) in edits.iter().enumerate() {
        place.write(&format!("repo/{path}"), text);
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", &format!("change {index}")]);
    }
}

const MIT: &str = "Permission is hereby granted, free of charge, to any person";

#[test]
fn a_history_gives_the_same_checked_cases_again() {
    let place = Place::new();
    let body = |n: usize| {
        (0..12)
            .map(|line| if line == n { format!("    call({line});\n") } else { format!("    step({line});\n") })
            .collect::<String>()
    };
    let texts: Vec<String> = (0..8).map(body).collect();
    let mut edits: Vec<(&str, &str)> = texts.iter().map(|text| ("src/run.c", text.as_str())).collect();
    edits.push(("src/key.c", "a\nb\nc\n"));
    edits.push(("src/key.c", "a\npassword = \"hunter2hunter2\"\nc\n"));
    edits.push(("vendor/lib.c", "a\nb\nc\n"));
    edits.push(("vendor/lib.c", "a\nz\nc\n"));
    history(&place, Some(MIT), &edits);
    let mine = |out: &str, more: &[&str]| {
        place
            .editgate()
            .args(["cases", "mine", "repo", "--out", out, "--per-file", "9"])
            .args(more)
            .output()
            .expect("ran")
    };
    let first = mine("one/mined.json", &[]);
    assert_eq!(code(&first), 0, "{}", stderr(&first));
    assert!(stderr(&first).contains("perhaps a secret"), "{}", stderr(&first));
    let set = read_json(&place.path("one/mined.json"));
    let cases = set["cases"].as_array().expect("cases");
    assert!((5..=7).contains(&cases.len()), "{}", cases.len());
    for case in cases {
        assert_eq!(case["source"]["license"], "MIT");
        assert_eq!(case["source"]["path"], "src/run.c");
        assert!(!case["task"].as_str().unwrap().contains("change 0"), "a message of a commit says too much");
    }
    let checked = place.editgate().args(["cases", "check", "--cases", "one"]).output().expect("ran");
    assert_eq!(code(&checked), 0, "{}", stdout(&checked));
    mine("two/mined.json", &[]);
    assert_eq!(place.read("one/mined.json"), place.read("two/mined.json"));
    mine("three/mined.json", &["--seed", "1"]);
    assert_ne!(place.read("one/mined.json"), place.read("three/mined.json"));
    let few = mine("four/mined.json", &["--count", "2", "--shape", "line-replaced,lines-replaced"]);
    assert!(stderr(&few).contains("2 cases from"), "{}", stderr(&few));
    let none = mine("five/mined.json", &["--ext", "py"]);
    assert_eq!(code(&none), 3, "{}", stderr(&none));
}

#[test]
fn what_may_not_be_mined_is_refused_in_one_line() {
    let refused = |license: Option<&str>, arguments: &[&str], want: &str| {
        let place = Place::new();
        history(&place, license, &[("a.txt", "one\ntwo\nthree\n"), ("a.txt", "one\n2\nthree\n")]);
        let output = place.editgate().args(["cases", "mine"]).args(arguments).output().expect("ran");
        assert_eq!((code(&output), stderr(&output).lines().count()), (2, 1), "{}", stderr(&output));
        assert!(stderr(&output).contains(want), "{want}: {}", stderr(&output));
    };
    refused(None, &["repo"], "no licence file");
    refused(Some("GNU GENERAL PUBLIC LICENSE Version 3"), &["repo"], "the licence is GPL-3.0");
    refused(Some("Ask me first."), &["repo"], "the licence in LICENSE is not known");
    refused(Some("Commons Clause. Permission is hereby granted, free of charge"), &["repo"], "is not known");
    refused(Some(MIT), &["nowhere"], "nowhere: git rev-parse");
    refused(Some(MIT), &["repo", "--min-lines", "9", "--max-lines", "3"], "there would be no case");
    let place = Place::new();
    history(&place, None, &[("a.txt", "one\ntwo\nthree\n"), ("a.txt", "one\n2\nthree\n")]);
    let own = place.editgate().args(["cases", "mine", "repo", "--accept-license", "unlicensed"]).output().expect("ran");
    assert_eq!(code(&own), 0, "{}", stderr(&own));
    assert!(stdout(&own).contains("\"license\": \"unlicensed\""), "{}", stdout(&own));
}

#[test]
fn files_before_and_after_become_a_case() {
    let place = Place::new();
    place.write("old/app.toml", "port = 80\r\nhost = \"a\"\r\n");
    place.write("new/app.toml", "port = 8080\r\nhost = \"a\"\r\n");
    let new = |arguments: &[&str]| {
        let mut command = place.editgate();
        command.args(["cases", "new", "--before", "old/app.toml", "--after", "new/app.toml"]).args(arguments);
        command.output().expect("ran")
    };
    let printed = new(&["--id", "port", "--path", "etc/app.toml"]);
    assert_eq!(code(&printed), 0, "{}", stderr(&printed));
    let case: Value = serde_json::from_str(&stdout(&printed)).expect("one case");
    assert_eq!(case["task"], "In etc/app.toml, change the line `port = 80` to `port = 8080`.");
    assert_eq!(case["target"]["find"], "port = 80");
    assert!(stderr(&printed).contains("-port = 80␍␊\n+port = 8080␍␊"), "{}", stderr(&printed));
    assert_eq!(code(&new(&["--id", "port", "--into", "cases/net.json", "--subset", "release"])), 0);
    assert_eq!(code(&new(&["--id", "port-2", "--into", "cases/net.json", "--target", "line", "--may-stay"])), 0);
    let twice = new(&["--id", "port", "--into", "cases/net.json"]);
    assert!(code(&twice) == 2 && stderr(&twice).contains("a case `port` already"), "{}", stderr(&twice));
    let set = read_json(&place.path("cases/net.json"));
    assert_eq!(set["subsets"], json!({ "release": ["port"] }));
    assert_eq!(set["cases"][1]["expect_any"][1], json!({}));
    let checked = place.editgate().args(["cases", "check"]).output().expect("ran");
    assert_eq!(code(&checked), 0, "{}", stdout(&checked));
    let bad: BTreeMap<&str, Vec<&str>> = BTreeMap::from([
        ("--id says what the case is called", vec![]),
        ("which stands in no file", vec!["--id", "x", "--task", "In app.toml, change `port = 80` to `prot`."]),
        ("a name is made of", vec!["--id", "x y"]),
        ("a path is relative", vec!["--id", "x", "--path", "/tmp/victim.toml"]),
        ("with `/` between names", vec!["--id", "x", "--path", "../victim.toml"]),
        (
            "would not hold: subset `release` has no case of tag `other`",
            vec!["--id", "x", "--tag", "other", "--into", "cases/net.json"],
        ),
    ]);
    for (want, arguments) in bad {
        let output = new(&arguments);
        assert!(code(&output) == 2 && stderr(&output).contains(want), "{want}: {}", stderr(&output));
    }
}

/// A repository may be anybody's: no path of it leads out of the workspace, and no program that it names is run.
#[test]
fn a_hostile_history_writes_and_runs_nothing() {
    let place = Place::new();
    history(&place, Some(MIT), &[("a.txt", "one\ntwo\nthree\n"), ("a.txt", "one\n2\nthree\n")]);
    let git = |arguments: &[&str], input: &str| {
        let mut program = assert_cmd::Command::new("git");
        program.arg("-C").arg(place.path("repo")).args(arguments).write_stdin(input.to_owned());
        let done = program.output().expect("git runs");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    let victim = place.write("victim", "precious\n");
    let up = "../".repeat(20) + victim.to_str().expect("text").trim_start_matches('/');
    let license = git(&["rev-parse", "HEAD:LICENSE"], "");
    let mut parent = git(&["rev-parse", "HEAD"], "");
    for text in ["one\ntwo\nthree\n", "one\nII\nthree\n"] {
        let blob = git(&["hash-object", "-w", "--stdin"], text);
        // A tree is made byte by byte: git itself would refuse such a name with a slash.
        let entry = |name: &str, id: &str| {
            let id: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).expect("hex")).collect();
            [format!("100644 {name}\0").into_bytes(), id].concat()
        };
        let tree = [entry(&up, &blob), entry("LICENSE", &license)].concat();
        let mut program = assert_cmd::Command::new("git");
        program.arg("-C").arg(place.path("repo")).args(["hash-object", "-t", "tree", "-w", "--stdin", "--literally"]);
        let made = program.write_stdin(tree).output().expect("git runs");
        let tree = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let mut arguments = who.to_vec();
        arguments.extend(["commit-tree", &tree, "-p", &parent, "-m", "x"]);
        parent = git(&arguments, "");
    }
    git(&["update-ref", "HEAD", &parent], "");
    let marker = place.path("ran");
    let program = place.write("gpg", format!("#!/bin/sh\ntouch {}\n", marker.display()));
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
    git(&["config", "log.showSignature", "true"], "");
    git(&["config", "gpg.program", program.to_str().expect("text")], "");
    let output = place.editgate().args(["cases", "mine", "repo"]).output().expect("ran");
    assert_eq!(std::fs::read_to_string(&victim).expect("still there"), "precious\n");
    assert!(!stdout(&output).contains("victim") && !marker.exists(), "{}", stderr(&output));
}

#[test]
fn nothing_escapes_unseen_and_splits_select() {
    let place = Place::new();
    let set = json!({ "schema": 1, "set": "s", "about": "x", "cases": [
        { "id": "link", "tags": ["t"], "files": { "a.txt": { "text": "x\n" }, "out": { "symlink": "../beside/f" } },
          "outside": { "beside/f": { "text": "keep\n" } }, "task": "Do not.", "expect_any": [{}] }] });
    place.write("cases/s.json", set.to_string());
    for model in ["builtin/oracle", "builtin/noop"] {
        let run = place.editgate().args(["run", "-m", model, "--no-gate", "--out", model]).output().expect("ran");
        assert_eq!(code(&run), 0, "{}", stderr(&run));
        assert_eq!(place.rows(model)[0]["class"], "pass.untouched");
    }
    let shown = place.editgate().args(["cases", "show", "link"]).output().expect("ran");
    assert!(stdout(&shown).contains("beside the workspace: beside/f"), "{}", stdout(&shown));
    let shipped = |split: &str| {
        let cases = repository().join("cases");
        let list =
            place.editgate().args(["cases", "list", "--split", split, "--cases"]).arg(cases).output().expect("ran");
        stdout(&list).lines().count() - 1
    };
    let (public, held_out) = (shipped("public"), shipped("held-out"));
    let share = held_out as f64 / (public + held_out) as f64;
    assert!((0.15..0.25).contains(&share), "{held_out} of {}", public + held_out);
}
