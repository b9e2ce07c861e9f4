// The parameters of a completion: what the page shows for each, how they become a
// request, and how they live in the address. Pure.
import { unescapeText } from './format.js'
import { kinds } from './media.js'
import { fromEntry, fromText, toEntry, toText } from './plugins.js'

/** The numeric parameters. Empty means absent: the model's or server's default. */
export const numbers = [
  { name: 'max_completion_tokens', label: 'Maximum tokens', min: 0, max: 4096, step: 1, integer: true, soft: 512, group: 'length',
    help: 'The answer ends here at the latest.' },
  { name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.05, soft: 1, group: 'sampling',
    help: '0 always takes the most likely token; higher is more varied.' },
  { name: 'top_p', label: 'Top p', min: 0, max: 1, step: 0.01, soft: 1, group: 'sampling',
    help: 'Draw from the likeliest tokens that together reach this probability.' },
  { name: 'top_k', label: 'Top k', min: 0, max: 200, step: 1, integer: true, soft: 0, group: 'sampling',
    help: 'Draw from this many tokens at most; 0 switches it off.' },
  { name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.01, soft: 0, group: 'sampling',
    help: 'Drop tokens below this share of the likeliest one. An extension.' },
  { name: 'presence_penalty', label: 'Presence penalty', min: -2, max: 2, step: 0.1, soft: 0, group: 'repetition',
    help: 'Lowers every token that was already generated.' },
  { name: 'frequency_penalty', label: 'Frequency penalty', min: -2, max: 2, step: 0.1, soft: 0, group: 'repetition',
    help: 'Lowers tokens by how often they were generated.' },
]

/** A playground as it starts: every parameter at its default. */
export function defaults() {
  return {
    prompt: '', ...Object.fromEntries(numbers.map((n) => [n.name, ''])),
    seed: '', stop: [], bias: [], plugins: [], plain: false, logprobs: true, stream: true,
  }
}

/** How many alternatives the page asks for per token. */
export const alternatives = 6

/** The request for POST /v1/completions. Absent parameters are left out. */
export function toRequest(state) {
  const body = { prompt: state.prompt }
  for (const { name } of numbers) if (state[name] !== '') body[name] = Number(state[name])
  if (state.seed !== '') body.seed = integerValue(state.seed)
  if (state.stop.length) body.stop = [...state.stop]
  if (state.bias.length) body.logit_bias = Object.fromEntries(state.bias.map((b) => [String(b.id), b.value]))
  if (state.plugins.length) body.plugins = state.plugins.map(toEntry)
  else if (state.plain) body.plugins = [] // an empty list leaves the server's own out
  if (state.logprobs) {
    body.logprobs = true
    body.top_logprobs = alternatives
  }
  if (state.stream) body.stream = true
  return body
}

/** Digits as a number, or as BigInt where a number would round. */
function integerValue(text) {
  if (!/^-?\d+$/.test(text)) return text // the server names what is wrong with it
  const n = Number(text)
  return Number.isSafeInteger(n) ? n : BigInt(text)
}

/** The state as query parameters of the address; defaults are left out. */
export function toQuery(state) {
  const q = new URLSearchParams()
  if (state.prompt) q.set('prompt', state.prompt)
  for (const { name } of numbers) if (state[name] !== '') q.set(name, state[name])
  if (state.seed !== '') q.set('seed', state.seed)
  for (const s of state.stop) q.append('stop', s)
  for (const b of state.bias) q.append('bias', `${b.id}:${b.value}`)
  for (const p of state.plugins) q.append('plugin', toText(p))
  if (state.plain) q.set('plain', '1')
  if (!state.logprobs) q.set('logprobs', '0')
  if (!state.stream) q.set('stream', '0')
  return q
}

/** The state from query parameters; what makes no sense is dropped. */
export function fromQuery(q) {
  const state = defaults()
  state.prompt = q.get('prompt') ?? ''
  for (const { name } of numbers) {
    const v = q.get(name)
    if (v !== null && v.trim() !== '' && Number.isFinite(Number(v))) state[name] = v.trim()
  }
  if (/^-?\d{1,20}$/.test(q.get('seed') ?? '')) state.seed = q.get('seed')
  state.stop = q.getAll('stop').filter((s) => s !== '')
  for (const entry of q.getAll('bias')) {
    const m = /^(\d{1,10}):(-?\d+(?:\.\d+)?)$/.exec(entry)
    if (m) state.bias.push({ id: Number(m[1]), value: Number(m[2]), text: null })
  }
  state.plugins = q.getAll('plugin').map(fromText).filter(Boolean)
  state.plain = q.get('plain') === '1'
  state.logprobs = q.get('logprobs') !== '0'
  state.stream = q.get('stream') !== '0'
  return state
}

/** The state that a request body of any client asks for, for "Open in playground". */
export function fromRequest(body, record = {}) {
  const state = defaults()
  state.prompt = typeof body?.prompt === 'string' ? body.prompt : record.prompt ?? ''
  const given = { ...body, max_completion_tokens: body?.max_completion_tokens ?? body?.max_tokens }
  for (const { name } of numbers) if (given[name] != null) state[name] = String(given[name])
  const seed = record.seed ?? body?.seed
  if (seed != null) state.seed = String(seed)
  if (body?.stop != null) state.stop = [].concat(body.stop)
  for (const [id, value] of Object.entries(body?.logit_bias ?? {})) state.bias.push({ id: Number(id), value, text: null })
  state.plugins = [].concat(body?.plugins ?? []).map(fromEntry).filter(Boolean)
  state.plain = Array.isArray(body?.plugins) && body.plugins.length === 0
  return state
}

/** The request that repeats a recorded one: its own body with the seed that was used. */
export function replayRequest(record) {
  const body = { ...(record.request ?? {}) }
  const plain = typeof body.prompt === 'string' || isTokenIDs(body.prompt)
  if (!plain) body.prompt = record.prompt // one of a batch: this record is one choice
  delete body.n
  delete body.stream_options
  body.seed = record.seed
  return body
}

function isTokenIDs(prompt) {
  return Array.isArray(prompt) && prompt.length > 0 && prompt.every((t) => typeof t === 'number')
}

/**
 * The control that an error's param belongs to: "stop[1]" is stop, "logit_bias.7" is
 * logit_bias, "/plugins/0/config/p" is plugins.
 */
export function controlOf(param) {
  if (/^\/plugins(\/|$)/.test(param ?? '')) return 'plugins'
  const root = /^[a-z_]+/.exec(param ?? '')?.[0] ?? ''
  if (kinds.includes(root)) return 'media'
  if (root === 'max_tokens') return 'max_completion_tokens'
  const known = ['prompt', 'seed', 'stop', 'logit_bias', 'logprobs', 'stream', ...numbers.map((n) => n.name)]
  return known.includes(root) ? root : ''
}

/** A typed stop string, with its escapes read; null when there is nothing to add. */
export function stopFrom(text, list) {
  const value = unescapeText(text)
  return value === '' || list.includes(value) ? null : value
}
