#!/usr/bin/env bash
# Measures editgate beside other harnesses: scripts/perf.sh KIT [options of the kit's run.sh]
# KIT is a checkout of the performance kit, set up with its setup.sh (EB_HOME says where its builds are). The release
# binary is built first. Example: scripts/perf.sh ../kit --peers ref,httpx --rounds 5
set -euo pipefail
kit=${1:?the directory of the performance kit}
shift
cd "$(dirname "$0")/.."
cargo build --release --quiet
binary=$PWD/target/release/editgate
exec bash "$kit/run.sh" "$@" \
    --convert "python3 $PWD/scripts/perf-cases.py {cases} {converted}" \
    --pass-regex '(?:passed )?(\d+) of (\d+)' \
    -- "$binary" run -m openai/eb --base-url {base_url} --cases {converted} --tool filesystem_write -j {concurrency} --no-gate \
    --out {out}/run
