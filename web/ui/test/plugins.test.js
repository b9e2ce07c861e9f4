import { test } from 'node:test'
import assert from 'node:assert/strict'
import * as p from '../js/plugins.js'
import * as params from '../js/params.js'
import { micros, fuel } from '../js/format.js'
import { checkPlugin, pluginPlace } from '../js/upload.js'

const full = { name: 'xtc', version: '^1', config: { probability: 0.3, words: ['a;b', 'ü'] }, on_error: 'skip' }

test('plugins/an entry is a name where nothing is set', () => {
  assert.equal(p.toEntry(p.picked('dry')), 'dry')
  assert.deepEqual(p.toEntry(full), full)
  assert.deepEqual(p.toEntry({ ...p.picked('dry'), on_error: 'fail' }), { name: 'dry', on_error: 'fail' })
})

test('plugins/the address brings the same plugins back', () => {
  for (const x of [full, p.picked('dry'), { ...p.picked('a'), config: { n: 0 } }]) assert.deepEqual(p.fromText(p.toText(x)), x)
  const state = { ...params.defaults(), plugins: [full, p.picked('dry')] }
  assert.deepEqual(params.fromQuery(new URLSearchParams(params.toQuery(state).toString())), state)
  const plain = { ...params.defaults(), plain: true }
  assert.deepEqual(params.fromQuery(new URLSearchParams(params.toQuery(plain).toString())), plain)
})

test('plugins/nonsense in the address is dropped', () => {
  for (const text of ['', 'Not A Name', '{', '{"name":5}', '{"config":{}}', '"dry"']) assert.equal(p.fromText(text), null, text)
  assert.deepEqual(p.fromText('{"name":"a","config":[1],"version":3,"on_error":{}}'), p.picked('a'))
})

test('plugins/the field of the request', () => {
  const ask = (more) => params.toRequest({ ...params.defaults(), prompt: 'a', logprobs: false, stream: false, ...more })
  assert.deepEqual(ask({}), { prompt: 'a' })
  assert.deepEqual(ask({ plugins: [p.picked('dry'), full], plain: true }), { prompt: 'a', plugins: ['dry', full] })
  assert.deepEqual(ask({ plain: true }), { prompt: 'a', plugins: [] })
  const back = params.fromRequest({ prompt: 'a', plugins: ['dry', full, { inline: {} }] })
  assert.deepEqual(back.plugins, [p.picked('dry'), full])
  assert.equal(params.fromRequest({ prompt: 'a', plugins: [] }).plain, true)
  for (const param of ['/plugins', '/plugins/0', '/plugins/1/config/p']) assert.equal(params.controlOf(param), 'plugins')
  assert.equal(params.controlOf('/pluginsx'), '')
})

test('plugins/order, versions, states', () => {
  assert.deepEqual(p.moved(['a', 'b', 'c'], 2, -1), ['a', 'c', 'b'])
  assert.deepEqual(p.moved(['a', 'b'], 0, -1), ['a', 'b'])
  assert.deepEqual(p.newest([{ name: 'a', version: '2.0.0' }, { name: 'a', version: '1.0.0' }, { name: 'b' }]).map((x) => x.version), ['2.0.0', undefined])
  assert.equal(p.stateOf({ quarantine: null, update: '' }).text, 'Ready')
  assert.equal(p.stateOf({ quarantine: { reason: 'trap' }, update: 'x' }).text, 'Quarantined')
  assert.equal(p.stateOf({ quarantine: null, update: 'x' }).text, 'Update rejected')
})

test('plugins/changes in words', () => {
  const show = (t) => `<${t}>`
  assert.equal(p.changeText({ kind: 'moved', from: { id: 1, text: 'a' } }, show), 'changed which token comes; it would have been <a>')
  assert.equal(p.changeText({ kind: 'acted', from: { id: 1, text: 'a' }, left: 1, temperature: 0.75 }, show), 'acted, and the same token came (left 1 token, set the temperature to 0.75)')
  assert.equal(p.changeText({ kind: 'rewound', from: { id: 1, text: 'a' } }, show), 'took the text back to here, where <a> stood')
  assert.equal(p.changeText({ kind: 'forced' }, show), 'put it there, whatever the model said')
  assert.equal(p.changeText({ kind: 'of a later version' }, show), 'of a later version')
  const by = (kind, from) => ({ plugin: 'x', kind, from })
  assert.deepEqual([undefined, [], [by('acted')], [by('forced', { id: 5 })], [{ stage: 'top_p', kind: 'moved' }], [by('forced', { id: 6 })], [by('acted'), by('moved')]]
    .map((changes) => p.isChanged({ id: 5, changes })), [false, false, false, false, false, true, true])
})

test('plugins/what was left, and choices that were not used', () => {
  const meta = { 'a.z': 3, 'a.b.c': 'x', 'shadow:a.z': 4, 'ab.z': 5 }
  assert.deepEqual(p.leftBy({ name: 'a' }, meta), [['z', 3], ['b.c', 'x']])
  assert.deepEqual(p.leftBy({ name: 'a', shadow: true }, meta), [['z', 4]])
  assert.deepEqual(p.leftBy({ name: 'a' }, undefined), [])
  const tokens = [{ id: 1 }, { id: 2, changes: [{ plugin: 'x', kind: 'moved' }] }]
  const got = p.withChoices(tokens, [{ name: 'w', choices: [{ at: 1, id: 7, text: 'b' }, { at: 2, id: 8, text: '' }] }, { name: 'x' }])
  assert.deepEqual(got, [{ id: 1 }, { id: 2, changes: [{ plugin: 'x', kind: 'moved' }, { plugin: 'w', kind: 'shadow', from: { id: 7, text: 'b' } }] }])
  assert.equal(tokens[1].changes.length, 1)
  assert.equal(p.changeText({ kind: 'shadow', from: { id: 7, text: 'b' } }, (t) => t), 'only watches; it would have had b here')
})

test('plugins/every permission has its words', () => {
  for (const name of ['kv', 'clock', 'aux-seq', 'vocab', 'wasi-stubs', 'candidates', 'full', 'gather', 'history', 'text', 'prompt', 'edits', 'mask', 'cut', 'temperature', 'choose', 'force', 'rewrite', 'holdback']) {
    assert.notEqual(p.permissionText(name), name)
  }
})

test('plugins/costs and files', () => {
  assert.deepEqual([0, 0.01, 3.14, 42.4, 1500, NaN].map(micros), ['0 µs', '< 0.1 µs', '3.1 µs', '42 µs', '1.5 ms', '–'])
  assert.equal(fuel(1780.4), '1.78 k fuel')
  assert.equal(checkPlugin({ name: 'a.WASM', size: 1 }), '')
  assert.match(checkPlugin({ name: 'a.exe', size: 1 }), /neither/)
  assert.match(checkPlugin({ name: 'a.js', size: 0 }), /empty/)
  assert.equal(pluginPlace({ name: 'a b.WASM' }), '/v1/plugins/files/a%20b.wasm')
})
