// Pictures, sound and film that a person attaches to a prompt: which files they may be,
// and how they become fields of a request. Pure.
import { hintsOf } from './film.js'

/** The kinds of media, as fields of a request. */
export const kinds = ['images', 'audios', 'videos']

const endings = {
  images: /\.(png|apng|jpe?g|gif|bmp|tiff?|webp)$/i,
  audios: /\.(wav|mp3|flac|ogg|oga|opus|m4a|aac|amr)$/i,
  videos: /\.(mp4|m4v|mov|mkv|webm|avi|mjpe?g)$/i,
}
const types = { images: /^image\//, audios: /^audio\//, videos: /^video\// }

/** What a file chooser offers. */
export const accept = 'image/*,audio/*,video/*,.flac,.opus,.mkv'

/** The field that a file belongs to, '' for none. */
export function kindOf({ name = '', type = '' }) {
  const byName = kinds.find((k) => endings[k].test(name))
  return byName ?? kinds.find((k) => types[k].test(type) && type !== 'image/svg+xml') ?? ''
}

const words = { images: ['picture', 'pictures'], audios: ['sound', 'sounds'], videos: ['film', 'films'] }
const mebibytes = (n) => `${Number((n / 2 ** 20).toFixed(1))} MiB`
const room = 2 ** 16 // of a request, for all that is not media

/**
 * Why a file cannot be attached to the items that are there; '' when it may be. limits are
 * those of the server's status; what they do not tell the server decides. kind is what it is
 * to be sent as.
 */
export function problemOf(file, items = [], limits = {}, kind = kindOf(file)) {
  if (!kind) return `“${file.name}” is no picture, sound or film that can be read.`
  if (file.size === 0) return `“${file.name}” is empty.`
  if (file.size > limits.item_bytes) return `“${file.name}” is larger than ${mebibytes(limits.item_bytes)}.`
  const most = limits[kind]
  if (items.filter((i) => i.kind === kind).length >= most) return `“${file.name}” is one too many: a request takes ${most} ${words[kind][most === 1 ? 0 : 1]}.`
  const sum = items.reduce((n, i) => n + i.bytes, file.size)
  const all = Math.min(limits.bytes ?? Infinity, Math.floor((limits.body_bytes - room) / 4) * 3 || Infinity) // as base64
  if (sum > all) return `“${file.name}” brings the files to ${mebibytes(sum)}; a request takes ${mebibytes(all)}.`
  return ''
}

/** Why the model that serves cannot use a kind; '' when it can. */
export function refusal(kind, encoder) {
  const names = { images: 'pictures', audios: 'sound', videos: 'film' }
  if (!encoder) return 'This model takes text only. Pictures and sound need its encoder: put its mmproj file beside the model, or start Ganglion with --mmproj FILE.'
  return encoder[kind] ? '' : `The model’s encoder ${encoder.name} takes no ${names[kind]}.`
}

/** What a person should know of the decoder of films before a film is sent; '' for nothing. */
export function filmNote(items, films) {
  if (!items.some((i) => i.kind === 'videos' && !i.moving)) return '' // moving pictures need none
  if (films?.state === 'compiling') return `The decoder of films is being made ready, ${Math.round(films.share * 100)} % so far. A film that is sent now waits for it.`
  if (films?.state === 'failed') return `The decoder of films could not be made ready: ${films.error}. The next film tries again.`
  return ''
}

/** Bytes as base64. */
export function base64(bytes) {
  let out = ''
  const step = 3 * 8192 // whole groups, and not too many arguments
  for (let at = 0; at < bytes.length; at += step) out += btoa(String.fromCharCode(...bytes.subarray(at, at + step)))
  return out
}

/** An item as it stands in a request: its bytes, or where there are hints a descriptor with both. */
function sentAs(item) {
  const hints = hintsOf(item)
  return Object.keys(hints).length ? { data: item.data, ...hints } : item.data
}

/** A request with the attached items, in their order. */
export function withMedia(request, items) {
  const out = { ...request }
  for (const kind of kinds) {
    const data = items.filter((i) => i.kind === kind).map(sentAs)
    if (data.length) out[kind] = data
  }
  return out
}

/** Attached items in the order in which a server counts them: images, audios, videos. */
export const inOrder = (items) => kinds.flatMap((kind) => items.filter((i) => i.kind === kind))

/** The kind of an item as the server names it, such as images[1]. */
export const kindOfParam = (param) => kinds.find((kind) => param?.startsWith(kind)) ?? ''

/** The item that the server means by a name such as images[1]; undefined for none. */
export function itemAt(items, param) {
  const [, kind, i] = /^([a-z]+)\[(\d+)\]/.exec(param ?? '') ?? []
  return items.filter((item) => item.kind === kind)[i]
}

/** A message of the server about an item, with the name of its file: “a.png” is broken. */
export function named(message, param, name) {
  const said = message.startsWith(`${param}: `) ? message.slice(param.length + 2) : message
  return `“${name}”${/^(is|has|must|holds|declares|lasts|brings|names) /.test(said) ? '' : ':'} ${said}`
}

const secondsOf = (s) => (s < 9.95 ? s.toFixed(1) : String(Math.round(s)))
const counted = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`

/** How long a sound or film is, and which part of it the model looks at. */
function lengthOf({ seconds, hints }) {
  if (!seconds) return ''
  const from = hints?.start ?? 0
  const until = Math.min(hints?.end || seconds, seconds)
  const part = from > 0 || until < seconds ? `${secondsOf(from)} to ${secondsOf(until)} s of ` : ''
  return `${part}${secondsOf(seconds)} s`
}

/** How the model will see an item, in words. */
export function seen(m) {
  if (!m) return ''
  const size = m.width ? `${m.width} × ${m.height}` : ''
  const parts = !m.frames && m.pieces?.length > 1 ? ` in ${m.pieces.length} pieces` : ''
  return [size, lengthOf(m), m.frames && counted(m.frames, 'frame'), `${counted(m.tokens, 'token')}${parts}`].filter(Boolean).join(', ')
}

/** A recorded request without the notes that stand in the place of its media. */
export const withoutMedia = (request) => Object.fromEntries(Object.entries(request).filter(([name]) => !kinds.includes(name)))

/** Whether a recorded request had media. */
export const hadMedia = (record) => (record.media?.length ?? 0) > 0
