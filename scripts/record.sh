#!/usr/bin/env bash
# Records cases with the real local models, and renews the floors and reports that come with them. Half a minute a case of the
# larger model on two idle cores (an hour a tool for the release subsets); needs network only to install the models.
#
#   scripts/record.sh [NAME...]     names: 1.5b-directed 1.5b-plain 0.5b-directed 1.5b-variants (default: all)
#
#   1.5b-directed     every tool on every release subset; this recording is shipped as the default run
#   1.5b-plain, 0.5b-directed    edit_file on the core subsets, which are smaller
#   1.5b-variants     edit_file on the set of byte variants: what bytes cost
#
# Environment: EDITGATE (the binary; default target/release/editgate), LOCAL_MODEL_DIR (default local-model), and the
# settings of scripts/local-model.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

editgate=${EDITGATE:-target/release/editgate}
folder=${LOCAL_MODEL_DIR:-local-model}
[ -x "$editgate" ] || { echo "record: no $editgate; build it with cargo build --release" >&2; exit 2; }
[ $# -gt 0 ] || set -- 1.5b-directed 1.5b-plain 0.5b-directed 1.5b-variants

for name in "$@"; do
    size=${name%%-*} prompt=${name#*-}
    what=(--tool edit_file)
    case $name in
    1.5b-directed) what+=(--tool EditFile --tool filesystem_write --subset release) ;;
    1.5b-plain | 0.5b-directed) what+=(--subset core) ;;
    1.5b-variants) what+=(--set variants) prompt=directed ;;
    *) echo "record: unknown recording $name" >&2; exit 2 ;;
    esac
    model=qwen2.5-coder-$size-instruct
    recording=qwen2.5-coder-$name
    run=reports/runs/record-$recording
    # one server at a time: two cores
    scripts/local-model.sh stop "$folder"
    url=$(LOCAL_MODEL_SIZE=$size scripts/local-model.sh start "$folder")
    rm -rf "$run"
    # These models never say that they are done, so an attempt ends at its first successful edit. With the server's
    # prompt cache a case takes half the time; its answers may then depend on what was asked before, which a recording
    # does not mind.
    "$editgate" run -m "llamacpp/$model" --base-url "$url" --extra-body '{"cache_prompt": true}' \
        "${what[@]}" --prompt "$prompt" --stop-after edit --max-turns 6 --max-tokens 384 \
        --no-gate --record "fixtures/recordings/$recording" --out "$run"
    "$editgate" floors set --method measured --raise "$run"
    # rendered again, now with the floors beside the counts
    "$editgate" report "$run" --format md >"reports/$recording.md"
done
scripts/local-model.sh stop "$folder"
