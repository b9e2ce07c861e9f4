// The serving model, and the one being loaded beside it.
import { html } from '../html.js'
import { bytes, count, integer, sourceName } from '../format.js'

export function ModelCard({ data, found }) {
  const m = data.model
  return html`
    <section class="card model-card" aria-labelledby="model-title">
      <header class="card-head">
        <h2 id="model-title" class="model-name wrap">${m ? m.name : data.loading.name}</h2>
        ${m && html`<span class="badge good">Serving</span>`}
        ${data.loading && !m && html`<span class="badge">Loading</span>`}
      </header>
      ${data.loading && html`<${Loading} loading=${data.loading} beside=${m} />`}
      ${m && html`<${Facts} m=${m} data=${data} found=${found} /><${Memory} m=${m} />${m.parts?.length > 1 && html`<${Parts} parts=${m.parts} />`}`}
    </section>`
}

/** How far a load has come, with figures: never a bare spinner. */
export function Loading({ loading, beside }) {
  const { name, done, total } = loading
  const share = total > 0 ? Math.floor((done / total) * 100) : 0
  return html`
    <div class="loading">
      <label for="load-progress"><span class="wrap">Loading ${name}</span> <span class="muted">${total > 0 ? `${share} %, ${bytes(done)} of ${bytes(total)}` : 'reading the file'}</span></label>
      <progress id="load-progress" max="100" value=${total > 0 ? share : undefined}></progress>
      ${beside && html`<p class="muted small-text">${beside.name} goes on serving until it is ready.</p>`}
    </div>`
}

function Facts({ m, data, found }) {
  const source = sourceName(found?.find((f) => f.path === m.path)?.source)
  const facts = [
    ['Source', source], ['Architecture', m.architecture], ['Quantisation', m.quantization], ['Parameters', count(m.parameters)], ['File', bytes(m.file_bytes)],
    ['Context', m.context ? `${integer(m.context)} tokens${m.train_context > m.context ? `, trained with ${integer(m.train_context)}` : ''}` : null],
    ['Vocabulary', m.vocab ? `${integer(m.vocab)} tokens` : null],
    ['Runs on', m.backend], ['Numerics', m.numerics], ['KV cache', m.kv], ['Threads', m.threads],
    ['At once', m.slots ? `${integer(m.slots)} ${m.slots === 1 ? 'sequence' : 'sequences'}` : null],
    ['Now', data.running || data.queued ? `${integer(data.running)} running, ${integer(data.queued)} waiting` : 'idle'],
    ['Device', m.device], ['File path', m.path],
  ]
  return html`<dl class="facts">${facts.filter(([, v]) => v != null && v !== '' && v !== 0).map(([k, v]) => html`
    <div key=${k} class=${k === 'File path' || k === 'Device' ? 'wide' : ''}><dt>${k}</dt><dd class="wrap">${v}</dd></div>`)}</dl>`
}

/** What the model takes in memory, as a bar with its parts named below. */
function Memory({ m }) {
  const parts = [['Weights', m.weight_bytes], ['KV cache', m.kv_bytes], ['Scratch', m.scratch_bytes]].filter(([, n]) => n > 0)
  const total = parts.reduce((sum, [, n]) => sum + n, 0)
  if (total === 0) return null
  let x = 0
  return html`
    <div class="memory">
      <h3>Memory <span class="muted">${bytes(total)}</span></h3>
      <svg class="memory-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        ${parts.map(([k, n], i) => {
          const w = (n / total) * 100
          x += w
          return html`<rect key=${k} class=${`part-${i}`} x=${x - w} width=${w} height="4" />`
        })}
      </svg>
      <dl class="memory-parts">${parts.map(([k, n], i) => html`<div key=${k}><dt><i class=${`swatch part-${i}`}></i>${k}</dt><dd>${bytes(n)}</dd></div>`)}</dl>
    </div>`
}

const phases = { prompt: 'prompts', decode: 'tokens' }
const size = (p) => p.weight_bytes + p.kv_bytes + p.scratch_bytes

/** Which device has which part of a model that does not lie on one, as bars of one scale. */
export function Parts({ parts }) {
  const most = Math.max(...parts.map(size), 1)
  return html`
    <div class="parts">
      <h3>Where it lies</h3>
      <ul class="part-list" aria-label="Parts of the model">${parts.map((p, i) => html`
        <li key=${i}>
          <p class="wrap"><strong>${p.device}</strong> <span class="muted">through ${p.backend}</span></p>
          <p class="wrap small-text">${p.phase && html`<span class="badge">${phases[p.phase] ?? p.phase}</span> `}${p.holds}, ${bytes(size(p))}</p>
          <svg class="memory-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">${bars(p, most)}</svg>
        </li>`)}</ul>
    </div>`
}

/** Weights, caches and scratch of a part, beside one another. */
function bars(p, most) {
  let x = 0
  return [p.weight_bytes, p.kv_bytes, p.scratch_bytes].map((n, i) => {
    const w = (n / most) * 100
    x += w
    return html`<rect key=${i} class=${`part-${i}`} x=${x - w} width=${w} height="4" />`
  })
}
