#!/usr/bin/env bash
# The action's one step, and the same on any machine: makes a run, judges it, and writes its reports, the step summary, the comment and
# annotations. Takes its inputs from EG_… (see action.yml); ends with the gate's exit code.
set -euo pipefail

editgate=${EG:-editgate}
out=${EG_OUT:-editgate-run}
command=${EG_COMMAND:-run}

# Words as a shell splits them, quotes too, and nothing expanded: arguments come from a workflow file, and stay arguments.
arguments=()
if [[ -n ${EG_ARGUMENTS:-} ]]; then
    mapfile -d '' -t arguments < <(printf '%s' "$EG_ARGUMENTS" | xargs printf '%s\0')
fi
judging=(--fail-on-error "${EG_FAIL_ON_ERROR:-0}")
[[ -z ${EG_AGAINST:-} ]] || judging+=(--against "$EG_AGAINST")
[[ -z ${EG_FLOORS:-} ]] || judging+=(--floors "$EG_FLOORS")
[[ ${EG_STRICT:-false} != true ]] || judging+=(--strict)

made=0
case $command in
run) "$editgate" run "${arguments[@]}" --no-gate --fail-on-error "${EG_FAIL_ON_ERROR:-0}" --out "$out" || made=$? ;;
replay) "$editgate" replay "${arguments[@]}" --out "$out" || made=$? ;;
*) echo "editgate action: command must be run or replay, not $command" >&2; exit 2 ;;
esac
# What was recorded is judged all the same; without a record there is nothing to judge.
if [[ ! -f $out/attempts.jsonl ]]; then
    exit "$made"
fi

code=0
if [[ -n ${EG_FLOORS:-}${EG_AGAINST:-} || -f reports/floors.json ]]; then
    "$editgate" gate "$out" "${judging[@]}" || code=$?
fi
# A replay that broke something fails though every floor is met.
[[ $code != 0 ]] || code=$made
"$editgate" report "$out" "${judging[@]}" --out "$out"
"$editgate" report "$out" "${judging[@]}" --format github --comment "$out/comment.md" --suite "${EG_SUITE:-gate}"
[[ -z ${GITHUB_OUTPUT:-} ]] || echo "exit-code=$code" >>"$GITHUB_OUTPUT"
exit "$code"
