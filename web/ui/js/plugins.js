// The plugins of a request: how the form holds them, how they become the field
// "plugins", and how they live in the address. Pure.
import { integer } from './format.js'

/** A plugin that was just picked: all settings at their defaults. */
export const picked = (name) => ({ name, version: '', config: {}, on_error: '' })

/** The entry of a request: a name alone where nothing else is set. */
export function toEntry({ name, version, config, on_error }) {
  const entry = { name }
  if (version) entry.version = version
  if (Object.keys(config).length) entry.config = config
  if (on_error) entry.on_error = on_error
  return Object.keys(entry).length === 1 ? name : entry
}

/** A plugin of the form from the entry of a request; null where it names none. */
export function fromEntry(entry) {
  const e = typeof entry === 'string' ? { name: entry } : entry
  if (typeof e?.name !== 'string' || !/^[a-z0-9-]{1,64}$/.test(e.name)) return null
  const isObject = e.config !== null && typeof e.config === 'object' && !Array.isArray(e.config)
  return { name: e.name, version: typeof e.version === 'string' ? e.version : '', config: isObject ? { ...e.config } : {}, on_error: typeof e.on_error === 'string' ? e.on_error : '' }
}

/** A plugin as a value of the address: its name, or JSON. */
export function toText(plugin) {
  const entry = toEntry(plugin)
  return typeof entry === 'string' ? entry : JSON.stringify(entry)
}

/** The reverse of toText; null for what makes no sense. */
export function fromText(text) {
  if (!text.startsWith('{')) return fromEntry(text)
  try {
    return fromEntry(JSON.parse(text))
  } catch {
    return null
  }
}

/** Moves the plugin at i by one place. */
export function moved(list, i, by) {
  const k = i + by
  if (k < 0 || k >= list.length) return list
  const out = [...list]
  ;[out[i], out[k]] = [out[k], out[i]]
  return out
}

/** The newest version of each name, as the list has them. */
export function newest(list) {
  const seen = new Set()
  return list.filter((p) => !seen.has(p.name) && seen.add(p.name))
}

const kinds = {
  moved: (from) => `changed which token comes${from && `; it would have been ${from}`}`,
  acted: () => 'acted, and the same token came',
  chosen: (from) => `chose this one${from && `; it would have been ${from}`}`,
  forced: (from) => `put it there, whatever the model said${from && `; it would have been ${from}`}`,
  rewound: (from) => `took the text back to here${from && `, where ${from} stood`}`,
  text: () => 'rewrote its text',
  shadow: (from) => `only watches; it would have had ${from} here`,
}

/** What a plugin did to a token, in words; show turns a token's text into a quotation. */
export function changeText({ kind, from, left, temperature }, show) {
  const how = [left && `left ${integer(left)} token${left === 1 ? '' : 's'}`, temperature !== undefined && `set the temperature to ${Number(temperature.toPrecision(4))}`].filter(Boolean)
  const did = (kinds[kind] ?? (() => kind))(from ? show(from.text) : '')
  return how.length ? `${did} (${how.join(', ')})` : did
}

/** Whether what plugins did to a token made it, its place or its text another one. */
export const isChanged = (token) => token.changes?.some((c) => c.plugin !== undefined && c.kind !== 'acted' && c.kind !== 'shadow' && !(c.kind === 'forced' && c.from?.id === token.id)) ?? false

/** The tokens of a record, each with what plugins that only watched would have had in its place. */
export function withChoices(tokens, reports) {
  const out = [...tokens]
  for (const r of reports ?? []) {
    for (const { at, id, text } of r.choices ?? []) {
      if (out[at]) out[at] = { ...out[at], changes: [...(out[at].changes ?? []), { plugin: r.name, kind: 'shadow', from: { id, text } }] }
    }
  }
  return out
}

/** What a plugin left for the record: [key, value] each. */
export function leftBy(report, meta) {
  const prefix = `${report.shadow ? 'shadow:' : ''}${report.name}.`
  return Object.entries(meta ?? {}).filter(([key]) => key.startsWith(prefix)).map(([key, value]) => [key.slice(prefix.length), value])
}

/** The state of a plugin in one word, and its tone. */
export function stateOf(p) {
  if (p.quarantine) return { text: 'Quarantined', tone: 'bad' }
  if (p.update) return { text: 'Update rejected', tone: 'warn' }
  return { text: 'Ready', tone: 'good' }
}

const signatures = { 'built-in': 'Part of the program', trusted: 'Signed with a known key', 'unknown key': 'Signed, but the key is not known', unsigned: 'Not signed' }

/** The state of a signature in words. */
export const signatureText = (p) => signatures[p.signature] ?? p.signature

const slots = {
  constrain: 'says which tokens are possible', bias: 'makes tokens likelier or less likely', truncate: 'drops unlikely tokens',
  temperature: 'sets how varied the choice is', choose: 'picks the token', text: 'watches or rewrites the text',
}

/** What plugins of a slot do. */
export const slotText = (slot) => slots[slot] ?? ''

const permissions = {
  kv: 'keep values on this machine', clock: 'see the time since the request came', 'aux-seq': 'run a second text through the model', vocab: 'read the vocabulary',
  'wasi-stubs': 'call stand-ins for system calls, which do nothing', candidates: 'see the likeliest tokens', full: 'see and rewrite the logits of all tokens', gather: 'see the logits of certain tokens',
  history: 'see the tokens so far', text: 'read the text', prompt: 'rewrite or refuse the prompt', edits: 'make tokens likelier or less likely', mask: 'forbid tokens', cut: 'drop candidates',
  temperature: 'set the temperature', choose: 'pick the token', force: 'put tokens into the text and end it', rewrite: 'read, rewrite and end the text that is sent', holdback: 'hold text back and take it back',
}

/** What a permission allows. */
export const permissionText = (p) => permissions[p] ?? p
