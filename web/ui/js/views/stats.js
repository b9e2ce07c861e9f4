// The figures of a run, and every parameter as the server resolved it.
import { html } from '../html.js'
import { duration, integer, rate } from '../format.js'
import { formatJSON } from '../json.js'
import { firstToken, speed } from '../run.js'
import { PluginReports } from './pluginreports.js'

const finishes = { stop: 'stop: the model or a stop string ended it', length: 'length: the limit was reached' }

export function Stats({ r }) {
  const u = r.usage
  const over = r.phase !== 'streaming'
  return html`
    <dl class="stats">
      <div><dt>Speed</dt><dd>${rate(speed(r))}</dd></div>
      <div><dt>First token</dt><dd>${duration(firstToken(r))}</dd></div>
      <div><dt>Prompt</dt><dd>${u ? integer(u.prompt_tokens) : '–'} <small>${cached(r)}</small></dd></div>
      <div><dt>Generated</dt><dd>${integer(u ? u.completion_tokens : r.tokens.length)}</dd></div>
      <div><dt>Finish</dt><dd title=${finishes[r.finish]}>${r.finish || (over ? (r.phase === 'cancelled' ? 'stopped' : 'broken off') : '…')}</dd></div>
    </dl>
    ${r.warnings.map((w) => html`<p class="note" key=${w}>${w}</p>`)}
    ${r.detail?.plugins?.length > 0 && html`<${PluginReports} reports=${r.detail.plugins} meta=${r.detail.plugin_meta} />`}
    ${r.detail && html`<${Details} r=${r} />`}`
}

function cached(r) {
  const n = r.detail?.cached_tokens
  return n > 0 ? `${integer(n)} cached` : ''
}

export const origins = {
  request: 'your request', model: 'model file', config: 'server configuration', default: 'built-in default',
  random: 'drawn at random', limit: 'limited by the room left',
}

/** A parameter's value on one line. */
export function valueText(v) {
  if (v === null || v === undefined) return '–'
  if (typeof v === 'object') return formatJSON(v)
  return String(v)
}

export function ParamTable({ params }) {
  return html`
    <table class="params">
      <thead><tr><th scope="col">Parameter</th><th scope="col">Value</th><th scope="col">From</th></tr></thead>
      <tbody>${params.map((p) => html`
        <tr key=${p.name}><th scope="row">${p.name}</th><td class="wrap">${valueText(p.value)}</td><td class="muted">${origins[p.origin] ?? p.origin}</td></tr>`)}</tbody>
    </table>`
}

function Details({ r }) {
  const d = r.detail
  const t = d.timings ?? {}
  return html`
    <details class="disclosure">
      <summary>Details of this run</summary>
      <dl class="facts">
        <div><dt>Model</dt><dd class="wrap">${d.model ?? '–'}</dd></div>
        <div><dt>Runs on</dt><dd>${[d.backend, d.numerics && `${d.numerics} numerics`].filter(Boolean).join(', ') || '–'}</dd></div>
        <div><dt>Seed</dt><dd>${d.seed == null ? '–' : String(d.seed)}</dd></div>
        <div><dt>In the queue</dt><dd>${duration(t.queue_ms)}</dd></div>
        <div><dt>Reading</dt><dd>${duration(t.prefill_ms)}</dd></div>
        <div><dt>Writing</dt><dd>${duration(t.decode_ms)}</dd></div>
        ${d.drafted_tokens > 0 && html`<div><dt>Guessed ahead</dt><dd>${integer(d.drafted_tokens)}, ${integer(d.accepted_tokens)} came</dd></div>`}
      </dl>
      ${d.id && html`<p><a href=${`#/history?id=${encodeURIComponent(d.id)}`}>Show it in the history</a></p>`}
      ${d.params?.length > 0 && html`<${ParamTable} params=${d.params} />`}
    </details>`
}
