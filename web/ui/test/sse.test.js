import { test } from 'node:test'
import assert from 'node:assert/strict'
import { SSEParser, readSSE } from '../js/sse.js'

function parse(pieces) {
  const events = []
  const p = new SSEParser((e) => events.push(e))
  for (const piece of pieces) p.push(piece)
  p.end()
  return events
}

const data = (...values) => values.map((v) => ({ event: 'message', data: v }))

const cases = [
  { name: 'LF', text: 'data: a\n\ndata: b\n\n', want: data('a', 'b') },
  { name: 'CRLF', text: 'data: a\r\n\r\ndata: b\r\n\r\n', want: data('a', 'b') },
  { name: 'CR', text: 'data: a\r\rdata: b\r\r', want: data('a', 'b') },
  { name: 'mixed line ends', text: 'data: a\r\n\ndata: b\n\r\n', want: data('a', 'b') },
  { name: 'no space after the colon', text: 'data:a\n\n', want: data('a') },
  { name: 'only the first space is dropped', text: 'data:  a\n\n', want: data(' a') },
  { name: 'comment beside data', text: ': keep-alive\n\ndata: a\n\n:x\n\n', want: data('a') },
  { name: 'comment inside an event', text: 'data: a\n: hm\ndata: b\n\n', want: data('a\nb') },
  { name: 'lines of data are joined', text: 'data: a\ndata: b\n\n', want: data('a\nb') },
  { name: 'empty data', text: 'data\n\ndata:\n\n', want: data('', '') },
  { name: 'event without data is none', text: 'event: x\n\ndata: a\n\n', want: data('a') },
  { name: 'named event', text: 'event: error\ndata: a\n\ndata: b\n\n', want: [{ event: 'error', data: 'a' }, ...data('b')] },
  { name: 'unknown fields', text: 'id: 7\nretry: 5\nfoo: bar\ndata: a\n\n', want: data('a') },
  { name: 'byte order mark', text: '\ufeffdata: a\n\n', want: data('a') },
  { name: 'an unfinished event is dropped', text: 'data: a\n\ndata: b\n', want: data('a') },
  { name: 'colons in data', text: 'data: {"a":"b:c"}\n\n', want: data('{"a":"b:c"}') },
  { name: 'end mark', text: 'data: {}\n\ndata: [DONE]\n\n', want: data('{}', '[DONE]') },
]

for (const { name, text, want } of cases) {
  test(`sse/${name}`, () => {
    assert.deepEqual(parse([text]), want)
    assert.deepEqual(parse([...text]), want, 'one character at a time')
    for (let i = 0; i <= text.length; i++) assert.deepEqual(parse([text.slice(0, i), text.slice(i)]), want, `cut at ${i}`)
  })
}

test('sse/one line end between events is one event, not two', () => {
  assert.deepEqual(parse(['data: a\ndata: b\n\n']), data('a\nb'))
})

function body(chunks, onCancel = () => {}) {
  return new ReadableStream({
    pull(c) {
      if (chunks.length) c.enqueue(chunks.shift())
      else c.close()
    },
    cancel: onCancel,
  })
}

test('sse/stream cut at every byte, also inside characters', async () => {
  const bytes = new TextEncoder().encode('data: 🦙 é\r\n\r\n: keep-alive\n\ndata: [DONE]\n\n')
  for (let i = 0; i <= bytes.length; i++) {
    const got = []
    for await (const e of readSSE(body([bytes.slice(0, i), bytes.slice(i)]))) got.push(e.data)
    assert.deepEqual(got, ['🦙 é', '[DONE]'], `cut at ${i}`)
  }
  const single = []
  for await (const e of readSSE(body([...bytes].map((b) => Uint8Array.of(b))))) single.push(e.data)
  assert.deepEqual(single, ['🦙 é', '[DONE]'])
})

test('sse/leaving early cancels the stream', async () => {
  let cancelled = false
  const chunks = ['data: a\n\n', 'data: b\n\n', 'data: c\n\n'].map((t) => new TextEncoder().encode(t))
  for await (const e of readSSE(body(chunks, () => { cancelled = true }))) {
    assert.equal(e.data, 'a')
    break
  }
  assert.equal(cancelled, true)
})

test('sse/a large event in small pieces stays linear', () => {
  const text = `data: ${'x'.repeat(1_500_000)}\n\n`
  const pieces = []
  for (let i = 0; i < text.length; i += 1000) pieces.push(text.slice(i, i + 1000))
  const [event] = parse(pieces)
  assert.equal(event.data.length, 1_500_000)
})
