import { test } from 'node:test'
import assert from 'node:assert/strict'
import { formatJSON, parseJSON } from '../js/json.js'

const cases = [
  { name: 'plain', text: '{"a":[1,-2.5,1000,true,null,"x"]}' },
  { name: 'largest seed', text: '{"seed":9223372036854775807,"a":1}' },
  { name: 'negative', text: '[-9223372036854775808]' },
  { name: 'digits inside strings', text: '{"a":"seed: 9223372036854775807, \\"9223372036854775807\\"","b":12345678901234567890}' },
  { name: 'escaped quotes and backslashes', text: '{"a\\\\":"\\\\\\"","b":9007199254740993}' },
  { name: 'text like a mark', text: '{"a":"int9223372036854775807","b":9223372036854775807}' },
]
for (const { name, text } of cases) {
  test(`json/${name}`, () => assert.equal(formatJSON(parseJSON(text)), text))
}

test('json/large integers are exact', () => {
  assert.equal(parseJSON('{"seed":9223372036854775807}').seed, 9223372036854775807n)
  assert.equal(JSON.parse('{"seed":9223372036854775807}').seed, 9223372036854775808, 'the guard has a reason')
})

test('json/long fractions stay numbers', () => {
  assert.equal(parseJSON('{"p":-0.12345678901234567890,"s":1234567890123456789}').p, -0.12345678901234568)
})

test('json/broken text throws', () => assert.throws(() => parseJSON('{:'), SyntaxError))
