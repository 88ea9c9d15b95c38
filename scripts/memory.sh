#!/usr/bin/env bash
# Shows that memory does not grow with the number of cases: the oracle edits a 1 MiB file in 10, 100 and 1,000 cases, and
# the peak of the process is printed for each. Needs python3.
#
#   scripts/memory.sh [BINARY]     (default: target/release/editgate)
set -euo pipefail
binary=$(realpath "${1:-target/release/editgate}")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 - "$binary" <<'P'
import json, os, resource, subprocess, sys
os.makedirs("cases/fixtures")
lines = [f"{n:06d} a line of a large file, {n * 7919 % 10007} units wide\n" for n in range(25000)]
text = "".join(lines)[: (1 << 20) - 64] + "\n"
def case(n):
    number = 13 + n * 17 % 20000
    return {"id": f"c{n}", "tags": [], "files": {"f.txt": {"fixture": "large.txt"}}, "task": f"Change line {number}.",
            "expect": {"f.txt": {"fixture": f"after{n % 20}.txt"}}}
open("cases/fixtures/large.txt", "w").write(text)
for n in range(20):
    open(f"cases/fixtures/after{n}.txt", "w").write(text.replace(f"{1000 + n:06d} a line", f"{1000 + n:06d} another line"))
for count in (10, 100, 1000):
    cases = [case(n) for n in range(count)]
    json.dump({"schema": 1, "set": "large", "about": "1 MiB", "subsets": {}, "cases": cases}, open("cases/large.json", "w"))
    child = subprocess.Popen([sys.argv[1], "run", "-m", "builtin/oracle", "--no-gate", "--out", f"out{count}"], stdout=subprocess.PIPE)
    out = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    verdict = [line for line in out.splitlines() if " passed " in line][-1]
    print(f"{count:5} cases: exit {os.waitstatus_to_exitcode(status)}, peak {usage.ru_maxrss / 1024:.1f} MiB, {usage.ru_utime + usage.ru_stime:.1f} s of CPU; {verdict}")
P
