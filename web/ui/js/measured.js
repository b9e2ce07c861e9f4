// What the attached items will take of the context, as the server counts it. An answer is
// kept under what was asked, so none is shown for something else.
import { batch, effect, signal } from './html.js'
import { api, server } from './store.js'
import { isAbort } from './api.js'
import { attached } from './attached.js'
import { hintsOf, saidOf, wishOf, wishesWrong } from './film.js'
import { inOrder, itemAt, named, withMedia } from './media.js'

const known = signal({}) // asked -> what the server says of an item
const faults = signal([]) // {asked ('' for no item), wish, words}

/** Whether an answer is on its way. */
export const measuring = signal(false)

/** An item as it is sent: what is asked of the server, in a word. */
const asked = (item) => `${item.id} ${item.kind} ${JSON.stringify(hintsOf(item))}`

/** How the model will see an item; undefined until it is known. */
export const factsOf = (item) => known.value[asked(item)]

/** Why the server would refuse an item, as {wish, words}: wish names what is at fault, '' for the file itself. */
export const faultsOf = (item) => faults.value.filter((f) => f.asked === asked(item))

/** Why the server would not measure at all. */
export const otherFaults = () => faults.value.filter((f) => f.asked === '').map((f) => f.words)

/** The tokens of all attached items that were measured. */
export const mediaTokens = () => attached.value.reduce((sum, item) => sum + (factsOf(item)?.tokens ?? 0), 0)

const pause = 300 // ms without typing before the server is asked
let control = null
let timer = 0
let serving = '' // the model and its encoder
let files = '' // and the files, which nobody types
let question = '' // what was asked for; the server's status comes again and again

// The server measures the items alone whenever they or the model change.
effect(() => {
  const items = inOrder(attached.value)
  const { data } = server.value
  const able = items.length > 0 && data?.state === 'ready' && Boolean(data.encoder)
  const model = able ? `${data.model?.hash} ${data.encoder.name}` : ''
  const now = [model, ...items.map((i) => `${i.id} ${i.kind}`)].join('\n')
  const next = able ? [model, ...items.map(asked)].join('\n') : ''
  if (next === question) return
  const typed = now === files
  question = next
  files = now
  clearTimeout(timer)
  control?.abort()
  batch(() => {
    if (model !== serving) {
      known.value = {}
      faults.value = []
    }
    measuring.value = able
  })
  serving = model
  if (!able) return
  control = new AbortController()
  timer = setTimeout(measure, typed ? pause : 0, items, control)
})

// One that is refused is told by its name, and the others are measured without it.
async function measure(items, { signal }) {
  const whys = []
  const of = {}
  let rest = items.filter((item) => !wishesWrong(item)) // the field says what is wrong
  while (rest.length) {
    try {
      const { media } = await api.measure(withMedia({}, rest), signal)
      rest.forEach((item, i) => { of[asked(item)] = media[i] })
      rest = []
    } catch (error) {
      if (isAbort(error)) return
      const bad = itemAt(rest, error.param)
      whys.push(faultOf(error, bad))
      if (error.kind === 'network') question = '' // again with the next status
      rest = bad ? rest.filter((item) => item !== bad) : []
    }
  }
  if (signal.aborted) return
  batch(() => {
    known.value = of
    faults.value = whys
    measuring.value = false
  })
}

function faultOf({ message, param }, item) {
  if (!item) return { asked: '', wish: '', words: message }
  const wish = wishOf(param)
  return { asked: asked(item), wish, words: wish ? saidOf(message, param) : named(message, param, item.name) }
}
