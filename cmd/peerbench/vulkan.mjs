// vulkan.mjs compares decoding on a GPU with llama.cpp's Vulkan back end, as the npm
// package node-llama-cpp ships it, on the same device in turns in one run. On a machine
// without a GPU both run on Mesa's software renderers (lavapipe, llvmpipe).
//
//	node vulkan.mjs BINARY MODEL [--backends vulkan,gl] [--prompt N] [--generate N] [--rounds N] [--limit SECONDS]
//
// node-llama-cpp is looked for in the folder it is run from (npm install node-llama-cpp);
// `./build.sh bench-peer-vulkan` sees to all of it. The peer's first prompt compiles its
// pipelines, which takes minutes on a software renderer: what goes on is told on stderr.
// The figures are printed when all rounds are done, or from the rounds that were when
// the limit has passed. Where other work loads the machine the ratios of processor time
// are the better ones; on a GPU that is one they say nothing.
import {execFile} from "node:child_process";
import {createRequire} from "node:module";
import path from "node:path";
import {pathToFileURL} from "node:url";
import {parseArgs, promisify} from "node:util";

process.env.GGML_VK_VISIBLE_DEVICES ??= "0"; // software devices are skipped unless named

const {values: options, positionals} = parseArgs({
  allowPositionals: true,
  options: {
    backends: {type: "string", default: "vulkan,gl"},
    prompt: {type: "string", default: "32"},
    generate: {type: "string", default: "8"},
    rounds: {type: "string", default: "3"},
    limit: {type: "string", default: "1200"},
    numerics: {type: "string", default: "fast"},
  },
});
const [binary, model] = positionals;
if (!model) {
  console.error("usage: node vulkan.mjs BINARY MODEL [--backends vulkan,gl] [--prompt N] [--generate N] [--rounds N] [--limit SECONDS]");
  process.exit(2);
}
const backends = options.backends.split(",");
const prompt = Number(options.prompt), generate = Number(options.generate), rounds = Number(options.rounds);

const begin = performance.now();
const seconds = () => (performance.now() - begin) / 1000;
const say = (text) => console.error(`${seconds().toFixed(0).padStart(5)} s  ${text}`);

// measures has what each side did in each round: {prefill, decode} in tokens per second
// and {prefillCPU, decodeCPU} in milliseconds of processor time per token.
const measures = {peer: []};
for (const b of backends) measures[b] = [];
const text = (r) => `prefill ${r.prefill.toFixed(2)}, decode ${r.decode.toFixed(2)} tokens/s; ` +
  `${r.prefillCPU.toFixed(0)} and ${r.decodeCPU.toFixed(0)} ms of processor time per token`;

// peer opens llama.cpp with all layers on the device and returns a function that
// measures one prompt and its completion.
async function peer() {
  const entry = createRequire(path.join(process.cwd(), "x.js")).resolve("node-llama-cpp");
  const {getLlama} = await import(pathToFileURL(entry));
  const llama = await getLlama({gpu: "vulkan", build: "never", progressLogs: false, logLevel: "error"});
  say(`llama.cpp runs on ${(await llama.getGpuDeviceNames()).join(", ")}`);
  const loaded = await llama.loadModel({modelPath: path.resolve(model), gpuLayers: "max"});
  const context = await loaded.createContext({contextSize: prompt + generate + 64, batchSize: 512, sequences: 1});
  const sequence = context.getSequence();
  const tokens = (round) => Array.from({length: prompt}, (_, i) => 1000 + (round * 7919 + i * 104729) % 200000);
  const spent = (from) => { const t = process.cpuUsage(from); return (t.user + t.system) / 1000; };
  return async (round) => {
    await sequence.clearHistory();
    let count = 0, first = 0, firstCPU = 0, cpu = process.cpuUsage();
    const start = performance.now();
    for await (const _ of sequence.evaluate(tokens(round), {temperature: 0, yieldEogToken: true})) {
      if (++count === 1) {
        first = performance.now();
        firstCPU = spent(cpu);
        cpu = process.cpuUsage();
      }
      if (count === generate + 1) break;
    }
    return {prefill: prompt / (first - start) * 1000, decode: (count - 1) / (performance.now() - first) * 1000,
      prefillCPU: firstCPU / prompt, decodeCPU: spent(cpu) / (count - 1)};
  };
}

// ours measures one round of a backend.
async function ours(backend) {
  const {stdout} = await promisify(execFile)(binary, ["bench", "--model", model, "--backend", backend, "--numerics", options.numerics, "--speculate", "off",
    "--prompt", String(prompt), "--generate", String(generate), "--repeat", "1", "--kernels=false", "--json"], {maxBuffer: 1 << 24});
  const r = JSON.parse(stdout);
  return {prefill: r.prefill_tokens_per_second, decode: r.decode_tokens_per_second,
    prefillCPU: r.prefill_cpu_ms_per_token, decodeCPU: r.decode_cpu_ms_per_token, device: r.device};
}

const median = (a) => [...a].sort((x, y) => x - y)[Math.floor(a.length / 2)];

// report prints the medians of the rounds that all sides finished.
function report() {
  const done = Math.min(...Object.values(measures).map((list) => list.length));
  if (done === 0) {
    say("no round was finished: raise --limit, or lower --prompt and --generate");
    process.exit(1);
  }
  console.log(`${path.basename(model)}, ${options.numerics}, prompt ${prompt}, ${generate} generated, ${done} rounds`);
  for (const [name, list] of Object.entries(measures)) {
    for (const what of ["prefill", "decode"]) {
      const over = (of) => median(list.slice(0, done).map((r, i) => of(r, measures.peer[i])));
      console.log(`${name.padEnd(8)} ${what.padEnd(8)} ${over((r) => r[what]).toFixed(2).padStart(8)} tokens/s ` +
        `${over((r) => r[what + "CPU"]).toFixed(0).padStart(6)} ms CPU/token` + (name === "peer" ? "" :
        `   ${over((r, p) => r[what] / p[what]).toFixed(2)} times llama.cpp's Vulkan by the clock, ` +
        `${over((r, p) => p[what + "CPU"] / r[what + "CPU"]).toFixed(2)} by processor time  (${list[0].device})`));
    }
  }
}

setTimeout(() => {
  say(`the limit of ${options.limit} s has passed`);
  report();
  process.exit(0);
}, 1000 * Number(options.limit)).unref();

const measure = await peer();
say("llama.cpp compiles its pipelines (minutes on a software renderer)");
say(`peer     warm   ${text(await measure(0))}`);
for (const b of backends) {
  say(`${b} compiles and tests its kernels`);
  say(`${b.padEnd(8)} warm   ${text(await ours(b))}`);
}
for (let i = 1; i <= rounds; i++) {
  for (const name of ["peer", ...backends]) {
    const r = name === "peer" ? await measure(i) : await ours(name);
    measures[name].push(r);
    say(`${name.padEnd(8)} ${i} of ${rounds} ${text(r)}`);
  }
}
report();
process.exit(0);
