// Numbers, sizes, times and token text as people read them. Pure.
import { hintsOf } from './film.js'
import { formatJSON } from './json.js'

const units = ['B', 'kB', 'MB', 'GB', 'TB']

/** Bytes in decimal units, as operating systems show file sizes. */
export function bytes(n) {
  if (n == null || !Number.isFinite(Number(n))) return '–'
  let value = Number(n)
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(value >= 9.995 ? 0 : 1)} ${units[unit]}`
}

/** A count in short form: 268 M, 1.5 B. */
export function count(n) {
  if (n == null) return '–'
  for (const [size, letter] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']]) {
    if (n >= size * 0.9995) {
      const v = n / size
      return `${v >= 99.5 ? Math.round(v) : Number(v.toPrecision(3))} ${letter}`
    }
  }
  return String(n)
}

/** A whole number with thin group separators. */
export function integer(n) {
  return n == null ? '–' : String(n).replace(/\B(?=(\d{3})+$)/g, '\u202f')
}

/** Milliseconds as a duration. */
export function duration(ms) {
  if (ms == null || !Number.isFinite(ms)) return '–'
  if (ms < 1) return ms === 0 ? '0 ms' : '< 1 ms'
  if (ms < 999.5) return `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)} ms`
  if (ms < 59950) return `${(ms / 1000).toFixed(ms < 9950 ? 2 : 1)} s`
  const s = Math.round(ms / 1000)
  return `${Math.floor(s / 60)} min ${s % 60} s`
}

/** Microseconds as a short duration: what a plugin costs. */
export function micros(us) {
  if (us == null || !Number.isFinite(us)) return '–'
  if (us >= 999.5) return duration(us / 1000)
  return us === 0 ? '0 µs' : us < 0.05 ? '< 0.1 µs' : `${us < 9.95 ? us.toFixed(1) : Math.round(us)} µs`
}

/** Fuel, of which an instruction of a plugin takes about one. */
export function fuel(n) {
  return n == null || !Number.isFinite(n) ? '–' : `${count(Math.round(n))} fuel`
}

/** Tokens per second. */
export function rate(tokensPerSecond) {
  if (!(tokensPerSecond > 0) || !Number.isFinite(tokensPerSecond)) return '–'
  return `${tokensPerSecond < 9.95 ? tokensPerSecond.toFixed(1) : Math.round(tokensPerSecond)} tok/s`
}

/** A log-probability as a probability, at most 1. */
export function probability(logprob) {
  return Math.min(1, Math.exp(logprob))
}

/** A probability in per cent, rounded down so that a list never sums above 100. */
export function percent(p) {
  if (!(p > 0)) return '0 %'
  if (p < 0.001) return '< 0.1 %'
  return p >= 1 ? '100 %' : `${(Math.floor(p * 1000 + 1e-9) / 10).toFixed(1)} %`
}

/** The five steps of the colour scale, from expected to surprising. */
export const levels = [
  { min: 0.5, name: 'expected', range: '50 % and more' },
  { min: 0.2, name: 'likely', range: '20 to 50 %' },
  { min: 0.05, name: 'open', range: '5 to 20 %' },
  { min: 0.01, name: 'unlikely', range: '1 to 5 %' },
  { min: 0, name: 'surprising', range: 'below 1 %' },
]

/** The step of a log-probability on the colour scale: 0 to 4. */
export function level(logprob) {
  const p = Math.exp(logprob)
  return levels.findIndex((l) => p >= l.min)
}

const pictures = { ' ': '·', '\t': '→', '\n': '⏎', '\r': '␍', '\u00a0': '⍽', '\u200b': '⌀', '\ufeff': '⌀' }

/** Text with its white space and control characters as visible signs. */
export function visible(text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0020\u007f\u00a0\u200b\ufeff]/g, (c) =>
    pictures[c] ?? (c === '\u007f' ? '␡' : String.fromCharCode(0x2400 + c.charCodeAt(0))))
}

/** Text on one line for a label or a chip: escapes as in JSON, without the quotes. */
export function escapeText(text) {
  return JSON.stringify(text).slice(1, -1).replace(/\\"/g, '"')
}

const escapes = { n: '\n', t: '\t', r: '\r', '\\': '\\' }

/** Reads \n, \t, \r, \\ and \uXXXX in what a person typed; anything else stays as it is. */
export function unescapeText(text) {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|([ntr\\]))/g, (_, hex, letter) =>
    hex ? String.fromCharCode(parseInt(hex, 16)) : escapes[letter])
}

/** Names the white space a prompt ends in, or ''. */
export function trailingSpace(text) {
  const tail = /[ \t\u00a0]+$/.exec(text)?.[0]
  if (!tail) return ''
  const kind = /^ +$/.test(tail) ? 'space' : /^\t+$/.test(tail) ? 'tab' : 'white-space character'
  return tail.length === 1 ? `a ${kind}` : `${tail.length} ${kind}s`
}

/** How long ago a time was; the full time stands in a title beside it. */
export function ago(iso, now = Date.now()) {
  const s = Math.max(0, (now - new Date(iso).getTime()) / 1000)
  if (!Number.isFinite(s)) return '–'
  if (s < 45) return 'just now'
  if (s < 3570) return `${Math.max(1, Math.round(s / 60))} min ago`
  if (s < 84600) return `${Math.round(s / 3600)} h ago`
  const d = Math.round(s / 86400)
  return d === 1 ? 'yesterday' : d < 30 ? `${d} days ago` : new Date(iso).toISOString().slice(0, 10)
}

/** Length of text in UTF-8 bytes. */
export function utf8Length(text) {
  let n = 0
  for (const c of text) n += utf8Width(c.codePointAt(0))
  return n
}

function utf8Width(code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
}

/**
 * Where two texts part: null when equal, else the byte offset of the first
 * difference and the texts from there on.
 */
export function difference(a, b) {
  if (a === b) return null
  const as = [...a]
  const bs = [...b]
  let i = 0
  while (i < as.length && i < bs.length && as[i] === bs[i]) i++
  const common = as.slice(0, i).join('')
  return { at: utf8Length(common), common, a: as.slice(i).join(''), b: bs.slice(i).join('') }
}

/**
 * Cuts a growing text into one piece per token by the tokens' UTF-8 byte offsets.
 * What the server holds back (a possible stop string) or cuts out never shows, and
 * the pieces always join to the text.
 */
export class TokenSlicer {
  #closed = 0 // this many leading pieces are final: the text has passed their end
  #at = 0 // where the first open piece starts, in UTF-16 units of the text
  #byte = 0 // the same place in UTF-8 bytes

  /** pieces[i] is what token i shows. */
  pieces = []

  /** Takes the whole text so far and all tokens so far; returns the pieces. */
  update(text, tokens) {
    this.pieces.length = this.#closed
    let at = this.#at
    let byte = this.#byte
    for (let i = this.#closed; i < tokens.length; i++) {
      const start = at
      const limit = i + 1 < tokens.length ? tokens[i + 1].offset : Infinity
      while (at < text.length && byte < limit) {
        const code = text.codePointAt(at)
        at += code > 0xffff ? 2 : 1
        byte += utf8Width(code)
      }
      this.pieces.push(text.slice(start, at))
      if (i === this.#closed && byte >= limit) {
        this.#closed++
        this.#at = at
        this.#byte = byte
      }
    }
    return this.pieces
  }
}

const sources = { flag: 'Named at the start', embedded: 'Inside the program', folder: 'Folder of the program', config: 'Configured folder' }

/** Where a model was found, in words; a program's name stays as it is. */
export function sourceName(source) {
  return sources[source] ?? source
}

/** Quotes a word for a POSIX shell. */
export function shellQuote(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * A request as a curl command; the key stays a variable, never its value, and media are
 * read from their files, which may be larger than an argument of a command.
 */
export function curl(origin, json, { stream = false, key = false, media = [] } = {}) {
  const lines = [`curl ${stream ? '-N ' : ''}${shellQuote(`${origin}/v1/completions`)}`, `-H 'Content-Type: application/json'`]
  if (key) lines.push('-H "Authorization: Bearer $GANGLION_KEY"')
  if (!media.length) return [...lines, `-d ${shellQuote(json)}`].join(' \\\n  ')
  return `{ ${pour(json, media).join('; ')}; } |\n  ${[...lines, '-d @-'].join(' \\\n  ')}`
}

/** Shell commands that write a request whose media come from files. */
function pour(json, media) {
  const say = (text) => `printf %s ${shellQuote(text)}`
  const commands = []
  let text = json.slice(0, -1)
  for (const kind of new Set(media.map((m) => m.kind))) {
    text += `,"${kind}":[`
    for (const [i, m] of media.filter((x) => x.kind === kind).entries()) {
      const hints = formatJSON(hintsOf(m)).slice(1, -1)
      commands.push(say(`${text}${i ? ',' : ''}${hints && '{"data":'}"`), `base64 < ${shellQuote(m.name)} | tr -d '\\n'`)
      text = hints ? `",${hints}}` : '"'
    }
    text += ']'
  }
  return [...commands, say(`${text}}`)]
}
