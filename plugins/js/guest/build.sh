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
# Two places are changed, so that guest.c can let others run (rest):
# the interpreter asks its handler every 100 turns of loops and calls instead of 10,000, and
# the parser tells of each token.
sed -e 's/^#define JS_INTERRUPT_COUNTER_INIT 10000$/#define JS_INTERRUPT_COUNTER_INIT 100/' \
	-e '/^static __exception int next_token(JSParseState \*s)$/{n;s/^{$/{ extern void counted_token(void); counted_token();/}' "$src/quickjs.c" >"$tmp/quickjs.c"
[ "$(diff "$src/quickjs.c" "$tmp/quickjs.c" | grep -c '^>')" = 2 ] || { echo "build.sh: quickjs.c is not as expected" >&2; exit 1; }
pids=()
for f in guest.c wasi.c "$tmp/quickjs.c" "$src"/{libregexp,libunicode,dtoa}.c; do
	clang "${flags[@]}" -c "$f" -o "$tmp/$(basename "$f").o" &
	pids+=($!)
done
for p in "${pids[@]}"; do wait "$p"; done
clang --target=wasm32-wasi -mexec-model=reactor -Wl,--strip-all -Wl,-z,stack-size=262144 -Wl,--stack-first "$tmp"/*.o -o "$out"
