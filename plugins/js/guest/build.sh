#!/usr/bin/env bash
# Builds js.wasm from QuickJS-ng's sources: build.sh FOLDER-OF-QUICKJS-NG OUT
# Debian 12: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32
set -euo pipefail
src=$(realpath "$1") out=$(realpath -m "$2")
cd "$(dirname "${BASH_SOURCE[0]}")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
od -An -v -tu1 prelude.js | sed -E 's/ +([0-9]+)/\1,/g' >"$tmp/prelude.inc"
flags=(--target=wasm32-wasi -Os -std=gnu11 -w -mbulk-memory -fvisibility=hidden -D_GNU_SOURCE -DNDEBUG -I../../sdk/c -I"$src" -I"$tmp")
pids=()
for f in guest.c wasi.c "$src"/{quickjs,libregexp,libunicode,dtoa}.c; do
	clang "${flags[@]}" -c "$f" -o "$tmp/$(basename "$f").o" &
	pids+=($!)
done
for p in "${pids[@]}"; do wait "$p"; done
clang --target=wasm32-wasi -mexec-model=reactor -Wl,--strip-all -Wl,-z,stack-size=262144 -Wl,--stack-first "$tmp"/*.o -o "$out"
