// openai-node and Vercel's ai with the compatible provider, as they are, against
// the real binary named by GANGLION_BIN.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';

const tiny = fileURLToPath(new URL('../../../gpu/engine/testdata/arch/gemma3-dense.gguf', import.meta.url));
const common = { model: 'm', prompt: 'Hello', max_tokens: 8, temperature: 0 };
let server, home, url, client, reference;

before(async () => {
  home = await mkdtemp(join(tmpdir(), 'ganglion-'));
  server = spawn(process.env.GANGLION_BIN, ['serve', '--listen', '127.0.0.1:0', '--model', tiny, '--data', join(home, 'data')],
    { env: { PATH: process.env.PATH, HOME: home }, stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of createInterface(server.stderr)) {
    const at = line.indexOf('listening on ');
    if (at >= 0) {
      url = line.slice(at + 'listening on '.length).split(' ')[0].replace(/\/$/, '');
      break;
    }
  }
  server.stderr.resume();
  while ((await fetch(`${url}/health`)).status === 503) await pause(50);
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'x', maxRetries: 0 });
  reference = (await client.completions.create(common)).choices[0].text;
});

after(async () => {
  const gone = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGTERM');
  await gone;
  await rm(home, { recursive: true, force: true });
});

test('openai-node: stream equals plain, usage comes last', async () => {
  let text = '', usage;
  for await (const chunk of await client.completions.create({ ...common, stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.text ?? '';
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, reference);
  assert.ok(usage.total_tokens > 0);
});

test('openai-node: batch of two', async () => {
  const answer = await client.completions.create({ ...common, prompt: ['Hello', 'World'] });
  assert.deepEqual(answer.choices.map((c) => c.index), [0, 1]);
  assert.equal(answer.choices[0].text, reference);
});

test('openai-node: integer logprobs', async () => {
  const { choices: [choice], usage } = await client.completions.create({ ...common, logprobs: 2 });
  assert.equal(choice.logprobs.tokens.length, usage.completion_tokens);
});

test('openai-node: an error shows its message', async () => {
  await assert.rejects(client.completions.create({ ...common, top_p: 2 }), (e) => e.status === 400 && /top_p/.test(e.message));
});

test('openai-node: abort frees the slot', async () => {
  const stream = await client.completions.create({ ...common, max_tokens: 200, logit_bias: { 2: -100 }, stream: true });
  let seen = 0;
  for await (const chunk of stream) {
    assert.ok(chunk.choices);
    if (++seen === 3) break;
  }
  stream.controller.abort();
  for (let i = 0; ; i++) {
    const { running } = await (await fetch(`${url}/v1/status`)).json();
    if (running === 0) return;
    assert.ok(i < 100, 'the slot is still busy');
  }
});

const vercel = () => createOpenAICompatible({ name: 'ganglion', baseURL: `${url}/v1`, apiKey: 'x' }).completionModel('m');

test('ai: generateText', async () => {
  const answer = await generateText({ model: vercel(), prompt: 'Hello', maxOutputTokens: 8, temperature: 0, maxRetries: 0 });
  assert.ok(['stop', 'length'].includes(answer.finishReason));
  assert.ok(answer.usage.outputTokens > 0);
});

test('ai: streamText gives the same text', async () => {
  const options = { prompt: 'Hello', maxOutputTokens: 8, temperature: 0, maxRetries: 0 };
  const plain = await generateText({ model: vercel(), ...options });
  let text = '';
  for await (const part of streamText({ model: vercel(), ...options }).textStream) text += part;
  assert.equal(text, plain.text);
});
