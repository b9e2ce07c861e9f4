// A stand-in for the server: the same routes and shapes with a scripted model, so
// that the page's tests can hold a stream, fill the queue or take the model away.
// POST /__mock {…} changes its state. Run alone: node mock.mjs [port].
import http from 'node:http'
import { readFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bytesOf, measure, refuseMedia } from './mockmedia.mjs'
import { freshPlugins, logged, refusePlugins, runPlugins } from './mockplugins.mjs'

const root = fileURLToPath(new URL('../ui/', import.meta.url))
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' }
const policy = "default-src 'self'; media-src 'self' blob:"

const words = [' cat', 'cat', ' Cat', 'Cat', ' cats', ' concatenate', ' Paris', ',', '.', '\n', ' the', ' city', ' of', ' light', ' and', ' a', ' river', ' runs', ' through', ' it', ' where', ' people', ' walk', ' slowly', ' in', ' rain', '\n\n', ' they', ' said', ' that', ' nothing', ' was', ' lost', '  ', '🦙', ' café', ' <b>', '</b>', '</s>']
const model = {
  name: 'gemma-3-270m', path: '/home/ada/.lmstudio/models/a/b/gemma-3-270m-Q4_K_M.gguf', architecture: 'gemma3', quantization: 'Q4_K', parameters: 268098176,
  hash: 'sha256:5f1c', file_bytes: 253115424, vocab: 262144, context: 2048, train_context: 32768, slots: 4, max_rows: 512, backend: 'cpu', device: '2 threads, AVX2',
  numerics: 'exact', kv: 'f16', kernels: '1', threads: 2, weight_bytes: 249561088, kv_bytes: 37748736, scratch_bytes: 9437184,
  parts: [{ backend: 'cpu', device: '2 threads, AVX2', phase: '', holds: 'everything', weight_bytes: 249561088, kv_bytes: 37748736, scratch_bytes: 9437184 }],
  sampling: { temperature: 1, top_p: 0.95, top_k: 64 },
}
const foundModels = () => [
  { id: 'm1', name: 'gemma-3-270m-Q4_K_M', path: model.path, source: 'LM Studio', bytes: 253115424, available: true },
  { id: 'm2', name: 'Загрузки 模型 ü 🦙', path: "/home/ada/Загрузки/模型 ü 🦙/a'b\"c $x.gguf", source: 'folder', bytes: 1929903264, available: true },
  { id: 'm3', name: '<img src=x onerror=window.P=1>', path: '/media/usb/x.gguf', source: 'Ollama', bytes: 0, available: false },
]

const mediaLimits = { body_bytes: 64 * 2 ** 20, item_bytes: 32 * 2 ** 20, bytes: 64 * 2 ** 20, images: 16, audios: 4, videos: 2 }

const fresh = () => ({ model: 'ready', encoder: null, films: { state: 'absent', share: 0, error: '' }, media: mediaLimits, logMedia: false, loading: null, error: '', parts: model.parts, queueFull: false, key: '', hold: 0, breakAfter: 0, records: [], files: [], found: foundModels(), plugins: freshPlugins(), notes: ['no GPU library found: running on the CPU'], log: { state: 'ok', dropped: 0, path: '/home/ada/.local/share/ganglion/requests.db' }, ids: 0, held: [] })

/** Numbers from a seed: mulberry32. */
function random(seed) {
  let a = seed >>> 0
  return () => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), a | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
const hash = (text) => createHash('sha256').update(text).digest().readUInt32LE(0)

/** The scripted answer: tokens with their six likeliest alternatives. */
function generate(body, seed) {
  const greedy = body.temperature === 0
  const draw = random(hash(JSON.stringify([body.prompt, greedy ? 0 : seed])))
  const banned = new Set(Object.entries(body.logit_bias ?? {}).filter(([, v]) => v <= -100).map(([id]) => Number(id)))
  const tokens = []
  let offset = 0
  for (let i = 0; i < (body.max_completion_tokens ?? 48); i++) {
    const order = words.map((text, id) => ({ id, text, w: draw() ** 40 + 1e-4 })).filter((t) => t.id < 36)
    if (i === 0 && /capital of France is$/.test(body.prompt)) order[6].w = 4
    const sum = order.reduce((s, t) => s + t.w, 0) * 1.02
    const likely = order.map(({ id, text, w }) => ({ id, text, logprob: Math.log(w / sum) })).sort((a, b) => b.logprob - a.logprob || a.id - b.id)
    const pick = likely.filter((t) => !banned.has(t.id))[greedy || draw() < 0.7 ? 0 : 1]
    tokens.push({ ...pick, offset, top: likely.slice(0, body.top_logprobs ?? 5) })
    offset += Buffer.byteLength(pick.text)
  }
  return tokens
}

const ranges = { temperature: [0, Infinity], top_p: [0, 1], min_p: [0, 1], top_k: [0, Infinity], presence_penalty: [-2, 2], frequency_penalty: [-2, 2], max_completion_tokens: [0, Infinity] }

function refuse(body) {
  if (typeof body.prompt !== 'string') return ['prompt', 'prompt: a string is needed', 'missing_parameter']
  for (const [name, [lo, hi]] of Object.entries(ranges)) {
    const v = body[name]
    if (v == null) continue
    if (typeof v !== 'number' || v < lo || v > hi) return [name, `${name}: ${v} is outside ${lo} to ${hi}`, 'invalid_value']
  }
  if (body.seed != null && typeof body.seed !== 'number') return ['seed', 'seed: a whole number is needed', 'invalid_type']
  const i = (body.stop ?? []).indexOf('')
  if (i >= 0) return [`stop[${i}]`, `stop[${i}]: an empty stop string`, 'invalid_value']
  for (const id of Object.keys(body.logit_bias ?? {})) if (!(id >= 0 && id < model.vocab)) return [`logit_bias.${id}`, `logit_bias: no token has the id ${id}`, 'invalid_value']
  const n = encode(body.prompt).length
  if (n >= model.context) return ['prompt', `prompt: ${n} tokens do not fit the context of ${model.context}`, 'context_length_exceeded']
  return null
}

const encode = (text) => [{ id: 2, text: '<bos>' }, ...(text.match(/ ?[\p{L}\p{N}]+|\s|[^\s]/gu) ?? []).map((t) => ({ id: 1000 + (hash(t) % 200000), text: t }))]

const kinds = { 400: 'invalid_request_error', 415: 'invalid_request_error', 401: 'authentication_error', 404: 'not_found_error', 503: 'server_error' }

/** Starts the stand-in; returns its address and a way to end it. */
export async function startMock(port = 0) {
  let state = fresh()
  const server = http.createServer((req, res) => handle(req, res).catch((e) => { if (!res.headersSent) res.writeHead(500); res.end(String(e)) }))

  async function handle(req, res) {
    const url = new URL(req.url, 'http://x')
    const send = (status, value, headers = {}) => {
      res.writeHead(status, { 'Content-Type': 'application/json', ...headers })
      res.end(typeof value === 'string' ? value : JSON.stringify(value))
    }
    const fail = (status, message, { param = null, code = null, headers } = {}) => send(status, { error: { message, type: kinds[status], param, code } }, headers)
    if (!url.pathname.startsWith('/v1/') && url.pathname !== '/__mock') return file(url.pathname, res)
    if (req.method === 'PUT') return put(req, url, send)
    const raw = await read(req)
    if (url.pathname === '/__mock') return control(raw, send)
    if (state.key && req.headers.authorization !== `Bearer ${state.key}`) return fail(401, 'A valid key is needed.', { code: 'invalid_api_key' })
    const route = `${req.method} ${url.pathname.replace(/^\/v1\/log\/.+\/media\/\d+$/, '/v1/log/:media').replace(/^\/v1\/log\/[^:].*/, '/v1/log/:id')}`
    const ready = state.model === 'ready'
    switch (route) {
      case 'GET /v1/status': return send(200, status())
      case 'GET /v1/models/found': return send(200, { models: state.found })
      case 'POST /v1/models/load': {
        const m = state.found.find((f) => f.id === JSON.parse(raw).id)
        if (!m) return fail(404, 'No such model.')
        state.loading = { name: m.name, done: m.bytes * 0.43, total: m.bytes }
        return send(202, { status: 'loading' })
      }
      case 'GET /v1/plugins': return send(200, state.plugins)
      case 'POST /v1/plugins/clear': {
        const p = state.plugins.plugins.find((x) => x.hash === JSON.parse(raw).hash && x.quarantine)
        if (p) p.quarantine = null
        return send(200, { cleared: Boolean(p) })
      }
      case 'POST /v1/tokenize': return ready ? send(200, { tokens: encode(JSON.parse(raw).text) }) : fail(503, 'No model is loaded.', { code: 'no_model' })
      case 'POST /v1/media/measure': {
        const body = JSON.parse(raw)
        const bad = refuseMedia(body, state.broken)
        if (bad) return fail(...bad)
        const media = measure(body)
        return state.encoder ? send(200, { tokens: 1 + media.reduce((n, m) => n + m.tokens, 0), context: model.context, room: 1000, media }) : fail(400, 'the model takes text only', { param: 'images', code: 'modality_not_supported' })
      }
      case 'POST /v1/detokenize': return send(200, { text: JSON.parse(raw).tokens.map((id) => words[id] ?? `<${id}>`).join('') })
      case 'GET /v1/tokens': {
        const part = url.searchParams.get('contains').toLowerCase()
        return send(200, { tokens: words.map((text, id) => ({ id, text })).filter((t) => t.text.toLowerCase().includes(part)), more: false })
      }
      case 'GET /v1/log': return send(200, page(url.searchParams))
      case 'GET /v1/log/:id': {
        const r = state.records.find((x) => x.id === decodeURIComponent(url.pathname.slice(8)))
        return r ? send(200, JSON.stringify(r).replace(/"seed":"(\d+)"/, '"seed":$1')) : fail(404, 'No such record.', { code: 'not_found' })
      }
      case 'GET /v1/log/:media': {
        const [, id, place] = /^\/v1\/log\/(.+)\/media\/(\d+)$/.exec(url.pathname)
        const body = JSON.parse(state.records.find((x) => x.id === id).request)
        res.writeHead(200, { 'Content-Type': 'application/octet-stream' })
        return res.end(bytesOf([...(body.images ?? []), ...(body.audios ?? []), ...(body.videos ?? [])][place]))
      }
      case 'POST /v1/completions': return complete(raw, req, res, send, fail)
      default: return fail(404, 'No such route.', { code: 'not_found' })
    }
  }

  function status() {
    return { state: state.loading ? 'loading' : state.model === 'ready' ? 'ready' : 'no_model', version: 'v0.1.0', model: state.model === 'ready' ? { ...model, parts: state.parts } : null, encoder: state.encoder, films: state.films, media: state.media, loading: state.loading, error: state.error,
      running: state.held.length, queued: 0, queue_max: 64, devices: [{ name: 'Intel Core i7, 2 threads', backend: 'cpu', state: 'in use', note: '' }], log: state.log, notes: state.notes }
  }

  function control(raw, send) {
    const patch = JSON.parse(raw || '{}')
    if (patch.reset) state = fresh()
    if (patch.release) {
      const n = state.held.length
      state.hold = 0
      for (const go of state.held.splice(0)) go()
      return send(200, { released: n })
    }
    Object.assign(state, patch)
    return send(200, { ok: true, held: state.held.length, records: state.records.length, files: state.files })
  }

  function page(q) {
    let list = [...state.records].reverse()
    if (q.get('outcome')) list = list.filter((r) => r.outcome === q.get('outcome'))
    if (q.get('q')) list = list.filter((r) => (r.prompt + r.text).includes(q.get('q')))
    if (q.get('before')) list = list.slice(list.findIndex((r) => r.id === q.get('before')) + 1)
    const limit = Number(q.get('limit') ?? 30)
    const records = list.slice(0, limit).map(({ tokens, params, request, ...r }) => ({ ...r, prompt: r.prompt.slice(0, 200), text: r.text.slice(0, 200) }))
    return { records, next: list.length > limit ? records.at(-1).id : null }
  }

  async function complete(raw, req, res, send, fail) {
    const own = state // of the test that asked: another one may have begun before the end
    if (own.queueFull) return fail(503, 'The queue is full: 64 requests are waiting.', { code: 'queue_full', headers: { 'Retry-After': '2' } })
    if (own.model !== 'ready') return fail(503, 'No model is loaded.', { code: 'no_model', headers: { 'Retry-After': '5' } })
    const body = JSON.parse(raw)
    const media = refuseMedia(body, own.broken)
    if (media) return fail(...media)
    const bad = refuse(body) ?? refusePlugins(body, own.plugins)
    if (bad) return fail(400, bad[1], { param: bad[0], code: bad[2] })
    const exact = /"seed":(\d+)/.exec(raw)?.[1]
    const seed = exact ?? String(BigInt(hash(String(++own.ids) + body.prompt)) * 2147483659n)
    let tokens = generate(body, seed)
    let finish = 'length'
    const cut = cutAtStop(tokens, body.stop ?? [])
    if (cut) { tokens = cut; finish = 'stop' }
    const plugins = runPlugins(body, tokens)
    const prompt_tokens = encode(body.prompt).length
    const id = `cmpl-${String(++own.ids).padStart(4, '0')}`
    const params = Object.entries({ max_completion_tokens: 48, temperature: 1, top_p: 0.95, top_k: 64 }).map(([name, value]) => ({ name, value: body[name] ?? value, origin: body[name] != null ? 'request' : name.startsWith('top') ? 'model' : 'default' }))
    const record = { id, created_at: new Date().toISOString(), route: 'POST /v1/completions', client: 'Mozilla/5.0', stream: Boolean(body.stream), model: model.name, model_hash: model.hash, backend: 'cpu', device: model.device, numerics: 'exact', outcome: 'open', prompt: body.prompt, text: '', params, seed, prompt_tokens, completion_tokens: 0, cached_tokens: 0, queue_ms: 0.2, prefill_ms: 31, decode_ms: 0, first_token_ms: 33, tokens: [], request: raw, media: measure(body).map((m) => (own.logMedia ? { ...m, kept: true } : m)), ...logged(plugins) }
    own.records.push(record)
    const usage = () => ({ prompt_tokens, completion_tokens: record.tokens.length, total_tokens: prompt_tokens + record.tokens.length })
    const extra = () => ({ usage: usage(), ganglion: `~${JSON.stringify({ id, seed: `#${seed}#`, params: [...params, { name: 'seed', value: `#${seed}#`, origin: exact ? 'request' : 'random' }], timings: { queue_ms: 0.2, prefill_ms: 31, decode_ms: record.decode_ms, first_token_ms: 33.4, tokens_per_second: 61.3 }, cached_tokens: Math.min(4, prompt_tokens - 1), warnings: [], plugins, model: model.name, backend: 'cpu', numerics: 'exact' }).replace(/"#(\d+)#"/g, '$1')}~` })
    const text = (v) => JSON.stringify(v).replace(/"~((?:[^"\\]|\\.)*)~"/, (_, s) => JSON.parse(`"${s}"`))
    const base = { id, object: 'completion', created: 1700000000, model: model.name }
    const choice = (list, finish_reason) => ({ text: list.map((t) => t.text).join(''), index: 0, logprobs: body.logprobs ? list.map((t) => t.logprob) : null, finish_reason, details: { tokens: list.map((t) => (body.logprobs ? t : { ...t, top: [] })) } })
    const end = (outcome) => Object.assign(record, { outcome, ended_at: new Date().toISOString(), completion_tokens: record.tokens.length, decode_ms: record.tokens.length * 16 })
    const take = (t) => { record.tokens.push(t); record.text += t.text }
    if (!body.stream) {
      tokens.forEach(take)
      end(finish)
      return send(200, text({ ...base, choices: [choice(tokens, finish)], ...extra() }))
    }
    let gone = false
    const left = new Promise((go) => res.on('close', () => { gone = !res.writableEnded; go() }))
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
    for (const [i, t] of tokens.entries()) {
      if (own.hold && i >= own.hold) {
        await Promise.race([new Promise((go) => own.held.push(go)), left])
        if (gone) own.held = []
      }
      if (gone) return end('cancelled')
      if (own.breakAfter && i >= own.breakAfter) { end('error'); return res.destroy() }
      take(t)
      res.write(`data: ${JSON.stringify({ ...base, choices: [choice([t], null)], usage: null })}\n\n`)
      await new Promise((go) => setImmediate(go))
    }
    end(finish)
    res.write(`: keep-alive\n\ndata: ${text({ ...base, choices: [choice([], finish)], ...extra() })}\n\ndata: [DONE]\n\n`)
    res.end()
  }

  async function put(req, url, send) {
    let n = 0
    for await (const chunk of req) n += chunk.length
    const name = decodeURIComponent(url.pathname.split('/').pop())
    if (url.pathname.startsWith('/v1/plugins/')) {
      if (/bad/.test(name)) return send(400, { error: { message: 'registry: the file is not taken: wasm: no module', type: 'invalid_request_error', param: null, code: 'invalid_plugin_file' } })
      const own = name.replace(/\.\w+$/, '')
      state.plugins.plugins.push({ ...freshPlugins().plugins[0], name: own, place: name, built_in: false, signature: 'unsigned' })
      return send(201, { name: own, version: '1.0.0' })
    }
    state.files.push({ name, bytes: n })
    state.found.push({ id: `up-${name}`, name: name.replace(/\.gguf$/, ''), path: `/home/ada/.local/share/ganglion/models/${name}`, source: 'Ganglion', bytes: n, available: true })
    send(201, { id: `up-${name}` })
  }

  server.keepAliveTimeout = 0 // ms; a connection that is closed just as a test asks again would fail it
  await new Promise((go) => server.listen(port, '127.0.0.1', go))
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => { server.closeAllConnections(); return new Promise((go) => server.close(go)) } }
}

function cutAtStop(tokens, stops) {
  const text = tokens.map((t) => t.text).join('')
  const at = Math.min(...stops.map((s) => text.indexOf(s)).filter((i) => i >= 0))
  if (at === Infinity) return null
  const kept = []
  let n = 0
  for (const t of tokens) {
    if (n >= at) break
    kept.push({ ...t, text: t.text.slice(0, at - n) })
    n += t.text.length
  }
  return kept
}

async function read(req) {
  const parts = []
  for await (const c of req) parts.push(c)
  return Buffer.concat(parts).toString()
}

async function file(path, res) {
  const name = normalize(path === '/' ? '/index.html' : path)
  try {
    const body = await readFile(join(root, name))
    res.writeHead(200, { 'Content-Type': types[extname(name)] ?? 'application/octet-stream', 'Content-Security-Policy': policy })
    res.end(body)
  } catch {
    res.writeHead(404, { 'Content-Security-Policy': policy })
    res.end()
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startMock(Number(process.argv[2] ?? 0))
  console.log(`listening on ${url}`)
}
