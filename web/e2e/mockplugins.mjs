// The plugins of the stand-in: one of each state, and what they do to its answers.
const hex = (c) => c.repeat(64)
const plugin = (name, slot, title, properties, more = {}, required = []) => ({
  name, version: '1.0.0', hash: hex(String(name.length % 10)), place: `built-in:${name}.wasm`, built_in: true, signature: 'built-in', key: '', slot, permissions: [], on_error: 'fail', homepage: '',
  title, description: '', license: 'Apache-2.0', config_schema: { type: 'object', additionalProperties: false, required, properties }, loaded_at: '2026-01-02T03:04:05Z', update: '', quarantine: null,
  cost: { requests: 0, tokens: 0, tokens_changed: 0, us_per_token: 0, fuel_per_token: 0, once_us: 0, once_fuel: 0, failures: 0, last_error: '', last_failure_at: null }, ...more,
})

/** The list as it is at the start. */
export const freshPlugins = () => ({
  loading: false, upload: false, folder: '/home/ada/.local/share/ganglion/plugins', defaults: [], required: [], shadow: [],
  rejected: [{ place: 'broken.wasm', hash: hex('e'), reason: 'wasm: section 1: ends at byte 910, file has 800', at: '2026-01-02T03:04:05Z' }],
  plugins: [
    plugin('anti-slop', 'text', 'Takes back phrases that may not be written', {
      phrases: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 96 }, maxItems: 256, default: [], title: 'Phrases that may not be written; case does not count' },
    }, { permissions: ['text', 'holdback'] }),
    plugin('dry', 'bias', 'Makes repetitions unlikely', {
      multiplier: { type: 'number', minimum: 0, maximum: 100, default: 0.8, title: 'Penalty of the shortest repetition; 0 is off' },
      allowed_length: { type: 'integer', minimum: 1, maximum: 2048, default: 2, title: 'Tokens that may be repeated freely' },
      breakers: { type: 'array', items: { type: 'string', maxLength: 40 }, maxItems: 12, default: ['\n', ':'], title: 'Texts across which nothing counts as repeated' },
    }, { permissions: ['vocab', 'history'], cost: { requests: 12, tokens: 3400, tokens_changed: 87, us_per_token: 4.21, fuel_per_token: 5120, once_us: 5210, once_fuel: 12000000, failures: 1, last_error: 'fuel: the call used all of it', last_failure_at: '2026-01-02T03:04:05Z' } }),
    plugin('house-style', 'choose', 'Keeps to the style of the house <img src=x onerror=window.P=1>', {
      mode: { type: 'string', enum: ['plain', 'warm', 'terse'], default: 'plain', title: 'Manner' },
      strict: { type: 'boolean', default: false, title: 'Refuse all others' },
      words: { type: 'string', minLength: 1, maxLength: 8000, title: 'Words to prefer' },
      table: { type: 'object', title: 'Weights' },
    }, { built_in: false, place: 'house-style.wasm', signature: 'trusted', key: '9f2c41d07a3be586', permissions: ['kv', 'text'], version: '2.1.0', update: 'host: golden test 2: wants token 5, got 7', on_error: 'skip' }, ['words']),
    plugin('looping', 'bias', 'Never ends', {}, { built_in: false, place: 'looping.js', signature: 'unsigned', quarantine: { reason: 'fuel', since: '2026-01-02T03:04:05Z' } }),
  ],
})

/** Why the plugins of a request are refused: [param, message, code]. */
export function refusePlugins(body, { plugins }) {
  for (const [i, e] of (body.plugins ?? []).entries()) {
    const entry = typeof e === 'string' ? { name: e } : e
    const p = plugins.find((x) => x.name === entry.name)
    if (!p) return [`/plugins/${i}`, `/plugins/${i}: there is no such plugin: "${entry.name}"`, 'invalid_value']
    for (const name of p.config_schema.required ?? []) if (!(name in (entry.config ?? {}))) return [`/plugins/${i}/config/${name}`, `/plugins/${i}/config/${name}: is required`, 'invalid_value']
    for (const [name, v] of Object.entries(entry.config ?? {})) {
      const s = p.config_schema.properties[name]
      if (s?.maximum !== undefined && v > s.maximum) return [`/plugins/${i}/config/${name}`, `/plugins/${i}/config/${name}: ${v} is above the maximum ${s.maximum}`, 'invalid_value']
    }
  }
  return null
}

const kinds = ['moved', 'chosen', 'forced', 'rewound', 'text']

/** Marks some tokens as changed by the plugins of a request; returns their reports. */
export function runPlugins(body, tokens) {
  const names = (body.plugins ?? []).map((e) => (typeof e === 'string' ? e : e.name))
  if (names.length === 0) return undefined
  tokens.forEach((t, i) => {
    if (i % 4 !== 1) return
    const kind = kinds[Math.floor(i / 4) % kinds.length]
    const other = t.top.find((a) => a.id !== t.id)
    t.changes = [{ plugin: names[i % names.length], kind, ...(kind === 'forced' || kind === 'text' || !other ? {} : { from: { id: other.id, text: other.text } }) }]
  })
  return names.map((name, i) => ({ name, version: '1.0.0', hash: hex('a'), outcome: i === 0 ? 'ok' : 'skipped', ...(i ? { error: 'trap: unreachable' } : {}), calls: 96, us_per_token: 3.14, fuel_per_token: 1780, once_us: 21.7, once_fuel: 9400, tokens_changed: 12, texts_rewritten: 0, rewinds: i }))
}

/** What the log keeps of plugins beside what the answer says: one that watched, and what they left. */
export function logged(reports) {
  if (!reports) return { plugins: [] }
  const watcher = { ...reports[0], name: 'watcher', outcome: 'shadow', shadow: true, tokens_changed: 2, rewinds: 0, choices: [{ at: 1, id: 77, text: ' other' }, { at: 2, id: 78, text: '\n' }] }
  return { plugins: [...reports, watcher], plugin_meta: { [`${reports[0].name}.longest`]: 3, 'shadow:watcher.words': ['a', 'b'] } }
}
