// What Ganglion can run on, in plain sentences, and how its log is doing.
import { html } from '../html.js'
import { integer } from '../format.js'

const states = { quarantined: 'set aside', unavailable: 'not there', software: 'software' }
const good = new Set(['in use', 'available'])

export function Devices({ data }) {
  const { devices = [], notes = [], log, version } = data
  return html`
    <section class="card" aria-labelledby="device-title">
      <header class="card-head"><h2 id="device-title">This machine</h2></header>
      ${notes?.length > 0 && html`<ul class="notes">${notes.map((n) => html`<li key=${n}>${sentence(n)}</li>`)}</ul>`}
      ${devices?.length > 0 && html`
        <ul class="devices" aria-label="Devices">${devices.map((d) => html`
          <li key=${d.backend + d.name}>
            <span class=${`badge ${good.has(d.state) ? 'good' : ''}`}>${states[d.state] ?? d.state}</span>
            <span class="wrap"><strong>${d.name}</strong> <span class="muted">through ${d.backend}</span>${d.note && html`<br /><span class="small-text">${sentence(d.note)}</span>`}</span>
          </li>`)}</ul>`}
      <dl class="facts">
        <div><dt>Version</dt><dd>${version}</dd></div>
        ${log && html`<div><dt>Request log</dt><dd>${log.state || 'on'}${log.dropped > 0 ? `, ${integer(log.dropped)} dropped` : ''}</dd></div>`}
        ${log?.path && html`<div class="wide"><dt>Kept in</dt><dd class="wrap">${log.path}</dd></div>`}
      </dl>
    </section>`
}

/** A note as a sentence: capital first, full stop last. */
export function sentence(text) {
  const t = text.trim()
  return t === '' ? '' : t[0].toUpperCase() + t.slice(1) + (/[.!?]$/.test(t) ? '' : '.')
}
