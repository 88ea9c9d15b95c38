#!/usr/bin/env bash
# A release that must not go out, from the shipped recording and without a model: yesterday's build passes the gate; today's
# build has lost one rule of one tool (edit_file finds a line by its text when the number is stale), and the gate stops it.
#
#   scripts/story.sh [FOLDER]     (default: reports/runs/story; today's broken build goes to target/story)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-reports/runs/story}
rm -rf "$out"
mkdir -p "$out" target/story

echo "== yesterday: this build on the recording"
cargo run --quiet -- run --out "$out/yesterday" --report md,html >"$out/yesterday.txt" 2>&1
tail -n 3 "$out/yesterday.txt"

echo "== today: the same recording on a build that lost a rule"
git archive HEAD | tar -x -C target/story
rule=target/story/src/tool/edit_file/replace.rs
grep -q '(Some(only), None) => Ok(only),' "$rule"
sed -i 's/(Some(only), None) => Ok(only),/(Some(_), None) => Err(words::line_mismatch(numbered + 1, find, all[numbered].text, 1)),/' "$rule"
CARGO_TARGET_DIR=target/story-build cargo build --quiet --manifest-path target/story/Cargo.toml
editgate=target/story-build/debug/editgate
code=0
"$editgate" replay "$out/yesterday" --out "$out/today" >"$out/replay.txt" 2>&1 || code=$?
echo "replay: exit code $code (101: attempts that passed no longer do)"
code=0
"$editgate" gate "$out/today" --against "$out/yesterday" >"$out/gate.txt" 2>&1 || code=$?
"$editgate" report "$out/today" --against "$out/yesterday" --out "$out/today" >/dev/null
sed -n '/^lost /,/^$/p' "$out/gate.txt"
tail -n 2 "$out/gate.txt"
echo "gate: exit code $code (100: below a floor); the whole of it: $out/today/report.md and report.html"
[[ $code == 100 ]]
