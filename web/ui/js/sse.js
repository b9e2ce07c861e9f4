// Server-sent events, as the WHATWG HTML standard, section 9.2.6, reads them.
// Pure: no DOM, no fetch. Input may be cut anywhere, also between CR and LF.

/** Parses text into events; feed it with push, pieces of any size. */
export class SSEParser {
  #buffer = ''
  #scan = 0 // the buffer up to here holds no line end
  #data = null
  #event = ''
  #afterCR = false
  #start = true
  #onEvent

  /** @param {(event: {event: string, data: string}) => void} onEvent */
  constructor(onEvent) {
    this.#onEvent = onEvent
  }

  /** Takes the next piece of the stream. */
  push(text) {
    if (text === '') return
    if (this.#start) {
      this.#start = false
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1)
    }
    this.#buffer += text
    let from = 0
    for (;;) {
      if (this.#afterCR && from < this.#buffer.length) {
        if (this.#buffer[from] === '\n') from++
        this.#afterCR = false
        this.#scan = Math.max(this.#scan, from)
      }
      const end = lineEnd(this.#buffer, Math.max(this.#scan, from))
      if (end < 0) break
      this.#afterCR = this.#buffer[end] === '\r'
      this.#line(this.#buffer.slice(from, end))
      from = this.#scan = end + 1
    }
    this.#buffer = this.#buffer.slice(from)
    this.#scan = this.#buffer.length
  }

  /** Ends the stream. An event without its empty line is dropped, as the standard says. */
  end() {
    this.#buffer = ''
    this.#scan = 0
    this.#data = null
    this.#event = ''
  }

  #line(line) {
    if (line === '') {
      const data = this.#data
      const event = this.#event || 'message'
      this.#data = null
      this.#event = ''
      if (data !== null) this.#onEvent({ event, data })
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return // a comment: the keep-alive
    const field = colon < 0 ? line : line.slice(0, colon)
    let value = colon < 0 ? '' : line.slice(colon + 1)
    if (value[0] === ' ') value = value.slice(1)
    if (field === 'data') this.#data = this.#data === null ? value : `${this.#data}\n${value}`
    else if (field === 'event') this.#event = value
  }
}

function lineEnd(text, from) {
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 10 || c === 13) return i
  }
  return -1
}

/** Yields the events of a byte stream (a fetch body); leaving the loop cancels it. */
export async function* readSSE(body) {
  const events = []
  const parser = new SSEParser((e) => events.push(e))
  const decoder = new TextDecoder() // keeps characters cut between two pieces
  const reader = body.getReader()
  try {
    for (;;) {
      const { value, done } = await reader.read()
      parser.push(done ? decoder.decode() : decoder.decode(value, { stream: true }))
      yield* events.splice(0)
      if (done) return
    }
  } finally {
    reader.cancel().catch(() => {}) // already closed or broken: nothing to cancel
  }
}
