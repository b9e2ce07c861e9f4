// What is attached to the prompt now, and what it will take of the context.
import { batch, effect, signal } from './html.js'
import { api, say, server } from './store.js'
import { isAbort } from './api.js'
import { base64, hadMedia, inOrder, itemAt, kindOf, kindOfParam, named, problemOf, withMedia } from './media.js'

/** The attached items: {id, kind, name, bytes, data (base64), file}. */
export const attached = signal([])

/** Why the last file was not taken; '' when all were. */
export const problem = signal('')

/** What the items take, as the server counts: {of: id -> item, tokens}; null until it has. */
export const measured = signal(null)

/** Why the server would refuse them, in sentences. */
export const refused = signal([])

let last = 0

/** Attaches files, in their order; what cannot be media is refused by name. */
export async function attach(files) {
  problem.value = ''
  const names = []
  for (const file of files) {
    const why = problemOf(file, attached.peek(), server.peek().data?.media)
    if (why) {
      problem.value = why
      continue
    }
    try {
      const data = base64(new Uint8Array(await file.arrayBuffer()))
      attached.value = [...attached.peek(), { id: ++last, kind: kindOf(file), name: file.name || 'pasted', bytes: file.size, data, file }]
      names.push(file.name || 'pasted')
    } catch {
      problem.value = `“${file.name}” could not be read.`
    }
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
    const items = await Promise.all(record.media.map(async ({ param, mime }, i) => ({
      id: ++last, kind: kindOfParam(param), name: param, bytes: files[i].size,
      data: base64(new Uint8Array(await files[i].arrayBuffer())), file: new Blob([files[i]], { type: mime }),
    })))
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

let control = null
let asked = '' // what was asked for; the server's status comes again and again

// The server measures the items alone whenever they or the model change.
effect(() => {
  const items = inOrder(attached.value)
  const { data } = server.value
  const able = items.length > 0 && data?.state === 'ready' && Boolean(data.encoder)
  const key = able ? `${items.map((i) => i.id)} ${data.model?.hash} ${data.encoder.name}` : ''
  if (key === asked) return
  asked = key
  control?.abort()
  control = new AbortController()
  if (able) measure(items, control)
  else batch(() => { measured.value = null; refused.value = [] })
})

// One that is refused is told by its name, and the others are measured without it.
async function measure(items, { signal }) {
  const whys = []
  let rest = items
  while (rest.length) {
    try {
      const answer = await api.measure(withMedia({}, rest), signal)
      const of = Object.fromEntries(rest.map((item, i) => [item.id, answer.media[i]]))
      batch(() => {
        measured.value = { of, tokens: answer.media.reduce((sum, m) => sum + m.tokens, 0) }
        refused.value = whys
      })
      return
    } catch (error) {
      if (isAbort(error)) return
      const bad = itemAt(rest, error.param)
      whys.push(bad ? named(error.message, error.param, bad.name) : error.message)
      if (error.kind === 'network') asked = '' // again with the next status
      if (!bad) break
      rest = rest.filter((item) => item !== bad)
    }
  }
  batch(() => { measured.value = null; refused.value = whys })
}
