// The request log: search, filter, paging; one record beside or instead of the
// list. Everything about the view is in the address: q, outcome, id.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../html.js'
import { api, formatHash, go, leaving, route, server, settled } from '../store.js'
import { isAbort } from '../api.js'
import { ago, duration, integer } from '../format.js'
import { Record } from './record.js'
import { Refresh, Warn } from './icons.js'

const pageSize = 30

export const outcomes = {
  stop: 'finished', length: 'limit reached', cancelled: 'cancelled', error: 'failed', interrupted: 'interrupted', open: 'running',
}

export function History() {
  const { query } = route.value
  const q = query.get('q') ?? ''
  const outcome = query.get('outcome') ?? ''
  const id = query.get('id')
  const log = useLog(q, outcome)
  return html`
    <div class=${`history ${id ? 'with-record' : ''}`}>
      <section class="log" aria-labelledby="log-title">
        <header class="view-head">
          <h2 id="log-title">Requests</h2>
          <button class="button ghost small" onClick=${log.reload}><${Refresh} size="16" /><span>Refresh</span></button>
        </header>
        <${Filter} q=${q} outcome=${outcome} />
        <${LogNote} />
        <${List} log=${log} filtered=${q !== '' || outcome !== ''} id=${id} query=${query} />
      </section>
      ${id && html`<${Record} key=${id} id=${id} back=${without(query, 'id')} onRead=${log.read} />`}
    </div>`
}

const without = (query, name) => {
  const q = new URLSearchParams(query)
  q.delete(name)
  return formatHash('history', q)
}

/** The pages loaded so far, for one search. */
function useLog(q, outcome) {
  const [state, setState] = useState({ phase: 'loading', records: [], next: null, error: null })
  const [round, setRound] = useState(0)
  const control = useRef(null)
  const fetchPage = async (before, keepOld) => {
    control.current?.abort()
    const mine = (control.current = new AbortController())
    setState((s) => ({ ...s, phase: keepOld ? 'more' : 'loading', error: null }))
    try {
      const page = await api.log({ limit: pageSize, before, q, outcome }, mine.signal)
      setState((s) => ({ phase: 'ready', error: null, next: page.next ?? null, records: keepOld ? [...s.records, ...page.records] : page.records }))
    } catch (error) {
      if (!isAbort(error)) setState((s) => ({ ...s, phase: 'failed', error }))
    }
  }
  useEffect(() => {
    fetchPage('', false)
    return () => control.current?.abort()
  }, [q, outcome, round])
  // A record that is read may have ended since its row was.
  const read = (record) => setState((s) => ({ ...s, records: s.records.map((r) => (r.id === record.id && r.outcome === 'open' ? ended(r, record) : r)) }))
  return { ...state, read, reload: () => setRound((n) => n + 1), more: () => fetchPage(state.next, true) }
}

/** A row with what its record says of its end. */
const ended = (row, { outcome, text = '', completion_tokens, queue_ms, prefill_ms, decode_ms }) => ({ ...row, outcome, text: text.slice(0, 400), completion_tokens, queue_ms, prefill_ms, decode_ms })

function Filter({ q, outcome }) {
  const [text, setText] = useState(q)
  const waiting = useRef({ timer: 0, value: null }) // a search that is still being typed
  useLayoutEffect(() => setText(q), [q]) // in the same step: done later, it would undo what was typed meanwhile
  const put = (name, value) => {
    const query = new URLSearchParams(route.peek().query)
    value ? query.set(name, value) : query.delete(name)
    go('history', query, { replace: true })
  }
  const search = () => {
    const { timer, value } = waiting.current
    clearTimeout(timer)
    waiting.current = { timer: 0, value: null }
    if (value !== null && settled()) put('q', value)
  }
  const type = (e) => {
    const value = e.target.value
    setText(value)
    clearTimeout(waiting.current.timer)
    waiting.current = { timer: setTimeout(search, 250), value }
  }
  useEffect(() => {
    const stay = leaving(search)
    return () => {
      stay()
      clearTimeout(waiting.current.timer)
    }
  }, [])
  return html`
    <form class="filter" role="search" aria-label="Search the requests" onSubmit=${(e) => e.preventDefault()}>
      <label class="hidden" for="log-q">Search in prompts and answers</label>
      <input id="log-q" class="input" type="search" placeholder="Search in prompts and answers" value=${text} onInput=${type} />
      <label class="hidden" for="log-outcome">Outcome</label>
      <select id="log-outcome" class="input" value=${outcome} onChange=${(e) => put('outcome', e.target.value)}>
        <option value="">All outcomes</option>
        ${Object.entries(outcomes).map(([v, name]) => html`<option key=${v} value=${v}>${name[0].toUpperCase() + name.slice(1)}</option>`)}
      </select>
    </form>`
}

/** Says when the log itself has a problem: a dropped record is counted and shown. */
function LogNote() {
  const log = server.value.data?.log
  if (log?.state === 'off') return html`<p class="note">The request log is switched off: new requests are not kept.</p>`
  if (!log || (log.state === 'ok' && !log.dropped)) return null
  return html`<p class="warning"><${Warn} size="16" /><span>
    ${log.state !== 'ok' && `The request log has a problem: ${log.state}. `}
    ${log.dropped > 0 ? `${integer(log.dropped)} ${log.dropped === 1 ? 'record was' : 'records were'} dropped because the disk was too slow or full.` : ''}</span></p>`
}

function List({ log, filtered, id, query }) {
  if (log.phase === 'failed') {
    return html`<div class="card empty" role="alert"><h3>The log could not be read</h3><p class="wrap">${log.error.message}</p><p><button class="button" onClick=${log.reload}>Try again</button></p></div>`
  }
  if (log.phase === 'loading' && log.records.length === 0) return html`<${Skeleton} />`
  if (log.records.length === 0) {
    return filtered ? html`<div class="card empty"><h3>Nothing matches</h3><p>Try fewer words or another outcome.</p><p><a class="button" href="#/history">Show all</a></p></div>`
      : html`<div class="card empty"><h3>No requests yet</h3><p>Every request to this server is kept here, with its parameters, seed and timings, so that it can be repeated to the byte. It never leaves this machine.</p><p><a class="button primary" href="#/playground">Make the first one</a></p></div>`
  }
  return html`
    <ul class=${`log-list ${log.phase === 'loading' ? 'stale' : ''}`} aria-label="Requests, newest first">
      ${log.records.map((r) => html`<${Item} key=${r.id} r=${r} current=${r.id === id} query=${query} />`)}
    </ul>
    ${log.next && html`<p class="more"><button class="button" disabled=${log.phase === 'more'} onClick=${log.more}>${log.phase === 'more' ? 'Loading…' : 'Show older'}</button></p>`}`
}

/** Text on one line, its line breaks as signs. */
const oneLine = (text) => text.replace(/\s*\n\s*/g, ' ⏎ ')

function Item({ r, current, query }) {
  const to = new URLSearchParams(query)
  to.set('id', r.id)
  const tps = r.decode_ms > 0 && r.completion_tokens > 1 ? Math.round(((r.completion_tokens - 1) * 1000) / r.decode_ms) : 0
  return html`
    <li><a class="log-item" href=${formatHash('history', to)} aria-current=${current ? 'true' : undefined}>
      <span class="log-text"><span class="log-prompt">${r.prompt ? oneLine(r.prompt) : 'no text kept'}</span>${r.text && html`<span class="log-answer">${oneLine(r.text)}</span>`}</span>
      <span class="log-meta">
        <${Outcome} value=${r.outcome} />
        <time datetime=${r.created_at} title=${new Date(r.created_at).toLocaleString()}>${ago(r.created_at)}</time>
        <span>${integer(r.prompt_tokens)} + ${integer(r.completion_tokens)} tokens</span>
        ${tps > 0 && html`<span>${tps} tok/s</span>`}
        <span>${duration((r.queue_ms ?? 0) + (r.prefill_ms ?? 0) + (r.decode_ms ?? 0))}</span>
      </span>
    </a></li>`
}

/** An outcome as a badge: shape and word, not colour alone. */
export function Outcome({ value }) {
  return html`<span class=${`outcome outcome-${value}`}>${outcomes[value] ?? value}</span>`
}

function Skeleton() {
  return html`<div class="skeletons" role="status"><span class="hidden">Loading the requests</span>${[1, 2, 3, 4, 5].map((i) => html`<div key=${i} class="skeleton" aria-hidden="true"></div>`)}</div>`
}
