import { test } from 'node:test'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as m from '../js/media.js'
import { noWishes } from '../js/film.js'
import { curl } from '../js/format.js'
import { formatJSON } from '../js/json.js'

test('media/files go to the field of their kind', () => {
  const rows = [
    ['a.PNG', '', 'images'], ['a.jpeg', 'image/jpeg', 'images'], ['x', 'image/webp', 'images'], ['a.wav', '', 'audios'], ['a.opus', '', 'audios'],
    ['a.apng', '', 'images'], ['a.mp4', 'video/mp4', 'videos'], ['a.webm', 'video/webm', 'videos'], ['a.mkv', '', 'videos'], ['a.svg', 'image/svg+xml', ''], ['a.txt', 'text/plain', ''], ['', '', ''],
  ]
  for (const [name, type, want] of rows) assert.equal(m.kindOf({ name, type }), want, `${name} ${type}`)
})

test('media/files that cannot be attached are refused by name', () => {
  assert.match(m.problemOf({ name: 'a.txt', type: '', size: 5 }), /“a.txt” is no picture/)
  assert.match(m.problemOf({ name: 'a.png', type: '', size: 0 }), /empty/)
  const limits = { body_bytes: 64 * 2 ** 20, item_bytes: 32 * 2 ** 20, bytes: 64 * 2 ** 20, images: 2, audios: 1, videos: 1 }
  const file = (size, name = 'a.png') => ({ name, type: '', size })
  assert.match(m.problemOf(file(limits.item_bytes + 1), [], limits), /larger than 32 MiB/)
  assert.equal(m.problemOf(file(limits.item_bytes), [], limits), '')
  assert.equal(m.problemOf(file(2 ** 40)), '', 'the server decides where it has told no limits')
  const picture = { kind: 'images', bytes: 10 }
  assert.equal(m.problemOf(file(5), [picture], limits), '')
  assert.match(m.problemOf(file(5), [picture, picture], limits), /one too many: a request takes 2 pictures/)
  assert.match(m.problemOf(file(5, 'b.wav'), [picture, { kind: 'audios', bytes: 1 }], limits), /takes 1 sound\./)
  assert.match(m.problemOf(file(20 * 2 ** 20), [{ kind: 'images', bytes: 30 * 2 ** 20 }], limits), /to 50 MiB; a request takes 4[78](\.\d)? MiB/)
  assert.match(m.problemOf(file(20), [{ kind: 'images', bytes: 30 }], { ...limits, bytes: 40 }), /a request takes 0 MiB/)
  const film = { kind: 'videos', bytes: 1 }
  assert.match(m.problemOf(file(5, 'a.gif'), [film], limits, 'videos'), /“a.gif” is one too many: a request takes 1 film\./)
  assert.equal(m.problemOf(file(5, 'a.gif'), [film], limits, 'images'), '')
})

test('media/a model says what it cannot use', () => {
  assert.match(m.refusal('images', null), /--mmproj/)
  assert.match(m.refusal('audios', { name: 'eyes', images: true, audios: false }), /eyes takes no sound/)
  assert.equal(m.refusal('images', { name: 'eyes', images: true }), '')
  assert.equal(m.refusal('videos', { name: 'eyes', images: true, videos: true }), '')
})

test('media/the decoder of films says how far it is, to those who attach a film', () => {
  const film = [{ kind: 'videos' }]
  assert.match(m.filmNote(film, { state: 'compiling', share: 0.426 }), /43 % so far/)
  assert.match(m.filmNote(film, { state: 'failed', error: 'no space' }), /no space/)
  for (const state of ['ready', 'idle', 'absent']) assert.equal(m.filmNote(film, { state }), '')
  assert.equal(m.filmNote([{ kind: 'audios' }], { state: 'compiling', share: 0 }), '')
  assert.equal(m.filmNote(film, undefined), '')
  assert.equal(m.filmNote([{ kind: 'videos', moving: true }], { state: 'compiling', share: 0 }), '', 'a moving picture needs no decoder of films')
})

test('media/what the server says of an item is told with its name', () => {
  const items = [{ id: 1, kind: 'audios', name: 's.wav' }, { id: 2, kind: 'images', name: 'a.png' }, { id: 3, kind: 'images', name: 'b.png' }]
  assert.equal(m.itemAt(items, 'images[1]').id, 3)
  assert.equal(m.itemAt(items, 'audios[0]').id, 1)
  for (const param of ['images[2]', 'images', 'prompt', '', null, undefined]) assert.equal(m.itemAt(items, param), undefined)
  assert.equal(m.named('images[1]: is a broken PNG file', 'images[1]', 'b.png'), '“b.png” is a broken PNG file')
  assert.equal(m.named('images[1]: a file that is not read', 'images[1]', 'b.png'), '“b.png”: a file that is not read')
  assert.equal(m.named('too large', 'images[1]', 'b.png'), '“b.png”: too large')
  assert.equal(m.kindOfParam('videos[0]'), 'videos')
  assert.equal(m.kindOfParam(undefined), '')
})

test('media/base64 equals that of others at every remainder', () => {
  for (const n of [0, 1, 2, 3, 24575, 24576, 24577, 100001]) {
    const bytes = Uint8Array.from({ length: n }, (_, i) => (i * 31) & 255)
    assert.equal(m.base64(bytes), Buffer.from(bytes).toString('base64'), `${n} bytes`)
  }
})

test('media/items reach the request in their order, absent kinds stay absent', () => {
  const items = [{ id: 1, kind: 'audios', data: 's' }, { id: 2, kind: 'images', data: 'a' }, { id: 3, kind: 'images', data: 'b' }]
  assert.deepEqual(m.withMedia({ prompt: 'p' }, items), { prompt: 'p', images: ['a', 'b'], audios: ['s'] })
  assert.deepEqual(m.inOrder(items).map((i) => i.id), [2, 3, 1])
  const films = [{ kind: 'videos', data: 'f', wishes: { fps: '2', max_frames: '', start: '', end: '3.5' }, hints: {} }, { kind: 'videos', data: 'g', wishes: noWishes(), hints: {} }]
  assert.deepEqual(m.withMedia({}, films), { videos: [{ data: 'f', fps: 2, end: 3.5 }, 'g'] })
})

test('media/what the model sees, in words', () => {
  assert.equal(m.seen({ width: 640, height: 480, tokens: 256, pieces: [256] }), '640 × 480, 256 tokens')
  assert.equal(m.seen({ width: 640, height: 480, tokens: 320, pieces: [64, 64, 64, 64, 64] }), '640 × 480, 320 tokens in 5 pieces')
  assert.equal(m.seen({ seconds: 2.54, tokens: 1, pieces: [1] }), '2.5 s, 1 token')
  assert.equal(m.seen({ seconds: 61, tokens: 750, pieces: [375, 375] }), '61 s, 750 tokens in 2 pieces')
  const film = { width: 96, height: 64, seconds: 20, frames: 8, tokens: 512, pieces: [128, 128, 128, 128] }
  assert.equal(m.seen(film), '96 × 64, 20 s, 8 frames, 512 tokens')
  assert.equal(m.seen({ ...film, frames: 1 }), '96 × 64, 20 s, 1 frame, 512 tokens')
  for (const [hints, part] of [[{ fps: 2 }, ''], [{ start: 1.5 }, '1.5 to 20 s of '], [{ end: 4 }, '0.0 to 4.0 s of '], [{ start: 2, end: 90 }, '2.0 to 20 s of '], [{ end: 20 }, '']]) {
    assert.equal(m.seen({ ...film, hints }), `96 × 64, ${part}20 s, 8 frames, 512 tokens`, JSON.stringify(hints))
  }
  assert.equal(m.seen(undefined), '')
})

test('media/the curl command reads files and sends the very request', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ganglion-curl-'))
  const wishes = { ...noWishes(), fps: '2.5', start: '"1\'' }
  const files = [['images', "it's a.png", 'one'], ['images', 'b.png', 'two'], ['audios', 'c.wav', 'x'.repeat(300000)], ['videos', 'd.gif', 'three', { wishes }], ['videos', 'e.mp4', 'four', { hints: { video_compat: 'llama.cpp' } }], ['videos', 'f.mp4', 'five']]
  const items = files.map(([kind, name, text, more]) => {
    writeFileSync(join(folder, name), text)
    return { kind, name, data: Buffer.from(text).toString('base64'), ...more }
  })
  const request = { prompt: 'it\'s "100 %" \\ $HOME `x`\n%s', seed: 7 }
  const command = curl('http://x', formatJSON(request), { media: items })
  const body = command.slice(0, command.lastIndexOf('|\n  curl'))
  const sent = execFileSync('sh', ['-c', body], { cwd: folder, maxBuffer: 2 ** 24 }).toString()
  assert.deepEqual(JSON.parse(sent), m.withMedia(request, items))
  assert.equal(JSON.parse(sent).videos[0].fps, 2.5)
})

test('media/a recorded request is repeated without the notes about media', () => {
  assert.deepEqual(m.withoutMedia({ prompt: 'a', images: '12 bytes, left out of the log', n: 1 }), { prompt: 'a', n: 1 })
  assert.equal(m.hadMedia({ media: [{}] }), true)
  assert.equal(m.hadMedia({}), false)
})
