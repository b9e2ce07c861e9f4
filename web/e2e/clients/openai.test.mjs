// openai-node as it is, against the real binary: the twelve scripts.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';

import { cancelled, deliver, kilobytes30, long, noEnd, recordedPrompt, reference, refusal, startProxy, startServer, stopIn } from './harness.mjs';

const greedy = { model: 'any', max_tokens: 24, temperature: 0 };
const hello = { ...greedy, prompt: 'Hello' };
let server, client, want, cut, world;

const at = (url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any-key', maxRetries: 0 });

before(async () => {
  server = await startServer();
  client = at(server.url);
  want = await reference(server, hello);
  cut = stopIn(want);
  world = await reference(server, { ...greedy, prompt: 'World' });
  assert.notEqual(world, want);
});
after(() => server.close());

// texts of all choices, in the order of their index.
async function complete(params) {
  const { choices } = await client.completions.create(params);
  assert.deepEqual(choices.map((c) => c.index), choices.map((_, i) => i));
  return choices.map((c) => c.text);
}

async function streamed(from, params) {
  let text = '', usage;
  for await (const chunk of await from.completions.create({ ...params, stream: true })) {
    text += chunk.choices[0]?.text ?? '';
    usage = chunk.usage ?? usage;
  }
  return { text, usage };
}

test('plain', async () => assert.deepEqual(await complete(hello), [want]));

test('stream gives the plain text', async () => assert.equal((await streamed(client, hello)).text, want));

test('stop as a string', async () => {
  assert.deepEqual(await complete({ ...hello, stop: cut.stop }), [cut.stopped]);
  assert.equal((await streamed(client, { ...hello, stop: cut.stop })).text, cut.stopped);
});

test('array prompt', async () => assert.deepEqual(await complete({ ...greedy, prompt: ['Hello'] }), [want]));

test('batch of two', async () => assert.deepEqual(await complete({ ...greedy, prompt: ['Hello', 'World'] }), [want, world]));

test('integer logprobs', async () => {
  const { choices: [{ logprobs }] } = await client.completions.create({ ...hello, logprobs: 2 });
  for (const list of ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset']) assert.equal(logprobs[list].length, greedy.max_tokens, list);
  assert.equal(logprobs.tokens.join(''), want);
  logprobs.tokens.forEach((token, i) => {
    const p = logprobs.token_logprobs[i], top = logprobs.top_logprobs[i];
    assert.ok(p < 0);
    assert.equal(top[token], p);
    assert.equal(Math.max(...Object.values(top)), p); // greedy: the chosen one is the likeliest
  });
});

test('usage chunk', async () => {
  const { text, usage } = await streamed(client, { ...hello, stream_options: { include_usage: true } });
  assert.equal(text, want);
  assert.deepEqual(usage, (await client.completions.create(hello)).usage);
});

test('abort at token 3 frees the slot', async () => {
  const before = await server.newest();
  const stream = await client.completions.create({ model: 'any', prompt: 'Hello', max_tokens: long, seed: 1, logit_bias: noEnd, stream: true });
  let seen = 0;
  for await (const chunk of stream) {
    if (chunk.choices[0].text && ++seen === 3) {
      assert.equal((await server.get('/v1/status')).running, 1);
      break; // which aborts the request
    }
  }
  assert.equal(seen, 3);
  await cancelled(server, before);
});

test('a bad top_p shows its message', async () => {
  const message = await refusal(server, { prompt: 'Hello', top_p: 2 });
  for (const stream of [false, true]) {
    await assert.rejects(client.completions.create({ ...hello, top_p: 2, stream }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === 'top_p' && e.message.includes(message));
  }
});

test('two in parallel equal one alone', async () => {
  const both = await Promise.all([complete(hello), complete({ ...greedy, prompt: 'World' })]);
  assert.deepEqual(both, [[want], [world]]);
});

test('a seed repeats', async () => {
  const text = (seed) => complete({ model: 'any', prompt: 'Hello', max_tokens: 24, temperature: 1, seed });
  assert.deepEqual(await text(7), await text(7));
  assert.notDeepEqual(await text(7), await text(8));
});

test('a prompt of 30 kilobytes', async () => {
  const { usage } = await client.completions.create({ ...greedy, prompt: kilobytes30, max_tokens: 1 });
  assert.ok(usage.prompt_tokens > 10_000);
  await recordedPrompt(server, kilobytes30);
});

for (const how of ['oneByte', 'crlf', 'crlfOneByte']) {
  test(`text is equal behind a proxy: ${how}`, async () => {
    const proxy = await startProxy(server, deliver[how]);
    try {
      assert.equal((await streamed(at(proxy.url), hello)).text, want);
    } finally {
      await proxy.close();
    }
  });
}
