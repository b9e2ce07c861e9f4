import { test } from 'node:test'
import assert from 'node:assert/strict'
import { API, APIError, isRefusal } from '../js/api.js'

function api(answer, token = '') {
  const calls = []
  const fetch = async (path, options) => {
    calls.push({ path, ...options })
    if (answer instanceof Error) throw answer
    return typeof answer === 'function' ? answer(options) : answer
  }
  return { api: new API({ fetch, token: () => token }), calls }
}

const json = (status, value, headers = {}) => new Response(typeof value === 'string' ? value : JSON.stringify(value), { status, headers: { 'Content-Type': 'application/json', ...headers } })
const stream = (text) => new Response(text, { headers: { 'Content-Type': 'text/event-stream' } })
async function all(iterable) {
  const list = []
  for await (const x of iterable) list.push(x)
  return list
}

test('api/the key goes with every call, and only if there is one', async () => {
  const a = api(() => json(200, {}), 'k1')
  await a.api.status()
  assert.equal(a.calls[0].headers.Authorization, 'Bearer k1')
  const b = api(() => json(200, {}))
  await b.api.status()
  assert.equal('Authorization' in b.calls[0].headers, false)
})

test('api/a stream yields its chunks', async () => {
  const { api: a, calls } = api(stream('data: {"id":"1","choices":[]}\n\n: keep-alive\n\ndata: {"id":"2","choices":[]}\n\ndata: [DONE]\n\n'))
  assert.deepEqual((await all(a.complete({ prompt: 'a', seed: 9007199254740993n }))).map((c) => c.id), ['1', '2'])
  assert.equal(calls[0].body, '{"prompt":"a","seed":9007199254740993}')
  assert.equal(calls[0].headers['Ganglion-Details'], '1')
})

test('api/what stages did is asked for', async () => {
  const { api: a, calls } = api(json(200, { id: '1' }))
  await all(a.complete({ prompt: 'a' }, undefined, { stages: true }))
  assert.equal(calls[0].headers['Ganglion-Details'], 'stages')
})

test('api/a plain answer is one chunk', async () => {
  const { api: a } = api(json(200, { id: '1' }))
  assert.deepEqual(await all(a.complete({ prompt: 'a' })), [{ id: '1' }])
})

const failures = [
  { name: 'no server', answer: new TypeError('Failed to fetch'), want: { kind: 'network' } },
  { name: 'bad request', answer: json(400, { error: { message: 'top_p: no', param: 'top_p', code: 'invalid_value' } }), want: { kind: 'http', status: 400, param: 'top_p', code: 'invalid_value', message: 'top_p: no' } },
  { name: 'queue full', answer: json(503, { error: { message: 'full', code: 'queue_full' } }, { 'Retry-After': '3' }), want: { status: 503, retryAfter: 3, code: 'queue_full' } },
  { name: 'a proxy page', answer: json(502, '<html>'), want: { status: 502, message: 'The server answered with status 502.' } },
  { name: 'no end mark', answer: stream('data: {"id":"1"}\n\n'), want: { kind: 'cut' } },
  { name: 'error in the stream', answer: stream('data: {"error":{"message":"device lost","code":"internal_error"}}\n\n'), want: { kind: 'http', message: 'device lost' } },
  { name: 'not JSON', answer: stream('data: hello\n\n'), want: { kind: 'format' } },
]
for (const { name, answer, want } of failures) {
  test(`api/failure/${name}`, async () => {
    await assert.rejects(all(api(answer).api.complete({ prompt: 'a' })), (error) => {
      assert.ok(error instanceof APIError)
      for (const [k, v] of Object.entries(want)) assert.equal(error[k], v, k)
      return true
    })
  })
}

test('api/a connection lost in the stream is told apart from a stop', async () => {
  const broken = () => new Response(new ReadableStream({ pull(c) { c.error(new TypeError('network error')) } }), { headers: { 'Content-Type': 'text/event-stream' } })
  await assert.rejects(all(api(broken).api.complete({ prompt: 'a' })), (e) => e.kind === 'cut')
  const stopped = () => new Response(new ReadableStream({ pull(c) { c.error(new DOMException('stop', 'AbortError')) } }), { headers: { 'Content-Type': 'text/event-stream' } })
  await assert.rejects(all(api(stopped).api.complete({ prompt: 'a' })), (e) => e.name === 'AbortError')
})

test('api/what would be refused again is told from what may pass', () => {
  for (const [status, want] of [[400, true], [413, true], [415, true], [401, false], [408, false], [429, false], [500, false], [503, false], [0, false]]) {
    assert.equal(isRefusal(new APIError('http', '', { status })), want, String(status))
  }
  assert.equal(isRefusal(undefined), false)
})

test('api/log passes only what is asked', async () => {
  const { api: a, calls } = api(() => json(200, { records: [] }))
  await a.log({ q: 'a&b', outcome: 'stop' })
  assert.equal(calls[0].path, '/v1/log?limit=30&q=a%26b&outcome=stop')
})
