// All parameters of the contract. Each is absent, and so the model's or server's
// default, until it is set; the dot and the reset button show what is set.
import { html, useId } from '../html.js'
import { allWell, form, invalid, reset, resolved, run, set } from '../play.js'
import { look, server } from '../store.js'
import { numbers } from '../params.js'
import { Close, Dice, Pin, Reset } from './icons.js'
import { Stops } from './stops.js'
import { Bias } from './bias.js'
import { PluginPicker } from './pluginpicker.js'

const groups = [['length', 'Length'], ['sampling', 'Sampling'], ['repetition', 'Repetition']]

export function Parameters() {
  const state = form.value
  const changed = ['stop', 'bias', 'plugins'].filter((n) => state[n].length).length + [...numbers.map((n) => n.name), 'seed'].filter((n) => state[n] !== '').length
  return html`
    <aside class="card parameters" aria-labelledby="parameters-title">
      <header class="card-head">
        <h2 id="parameters-title">Parameters</h2>
        <span class="muted small-text">${changed ? `${changed} set` : 'all at default'}</span>
        <button class="button ghost small" onClick=${reset}><${Reset} size="16" /><span>Reset</span></button>
      </header>
      ${groups.map(([id, name]) => html`
        <section key=${id} class="group" aria-label=${name}>
          <h3>${name}</h3>
          ${numbers.filter((n) => n.group === id).map((n) => html`<${NumberParam} key=${n.name} def=${n} value=${state[n.name]} />`)}
          ${id === 'length' && html`<${Stops} />`}
          ${id === 'sampling' && html`<${Seed} value=${state.seed} />`}
          ${id === 'repetition' && html`<${Bias} />`}
        </section>`)}
      <${PluginPicker} />
      <section class="group" aria-label="Reply">
        <h3>Reply</h3>
        <${Switch} name="stream" label="Stream" help="Show tokens as they come." />
        <${Switch} name="logprobs" label="Log-probabilities" help="With alternatives for each token." />
        <${EnterSwitch} />
      </section>
    </aside>`
}

/** What an absent parameter will be, as far as it is known. */
function placeholder(name) {
  const seen = resolved.value[name]
  if (seen && seen.origin !== 'request' && seen.origin !== 'limit' && seen.value != null) return String(seen.value)
  const own = server.value.data?.model?.sampling?.[name]
  return own != null ? String(own) : 'default'
}

/** The refusal of one control, tied to it by aria-describedby. */
export function Problem({ name, id }) {
  const bad = invalid.value.name === name
  return bad ? html`<p class="problem small-text wrap" id=${id}>${invalid.value.message}</p>` : null
}

function NumberParam({ def, value }) {
  const id = useId()
  const { name, label, help, min, max, step } = def
  const bad = invalid.value.name === name
  const put = (v) => {
    if (bad) invalid.value = allWell()
    set({ [name]: v })
  }
  const hint = placeholder(name)
  const slider = value !== '' ? Number(value) : hint !== 'default' ? Number(hint) : def.soft
  return html`
    <div class=${`param ${value !== '' ? 'is-set' : ''}`}>
      <label for=${`p-${name}`}>${label}</label>
      <input class="range" type="range" min=${min} max=${max} step=${step} value=${slider} aria-label=${`${label}, slider`}
        aria-valuetext=${value === '' ? `default${hint !== 'default' ? `, ${hint}` : ''}` : value} onInput=${(e) => put(e.target.value)} />
      <span class="field">
        <input id=${`p-${name}`} class="input number" type="number" inputmode=${def.integer ? 'numeric' : 'decimal'} step="any" value=${value} placeholder=${hint}
          aria-invalid=${bad ? 'true' : undefined} aria-describedby=${`${id}-help ${bad ? `${id}-bad` : ''}`.trim()} onInput=${(e) => put(e.target.value)} />
        ${value !== '' && html`<button class="icon-button tiny" aria-label=${`${label}: back to default`} title="Back to default" onClick=${() => put('')}><${Close} size="14" /></button>`}
      </span>
      <p class="help" id=${`${id}-help`}>${help}</p>
      <${Problem} name=${name} id=${`${id}-bad`} />
    </div>`
}

function Seed({ value }) {
  const bad = invalid.value.name === 'seed'
  const last = run.value.detail?.seed
  const put = (seed) => {
    if (bad) invalid.value = allWell()
    set({ seed })
  }
  return html`
    <div class=${`param seed ${value !== '' ? 'is-set' : ''}`}>
      <label for="p-seed">Seed</label>
      <span class="field wide">
        <input id="p-seed" class="input number" type="text" inputmode="numeric" autocomplete="off" value=${value} placeholder="random"
          aria-invalid=${bad ? 'true' : undefined} aria-describedby=${`seed-help ${bad ? 'seed-bad' : ''}`.trim()} onInput=${(e) => put(e.target.value.trim())} />
        ${value !== '' && html`<button class="icon-button tiny" aria-label="Seed: back to random" title="Back to random" onClick=${() => put('')}><${Close} size="14" /></button>`}
      </span>
      <span class="row tight">
        <button class="icon-button" aria-label="Draw a seed" title="Draw a seed" onClick=${() => put(String(crypto.getRandomValues(new Uint32Array(1))[0]))}><${Dice} /></button>
        <button class="icon-button" aria-label="Keep the last seed" title="Keep the last seed" disabled=${last == null} onClick=${() => put(String(last))}><${Pin} /></button>
      </span>
      <p class="help" id="seed-help">The same request with the same seed gives the same text.</p>
      <${Problem} name="seed" id="seed-bad" />
    </div>`
}

function Switch({ name, label, help }) {
  return html`
    <div class="switch-row">
      <label class="switch"><input id=${`p-${name}`} type="checkbox" role="switch" checked=${form.value[name]} aria-describedby=${`${name}-help`}
        onChange=${(e) => set({ [name]: e.target.checked })} /><span class="track" aria-hidden="true"></span><span>${label}</span></label>
      <p class="help" id=${`${name}-help`}>${help}</p>
    </div>`
}

/** A habit of the person, not a parameter: kept on this machine. */
function EnterSwitch() {
  const put = (e) => { look.value = { ...look.peek(), enter: e.target.checked } }
  return html`
    <div class="switch-row">
      <label class="switch"><input type="checkbox" role="switch" checked=${look.value.enter} aria-describedby="enter-help" onChange=${put} />
        <span class="track" aria-hidden="true"></span><span>Enter runs</span></label>
      <p class="help" id="enter-help">Shift + Enter then starts a new line.</p>
    </div>`
}
