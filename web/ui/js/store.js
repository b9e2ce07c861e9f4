// What all views share: the address, the look, the key, the server's status, and
// the announcements for screen readers. The view's state lives in the hash:
// #/history?q=cat&outcome=stop.
import { signal, effect, batch } from './html.js'
import { API, APIError, isAbort } from './api.js'

export const views = ['playground', 'history', 'models', 'plugins']

/** Splits a hash into view and query; an unknown view is the playground. */
export function parseHash(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  return { view: views.includes(path) ? path : 'playground', query: new URLSearchParams(query) }
}

/** The hash of a view and its query. */
export function formatHash(view, query = new URLSearchParams()) {
  const q = query.toString()
  return `#/${view}${q ? `?${q}` : ''}`
}

// Storage may be forbidden (private windows, policies): the page works without it.
const stored = (area, key) => {
  try { return window[area].getItem(key) } catch { return null }
}
const keep = (area, key, value) => {
  try { value === '' ? window[area].removeItem(key) : window[area].setItem(key, value) } catch { /* see above */ }
}

/** The key of this tab: desktop mode passes it in the address, else a person types it. */
export const token = signal(takeToken())

function takeToken() {
  const m = /^#token=([^&]+)/.exec(location.hash)
  if (!m) return stored('sessionStorage', 'ganglion.token') ?? ''
  keep('sessionStorage', 'ganglion.token', m[1])
  history.replaceState(null, '', `${location.pathname}${formatHash('playground')}`)
  return m[1]
}

/** Sets the key a person typed. */
export function setToken(value) {
  keep('sessionStorage', 'ganglion.token', value)
  token.value = value
  refreshStatus()
}

export const api = new API({ fetch: (...a) => window.fetch(...a), token: () => token.peek() })

takeLeft()

// A reload goes to the address as the browser knew it when the reload began, so what was
// written to it since then is taken from the tab's storage: addresses that were replaced,
// and the one that took their place.
function takeLeft() {
  const before = JSON.parse(stored('sessionStorage', 'ganglion.left') ?? '[]')
  keep('sessionStorage', 'ganglion.left', '')
  const hash = before.pop()
  const anew = performance.getEntriesByType('navigation')[0]?.type === 'navigate'
  if (!anew && before.includes(location.hash)) history.replaceState(null, '', hash)
}

/** Where we are. */
export const route = signal(parseHash(location.hash))

let known = location.hash
let replaced = [] // the last addresses in whose place the one of now was put

addEventListener('hashchange', () => {
  known = location.hash
  replaced = []
  route.value = parseHash(known)
})

/** Whether route is where the browser is: right after a step back it is not yet. */
export const settled = () => location.hash === known

const leavers = new Set()

/** Calls f before a click does something and before the page is left, until what it returns is called: what waits for the address goes there. */
export function leaving(f) {
  leavers.add(f)
  return () => leavers.delete(f)
}

const leave = () => leavers.forEach((f) => f())
addEventListener('click', leave, true)
for (const name of ['beforeunload', 'pagehide']) {
  addEventListener(name, () => {
    leave()
    if (replaced.length) keep('sessionStorage', 'ganglion.left', JSON.stringify([...replaced, location.hash]))
  })
}

/** Goes to a view; a new history entry unless replace is set. */
export function go(view, query, { replace = false } = {}) {
  const hash = formatHash(view, query)
  if (hash === location.hash) return
  replaced = replace ? [...replaced, location.hash].slice(-4) : []
  history[replace ? 'replaceState' : 'pushState'](null, '', hash)
  known = location.hash
  route.value = parseHash(hash)
}

/** "auto", "light" or "dark". */
export const theme = signal(stored('localStorage', 'ganglion.theme') ?? 'auto')

/** Whether the dark scheme is shown now. */
export const systemDark = signal(matchMedia('(prefers-color-scheme: dark)').matches)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (e) => { systemDark.value = e.matches })

effect(() => {
  const chosen = theme.value
  const dark = chosen === 'auto' ? systemDark.value : chosen === 'dark'
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
  keep('localStorage', 'ganglion.theme', chosen === 'auto' ? '' : chosen)
})

/** How the output is shown; kept on this machine, not in the address. */
export const look = signal({ colour: true, space: false, mono: false, stages: false, enter: false, chart: 'logprob', ...readLook() })

function readLook() {
  try { return JSON.parse(stored('localStorage', 'ganglion.look') ?? '{}') } catch { return {} }
}
effect(() => keep('localStorage', 'ganglion.look', JSON.stringify(look.value)))

/** The server as last seen: {state: "connecting"|"online"|"offline"|"locked", data}. */
export const server = signal({ state: 'connecting', data: null })

let pending = null
let timer = 0

/** Asks for the status now; later answers follow by themselves. */
export async function refreshStatus() {
  clearTimeout(timer)
  pending?.abort()
  const control = (pending = new AbortController())
  try {
    const data = await api.status(control.signal)
    batch(() => { server.value = { state: 'online', data } })
  } catch (error) {
    if (isAbort(error) || control !== pending) return
    const state = error instanceof APIError && error.status === 401 ? 'locked' : 'offline'
    server.value = { state, data: server.peek().data }
  }
  schedule()
}

function schedule() {
  clearTimeout(timer)
  if (document.hidden) return
  const { state, data } = server.peek()
  timer = setTimeout(refreshStatus, state === 'online' && data?.loading ? 400 : state === 'online' ? 5000 : 2000)
}

document.addEventListener('visibilitychange', () => (document.hidden ? clearTimeout(timer) : refreshStatus()))

/** The plugins as last seen: {list, error}; list is null until they were. */
export const plugins = signal({ list: null, error: null })

let asked = 0
let heard = 0 // the last question that was answered: an answer to one before it is out of date

/**
 * Asks for the plugins now; while the server still loads them, again a moment later, and so
 * while a view that waits for them (it has a signal) has none because the server failed.
 */
export async function refreshPlugins(signal) {
  const again = (ms) => setTimeout(() => signal?.aborted || refreshPlugins(signal), ms)
  const mine = ++asked
  try {
    const list = await api.plugins(signal)
    if (mine > heard) {
      heard = mine
      plugins.value = { list, error: null }
    }
    if (list.loading && !signal?.aborted) again(500)
  } catch (error) {
    if (isAbort(error) || mine < heard) return
    const { list } = plugins.peek()
    plugins.value = { list, error }
    if (signal && (!list || list.loading) && !(error.status >= 400 && error.status < 500)) again(2000)
  }
}

/** A short message for everyone, seen and heard; replaced by the next one. */
export const notice = signal({ text: '', n: 0 })

/** Shows and announces a short message. */
export function say(text) {
  notice.value = { text, n: notice.peek().n + 1 }
}

/** Copies text and says so. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text)
    say(`${what} copied`)
  } catch {
    say('The browser did not allow copying: select the text and copy it by hand.')
  }
}
