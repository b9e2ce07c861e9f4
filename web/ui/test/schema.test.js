import { test } from 'node:test'
import assert from 'node:assert/strict'
import { boundsText, fieldsOf, ownerOf, problemOf, readJSON, valueLine, withField } from '../js/schema.js'

const schema = {
  type: 'object', additionalProperties: false, required: ['key'],
  properties: {
    p: { type: 'number', minimum: 0, maximum: 1, default: 0.5, title: 'How often' },
    n: { type: 'integer', exclusiveMinimum: 0, default: 2 },
    hard: { type: 'boolean', default: false },
    key: { type: 'string', minLength: 1, maxLength: 5 },
    mode: { enum: ['a', 2, null] },
    words: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 3 }, minItems: 1, maxItems: 2 },
    schema: { type: ['string', 'object'] },
    table: { type: 'object' },
    pairs: { type: 'array', items: { type: 'number' } },
  },
}
const fields = Object.fromEntries(fieldsOf(schema).map((f) => [f.name, f]))

test('schema/each type has its control, in the order of the schema', () => {
  assert.deepEqual(fieldsOf(schema).map((f) => `${f.name} ${f.kind}`), ['p number', 'n number', 'hard boolean', 'key text', 'mode enum', 'words list', 'schema text', 'table json', 'pairs json'])
  assert.equal(fields.p.label, 'How often')
  assert.equal(fields.n.label, 'n')
  for (const none of [undefined, null, {}, { type: 'object' }]) assert.deepEqual(fieldsOf(none), [])
})

test('schema/values are checked as the server checks them', () => {
  const rows = [
    ['p', 0, true], ['p', 1, true], ['p', 1.01, false], ['p', -0.1, false], ['p', NaN, false], ['p', '1', false],
    ['n', 1, true], ['n', 0, false], ['n', 1.5, false],
    ['key', 'a', true], ['key', '', false], ['key', '🦙🦙🦙🦙🦙', true], ['key', 'abcdef', false], ['key', undefined, false],
    ['mode', 'a', true], ['mode', null, true], ['mode', 'b', false],
    ['words', ['a'], true], ['words', [], false], ['words', ['a', 'b', 'c'], false], ['words', ['abcd'], false],
    ['p', undefined, true], ['table', { a: 1 }, true], ['schema', { a: 1 }, true],
  ]
  for (const [name, value, fine] of rows) assert.equal(problemOf(fields[name], value) === '', fine, `${name} = ${value}: ${problemOf(fields[name], value)}`)
})

test('schema/bounds and defaults in words', () => {
  assert.equal(boundsText(fields.p), '0 to 1')
  assert.equal(boundsText(fields.n), 'a whole number, above 0')
  assert.equal(boundsText(fields.key), 'at most 5 characters')
  assert.equal(boundsText(fields.words), '1 to 2 entries')
  assert.equal(boundsText(fields.hard), '')
  assert.equal(valueLine(true), 'on')
  assert.equal(valueLine([]), 'none')
  assert.equal(valueLine('\n'), '"\\n"')
  assert.equal(valueLine(undefined), '')
})

test('schema/a setting is set and goes back to its default', () => {
  const config = withField({ a: 1 }, 'b', 2)
  assert.deepEqual(config, { a: 1, b: 2 })
  assert.deepEqual(withField(config, 'a', undefined), { b: 2 })
  assert.deepEqual(config, { a: 1, b: 2 })
})

test('schema/JSON is read, or said to be none', () => {
  assert.deepEqual(readJSON('{"a":1}'), { value: { a: 1 } })
  assert.deepEqual(readJSON(' '), { value: undefined })
  assert.ok(readJSON('{').problem)
})

test('schema/a pointer leads to its setting', () => {
  assert.deepEqual(ownerOf('/plugins/2/config/words/0'), { index: 2, field: 'words' })
  assert.deepEqual(ownerOf('/plugins/0/config/a~1b'), { index: 0, field: 'a/b' })
  for (const none of ['/plugins/1', '/plugins', 'top_p', '', null]) assert.equal(ownerOf(none), null)
})
