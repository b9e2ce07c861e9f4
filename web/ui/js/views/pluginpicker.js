// The plugins of a request: picked from those of the server, each with a form made of
// its schema. They run in the order of their slots, and within one in this order.
import { html, useId, useState } from '../html.js'
import { form, invalid, set } from '../play.js'
import { moved, newest, picked, stateOf } from '../plugins.js'
import { fieldsOf, ownerOf, withField } from '../schema.js'
import { useFreshPlugins } from './freshplugins.js'
import { ConfigField } from './configfield.js'
import { Close, Down, Plus, Up } from './icons.js'
import { Problem } from './parameters.js'

export function PluginPicker() {
  const { list, error } = useFreshPlugins()
  const chosen = form.value.plugins
  const known = newest(list?.plugins ?? [])
  return html`
    <section class="group" aria-label="Plugins">
      <h3>Plugins</h3>
      <${Add} known=${known} chosen=${chosen} loading=${list?.loading} refused=${refused(known, chosen)} />
      ${error && (!list || list.loading) && html`<p class="problem small-text">${error.message}</p>`}
      ${chosen.length > 0 && html`<ol class="picked" aria-label="Plugins of the request">${chosen.map((p, i) => html`
        <${Picked} key=${p.name} p=${p} i=${i} n=${chosen.length} info=${known.find((k) => k.name === p.name)} listed=${list !== null && !list.loading} />`)}</ol>`}
      ${chosen.length === 0 && list && html`<${Own} list=${list} />`}
    </section>`
}

/** Whether the server refused the plugins as a whole: one setting says so itself. */
function refused(known, chosen) {
  const { name, param } = invalid.value
  if (name !== 'plugins') return false
  const at = ownerOf(param)
  const schema = at && known.find((k) => k.name === chosen[at.index]?.name)?.config_schema
  return !fieldsOf(schema).some((f) => f.name === at?.field)
}

function Add({ known, chosen, loading, refused: bad }) {
  const [name, setName] = useState('')
  const free = known.filter((k) => !chosen.some((c) => c.name === k.name))
  const usable = free.some((k) => k.name === name && !k.quarantine)
  const add = () => {
    set({ plugins: [...form.peek().plugins, picked(name)] })
    setName('')
  }
  return html`
    <div class=${`param list ${chosen.length ? 'is-set' : ''}`}>
      <label for="p-plugins">Add a plugin</label>
      <span class="field wide">
        <select id="p-plugins" class="input" value=${usable ? name : ''} aria-describedby=${`plugins-help ${bad ? 'plugins-bad' : ''}`.trim()} aria-invalid=${bad ? 'true' : undefined} onChange=${(e) => setName(e.target.value)}>
          <option value="">${loading ? 'Loading…' : free.length ? 'Choose one' : 'There is none'}</option>
          ${free.map((k) => html`<option key=${k.name} value=${k.name} disabled=${Boolean(k.quarantine)}>${k.name}${k.quarantine ? ` (${stateOf(k).text.toLowerCase()})` : ''}</option>`)}
        </select>
      </span>
      <button class="icon-button" aria-label="Add the plugin" title="Add" disabled=${!usable} onClick=${add}><${Plus} /></button>
      <p class="help" id="plugins-help">${known.find((k) => k.name === name)?.description || 'They take part in choosing the tokens.'}</p>
      ${bad && html`<${Problem} name="plugins" id="plugins-bad" />`}
    </div>`
}

/** What runs when nothing is picked, and the way to leave it out. */
function Own({ list }) {
  if (list.defaults.length === 0) return null
  return html`
    <div class="switch-row">
      <label class="switch"><input type="checkbox" role="switch" checked=${!form.value.plain} aria-describedby="own-help" onChange=${(e) => set({ plain: !e.target.checked })} />
        <span class="track" aria-hidden="true"></span><span>The server’s own</span></label>
      <p class="help" id="own-help">Where none is picked the server runs ${list.defaults.join(', ')}.</p>
    </div>`
}

function Picked({ p, i, n, info, listed }) {
  const id = useId()
  const put = (patch) => set({ plugins: form.peek().plugins.map((x, k) => (k === i ? { ...x, ...patch } : x)) })
  const move = (by) => set({ plugins: moved(form.peek().plugins, i, by) })
  const remove = () => {
    set({ plugins: form.peek().plugins.filter((_, k) => k !== i) })
    document.getElementById('p-plugins').focus()
  }
  const fields = fieldsOf(info?.config_schema)
  const changed = Object.keys(p.config).length
  return html`
    <li class="picked-plugin">
      <p class="picked-head">
        <strong class="wrap" id=${id}>${p.name}</strong>
        ${info && html`<span class="badge">${info.slot}</span>`}
        <span class="grow"></span>
        ${n > 1 && html`
          <button class="icon-button tiny" aria-label=${`Move ${p.name} up`} disabled=${i === 0} onClick=${() => move(-1)}><${Up} size="14" /></button>
          <button class="icon-button tiny" aria-label=${`Move ${p.name} down`} disabled=${i === n - 1} onClick=${() => move(1)}><${Down} size="14" /></button>`}
        <button class="icon-button tiny" aria-label=${`Remove ${p.name}`} onClick=${remove}><${Close} size="14" /></button>
      </p>
      ${!info && listed && html`<p class="problem small-text">This server has no plugin of this name.</p>`}
      ${info?.quarantine && html`<p class="problem small-text">It is quarantined: <a href=${`#/plugins?name=${p.name}`}>see why</a></p>`}
      ${info && html`
        <details class="disclosure" open=${fields.some((f) => f.required) || changed > 0}>
          <summary>Settings <span class="muted">${changed ? `${changed} set` : 'at default'}</span></summary>
          <div class="config" role="group" aria-labelledby=${id}>
            ${fields.map((f) => html`<${ConfigField} key=${f.name} f=${f} at=${`/plugins/${i}/config/${f.name}`} owner=${p.name} value=${p.config[f.name]} onChange=${(v) => put({ config: withField(p.config, f.name, v) })} />`)}
            <${OnError} p=${p} info=${info} onChange=${(on_error) => put({ on_error })} />
          </div>
        </details>`}
    </li>`
}

const policies = { fail: 'The request fails', skip: 'It is left out', restart: 'It starts again' }

function OnError({ p, info, onChange }) {
  const id = useId()
  return html`
    <div class="config-field">
      <label for=${id}>When it fails</label>
      <select id=${id} class="input" value=${p.on_error} onChange=${(e) => onChange(e.target.value)}>
        <option value="">As it says: ${(policies[info.on_error] ?? info.on_error).toLowerCase()}</option>
        ${Object.entries(policies).map(([v, text]) => html`<option key=${v} value=${v}>${text}</option>`)}
      </select>
    </div>`
}
