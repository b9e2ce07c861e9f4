import { test } from 'node:test'
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { moves, ownKind, settled } from '../js/moving.js'

const folder = new URL('../../../appliance/media/picture/testdata/', import.meta.url)
const read = (name) => new Uint8Array(readFileSync(new URL(name, folder)))

test('moving/pictures with more than one frame are told from the others', () => {
  const names = readdirSync(folder).filter((n) => /\.(gif|png|webp|jpg|bmp|tiff)$/.test(n))
  const found = names.filter((n) => moves(read(n)))
  assert.deepEqual(found, names.filter((n) => n.startsWith('moving') && !n.endsWith('.want.png')))
  for (const kind of ['gif', 'png', 'webp']) assert.ok(found.some((n) => n.endsWith(kind)), kind)
})

test('moving/whatever is cut off or garbled ends the search', () => {
  for (const name of ['moving1.gif', 'moving00.png', 'moving.webp']) {
    const whole = read(name)
    const first = Array.from(whole, (_, n) => n).find((n) => moves(whole.subarray(0, n)))
    assert.ok(first > 200 && first < whole.length, `${name}: two frames are there from byte ${first} on`)
    for (let at = 0; at < whole.length; at += 7) {
      const garbled = whole.slice()
      garbled[at] ^= 0xff
      moves(garbled)
    }
  }
  assert.equal(moves(new Uint8Array()), false)
  assert.equal(moves(new TextEncoder().encode('GIF')), false)
})

const gif = (more) => ({ kind: 'images', moving: true, chosen: false, ...more })
const takesFilms = { encoder: { videos: true }, media: { videos: 2 } }

test('moving/a moving picture is a film where the model takes films and there is room', () => {
  assert.equal(ownKind([], takesFilms), 'videos')
  assert.equal(ownKind([{ kind: 'videos' }], takesFilms), 'videos')
  assert.equal(ownKind([{ kind: 'videos' }, { kind: 'videos' }], takesFilms), 'images')
  for (const status of [undefined, { encoder: null }, { encoder: { videos: false }, media: { videos: 2 } }]) assert.equal(ownKind([], status), 'images')
  assert.equal(ownKind([{ kind: 'videos' }], { encoder: { videos: true } }), 'videos', 'no limit was told')
})

test('moving/another model changes what nobody chose', () => {
  const items = [gif({ id: 1 }), gif({ id: 2, chosen: true }), { id: 3, kind: 'images' }, gif({ id: 4 }), gif({ id: 5 })]
  const kinds = (list) => list.map((i) => i.kind)
  const film = settled(items, takesFilms)
  assert.deepEqual(kinds(film), ['videos', 'images', 'images', 'videos', 'images'])
  assert.equal(film[1], items[1])
  assert.deepEqual(kinds(settled([gif({ kind: 'videos', chosen: true }), ...film], { encoder: { videos: false } })), ['videos', ...kinds(items)])
  assert.deepEqual(kinds(settled([gif(), { kind: 'videos' }, gif()], takesFilms)), ['videos', 'videos', 'images'])
})
