// One setting of a plugin: the control that its schema asks for. Absent is the
// plugin's default, which the control shows.
import { html, useState } from '../html.js'
import { allWell, invalid } from '../play.js'
import { boundsText, problemOf, readJSON, valueLine } from '../schema.js'
import { escapeText, unescapeText, visible } from '../format.js'
import { formatJSON } from '../json.js'
import { Close, Plus } from './icons.js'

const controls = { boolean: Bool, number: Numeric, enum: Choice, text: Text, list: List, json: Json }

/** at is the setting's JSON pointer, by which the server names it; owner the plugin. */
export function ConfigField({ f, at, owner, value, onChange }) {
  const [typed, setTyped] = useState('') // what is wrong with text that is no value yet
  const [round, setRound] = useState(0) // a control that goes back to its default forgets what was typed
  const refused = invalid.value.param === at || invalid.value.param?.startsWith(`${at}/`)
  const problem = typed || problemOf(f, value) || (refused ? invalid.value.message : '')
  // A setting that nobody touched yet is not wrong; only a person's value is, or the server says so.
  const shown = value === undefined && !typed && !refused ? '' : problem
  const put = (v, fault = '') => {
    if (refused) invalid.value = allWell()
    setTyped(fault)
    if (!fault) onChange(v)
  }
  const reset = () => {
    put(undefined)
    setRound(round + 1)
  }
  const id = `p-${at}`
  const Control = controls[f.kind]
  const isBool = f.kind === 'boolean'
  const facts = [f.required && f.default === undefined ? 'needed' : f.default !== undefined && `default ${valueLine(f.default)}`, boundsText(f)].filter(Boolean).join('; ')
  return html`
    <div class=${`config-field ${value !== undefined ? 'is-set' : ''}`}>
      ${!isBool && html`<label for=${id}>${f.label}</label>`}
      <span class="config-control">
        <${Control} key=${round} f=${f} id=${id} owner=${owner} value=${value} put=${put} described=${`${id}-help${shown ? ` ${id}-bad` : ''}`} bad=${shown ? 'true' : undefined} />
        ${value !== undefined && html`<button class="icon-button tiny" aria-label=${`${f.label}, of ${owner}: back to default`} title="Back to default" onClick=${reset}><${Close} size="14" /></button>`}
      </span>
      <p class="help" id=${`${id}-help`}><code>${f.name}</code>${facts && ` ${facts}`}${f.help && `. ${f.help}`}</p>
      ${shown && html`<p class="problem small-text wrap" id=${`${id}-bad`}>${shown}</p>`}
    </div>`
}

function Bool({ f, id, value, put, described }) {
  return html`
    <label class="switch"><input id=${id} type="checkbox" role="switch" checked=${value ?? f.default ?? false} aria-describedby=${described} onChange=${(e) => put(e.target.checked)} />
      <span class="track" aria-hidden="true"></span><span>${f.label}</span></label>`
}

function Numeric({ f, id, value, put, described, bad }) {
  const [text, setText] = useState(null) // while it is edited: "0." is on its way to 0.5, and shows as it is
  const change = (e) => {
    setText(e.target.value)
    if (e.target.value !== '') return put(Number(e.target.value))
    return put(undefined, e.target.validity.badInput ? 'This is no number.' : '')
  }
  const leave = (e) => {
    setText(null)
    if (e.target.validity.badInput) put(value) // the number before it stands again
  }
  return html`<input id=${id} class="input number" type="number" inputmode=${f.integer ? 'numeric' : 'decimal'} step="any" min=${f.min} max=${f.max}
    value=${text ?? value ?? ''} placeholder=${valueLine(f.default)} aria-describedby=${described} aria-invalid=${bad} onInput=${change} onBlur=${leave} />`
}

function Choice({ f, id, value, put, described, bad }) {
  const at = f.options.findIndex((o) => formatJSON(o) === formatJSON(value))
  return html`
    <select id=${id} class="input" value=${String(at)} aria-describedby=${described} aria-invalid=${bad} onChange=${(e) => put(f.options[e.target.value])}>
      <option value="-1">${f.default === undefined ? 'Choose one' : `Default: ${valueWord(f.default)}`}</option>
      ${f.options.map((o, i) => html`<option key=${i} value=${i}>${valueWord(o)}</option>`)}
    </select>`
}

const valueWord = (v) => (typeof v === 'string' ? v : valueLine(v))

function Text({ f, id, value, put, described, bad }) {
  const shown = typeof value === 'string' || value === undefined ? value ?? '' : formatJSON(value)
  const props = { id, class: 'input', value: shown, placeholder: typeof f.default === 'string' ? visible(f.default) : '', spellcheck: false, 'aria-describedby': described, 'aria-invalid': bad,
    onInput: (e) => put(e.target.value === '' ? undefined : e.target.value) }
  return f.long ? html`<textarea ...${props} rows="3"></textarea>` : html`<input ...${props} type="text" autocomplete="off" />`
}

function List({ f, id, owner, value, put, described, bad }) {
  const [text, setText] = useState('')
  const list = Array.isArray(value) ? value : Array.isArray(f.default) ? f.default : []
  const add = () => {
    const entry = unescapeText(text)
    if (entry !== '' && !list.includes(entry)) put([...list, entry])
    setText('')
  }
  const key = (e) => {
    if (e.key !== 'Enter' || e.isComposing || e.keyCode === 229) return
    e.preventDefault()
    add()
  }
  const remove = (i) => {
    put(list.filter((_, k) => k !== i))
    document.getElementById(id).focus()
  }
  return html`
    <span class="config-list">
      <span class="config-control">
        <input id=${id} class="input" type="text" autocomplete="off" spellcheck=${false} value=${text} placeholder="\\n for a line break" aria-describedby=${described} aria-invalid=${bad}
          onInput=${(e) => setText(e.target.value)} onKeyDown=${key} />
        <button class="icon-button small" aria-label=${`Add to ${f.label}, of ${owner}`} title="Add" disabled=${text === ''} onClick=${add}><${Plus} size="16" /></button>
      </span>
      ${list.length > 0 && html`<ul class="chips" aria-label=${`${f.label}, of ${owner}`}>${list.map((s, i) => html`
        <li class="chip" key=${s}><code>${visible(s).replaceAll('⏎', '\\n').replaceAll('→', '\\t')}</code>
          <button class="icon-button tiny" aria-label=${`Remove ${escapeText(s)}`} onClick=${() => remove(i)}><${Close} size="14" /></button></li>`)}</ul>`}
    </span>`
}

function Json({ f, id, value, put, described, bad }) {
  const [text, setText] = useState(value === undefined ? '' : formatJSON(value, 2))
  const change = (e) => {
    setText(e.target.value)
    const { value: v, problem } = readJSON(e.target.value)
    put(v, problem)
  }
  return html`<textarea id=${id} class="input mono" rows="3" spellcheck=${false} value=${text} placeholder=${valueLine(f.default) || 'JSON'} aria-describedby=${described} aria-invalid=${bad} onInput=${change}></textarea>`
}
