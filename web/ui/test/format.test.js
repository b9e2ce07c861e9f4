import { test } from 'node:test'
import assert from 'node:assert/strict'
import * as f from '../js/format.js'

function table(name, fn, rows) {
  for (const [input, want] of rows) test(`format/${name}/${JSON.stringify(input)}`, () => assert.equal(fn(...[].concat(input)), want))
}

table('bytes', f.bytes, [[0, '0 B'], [999, '999 B'], [1000, '1.0 kB'], [253115424, '253 MB'], [1929903264, '1.9 GB'], [999_600_000, '1.0 GB']])
table('count', f.count, [[12, '12'], [268098176, '268 M'], [1543714304, '1.54 B'], [999_600, '1 M']])
table('integer', f.integer, [[5, '5'], [1234567, '1\u202f234\u202f567']])
table('duration', f.duration, [[0, '0 ms'], [0.4, '< 1 ms'], [3.21, '3.2 ms'], [480, '480 ms'], [999.7, '1.00 s'], [12345, '12.3 s'], [125000, '2 min 5 s'], [NaN, '–']])
table('rate', f.rate, [[61.3, '61 tok/s'], [3.14, '3.1 tok/s'], [0, '–'], [Infinity, '–']])
table('percent', f.percent, [[1, '100 %'], [0.99999, '99.9 %'], [0.5, '50.0 %'], [0.001, '0.1 %'], [0.00099, '< 0.1 %'], [0, '0 %']])
table('visible', f.visible, [[' a\tb\n', '·a→b⏎'], ['\u0000', '␀'], ['\u007f', '␡'], ['é🦙', 'é🦙']])
table('unescapeText', f.unescapeText, [['\\n', '\n'], ['a\\tb', 'a\tb'], ['\\\\n', '\\n'], ['\\u00e9', 'é'], ['\\q', '\\q']])
table('escapeText', f.escapeText, [['a\n"b"', 'a\\n"b"']])
table('trailingSpace', f.trailingSpace, [['a', ''], ['a ', 'a space'], ['a  ', '2 spaces'], ['a\t', 'a tab'], ['a\n', ''], ['a\u00a0 ', '2 white-space characters'], ['', '']])
table('utf8Length', f.utf8Length, [['', 0], ['aé€🦙', 10]])
table('shellQuote', f.shellQuote, [["it's", `'it'\\''s'`], ['$x `y`', "'$x `y`'"]])

test('format/ago', () => {
  const now = Date.parse('2030-01-10T12:00:00Z')
  const at = (s) => f.ago(new Date(now - s * 1000).toISOString(), now)
  assert.deepEqual([3, 120, 7200, 86400, 86400 * 3, 86400 * 60].map(at), ['just now', '2 min ago', '2 h ago', 'yesterday', '3 days ago', '2029-11-11'])
})

test('format/percent of a distribution never sums above 100', () => {
  for (let n = 2; n < 200; n++) {
    const sum = Array.from({ length: n }, () => f.percent(1 / n)).filter((t) => !t.startsWith('<')).reduce((s, t) => s + parseFloat(t), 0)
    assert.ok(sum <= 100.0000001, `${n}: ${sum}`)
  }
})

test('format/level covers every probability in order', () => {
  assert.deepEqual([1, 0.5, 0.49, 0.2, 0.1, 0.05, 0.04, 0.01, 0.009, 1e-30].map((p) => f.level(Math.log(p) + 1e-12)), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
})

test('format/difference', () => {
  assert.equal(f.difference('abc', 'abc'), null)
  assert.deepEqual(f.difference('é🦙x', 'é🦙y'), { at: 6, common: 'é🦙', a: 'x', b: 'y' })
  assert.deepEqual(f.difference('ab', 'abc'), { at: 2, common: 'ab', a: '', b: 'c' })
})

test('format/curl quotes for the shell and keeps the key out', () => {
  const text = f.curl('http://127.0.0.1:1', '{"prompt":"it\'s"}', { stream: true, key: true })
  assert.match(text, /^curl -N 'http:\/\/127\.0\.0\.1:1\/v1\/completions'/)
  assert.match(text, /\$GANGLION_KEY/)
  assert.match(text, /-d '\{"prompt":"it'\\''s"\}'$/)
})

const offsets = (...list) => list.map((offset) => ({ offset }))

test('slicer/one piece per token', () => {
  const s = new f.TokenSlicer()
  assert.deepEqual(s.update(' Paris é🦙.', offsets(0, 6, 9, 13)), [' Paris', ' é', '🦙', '.'])
})

test('slicer/grows with the stream and always joins to the text', () => {
  const pieces = ['Hé', 'llo', ' 🦙', '', '\n', 'end']
  const s = new f.TokenSlicer()
  const tokens = []
  let text = ''
  let offset = 0
  for (const p of pieces) {
    tokens.push({ offset })
    text += p
    offset += f.utf8Length(p)
    assert.equal(s.update(text, tokens).join(''), text)
  }
  assert.deepEqual(s.pieces, pieces)
})

test('slicer/text held back for a stop string comes to its own token later', () => {
  const s = new f.TokenSlicer()
  assert.deepEqual(s.update(' six', offsets(0, 4, 8, 10)), [' six', '', '', ''])
  assert.deepEqual(s.update(' six eight', offsets(0, 4, 8, 10)), [' six', ' eig', 'ht', ''])
})

test('slicer/a cut-out stop string leaves empty pieces', () => {
  const s = new f.TokenSlicer()
  assert.deepEqual(s.update('log:\n', offsets(0, 5, 8, 11)), ['log:\n', '', '', ''])
})
