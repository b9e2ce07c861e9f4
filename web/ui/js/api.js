// Ganglion's HTTP surface as functions. Everything from outside comes in through
// the constructor, so that tests drive it without a browser. Pure but for fetch.
import { readSSE } from './sse.js'
import { formatJSON, parseJSON } from './json.js'

/**
 * A failed call. kind: "http" (the server refused), "network" (no server), "cut"
 * (the stream ended early), "format" (an answer that is not ours).
 */
export class APIError extends Error {
  constructor(kind, message, { status = 0, code = '', param = '', plugin = '', retryAfter = 0 } = {}) {
    super(message)
    this.name = 'APIError'
    Object.assign(this, { kind, status, code, param, plugin, retryAfter })
  }
}

/** Tells a person's own abort from a failure. */
export const isAbort = (error) => error?.name === 'AbortError'

/** Tells a request that would be refused again, as it is, from other failures. */
export const isRefusal = (error) => [400, 413, 415].includes(error?.status)

export class API {
  #fetch
  #token

  /** @param {{fetch: typeof fetch, token?: () => string}} o token gives the key or '' */
  constructor({ fetch, token = () => '' }) {
    this.#fetch = fetch
    this.#token = token
  }

  /** The headers that carry the key, if there is one. */
  auth() {
    const token = this.#token()
    return token ? { Authorization: `Bearer ${token}` } : {}
  }

  async #call(method, path, { body, signal, headers } = {}) {
    let response
    try {
      response = await this.#fetch(path, {
        method, signal,
        headers: { ...this.auth(), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
        body: body === undefined ? undefined : formatJSON(body),
      })
    } catch (error) {
      if (isAbort(error)) throw error
      throw new APIError('network', 'The server cannot be reached.')
    }
    if (!response.ok) throw await failure(response)
    return response
  }

  async #json(method, path, options) {
    const response = await this.#call(method, path, options)
    return decode(await bodyText(response))
  }

  status(signal) { return this.#json('GET', '/v1/status', { signal }) }
  found(signal) { return this.#json('GET', '/v1/models/found', { signal }) }
  load(id) { return this.#json('POST', '/v1/models/load', { body: { id } }) }
  tokenize(text, signal) { return this.#json('POST', '/v1/tokenize', { body: { text, special: true, bos: true }, signal }) }
  detokenize(tokens, signal) { return this.#json('POST', '/v1/detokenize', { body: { tokens }, signal }) }
  measure(body, signal) { return this.#json('POST', '/v1/media/measure', { body, signal }) }
  vocabulary(contains, signal) { return this.#json('GET', `/v1/tokens?${new URLSearchParams({ contains })}`, { signal }) }
  plugins(signal) { return this.#json('GET', '/v1/plugins', { signal }) }
  clearPlugin(hash) { return this.#json('POST', '/v1/plugins/clear', { body: { hash } }) }
  record(id, signal) { return this.#json('GET', `/v1/log/${encodeURIComponent(id)}`, { signal }) }

  /** The file of one of a record's media, as a blob. */
  async mediaFile(id, place, signal) {
    const response = await this.#call('GET', `/v1/log/${encodeURIComponent(id)}/media/${place}`, { signal })
    return response.blob()
  }

  log({ limit = 30, before = '', q = '', outcome = '' } = {}, signal) {
    const query = new URLSearchParams({ limit })
    if (before) query.set('before', before)
    if (q) query.set('q', q)
    if (outcome) query.set('outcome', outcome)
    return this.#json('GET', `/v1/log?${query}`, { signal })
  }

  /**
   * Yields the chunks of a completion, streamed or not, each in the shape of the
   * contract. Ends normally only when the answer is whole. With stages, each token says
   * what built-in stages did to it, which takes time.
   */
  async *complete(body, signal, { stages = false } = {}) {
    const response = await this.#call('POST', '/v1/completions', { body, signal, headers: { 'Ganglion-Details': stages ? 'stages' : '1' } })
    const type = response.headers.get('Content-Type') ?? ''
    if (!type.startsWith('text/event-stream')) {
      yield decode(await bodyText(response))
      return
    }
    let whole = false
    try {
      for await (const { data } of readSSE(response.body)) {
        if (data === '[DONE]') {
          whole = true
          break
        }
        const chunk = decode(data)
        if (chunk.error) throw errorFrom(chunk.error, response.status)
        yield chunk
      }
    } catch (error) {
      if (isAbort(error) || error instanceof APIError) throw error
      throw new APIError('cut', 'The connection was lost in the middle of the answer.')
    }
    if (!whole && !signal?.aborted) throw new APIError('cut', 'The answer ended before it was complete.')
  }
}

async function bodyText(response) {
  try {
    return await response.text()
  } catch (error) {
    if (isAbort(error)) throw error
    throw new APIError('cut', 'The connection was lost in the middle of the answer.')
  }
}

function decode(text) {
  try {
    return parseJSON(text)
  } catch {
    throw new APIError('format', 'The answer is not one of Ganglion’s: is this address really its server?')
  }
}

/** The error of a refused call. */
export async function failure(response) {
  const retryAfter = Number(response.headers.get('Retry-After')) || 0
  let error
  try {
    error = JSON.parse(await response.text()).error
  } catch {
    error = null // a proxy's page, or cut off: the status has to do
  }
  return errorFrom(error, response.status, retryAfter)
}

function errorFrom(error, status, retryAfter = 0) {
  return new APIError('http', error?.message || `The server answered with status ${status}.`,
    { status, code: error?.code ?? '', param: error?.param ?? '', plugin: error?.plugin ?? '', retryAfter })
}
