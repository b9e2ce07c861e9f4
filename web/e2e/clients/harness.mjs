// The server under test on the tiny model, a proxy, and the script helpers that the
// tests of both clients share.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const tiny = fileURLToPath(new URL('../../../gpu/engine/testdata/arch/gemma3-dense.gguf', import.meta.url));

// The tiny model ends a text on its token 2, which a test of a long answer bans.
export const noEnd = { 2: -100 };
// Tokens that take far longer than a test waits.
export const long = 100_000;
export const kilobytes30 = ' this is the'.repeat(2500);

// eventually waits until a condition holds and returns its value; it looks again
// every 10 ms.
export async function eventually(what, condition, seconds = 120) {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(performance.now() < deadline, `${what}: not so after ${seconds} s`);
    await pause(10);
  }
}

// startServer starts `ganglion serve`. Numerics are exact, so that a text does not
// depend on what else is computed at the same time.
export async function startServer(...flags) {
  const home = await mkdtemp(join(tmpdir(), 'ganglion-'));
  const process_ = spawn(process.env.GANGLION_BIN,
    ['serve', '--listen', '127.0.0.1:0', '--model', tiny, '--numerics', 'exact', '--context', '131072', '--data', join(home, 'data'), ...flags],
    { env: { PATH: process.env.PATH, HOME: home }, stdio: ['ignore', 'ignore', 'pipe'] });
  const gone = new Promise((resolve) => process_.once('exit', resolve));
  const close = async () => {
    process_.kill('SIGTERM');
    await gone;
    await rm(home, { recursive: true, force: true, maxRetries: 20 });
  };

  const said = [];
  const url = await new Promise((resolve, reject) => {
    createInterface(process_.stderr).on('line', (line) => {
      said.push(line);
      const found = line.match(/listening on (http:\S+)/);
      if (found) resolve(found[1].replace(/\/$/, ''));
    });
    process_.once('error', reject);
    gone.then(() => reject(new Error(`the server ended: ${said.join('\n')}`)));
  });

  const get = async (path) => (await fetch(url + path)).json();
  const post = (body) => fetch(`${url}/v1/completions`, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
  const newest = async () => (await get('/v1/log?limit=1')).records[0];
  try {
    await eventually('ready', async () => (await fetch(`${url}/health`)).ok);
  } catch (e) {
    await close(); // or the tests would never end
    throw e;
  }
  return { url, get, post, newest, close };
}

// recordedPrompt waits until the newest record has a prompt.
export const recordedPrompt = (server, prompt) => eventually('prompt in the log', async () => {
  const r = await server.newest();
  return r && (await server.get(`/v1/log/${r.id}`)).prompt === prompt;
});

// reference is the text that the server gives to a bare request.
export async function reference(server, body) {
  const answer = await server.post(body);
  assert.equal(answer.status, 200);
  return (await answer.json()).choices[0].text;
}

// stopIn finds a printable string of several characters in the middle of a text, and
// the text before it.
export function stopIn(text) {
  const [stop] = [...text.matchAll(/[!-~]{2,}/g)].find((m) => m.index > 0);
  return { stop, stopped: text.slice(0, text.indexOf(stop)) };
}

// refusal is the message of the refusal of a bare request.
export async function refusal(server, body) {
  const answer = await server.post(body);
  assert.equal(answer.status, 400);
  return (await answer.json()).error.message;
}

// cancelled waits until the slot is free and checks that the newest request was cut.
export async function cancelled(server, before) {
  await eventually('slot free', async () => (await server.get('/v1/status')).running === 0);
  const row = await eventually('row there and closed', async () => {
    const r = await server.newest();
    return r && r.id !== before?.id && r.outcome !== 'open' && r;
  });
  assert.equal(row.outcome, 'cancelled');
  assert.ok(row.completion_tokens >= 3 && row.completion_tokens < long, `${row.completion_tokens} tokens`);
}

// Ways to deliver the body of an answer, for startProxy.
export const deliver = {
  async *oneByte(body) {
    for await (const piece of body) for (const b of piece) yield Buffer.from([b]);
  },
  async *crlf(body) {
    for await (const piece of body) yield Buffer.from(Buffer.from(piece).toString('latin1').replaceAll('\n', '\r\n'), 'latin1');
  },
  crlfOneByte: (body) => deliver.oneByte(deliver.crlf(body)),
  // comment puts a comment into the same write as the event after it.
  comment: (word) => async function* (body) {
    for await (const piece of body) yield Buffer.concat([Buffer.from(`: ${word}\n\n`), piece]);
  },
};

// startProxy passes requests on to a server. Each piece is one chunk of the transfer
// coding, so that a client gets them apart.
export async function startProxy(server, how) {
  const pass = async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const answer = await fetch(server.url + request.url, { method: 'POST', body: Buffer.concat(parts), headers: { 'Content-Type': 'application/json' } });
    response.writeHead(answer.status, { 'Content-Type': answer.headers.get('Content-Type') });
    for await (const piece of how(answer.body)) response.write(piece);
    response.end();
  };
  const proxy = http.createServer((request, response) => pass(request, response).catch((e) => response.destroy(e)));
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const close = () => new Promise((resolve) => {
    proxy.close(resolve);
    proxy.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${proxy.address().port}`, close };
}
