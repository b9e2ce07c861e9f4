// vulkan.mjs compares decoding on a GPU with llama.cpp's Vulkan back end, as the npm
// package node-llama-cpp ships it, on the same device in the same run. On a machine
// without a GPU both run on Mesa's software renderers (lavapipe, llvmpipe).
//
//	node vulkan.mjs BINARY MODEL [--backends vulkan,gl] [--prompt N] [--generate N] [--rounds N]
//
// node-llama-cpp is looked for in the folder it is run from (npm install node-llama-cpp).
import {execFileSync} from "node:child_process";
import {createRequire} from "node:module";
import path from "node:path";
import {pathToFileURL} from "node:url";
import {parseArgs} from "node:util";

process.env.GGML_VK_VISIBLE_DEVICES ??= "0"; // software devices are skipped unless named

const {values: options, positionals} = parseArgs({
  allowPositionals: true,
  options: {
    backends: {type: "string", default: "vulkan,gl"},
    prompt: {type: "string", default: "128"},
    generate: {type: "string", default: "16"},
    rounds: {type: "string", default: "3"},
    numerics: {type: "string", default: "fast"},
  },
});
const [binary, model] = positionals;
const prompt = Number(options.prompt), generate = Number(options.generate), rounds = Number(options.rounds);

// peer opens llama.cpp with all layers on the device and returns a function that
// measures one prompt and its completion, in tokens per second.
async function peer() {
  const entry = createRequire(path.join(process.cwd(), "x.js")).resolve("node-llama-cpp");
  const {getLlama} = await import(pathToFileURL(entry));
  const llama = await getLlama({gpu: "vulkan", build: "never", progressLogs: false, logLevel: "error"});
  const loaded = await llama.loadModel({modelPath: path.resolve(model), gpuLayers: "max"});
  const context = await loaded.createContext({contextSize: prompt + generate + 64, batchSize: 512, sequences: 1});
  const sequence = context.getSequence();
  const tokens = (round) => Array.from({length: prompt}, (_, i) => 1000 + (round * 7919 + i * 104729) % 200000);
  return async (round) => {
    await sequence.clearHistory();
    let count = 0, first = 0;
    const start = performance.now();
    for await (const _ of sequence.evaluate(tokens(round), {temperature: 0, yieldEogToken: true})) {
      if (++count === 1) first = performance.now();
      if (count === generate + 1) break;
    }
    return {prefill: prompt / (first - start) * 1000, decode: (count - 1) / (performance.now() - first) * 1000};
  };
}

// ours measures one round of a backend.
function ours(backend) {
  const out = execFileSync(binary, ["bench", "--model", model, "--backend", backend, "--numerics", options.numerics, "--speculate", "off",
    "--prompt", String(prompt), "--generate", String(generate), "--repeat", "1", "--json"], {stdio: ["ignore", "pipe", "inherit"]});
  const r = JSON.parse(out.toString());
  return {prefill: r.prefill_tokens_per_second, decode: r.decode_tokens_per_second, device: r.device};
}

const median = (a) => [...a].sort((x, y) => x - y)[Math.floor(a.length / 2)];
const measure = await peer();
await measure(0); // compiles pipelines
const rates = {peer: []};
for (let i = 1; i <= rounds; i++) {
  rates.peer.push(await measure(i));
  for (const b of options.backends.split(",")) (rates[b] ??= []).push(ours(b));
}
for (const [name, list] of Object.entries(rates)) {
  for (const what of ["prefill", "decode"]) {
    const ratio = median(list.map((r, i) => r[what] / rates.peer[i][what]));
    console.log(`${name.padEnd(8)} ${what.padEnd(8)} ${median(list.map((r) => r[what])).toFixed(1).padStart(8)} tokens/s` +
      (name === "peer" ? "" : `  ${ratio.toFixed(2)} times llama.cpp's Vulkan  (${list[0].device})`));
  }
}
process.exit(0);
