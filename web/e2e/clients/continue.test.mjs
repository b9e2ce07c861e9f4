// Continue, the editor extension, reads streams by a rule of its own: a line that
// begins with ": ping" ends what it reads of the same write. The reader here keeps
// that rule.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { deliver, reference, startProxy, startServer } from './harness.mjs';

const hello = { prompt: 'Hello', max_tokens: 24, temperature: 0 };
let server, want;

before(async () => {
  server = await startServer();
  want = await reference(server, hello);
});
after(() => server.close());

// readLikeContinue returns the text of a stream, and whether its end mark was seen.
async function readLikeContinue(url) {
  const answer = await fetch(`${url}/v1/completions`, { method: 'POST', body: JSON.stringify({ ...hello, stream: true }), headers: { 'Content-Type': 'application/json' } });
  assert.equal(answer.status, 200);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '', text = '', ended = false;
  for await (const piece of answer.body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith(': ping')) break; // the rest of the write is lost
      if (!line.startsWith('data:')) continue;
      const data = line.slice('data:'.length).trim();
      if (data === '[DONE]') ended = true;
      else text += JSON.parse(data).choices[0]?.text ?? '';
    }
  }
  return { text, ended };
}

async function behind(how) {
  const proxy = await startProxy(server, how);
  try {
    return await readLikeContinue(proxy.url);
  } finally {
    await proxy.close();
  }
}

test('text is equal', async () => assert.deepEqual(await readLikeContinue(server.url), { text: want, ended: true }));

for (const how of ['oneByte', 'crlf', 'crlfOneByte']) {
  test(`text is equal behind a proxy: ${how}`, async () => assert.deepEqual(await behind(deliver[how]), { text: want, ended: true }));
}

test('the keep-alive of the server does no harm in the write of an event', async () => {
  assert.deepEqual(await behind(deliver.comment('keep-alive')), { text: want, ended: true });
});

test('a ping there would lose text: the rule is kept here', async () => {
  assert.notEqual((await behind(deliver.comment('ping'))).text, want);
});
