// What the plugins of one request did and cost.
import { html } from '../html.js'
import { micros, fuel, integer, visible } from '../format.js'
import { formatJSON } from '../json.js'
import { leftBy } from '../plugins.js'

export function PluginReports({ reports, meta, tokens }) {
  return html`
    <ul class="plugin-reports" aria-label="What plugins did and cost">${reports.map((r, i) => html`
      <li key=${i}>
        <p class="row"><a href=${`#/plugins?name=${encodeURIComponent(r.name)}`}><strong>${r.name}</strong></a> <span class="muted">${r.version}</span>
          ${r.outcome !== 'ok' && html`<span class="badge">${r.outcome}</span>`}</p>
        <p class="muted small-text">${facts(r).join(' · ')}</p>
        ${r.error && html`<p class="problem small-text wrap">${r.error}</p>`}
        <${Left} values=${leftBy(r, meta)} />
        <${Choices} list=${r.choices} tokens=${tokens} />
      </li>`)}</ul>`
}

/** What a plugin says of the request, in its own words. */
function Left({ values }) {
  return values.length > 0 && html`
    <dl class="facts" aria-label="What it left">${values.map(([key, value]) => html`
      <div key=${key} class="wide"><dt>${key}</dt><dd class="wrap">${typeof value === 'string' ? value : formatJSON(value)}</dd></div>`)}</dl>`
}

const shown = 200

/** What a plugin that only watched would have had in the place of other tokens. */
function Choices({ list, tokens }) {
  const quoted = (text) => `“${visible(text) || '∅'}”`
  return list?.length > 0 && html`
    <details><summary>${integer(list.length)} other choice${list.length === 1 ? '' : 's'}</summary>
      <ol class="choices small-text" aria-label="Choices that were not used">${list.slice(0, shown).map((c) => html`
        <li key=${c.at}>token ${integer(c.at + 1)}: ${quoted(c.text)} in the place of ${tokens?.[c.at] ? quoted(tokens[c.at].text) : 'the end'}</li>`)}</ol>
      ${list.length > shown && html`<p class="muted small-text">and ${integer(list.length - shown)} more</p>`}
    </details>`
}

function facts(r) {
  const counts = [[r.tokens_changed, 'token', r.shadow ? 'would be others' : 'changed'], [r.texts_rewritten, 'text', 'rewritten'], [r.rewinds, 'rewind', '']]
  const list = counts.filter(([n]) => n > 0).map(([n, what, done]) => `${integer(n)} ${what}${n === 1 ? '' : 's'} ${done}`.trim())
  if (list.length === 0) list.push('nothing changed')
  if (r.calls > 0) list.push(`${micros(r.us_per_token)} and ${fuel(r.fuel_per_token)} per token`)
  if (r.once_fuel > 0) list.push(`${micros(r.once_us)} and ${fuel(r.once_fuel)} outside of tokens`)
  return list
}
