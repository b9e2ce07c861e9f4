// What is attached to the prompt now.
import { batch, effect, signal } from './html.js'
import { api, say, server } from './store.js'
import { base64, hadMedia, kindOf, kindOfParam, problemOf } from './media.js'
import { fromHints, noWishes } from './film.js'
import { moves, ownKind, settled } from './moving.js'

/**
 * The attached items: {id, kind, name, bytes, data (base64), file, moving, chosen, wishes,
 * hints}. moving: a picture with more than one frame, which a person may have chosen the kind
 * of; wishes are texts (film.js), hints what else its descriptor has.
 */
export const attached = signal([])

/** Why the last file was not taken; '' when all were. */
export const problem = signal('')

let last = 0

/** An item of a file whose bytes were read. */
function itemOf(kind, name, file, content, more) {
  const moving = kind !== 'audios' && moves(content)
  return { id: ++last, kind, name, bytes: content.length, data: base64(content), file, moving, chosen: false, wishes: noWishes(), hints: {}, ...more }
}

const bytesOf = async (file) => new Uint8Array(await file.arrayBuffer())

/** Attaches files, in their order; what cannot be media is refused by name. */
export async function attach(files) {
  problem.value = ''
  const names = []
  for (const file of files) {
    const { data } = server.peek()
    let why = problemOf(file, [], data?.media)
    try {
      const item = !why && itemOf(kindOf(file), file.name || 'pasted', file, await bytesOf(file))
      const items = attached.peek()
      if (item?.moving) item.kind = ownKind(items, data)
      why ||= problemOf(file, items, data?.media, item.kind)
      if (!why) {
        attached.value = [...items, item]
        names.push(item.name)
      }
    } catch {
      why = `“${file.name}” could not be read.`
    }
    if (why) problem.value = why
  }
  if (names.length) say(`Attached: ${names.join(', ')}`)
}

let opened = 0

/** Puts the media of a record in place of what is attached, where the log has all of them. */
export async function attachKept(record) {
  const mine = ++opened
  attached.value = []
  problem.value = ''
  if (!hadMedia(record)) return
  if (!record.media.every((m) => m.kept)) {
    say('The log holds no media: attach them again')
    return
  }
  try {
    const files = await Promise.all(record.media.map((m, i) => api.mediaFile(record.id, i)))
    const items = await Promise.all(record.media.map(async ({ param, mime, hints }, i) =>
      itemOf(kindOfParam(param), param, new Blob([files[i]], { type: mime }), await bytesOf(files[i]), { chosen: true, ...fromHints(hints) })))
    if (mine === opened) attached.value = [...items, ...attached.peek()] // not where another record was opened meanwhile
  } catch {
    if (mine === opened) problem.value = 'The media of the record could not be read. Attach them again.'
  }
}

/** Takes an item away. */
export function detach(id) {
  const item = attached.peek().find((i) => i.id === id)
  batch(() => {
    attached.value = attached.peek().filter((i) => i.id !== id)
    problem.value = ''
  })
  if (item) say(`Removed: ${item.name}`)
}

const change = (id, patch) => { attached.value = attached.peek().map((i) => (i.id === id ? { ...i, ...patch } : i)) }

/** Sends a moving picture as one of images or of videos; false where no more of these may be sent. */
export function sendAs({ id, name, bytes }, kind) {
  const others = attached.peek().filter((i) => i.id !== id)
  const why = problemOf({ name, size: bytes }, others, server.peek().data?.media, kind)
  batch(() => {
    problem.value = why
    if (!why) change(id, { kind, chosen: true })
  })
  return !why
}

/** Sets one wish about a film, as it was typed. */
export function wish(id, name, text) {
  const { wishes } = attached.peek().find((i) => i.id === id)
  change(id, { wishes: { ...wishes, [name]: text } })
}

let films = false // whether the model took films when it was last ready

// Another model may take films or not: moving pictures that nobody chose a kind for follow.
effect(() => {
  const { data } = server.value
  const takes = Boolean(data?.encoder?.videos)
  if (takes === films || data?.state !== 'ready') return
  films = takes
  attached.value = settled(attached.peek(), data)
})
