// One plugin of the list: a line with the essentials, the rest behind it.
import { html, useEffect, useRef, useState } from '../html.js'
import { api, formatHash, go, refreshPlugins, route, say } from '../store.js'
import { permissionText, picked, signatureText, slotText, stateOf, toText } from '../plugins.js'
import { boundsText, fieldsOf, valueLine } from '../schema.js'
import { ago, micros, fuel, integer } from '../format.js'
import { Warn } from './icons.js'

export function PluginItem({ p, open }) {
  const item = useRef(null)
  useEffect(() => { if (open) item.current.scrollIntoView({ block: 'nearest' }) }, [])
  const state = stateOf(p)
  const toggle = (e) => {
    const query = new URLSearchParams(route.peek().query)
    if (e.target.open === (query.get('name') === p.name)) return
    e.target.open ? query.set('name', p.name) : query.delete('name')
    go('plugins', query, { replace: true })
  }
  return html`
    <li class="card plugin" ref=${item}>
      ${p.quarantine && html`<${Quarantine} p=${p} />`}
      ${p.update && html`<p class="warning"><${Warn} size="16" /><span class="wrap">The latest file at its place was rejected; this version goes on: ${p.update}</span></p>`}
      <details open=${open} onToggle=${toggle}>
        <summary>
          <span class="plugin-name">${p.name} <span class="muted">${p.version}</span></span>
          <span class="badge">${p.slot}</span>
          ${state.tone !== 'good' && html`<span class=${`badge ${state.tone}`}>${state.text}</span>`}
          <span class="plugin-what muted">${p.title || p.description}</span>
        </summary>
        ${open && html`<${Details} p=${p} />`}
      </details>
    </li>`
}

function Quarantine({ p }) {
  const [busy, setBusy] = useState(false)
  const [failed, setFailed] = useState('')
  const clear = async () => {
    setBusy(true)
    setFailed('')
    try {
      await api.clearPlugin(p.hash)
      say(`${p.name} is out of quarantine`)
    } catch (error) {
      setFailed(error.message)
    }
    await refreshPlugins()
    setBusy(false)
  }
  return html`
    <div class="warning"><${Warn} size="16" />
      <span class="wrap">Not given out since <time datetime=${p.quarantine.since} title=${new Date(p.quarantine.since).toLocaleString()}>${ago(p.quarantine.since)}</time>: it failed too often, lastly with “${p.quarantine.reason}”.</span>
      <button class="button small" disabled=${busy} aria-label=${`Clear the quarantine of ${p.name}`} onClick=${clear}>Clear</button>
      ${failed && html`<span class="problem" role="alert">${failed}</span>`}
    </div>`
}

function Details({ p }) {
  const query = new URLSearchParams()
  query.set('plugin', toText(picked(p.name)))
  return html`
    <div class="plugin-details">
      ${p.title && p.description && html`<p class="wrap">${p.description}</p>`}
      <${Cost} c=${p.cost} />
      <${Settings} schema=${p.config_schema} />
      <h4>Facts</h4>
      <dl class="facts">
        <div class="wide"><dt>Place in a step</dt><dd>${p.slot}${slotText(p.slot) && `: ${slotText(p.slot)}`}</dd></div>
        <div class="wide"><dt>May</dt><dd>${p.permissions.length ? p.permissions.map(permissionText).join('; ') : 'see the likeliest tokens, nothing else'}</dd></div>
        <div><dt>Signature</dt><dd>${signatureText(p)}${p.key && html` <span class="mono wrap">${p.key}</span>`}</dd></div>
        <div><dt>When it fails</dt><dd>${{ fail: 'the request fails', skip: 'it is left out', restart: 'it starts again' }[p.on_error] ?? p.on_error}</dd></div>
        ${p.homepage && html`<div class="wide"><dt>Homepage</dt><dd class="wrap">${/^https?:\/\//.test(p.homepage) ? html`<a href=${p.homepage} target="_blank" rel="noreferrer noopener">${p.homepage}</a>` : p.homepage}</dd></div>`}
        ${p.license && html`<div><dt>Licence</dt><dd>${p.license}</dd></div>`}
        <div><dt>Loaded</dt><dd>${ago(p.loaded_at)}</dd></div>
        <div class="wide"><dt>File</dt><dd class="wrap">${p.place}</dd></div>
        <div class="wide"><dt>SHA-256</dt><dd class="mono wrap hash">${p.hash}</dd></div>
      </dl>
      ${!p.quarantine && html`<p><a class="button" href=${formatHash('playground', query)}>Try it in the playground</a></p>`}
    </div>`
}

function Cost({ c }) {
  return html`
    <h4>Since the server started</h4>
    ${c.requests === 0 ? html`<p class="note">No request ran it.</p>` : html`
      <dl class="facts">
        <div><dt>Requests</dt><dd>${integer(c.requests)}</dd></div>
        <div><dt>Time per token</dt><dd>${micros(c.us_per_token)}</dd></div>
        <div><dt>Fuel per token</dt><dd>${fuel(c.fuel_per_token)}</dd></div>
        <div><dt>Time outside of tokens</dt><dd>${micros(c.once_us)} per request</dd></div>
        <div><dt>Fuel outside of tokens</dt><dd>${fuel(c.once_fuel)} per request</dd></div>
        <div><dt>Tokens changed</dt><dd>${integer(c.tokens_changed)} of ${integer(c.tokens)}</dd></div>
        <div><dt>Failures</dt><dd>${integer(c.failures)}</dd></div>
      </dl>
      ${c.last_error && html`<p class="problem small-text"><${Warn} size="16" /><span class="wrap">${c.last_error}${c.last_failure_at && ` (${ago(c.last_failure_at)})`}</span></p>`}`}`
}

function Settings({ schema }) {
  const fields = fieldsOf(schema)
  if (fields.length === 0) return html`<p class="note">It has no settings.</p>`
  return html`
    <h4>Settings</h4>
    <dl class="settings">${fields.map((f) => html`
      <div key=${f.name}><dt class="mono">${f.name}</dt><dd class="wrap">${f.label !== f.name && `${f.label}. `}<span class="muted">${[
        f.required ? 'needed' : f.default !== undefined && `default ${valueLine(f.default)}`, boundsText(f)].filter(Boolean).join('; ')}</span></dd></div>`)}</dl>`
}
