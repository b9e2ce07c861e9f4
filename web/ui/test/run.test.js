import { test } from 'node:test'
import assert from 'node:assert/strict'
import { Runner, firstToken, speed } from '../js/run.js'
import { APIError } from '../js/api.js'

const token = (text, offset, logprob = -0.5) => ({ id: 1, text, offset, logprob, top: [] })
const chunk = (text, tokens, more = {}) => ({ choices: [{ index: 0, text, finish_reason: null, details: { tokens }, ...more.choice }], ...more.top })

/** An API whose stream is these steps; a step may be an error. */
function runner(steps) {
  let time = 0
  const seen = []
  const api = {
    async *complete(request, signal) {
      for (const s of steps) {
        time += 10
        if (signal.aborted) throw new DOMException('stop', 'AbortError')
        if (typeof s === 'function') s()
        else if (s instanceof Error) throw s
        else yield s
      }
    },
  }
  const r = new Runner({ api, now: () => time, frame: (f) => f() })
  r.state.subscribe((s) => seen.push(s.phase))
  return { r, seen }
}

test('run/tokens, figures and end', async () => {
  const { r, seen } = runner([
    chunk(' Paris', [token(' Paris', 0)]), chunk('.', [token('.', 6)]),
    chunk('', [], { choice: { finish_reason: 'stop' }, top: { usage: { prompt_tokens: 3 }, ganglion: { seed: 4n, warnings: ['w'] } } }),
  ])
  await r.run({ prompt: 'a' })
  const s = r.state.value
  assert.deepEqual([...new Set(seen)], ['idle', 'waiting', 'streaming', 'done'])
  assert.deepEqual([s.text, s.pieces, s.finish, s.usage.prompt_tokens, s.detail.seed, s.warnings], [' Paris.', [' Paris', '.'], 'stop', 3, 4n, ['w']])
  assert.equal(firstToken(s), 10)
  assert.equal(speed(s), 100)
  assert.equal(speed({ ...s, detail: { timings: { tokens_per_second: 61 } } }), 61)
})

test('run/stop keeps what was generated', async () => {
  const box = {}
  const { r } = runner([chunk('a', [token('a', 0)]), () => box.r.stop(), chunk('b', [token('b', 1)])])
  box.r = r
  await r.run({ prompt: '' })
  assert.deepEqual([r.state.value.phase, r.state.value.text, r.busy], ['cancelled', 'a', false])
})

test('run/failure keeps what had arrived', async () => {
  const { r } = runner([chunk('a', [token('a', 0)]), new APIError('cut', 'lost')])
  await r.run({ prompt: '' })
  assert.deepEqual([r.state.value.phase, r.state.value.text, r.state.value.error.kind], ['failed', 'a', 'cut'])
})

test('run/a second start while one runs does nothing', async () => {
  const { r } = runner([chunk('a', [token('a', 0)])])
  const first = r.run({ prompt: '1' })
  await r.run({ prompt: '2' })
  await first
  assert.equal(r.state.value.prompt, '1')
})

test('run/an answer without details is shown as it comes', async () => {
  const { r } = runner([{ choices: [{ index: 0, text: 'é', finish_reason: null }] }, { choices: [{ index: 0, text: 'x', finish_reason: 'length' }] }, { choices: [] }])
  await r.run({ prompt: '' })
  assert.deepEqual([r.state.value.pieces, r.state.value.tokens.map((t) => t.logprob), r.state.value.finish], [['é', 'x'], [null, null], 'length'])
})
