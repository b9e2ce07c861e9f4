// Replay: the recorded request once more with the seed that was used, and whether
// the text comes out the same to the byte.
import { html, useEffect, useRef, useState } from '../html.js'
import { api, server } from '../store.js'
import { Runner } from '../run.js'
import { difference, integer, utf8Length, visible } from '../format.js'
import { hadMedia } from '../media.js'
import { replayRequest } from '../params.js'
import { Check, Replay as Icon, Stop, Warn } from './icons.js'
import { Failure } from './failure.js'

/** Compares a replay with its record; a record that was cut short is a beginning. */
export function compare(record, run) {
  const cut = record.outcome !== 'stop' && record.outcome !== 'length'
  const expected = cut ? run.text.slice(0, record.text.length) : run.text
  const found = difference(record.text, expected)
  if (!found) return { equal: true, cut, bytes: utf8Length(record.text) }
  return { equal: false, cut, ...found }
}

/** Why a replay may differ: what is serving now is not what served then. */
export function changes(record, model) {
  if (!model) return []
  const list = []
  const same = record.model_hash && model.hash ? record.model_hash === model.hash : record.model === model.name
  if (!same) list.push(`The model was ${record.model}; now it is ${model.name}.`)
  if (record.backend && model.backend && record.backend !== model.backend) list.push(`It ran on ${record.backend}; now on ${model.backend}.`)
  if (record.numerics && model.numerics && record.numerics !== model.numerics) list.push(`Its numerics were ${record.numerics}; now they are ${model.numerics}.`)
  return list
}

export function Replay({ record }) {
  const runner = useRef(null)
  runner.current ??= new Runner({ api })
  const [request, setRequest] = useState(null)
  useEffect(() => () => runner.current.stop(), [])
  const r = runner.current.state.value
  const busy = r.phase === 'waiting' || r.phase === 'streaming'
  const start = () => {
    const body = replayRequest(record)
    setRequest(body)
    runner.current.run(body)
  }
  const possible = record.outcome !== 'open' && record.outcome !== 'error' && (record.prompt || record.request) && !hadMedia(record)
  const notes = changes(record, server.value.data?.model)
  return html`
    <div class="card record-card replay">
      <h3>Replay</h3>
      <p class="muted">The same request with seed <strong>${record.seed == null ? '–' : String(record.seed)}</strong>. Same model, same device, same text.</p>
      ${notes.map((n) => html`<p class="warning" key=${n}><${Warn} size="16" /><span>${n} The text may differ.</span></p>`)}
      <div class="row">
        ${busy ? html`<button class="button stop" onClick=${() => runner.current.stop()}><${Stop} /><span>Stop</span></button>`
          : html`<button class="button primary" disabled=${!possible} onClick=${start}><${Icon} /><span>${request ? 'Replay again' : 'Replay'}</span></button>`}
        ${busy && html`<span class="muted">${integer(r.tokens.length)} of ${integer(record.completion_tokens)} tokens</span>`}
        ${!possible && html`<span class="muted">${record.outcome === 'open' ? 'It is still running.' : hadMedia(record) ? record.media.every((m) => m.kept) ? 'Open it in the playground to send its media again.' : 'The log keeps no pictures, sound or film to send again.' : 'There is no text to compare with.'}</span>`}
      </div>
      <div role="status">${r.phase === 'done' && html`<${Verdict} record=${record} run=${r} />`}${r.phase === 'cancelled' && html`<p class="note">Replay stopped.</p>`}</div>
      ${r.phase === 'failed' && html`<${Failure} error=${r.error} partial=${r.text !== ''} onRetry=${start} />`}
    </div>`
}

function Verdict({ record, run }) {
  const v = compare(record, run)
  if (v.equal) {
    return html`<p class="verdict same"><${Check} /><span><strong>Byte-equal.</strong> ${v.cut ? `The recorded part, ${integer(v.bytes)} bytes, came out the same.` : `All ${integer(v.bytes)} bytes are the same.`}</span></p>`
  }
  const before = v.common.slice(-40)
  return html`
    <p class="verdict other"><${Warn} /><span><strong>Different</strong> from byte ${integer(v.at)} on.</span></p>
    <dl class="diff">
      <div><dt>Then</dt><dd class="wrap">${visible(before)}<mark>${visible(v.a.slice(0, 200)) || '∅'}</mark></dd></div>
      <div><dt>Now</dt><dd class="wrap">${visible(before)}<mark>${visible(v.b.slice(0, 200)) || '∅'}</mark></dd></div>
    </dl>`
}
