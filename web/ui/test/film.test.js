import { test } from 'node:test'
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import * as f from '../js/film.js'

const wishNamed = (name) => f.wishes.find((w) => w.name === name)
const film = (wishes, more) => ({ kind: 'videos', wishes: { ...f.noWishes(), ...wishes }, hints: {}, ...more })

test('film/wishes that cannot be are told in the words of the server', () => {
  const source = readFileSync(new URL('../../../appliance/media/descriptor.go', import.meta.url), 'utf8')
  for (const words of ['must be an integer from 1 to %d', 'must be a number from 0 to %d', 'must be 0.001 or more']) assert.ok(source.includes(`"${words}"`), words)
  const rows = [
    ['fps', '240', ''], ['fps', '0', ''], ['fps', ' 1,5 ', ''], ['fps', '.5', ''], ['fps', '1e1', ''], ['fps', '  ', ''],
    ['fps', '240.1', 'must be a number from 0 to 240'], ['fps', '-1', 'must be a number from 0 to 240'], ['fps', 'two', 'must be a number from 0 to 240'], ['fps', '1e999', 'must be a number from 0 to 240'],
    ['fps', '0x10', 'must be a number from 0 to 240'], ['fps', '1,000', 'must be a number from 0 to 240'], ['fps', '0.0009', 'must be 0.001 or more'], ['fps', '0.001', ''],
    ['max_frames', '1', ''], ['max_frames', '8.0', ''], ['max_frames', '65536', ''], ['max_frames', '0', 'must be an integer from 1 to 65536'], ['max_frames', '1.5', 'must be an integer from 1 to 65536'],
    ['max_frames', '65537', 'must be an integer from 1 to 65536'], ['max_frames', 'x', 'must be an integer from 1 to 65536'],
    ['start', '1000000', ''], ['start', '1000001', 'must be a number from 0 to 1000000'], ['end', '-0.1', 'must be a number from 0 to 1000000'],
  ]
  for (const [name, text, want] of rows) {
    assert.equal(f.wishProblem(wishNamed(name), text), want, `${name} ${text}`)
    assert.equal(f.wishesWrong(film({ [name]: text })), want !== '', `${name} ${text}`)
  }
  assert.equal(f.wishesWrong({ ...film({ fps: 'x' }), kind: 'images' }), false, 'a still picture has none')
})

test('film/wishes become members of a descriptor, and come back from those of a record', () => {
  const hints = f.hintsOf(film({ fps: '1,5', max_frames: '8', start: '0', end: ' ' }))
  assert.deepEqual(hints, { fps: 1.5, max_frames: 8, start: 0 })
  assert.deepEqual(f.hintsOf(film({ fps: 'two' })), { fps: 'two' }, 'the server refuses it')
  assert.deepEqual(f.hintsOf({ ...film({ fps: '2' }), kind: 'images' }), {}, 'a still picture has no wishes')
  assert.deepEqual(f.hintsOf({ kind: 'audios' }), {})
  const recorded = { fps: 1.5, end: 3, max_tokens: 85, video_compat: 'llama.cpp' }
  const back = f.fromHints(recorded)
  assert.deepEqual(back.wishes, { fps: '1.5', max_frames: '', start: '', end: '3' })
  assert.deepEqual(f.hintsOf({ kind: 'videos', ...back }), recorded)
  assert.deepEqual(f.fromHints(undefined), { wishes: f.noWishes(), hints: {} })
})

test('film/hints in words', () => {
  assert.equal(f.inWords({}), '')
  assert.equal(f.inWords({ fps: 2, max_frames: 8, start: 1, end: 3 }), '2 frames a second, at most 8 frames, from 1 s, to 3 s')
  assert.equal(f.inWords({ start: 0, video_compat: 'llama.cpp', max_tokens: 85 }), 'from 0 s, at most 85 tokens a picture, as llama.cpp sees it')
})

test('film/a refusal of the server belongs to the control of its wish', () => {
  for (const { name } of f.wishes) assert.equal(f.wishOf(`videos[1].${name}`), name)
  for (const param of ['videos[0]', 'images[0].fps', 'videos[0].detail', 'videos[0].frames[2]', 'prompt', '', null]) assert.equal(f.wishOf(param), '', String(param))
  assert.equal(f.saidOf('videos[0].fps: must be 0.001 or more', 'videos[0].fps'), 'must be 0.001 or more')
  assert.equal(f.saidOf('too long', 'videos[0].fps'), 'too long')
  assert.equal(f.wishID({ id: 3 }, 'fps'), 'p-media-3-fps')
})
