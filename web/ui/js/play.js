// The playground's state: the form, the run, and their place in the address.
import { signal, effect, untracked, batch } from './html.js'
import { api, route, go, copy, leaving, look, say, settled } from './store.js'
import { isRefusal } from './api.js'
import { Runner } from './run.js'
import { controlOf, defaults, fromQuery, toQuery, toRequest } from './params.js'
import { curl } from './format.js'
import { formatJSON } from './json.js'
import { attached } from './attached.js'
import { inOrder, itemAt, named, withMedia } from './media.js'
import { saidOf, wishID, wishOf } from './film.js'
import { spaced } from './spaced.js'
import { token } from './store.js'

// Browsers and proxies differ in how long an address may be; a prompt beyond this
// stays out of it, and the page says so.
const longestPrompt = 16000

/** What the person has set. */
export const form = signal(fromQuery(route.peek().view === 'playground' ? route.peek().query : new URLSearchParams()))

/** Changes some fields of the form. */
export function set(patch) {
  form.value = { ...form.peek(), ...patch }
}

export const runner = new Runner({ api })
export const run = runner.state

/** The control that the server refused, and why; control is its id where it is one of an attached item's. */
export const invalid = signal(allWell())

/** No control is refused. */
export function allWell() {
  return { name: '', param: '', message: '', control: '' }
}

/** Parameters as the server resolved them in the last run: name -> {value, origin}. */
export const resolved = signal({})

// The form goes into the address as it changes. Browsers bound how often a page may
// write it (Safari: 100 times in 30 s).
const address = spaced(() => {
  if (route.peek().view === 'playground' && settled()) go('playground', addressOf(form.peek()), { replace: true })
}, 350)
leaving(address.now)
effect(() => {
  void form.value // what is written is the form of then
  if (route.value.view === 'playground') address.later()
})

// An address that someone opened or went back to wins over the form; the bare
// "#/playground" of the menu does not.
effect(() => {
  const { view, query } = route.value
  if (view !== 'playground' || query.toString() === '') return
  untracked(() => {
    if (query.toString() !== addressOf(form.peek()).toString()) form.value = fromQuery(query)
  })
})

function addressOf(state) {
  return toQuery(state.prompt.length > longestPrompt ? { ...state, prompt: '' } : state)
}

/** Runs the form as it stands, or with some fields changed first. */
export async function start(patch) {
  if (runner.busy) return
  batch(() => {
    if (patch) set(patch)
    invalid.value = allWell()
  })
  address.now()
  await runner.run(withMedia(toRequest(form.peek()), attached.peek()), { stages: look.peek().stages })
  const { error, detail } = run.peek()
  if (detail?.params) resolved.value = Object.fromEntries(detail.params.map((p) => [p.name, p]))
  const name = error && (isRefusal(error) || error.code === 'media_timeout') ? controlOf(error.param) : ''
  if (!name) return
  invalid.value = refusal(name, error)
  const control = document.getElementById(invalid.peek().control || `p-${fieldPointer(error.param)}`) ?? document.getElementById(`p-${name}`)
  control?.closest('details')?.setAttribute('open', '')
  control?.focus()
}

/** What a refusal says of a control, of an attached item by its name. */
function refusal(name, { param, message }) {
  const item = itemAt(inOrder(attached.peek()), param)
  const wish = item ? wishOf(param) : ''
  if (wish) return { name, param, message: saidOf(message, param), control: wishID(item, wish) }
  return { name, param, message: item ? named(message, param, item.name) : message, control: '' }
}

/** The pointer of the setting that holds what a pointer names: an entry of a list has no control. */
const fieldPointer = (pointer) => /^\/plugins\/\d+\/config\/[^/]+/.exec(pointer)?.[0] ?? pointer

/** Puts every parameter back to its default; the prompt stays. */
export function reset() {
  batch(() => {
    form.value = { ...defaults(), prompt: form.peek().prompt }
    invalid.value = allWell()
  })
  say('Parameters are back at their defaults')
}

/** Copies the form as a shell command. */
export function copyCurl() {
  const request = toRequest(form.peek())
  return copy(curl(location.origin, formatJSON(request), { stream: form.peek().stream, key: token.peek() !== '', media: attached.peek() }), 'Command')
}

/** Copies the address that brings this prompt and these parameters back. */
export function share() {
  const state = form.peek()
  go('playground', addressOf(state), { replace: true })
  if (attached.peek().length) say('A link holds no media: attach them again where it is opened')
  if (state.prompt.length > longestPrompt) say('The prompt is too long for a link: the link holds the parameters only')
  return copy(location.href, 'Link')
}

/** Sets a token's bias: -100 bans it. */
export function bias(id, text, value) {
  const rest = form.peek().bias.filter((b) => b.id !== id)
  set({ bias: [...rest, { id, text, value }] })
}
