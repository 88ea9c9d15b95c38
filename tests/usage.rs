//! The built binary and its user: flags, input of every bad kind, what is refused before anything runs.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;

use support::{Place, Server, TWO, builtin, code, edit, stderr, stdout, words};

#[test]
fn bad_input_is_one_line_and_the_documented_code() {
    let place = Place::new();
    place.cases(TWO);
    place.write("broken/t.json", "{\"schema\": 1,\n \"set\": }");
    let good = place.read("cases/t.json");
    builtin(&place, "oracle");
    place.write("list/t.json", "[1]");
    place.write("escape/t.json", good.replace("\"set\":\"t\"", "\"set\":\"../x\""));
    place.write(
        "within/t.json",
        good.replace("\"files\":{", "\"files\":{\"a\":{\"text\":\"\"},\"a/b\":{\"text\":\"\"},"),
    );
    place.write("floors-broken.json", "[]");
    place.write("config.toml", "[run]\nmodle = \"x\"\n");
    place.write("a-file", "");
    fs::create_dir(place.path("empty")).expect("made");
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("address"))
    };
    let oracle = ["run", "-m", "builtin/oracle"];
    let table: Vec<(Vec<&str>, i32, &str)> = vec![
        (vec!["run", "-m", "builtin/oracle", "--cases", "nowhere"], 2, "nowhere: cannot read the case sets"),
        (vec!["run", "-m", "builtin/oracle", "--cases", "empty"], 2, "no case set here"),
        (vec!["run", "-m", "builtin/oracle", "--cases", "broken"], 2, "broken/t.json:2:9: "),
        (vec!["run", "-m", "builtin/oracle", "--set", "nope"], 2, "unknown set `nope`; there are: t"),
        (vec!["run", "-m", "builtin/oracle", "--subset", "nope"], 2, "unknown subset `nope`; there are: release"),
        (vec!["run", "-m", "builtin/oracle", "--case", "z*"], 3, "no case matched --case z*"),
        (vec!["run", "-m", "builtin/oracle", "--tag", "z"], 3, "no case matched --tag z"),
        (vec!["run", "-m", "builtin/oracle", "--case", "["], 2, "bad glob"),
        (vec!["run", "-m", "builtin/oracle", "--cases", "escape"], 2, "set `../x`: a name is made of"),
        (vec!["run", "-m", "builtin/oracle", "--cases", "within"], 2, "`a` is a file or link, and cannot hold another"),
        (vec!["run", "-m", "builtin/oracle", "--cases", "list"], 2, "a case set: not a JSON object"),
        (vec!["run", "-m", "builtin/oracle", "--tag", "t", "--tag", "z"], 3, "no case matched --tag z"),
        (vec!["run", "-m", "llamacpp/x", "--temperature", "nan"], 2, "--temperature"),
        (vec!["report", "oracle", "--floors", "nowhere.json"], 2, "floors nowhere.json"),
        (vec!["run", "-m", "builtin/nope"], 2, "there are: builtin/oracle, builtin/noop, builtin/garbage"),
        (vec!["run", "-m", "nope/x"], 2, "unknown provider `nope`"),
        (vec!["run", "-m", "plain"], 2, "provider/id"),
        (vec!["run"], 2, "no model named with -m"),
        (vec!["run", "-m", "replay/nowhere"], 2, "recording nowhere"),
        (vec!["run", "-m", "openai/x"], 2, "OPENAI_API_KEY"),
        (vec!["run", "-m", "openai/x", "--base-url", "localhost:1"], 2, "--base-url localhost:1"),
        (vec!["run", "-m", "openai/x", "--base-url", &closed], 4, "cannot connect"),
        (vec!["run", "-m", "builtin/oracle", "--tool", "nope"], 2, "unknown tool `nope`; there are: edit_file"),
        (vec!["run", "-m", "builtin/oracle", "--tool-options", "{\"x\": 1}"], 2, "unknown field `x`"),
        (vec!["run", "-m", "builtin/oracle", "--tool-options", "{"], 2, "--tool-options is not JSON"),
        (vec!["run", "-m", "builtin/oracle", "--out", "a-file/x"], 5, "cannot write a-file/x"),
        (vec!["run", "-m", "builtin/oracle", "--sandbox-dir", "nowhere"], 5, "cannot make a directory for workspaces"),
        (vec!["run", "-m", "builtin/oracle", "--floors", "nowhere.json"], 2, "floors nowhere.json"),
        (vec!["run", "-m", "builtin/oracle", "--floors", "floors-broken.json"], 2, "floors floors-broken.json"),
        (vec!["run", "-m", "builtin/oracle", "--config", "config.toml"], 2, "config.toml:2:1: unknown field `modle`"),
        (vec!["run", "-m", "builtin/oracle", "--config", "nowhere.toml"], 2, "nowhere.toml"),
        (vec!["run", "-m", "builtin/oracle", "--repeat", "0"], 2, "--repeat must be 1 or more"),
        (vec!["run", "-m", "builtin/oracle", "--timeout", "0"], 2, "--timeout"),
        (vec!["run", "-m", "builtin/oracle", "--fail-on-error", "lots"], 2, "--fail-on-error lots"),
        (vec!["gate", "nowhere"], 2, "nowhere: not a run directory"),
        (vec!["report", "cases"], 2, "cases: not a run directory"),
        (vec!["tools", "show", "nope"], 2, "unknown tool `nope`"),
        (vec!["tools", "call", "edit_file", "--root", "nowhere"], 2, "--root nowhere: no such directory"),
        (vec!["tools", "call", "edit_file", "--root", ".", "--options", "{\"home\": 1}"], 2, "options of edit_file"),
        (vec!["tools", "call", "EditFile", "--root", ".", "--options", "{\"read_cap\": -1}"], 2, "options of EditFile"),
        (
            vec!["tools", "call", "EditFile", "--root", ".", "--options", "{\"deny\": [\"x\"]}"],
            2,
            "options of EditFile",
        ),
        (
            vec!["tools", "call", "filesystem_write", "--root", ".", "--options", "{\"user_id\": \"..\"}"],
            2,
            "user_id `..`",
        ),
        (
            vec!["tools", "call", "filesystem_write", "--root", ".", "--options", "{\"session_dir\": \"s\"}"],
            2,
            "needs user_id",
        ),
        (vec!["tools", "serve", "nope", "--root", "."], 2, "unknown tool `nope`"),
        (vec!["tools", "serve", "EditFile", "--root", "nowhere"], 2, "--root nowhere: no such directory"),
        (vec!["tools", "list", "--markdown", "--floors", "none.json"], 2, "none.json: no such file"),
        (vec!["cases", "show", "nope"], 3, "no case matched"),
    ];
    for (args, want, text) in table {
        let mut args = args.clone();
        if args.starts_with(&oracle) && !args.contains(&"--out") {
            args.extend(["--out", "never"]);
        }
        let output = place.editgate().args(&args).output().expect("ran");
        let told = stderr(&output);
        assert_eq!(code(&output), want, "{args:?}: {told}");
        assert!(told.contains(text), "{args:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{args:?}: {told}");
        assert!(told.starts_with("error: "), "{args:?}: {told}");
        assert!(!place.path("never").exists(), "{args:?} left something that looks like a run");
    }
    for args in [vec!["run", "--prompt", "shouted"], vec!["runn"], vec!["run", "--no-such-flag"]] {
        let output = place.editgate().args(&args).output().expect("ran");
        assert_eq!(code(&output), 2, "{args:?}");
    }
}

#[test]
fn flag_goes_before_environment_before_file() {
    let place = Place::new();
    place.cases(TWO);
    place.write("editgate.toml", "[run]\nmodel = [\"builtin/noop\"]\nsubset = \"release\"\nmax-turns = 3\n");
    let plan = |command: &mut assert_cmd::Command| stdout(&command.args(["--dry-run"]).output().expect("ran"));
    let mut file = place.editgate();
    assert!(plan(file.arg("run")).contains("builtin/noop"));
    let mut environment = place.editgate();
    assert!(plan(environment.arg("run").env("EDITGATE_MODEL", "builtin/garbage")).contains("builtin/garbage"));
    let mut flag = place.editgate();
    let told = plan(flag.args(["run", "-m", "builtin/oracle"]).env("EDITGATE_MODEL", "builtin/garbage"));
    assert!(
        told.contains("builtin/oracle") && told.contains("t/release") && told.contains("2 attempts planned"),
        "{told}"
    );
    for yes in ["1", "true", "yes"] {
        let output = place.editgate().arg("run").env("EDITGATE_DRY_RUN", yes).output().expect("ran");
        assert!(stdout(&output).contains("nothing was run"), "{}", stderr(&output));
    }
}

#[test]
fn calls_on_stdin_that_are_none_say_which_line() {
    let place = Place::new();
    let call = |input: &str| {
        place
            .editgate()
            .args(["tools", "call", "edit_file", "--root", "."])
            .write_stdin(input.to_owned())
            .output()
            .expect("ran")
    };
    let good = "{\"tool\": \"read_file\", \"arguments\": {\"path\": \"x\"}}\n";
    for (bad, why) in [
        ("{", "not a JSON object"),
        ("{\"tool\": \"edit_file\"}", "\"arguments\" is missing"),
        ("{\"tool\": 1, \"arguments\": {}}", "\"tool\" is missing"),
        ("{\"tool\": \"edit_file\", \"arguments\": {}, \"x\": 1}", "unknown key \"x\""),
    ] {
        let output = call(&format!("{good}\n{bad}\n"));
        assert_eq!(code(&output), 2, "{bad}");
        assert!(stderr(&output).contains("stdin, line 3: ") && stderr(&output).contains(why), "{}", stderr(&output));
        assert_eq!(stdout(&output).lines().count(), 1, "the answer before it was given");
    }
}

#[test]
fn a_closed_reader_changes_no_exit_code() {
    let place = Place::new();
    builtin(&place, "oracle");
    place.editgate().args(["floors", "set", "oracle", "--method", "measured", "--floors", "f.json"]).assert().success();
    let text = place.read("f.json").replace("\"floor\": 2", "\"floor\": 3");
    place.write("f.json", text);
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("editgate"));
    command
        .current_dir(place.path("."))
        .args(["gate", "oracle", "--floors", "f.json"])
        .stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("started");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("ended").code(), Some(100));
}

#[test]
fn a_taken_directory_is_left_alone() {
    let place = Place::new();
    builtin(&place, "oracle");
    let before = place.read("oracle/run.json");
    let again = builtin(&place, "oracle");
    assert_eq!(code(&again), 2);
    assert!(stderr(&again).contains("oracle already holds a run"), "{}", stderr(&again));
    assert_eq!(place.read("oracle/run.json"), before);
}

#[test]
fn what_cannot_be_kept_apart_or_recorded_is_refused() {
    let place = Place::new();
    place.cases(TWO);
    for (args, why) in [
        (vec!["run", "-m", "builtin/noop", "-m", "builtin/noop", "--out", "x"], "is named twice"),
        (
            vec!["run", "-m", "builtin/noop", "-m", "builtin/oracle", "--record", "r", "--out", "x"],
            "--record keeps one model",
        ),
    ] {
        let output = place.editgate().args(&args).output().expect("ran");
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert!(!place.path("x").exists());
    }
    // A run with errors leaves a recording that was there as it is.
    place.write("rec/recording.json", "precious");
    let server = Server::start(vec![edit(2, "TWO"), words("Done.")]);
    let output = place.run(&server).args(["--record", "rec"]).output().expect("ran");
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains("not recorded: 1 of 2 attempts"), "{}", stderr(&output));
    assert_eq!(place.read("rec/recording.json"), "precious");
}

#[test]
fn tools_are_shown_in_a_page_and_a_table() {
    let place = Place::new();
    let show = |args: &[&str]| {
        let output = place.editgate().args(args).output().expect("ran");
        assert_eq!(output.status.code(), Some(0), "{}", support::stderr(&output));
        support::stdout(&output)
    };
    for (tool, reader, read_format) in [
        ("edit_file", "read_file", "N<TAB>text"),
        ("EditFile", "ReadFile", "4 columns, a tab"),
        ("filesystem_write", "filesystem_read", "N: text"),
    ] {
        let page = show(&["tools", "show", tool]);
        for part in [tool, reader, "\"required\"", "Limits", "Options", "arguments", "Read ", read_format] {
            assert!(page.contains(part), "{tool}: {part}: {page}");
        }
        assert!(show(&["tools", "list"]).contains(tool));
    }
    let table = show(&["tools", "list", "--markdown"]);
    assert!(table.contains("None: no floor is recorded"), "{table}");
    let floor = serde_json::json!({
        "model": "m", "tool": "EditFile", "set": "crlf", "subset": "release", "prompt": "plain", "digest": "d", "n": 10,
        "floor": 5, "passed": 7, "runs": [], "method": "measured once", "false_alarm": null
    });
    place.write("reports/floors.json", serde_json::json!({ "format": 1, "floors": [floor] }).to_string());
    let table = show(&["tools", "list", "--markdown"]);
    assert!(table.contains("| m | plain | EditFile | 7/10 | 7/10 |"), "{table}");
}
