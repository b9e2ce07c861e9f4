// Vercel's ai with its provider for compatible servers, as they are, against the
// real binary: the scripts that it can express (it takes one prompt at a time and
// writes it as a dialogue).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';

import { cancelled, deliver, kilobytes30, long, noEnd, recordedPrompt, reference, refusal, startProxy, startServer, stopIn } from './harness.mjs';

let server, greedy, want, cut, other;

const model = (url) => createOpenAICompatible({ name: 'ganglion', baseURL: `${url}/v1`, apiKey: 'any-key', includeUsage: true }).completionModel('any');

before(async () => {
  server = await startServer();
  greedy = { model: model(server.url), maxOutputTokens: 24, temperature: 0, maxRetries: 0, prompt: 'Once upon a time' };
  // What ai makes of a prompt is sent again without it.
  const bare = async (prompt) => reference(server, (await generateText({ ...greedy, prompt })).request.body);
  want = await bare(greedy.prompt);
  cut = stopIn(want);
  other = await bare('One');
  assert.notEqual(want, other);
});
after(() => server.close());

const complete = async (more) => (await generateText({ ...greedy, ...more })).text;

// streamed fails on the error that streamText would only print.
async function streamed(more) {
  let failure;
  const result = streamText({ ...greedy, ...more, onError: ({ error }) => { failure = error; } });
  const pieces = [];
  for await (const part of result.textStream) pieces.push(part);
  if (failure) throw failure;
  return { pieces, text: pieces.join(''), usage: await result.usage, finish: await result.finishReason };
}

test('plain', async () => {
  const answer = await generateText(greedy);
  assert.equal(answer.text, want);
  assert.equal(answer.finishReason, 'length');
});

test('stream gives the plain text', async () => {
  const { pieces, text, finish } = await streamed();
  assert.equal(text, want);
  assert.ok(pieces.length > 3);
  assert.equal(finish, 'length');
});

test('stop', async () => {
  assert.equal(await complete({ stopSequences: [cut.stop] }), cut.stopped);
  const { text, finish } = await streamed({ stopSequences: [cut.stop] });
  assert.deepEqual({ text, finish }, { text: cut.stopped, finish: 'stop' });
});

test('integer logprobs', async () => {
  const { response } = await generateText({ ...greedy, providerOptions: { ganglion: { logprobs: 2 } } });
  const { tokens, token_logprobs } = response.body.choices[0].logprobs;
  assert.equal(tokens.join(''), want);
  assert.ok(token_logprobs.every((p) => p < 0));
});

test('usage chunk', async () => {
  const { usage } = await streamed();
  const plain = await generateText(greedy);
  assert.equal(usage.outputTokens, greedy.maxOutputTokens);
  assert.deepEqual([usage.inputTokens, usage.totalTokens], [plain.usage.inputTokens, plain.usage.totalTokens]);
});

test('abort at token 3 frees the slot', async () => {
  const before = await server.newest();
  const abort = new AbortController();
  const result = streamText({ ...greedy, temperature: 1, maxOutputTokens: long, abortSignal: abort.signal,
    providerOptions: { ganglion: { logitBias: noEnd } } });
  let seen = 0;
  for await (const part of result.textStream) {
    if (part && ++seen === 3) {
      assert.equal((await server.get('/v1/status')).running, 1);
      abort.abort();
      break;
    }
  }
  assert.equal(seen, 3);
  await cancelled(server, before);
});

test('a bad top_p shows its message', async () => {
  const message = await refusal(server, { prompt: 'Hello', top_p: 2 });
  const says = (e) => e.statusCode === 400 && e.message.includes(message);
  await assert.rejects(generateText({ ...greedy, topP: 2 }), says);
  await assert.rejects(streamed({ topP: 2 }), says);
});

test('two in parallel equal one alone', async () => {
  assert.deepEqual(await Promise.all([complete(), complete({ prompt: 'One' })]), [want, other]);
});

test('a seed repeats', async () => {
  const text = (seed) => complete({ temperature: 1, seed });
  assert.equal(await text(7), await text(7));
  assert.notEqual(await text(7), await text(8));
});

test('a prompt of 30 kilobytes', async () => {
  const { usage, request } = await generateText({ ...greedy, prompt: kilobytes30, maxOutputTokens: 1 });
  assert.ok(usage.inputTokens > 10_000);
  await recordedPrompt(server, request.body.prompt);
});

for (const how of ['oneByte', 'crlf', 'crlfOneByte']) {
  test(`text is equal behind a proxy: ${how}`, async () => {
    const proxy = await startProxy(server, deliver[how]);
    try {
      assert.equal((await streamed({ model: model(proxy.url) })).text, want);
    } finally {
      await proxy.close();
    }
  });
}
