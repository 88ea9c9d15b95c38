#!/usr/bin/env python3
"""perf-cases.py FROM TO: a performance kit's cases as a case set, so that editgate can be measured beside other harnesses."""
import json
import pathlib
import sys

source, target = map(pathlib.Path, sys.argv[1:3])
cases = json.loads(source.read_text(encoding="utf-8"))["cases"]
entry = lambda text: {"text": text}
made = [
    {
        "id": case["id"],
        "tags": [case["kind"]],
        "files": {case["path"]: entry(case["before"])},
        "task": f"In `{case['path']}`, {case['instruction']}",
        "expect": {case["path"]: entry(case["after"])},
    }
    for case in cases
]
made = {"schema": 1, "set": "perf", "about": "cases of the performance kit", "subsets": {}, "cases": made}
target.write_text(json.dumps(made), encoding="utf-8")
