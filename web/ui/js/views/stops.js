// The list of stop strings.
import { html, useState } from '../html.js'
import { form, invalid, set } from '../play.js'
import { stopFrom } from '../params.js'
import { escapeText, visible } from '../format.js'
import { Close, Plus } from './icons.js'
import { Problem } from './parameters.js'

export function Stops() {
  const [text, setText] = useState('')
  const { stop } = form.value
  const bad = invalid.value.name === 'stop'
  const add = () => {
    const value = stopFrom(text, stop)
    if (value !== null) set({ stop: [...stop, value] })
    setText('')
  }
  const key = (e) => {
    if (e.key !== 'Enter' || e.isComposing || e.keyCode === 229) return
    e.preventDefault()
    add()
  }
  const remove = (i) => {
    set({ stop: stop.filter((_, k) => k !== i) })
    document.getElementById('p-stop').focus()
  }
  return html`
    <div class=${`param list ${stop.length ? 'is-set' : ''}`}>
      <label for="p-stop">Stop strings</label>
      <span class="field wide">
        <input id="p-stop" class="input" type="text" autocomplete="off" spellcheck=${false} value=${text} placeholder="\\n for a line break"
          aria-invalid=${bad ? 'true' : undefined} aria-describedby=${`stop-help ${bad ? 'stop-bad' : ''}`.trim()}
          onInput=${(e) => setText(e.target.value)} onKeyDown=${key} />
      </span>
      <button class="icon-button" aria-label="Add the stop string" title="Add" disabled=${text === ''} onClick=${add}><${Plus} /></button>
      <p class="help" id="stop-help">The answer ends just before the first of these.</p>
      ${stop.length > 0 && html`
        <ul class="chips" aria-label="Stop strings">${stop.map((s, i) => html`
          <li class="chip" key=${s}><code>${visible(s).replaceAll('⏎', '\\n').replaceAll('→', '\\t')}</code>
            <button class="icon-button tiny" aria-label=${`Remove stop string ${escapeText(s)}`} onClick=${() => remove(i)}><${Close} size="14" /></button></li>`)}</ul>`}
      <${Problem} name="stop" id="stop-bad" />
    </div>`
}
