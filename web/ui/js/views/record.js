// One record of the log in full.
import { html, useEffect, useLayoutEffect, useState, useRef } from '../html.js'
import { api, copy, go } from '../store.js'
import { isAbort } from '../api.js'
import { curl, duration, integer, rate } from '../format.js'
import { formatJSON, parseJSON } from '../json.js'
import { fromRequest, toQuery } from '../params.js'
import { TokenSlicer } from '../format.js'
import { attachKept } from '../attached.js'
import { fromHints } from '../film.js'
import { kindOfParam, withoutMedia } from '../media.js'
import { MediaNotes } from './medianotes.js'
import { Back, Terminal } from './icons.js'
import { Outcome } from './history.js'
import { ParamTable } from './stats.js'
import { withChoices } from '../plugins.js'
import { PluginReports } from './pluginreports.js'
import { TokenText } from './tokentext.js'
import { Replay } from './replay.js'

/** A record as the views use it: the request decoded, the tokens in one shape. */
export function readRecord(raw) {
  let request = null
  try {
    request = typeof raw.request === 'string' && raw.request !== '' ? parseJSON(raw.request) : raw.request ?? null
  } catch {
    request = null // kept as received, also when it was not JSON
  }
  const tokens = withChoices((raw.tokens ?? []).map((t) => ({ ...t, top: t.top ?? [] })), raw.plugins)
  return { ...raw, request, body: raw.request, tokens, pieces: [...new TokenSlicer().update(raw.text ?? '', tokens)] }
}

const again = 1000 // ms until a record that is still being written is asked for once more

export function Record({ id, back, onRead }) {
  const [state, setState] = useState({ record: null, error: null })
  const heading = useRef(null)
  useEffect(() => {
    const control = new AbortController()
    let timer = 0
    let open = false
    const ask = () => api.record(id, control.signal).then(
      (raw) => {
        setState({ record: readRecord(raw), error: null })
        onRead(raw)
        open = raw.outcome === 'open'
      },
      (error) => {
        if (isAbort(error) || (open && error.status !== 404)) return // what stands there is still so
        open = false
        setState({ record: null, error })
      }).then(() => { if (open && !control.signal.aborted) timer = setTimeout(ask, again) })
    ask()
    return () => {
      control.abort()
      clearTimeout(timer)
    }
  }, [id])
  const there = state.record !== null
  // In the step that draws the record: done later, it would take the focus from what was chosen meanwhile.
  useLayoutEffect(() => { if (there) heading.current?.focus({ preventScroll: innerWidth > 900 }) }, [there])
  return html`
    <section class="record" aria-labelledby="record-title">
      <header class="view-head">
        <a class="button ghost small back" href=${back}><${Back} size="16" /><span>All requests</span></a>
        <h2 id="record-title" tabindex="-1" ref=${heading}>Request</h2>
        ${state.record && html`<${Outcome} value=${state.record.outcome} />`}
      </header>
      ${state.error && html`<div class="card empty" role="alert"><h3>${state.error.status === 404 ? 'This record is gone' : 'The record could not be read'}</h3><p class="wrap">${state.error.status === 404 ? 'The log is bounded by age and size: old records make room for new ones.' : state.error.message}</p></div>`}
      ${!state.error && !state.record && html`<div class="skeletons" role="status"><span class="hidden">Loading the record</span><div class="skeleton tall" aria-hidden="true"></div></div>`}
      ${state.record && html`<${Body} record=${state.record} />`}
    </section>`
}

function Body({ record }) {
  const open = (prompt) => {
    const state = fromRequest(record.request, record)
    if (prompt !== undefined) state.prompt = prompt
    attachKept(record)
    go('playground', toQuery(state))
  }
  const asCurl = () => {
    const body = withoutMedia(record.request ?? { prompt: record.prompt })
    const media = (record.media ?? []).map((m) => ({ kind: kindOfParam(m.param), name: m.param, ...fromHints(m.hints) })) // of files by these names
    copy(curl(location.origin, formatJSON({ ...body, seed: record.seed }), { stream: record.stream, media }), 'Command')
  }
  return html`
    <div class="card record-card">
      <h3>Prompt</h3>
      <pre class="text-block">${record.prompt || html`<span class="muted">No text was kept.</span>`}</pre>
      ${record.media?.length > 0 && html`<h3>Media</h3><${MediaNotes} record=${record} />`}
      <h3>Answer</h3>
      ${record.error_message && html`<div class="failure"><p class="wrap">${record.error_message}</p></div>`}
      ${record.text || record.tokens.length ? html`
        <${TokenText} r=${{ ...record, started: record.id, phase: 'done' }} label="Recorded tokens" onBranch=${open} />`
        : html`<p class="muted">${record.outcome === 'open' ? 'It is still being written.' : 'No text.'}</p>`}
      <div class="row actions">
        <button class="button" onClick=${() => open()}>Open in playground</button>
        <button class="button ghost" onClick=${asCurl}><${Terminal} size="16" /><span>Copy as curl</span></button>
      </div>
    </div>
    <${Replay} record=${record} />
    <div class="card record-card"><h3>Figures</h3><${Facts} r=${record} /></div>
    ${record.plugins?.length > 0 && html`<div class="card record-card"><h3>Plugins</h3><${PluginReports} reports=${record.plugins} meta=${record.plugin_meta} tokens=${record.tokens} /></div>`}
    ${record.params?.length > 0 && html`<div class="card record-card"><h3>Parameters</h3><${ParamTable} params=${record.params} /></div>`}
    ${record.body && html`<details class="card record-card disclosure"><summary>The request as received</summary><pre class="text-block mono" tabindex="0" role="region" aria-label="The request as received">${typeof record.body === 'string' ? record.body : formatJSON(record.body, 2)}</pre></details>`}`
}

/** How many tokens were guessed ahead and how many of these came. */
function guesses(r) {
  return r.drafted_tokens > 0 ? `${integer(r.drafted_tokens)}, ${integer(r.accepted_tokens)} came` : ''
}

function Facts({ r }) {
  const tps = r.decode_ms > 0 && r.completion_tokens > 1 ? ((r.completion_tokens - 1) * 1000) / r.decode_ms : 0
  const facts = [
    ['When', new Date(r.created_at).toLocaleString()], ['Model', r.model], ['Runs on', [r.backend, r.device].filter(Boolean).join(', ')], ['What happened', r.moved],
    ['Numerics', r.numerics], ['Seed', r.seed == null ? '–' : String(r.seed)],
    ['Prompt tokens', `${integer(r.prompt_tokens)}${r.cached_tokens > 0 ? `, ${integer(r.cached_tokens)} cached` : ''}`], ['Generated', integer(r.completion_tokens)],
    ['Guessed ahead', guesses(r)],
    ['In the queue', duration(r.queue_ms)], ['Reading', duration(r.prefill_ms)], ['First token', duration(r.first_token_ms)], ['Writing', duration(r.decode_ms)],
    ['Speed', rate(tps)], ['Client', r.client], ['Sent as', r.stream ? 'stream' : 'one answer'],
  ]
  return html`<dl class="facts">${facts.filter(([, v]) => v).map(([k, v]) => html`<div key=${k}><dt>${k}</dt><dd class="wrap">${v}</dd></div>`)}</dl>`
}

