import { test } from 'node:test'
import assert from 'node:assert/strict'
import * as p from '../js/params.js'
import { formatJSON } from '../js/json.js'

test('params/defaults send the prompt and nothing the person did not set', () => {
  assert.deepEqual(p.toRequest({ ...p.defaults(), prompt: 'a', logprobs: false, stream: false }), { prompt: 'a' })
})

const full = {
  prompt: 'one & two = 3 # é\n', max_completion_tokens: '8', temperature: '0', top_p: '0.5', top_k: '0', min_p: '0.05', presence_penalty: '-1', frequency_penalty: '1.5',
  seed: '9223372036854775807', stop: ['\n\n', 'a,b'], bias: [{ id: 7, value: -100, text: null }, { id: 12, value: 2.5, text: null }],
  plugins: [{ name: 'dry', version: '', config: {}, on_error: '' }, { name: 'xtc', version: '', config: { probability: 0.3 }, on_error: '' }], plain: false, logprobs: true, stream: true,
}

test('params/every field reaches the request', () => {
  assert.equal(formatJSON(p.toRequest(full)), '{"prompt":"one & two = 3 # é\\n","max_completion_tokens":8,"temperature":0,"top_p":0.5,"top_k":0,"min_p":0.05,"presence_penalty":-1,"frequency_penalty":1.5,"seed":9223372036854775807,"stop":["\\n\\n","a,b"],"logit_bias":{"7":-100,"12":2.5},"plugins":["dry",{"name":"xtc","config":{"probability":0.3}}],"logprobs":true,"top_logprobs":6,"stream":true}')
})

test('params/the address brings the same state back', () => {
  for (const state of [full, p.defaults(), { ...p.defaults(), logprobs: false, stream: false }]) {
    assert.deepEqual(p.fromQuery(new URLSearchParams(p.toQuery(state).toString())), state)
  }
})

test('params/nonsense in the address is dropped', () => {
  const state = p.fromQuery(new URLSearchParams('temperature=hot&seed=x&bias=a:b&bias=5&stop=&top_k=%20'))
  assert.deepEqual(state, p.defaults())
})

test('params/errors lead to their control', () => {
  const rows = { 'stop[1]': 'stop', 'logit_bias.999': 'logit_bias', 'logit_bias["x"]': 'logit_bias', top_p: 'top_p', max_tokens: 'max_completion_tokens', prompt: 'prompt', 'images[0]': 'media', 'videos[1].frames[2]': 'media', n: '', '': '' }
  for (const [param, want] of Object.entries(rows)) assert.equal(p.controlOf(param), want, param)
  assert.equal(p.controlOf(null), '')
})

test('params/a record opens in the playground as it was asked', () => {
  const s = p.fromRequest({ prompt: 'a', max_tokens: 5, stop: 'x', logit_bias: { 3: 1 }, temperature: null }, { seed: 12n })
  assert.deepEqual(s, { ...p.defaults(), prompt: 'a', max_completion_tokens: '5', stop: ['x'], seed: '12', bias: [{ id: 3, value: 1, text: null }] })
})

const record = { prompt: 'b', seed: 5n }
const replays = [
  { name: 'own body, recorded seed', request: { prompt: 'b', temperature: 0.5, seed: 1 }, want: { prompt: 'b', temperature: 0.5, seed: 5n } },
  { name: 'token ids stay', request: { prompt: [1, 2] }, want: { prompt: [1, 2], seed: 5n } },
  { name: 'one of a batch', request: { prompt: ['a', 'b'], n: 2 }, want: { prompt: 'b', seed: 5n } },
  { name: 'no body kept', request: null, want: { prompt: 'b', seed: 5n } },
]
for (const { name, request, want } of replays) {
  test(`params/replay/${name}`, () => assert.deepEqual(p.replayRequest({ ...record, request }), want))
}

test('params/stop strings', () => {
  assert.equal(p.stopFrom('\\n', []), '\n')
  assert.equal(p.stopFrom('', []), null)
  assert.equal(p.stopFrom('x', ['x']), null)
})
