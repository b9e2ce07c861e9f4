#!/bin/sh
# Builds the kernels with clang and lld.
set -e
cd "$(dirname "$0")"
flags="--target=wasm32 -O3 -nostdlib -ffreestanding -Wl,--no-entry -Wl,-z,stack-size=65536 -Wl,--strip-all"
clang $flags -fno-vectorize -fno-slp-vectorize -o scalar.wasm kernels.c
clang $flags -msimd128 -o simd.wasm kernels.c
