import { test } from 'node:test'
import assert from 'node:assert/strict'
import { spaced } from '../js/spaced.js'

/** Spaced calls on a clock of their own: at(ms) goes there and gives when calls were. */
function clocked(pace) {
  let time = 0
  let due = null
  const calls = []
  const s = spaced(() => calls.push(time), pace, { now: () => time, set: (f, ms) => (due = { f, at: time + ms }), clear: () => { due = null } })
  const at = (ms) => {
    while (due && due.at <= ms) {
      const { f, at } = due
      time = at
      due = null
      f()
    }
    time = ms
    return calls
  }
  return { ...s, at }
}

test('spaced/the first call is not put off', () => {
  const { later, at } = clocked(350)
  later()
  assert.deepEqual(at(0), [0])
  at(1000)
  later()
  assert.deepEqual(at(1000), [0, 1000])
})

test('spaced/changes without a pause are written all the same, and the last one too', () => {
  const { later, at } = clocked(350)
  for (let t = 0; t <= 1000; t += 20) {
    at(t)
    later()
  }
  assert.deepEqual(at(5000), [0, 350, 700, 1050])
})

test('spaced/now calls at once where a call waits, and only there', () => {
  const { later, now, at } = clocked(350)
  now()
  assert.deepEqual(at(10), [])
  later()
  at(20)
  later()
  now()
  now()
  assert.deepEqual(at(1000), [10, 20])
  later()
  later()
  assert.deepEqual(at(1000), [10, 20, 1000])
})
