// The bias editor. A bias belongs to one token id, and a word has several: " cat",
// "cat", "Cat". The search shows them all, so that none is missed by accident.
import { html, useEffect, useState } from '../html.js'
import { api, say, server } from '../store.js'
import { bias, form, invalid, set } from '../play.js'
import { isAbort } from '../api.js'
import { visible } from '../format.js'
import { Close, Plus } from './icons.js'
import { Problem } from './parameters.js'

const presets = [[-100, 'Ban'], [-2, 'Less often'], [2, 'More often'], [100, 'Only this']]

/** The tokens that spell the word itself first, the ones that merely contain it after. */
export function siblings(tokens, word) {
  const own = word.trim().toLowerCase()
  const bare = (t) => t.text.replace(/^[\s▁Ġ]+|\s+$/g, '').toLowerCase()
  return { same: tokens.filter((t) => bare(t) === own), other: tokens.filter((t) => bare(t) !== own) }
}

export function Bias() {
  const list = form.value.bias
  useTexts(list)
  const bad = invalid.value.name === 'logit_bias'
  return html`
    <div class=${`param list bias ${list.length ? 'is-set' : ''}`}>
      <${Search} bad=${bad} />
      ${list.length > 0 && html`
        <ul class="bias-list" aria-label="Biased tokens">${list.map((b) => html`<${Row} key=${b.id} b=${b} />`)}</ul>`}
      <${Problem} name="logit_bias" id="bias-bad" />
    </div>`
}

function Row({ b }) {
  const name = b.text === null ? `token ${b.id}` : `“${visible(b.text)}”`
  const put = (value) => set({ bias: form.peek().bias.map((x) => (x.id === b.id ? { ...x, value } : x)) })
  const remove = () => {
    set({ bias: form.peek().bias.filter((x) => x.id !== b.id) })
    document.getElementById('p-logit_bias').focus()
  }
  const preset = presets.find(([v]) => v === b.value)
  return html`
    <li>
      <code class="bias-name" title=${`token ${b.id}`}>${b.text === null ? `#${b.id}` : visible(b.text)}</code>
      <select class="input" aria-label=${`Effect on ${name}`} value=${preset ? String(b.value) : 'own'} onChange=${(e) => e.target.value !== 'own' && put(Number(e.target.value))}>
        ${presets.map(([v, text]) => html`<option key=${v} value=${v}>${text}</option>`)}
        <option value="own" disabled=${Boolean(preset)}>Own value</option>
      </select>
      <input class="input number" type="number" min="-100" max="100" step="any" value=${b.value} aria-label=${`Bias of ${name}`}
        onChange=${(e) => e.target.value !== '' && put(Number(e.target.value))} />
      <button class="icon-button tiny" aria-label=${`Remove the bias of ${name}`} onClick=${remove}><${Close} size="14" /></button>
    </li>`
}

function Search({ bad }) {
  const [word, setWord] = useState('')
  const [found, setFound] = useState(null)
  const ready = Boolean(server.value.data?.model)
  useEffect(() => {
    if (word.trim() === '') {
      setFound(null)
      return undefined
    }
    const control = new AbortController()
    const timer = setTimeout(async () => {
      try {
        setFound({ word, ...(await api.vocabulary(word.trim(), control.signal)) })
      } catch (error) {
        if (!isAbort(error)) setFound({ word, tokens: [], failed: error.message })
      }
    }, 200)
    return () => {
      clearTimeout(timer)
      control.abort()
    }
  }, [word])
  return html`
    <label for="p-logit_bias">Token bias</label>
    <span class="field wide">
      <input id="p-logit_bias" class="input" type="search" autocomplete="off" spellcheck=${false} placeholder=${ready ? 'Find tokens by text' : 'Needs a model'} value=${word}
        aria-invalid=${bad ? 'true' : undefined} aria-describedby=${`bias-help ${bad ? 'bias-bad' : ''}`.trim()} onInput=${(e) => setWord(e.target.value)} />
    </span>
    <p class="help" id="bias-help">Each spelling is a token of its own: with and without a space, with and without a capital.</p>
    <div class="bias-found" role="status">${found && html`<${Found} found=${found} />`}</div>`
}

function Found({ found }) {
  const { same, other } = siblings(found.tokens, found.word)
  if (found.failed) return html`<p class="problem small-text">${found.failed}</p>`
  if (found.tokens.length === 0) return html`<p class="muted small-text">No token contains “${found.word.trim()}”. Longer words are made of several tokens.</p>`
  const all = () => {
    for (const t of same) if (!form.peek().bias.some((b) => b.id === t.id)) bias(t.id, t.text, -100)
    say(`${same.length} spellings are banned`)
  }
  return html`
    ${same.length > 0 && html`
      <p class="found-head"><span>Spellings of “${found.word.trim()}”</span>
        ${same.length > 1 && html`<button class="button small" onClick=${all}>Ban all ${same.length}</button>`}</p>
      <${Chips} tokens=${same} />`}
    ${other.length > 0 && html`<p class="found-head">Tokens that contain it</p><${Chips} tokens=${other} />`}
    ${found.more && html`<p class="muted small-text">There are more: type more of the word.</p>`}`
}

function Chips({ tokens }) {
  const taken = new Set(form.value.bias.map((b) => b.id))
  return html`
    <ul class="chips">${tokens.map((t) => html`
      <li key=${t.id}><button class="chip add" disabled=${taken.has(t.id)} onClick=${() => bias(t.id, t.text, -100)}
        aria-label=${`Bias token ${t.id}, “${visible(t.text)}”`}>
        <code>${visible(t.text)}</code><span class="muted">${t.id}</span><${Plus} size="14" /></button></li>`)}</ul>`
}

/** Asks for the text of tokens that came by id alone, from a link or the history. */
function useTexts(list) {
  const ready = Boolean(server.value.data?.model)
  const unknown = list.filter((b) => b.text === null).map((b) => b.id)
  useEffect(() => {
    if (!ready || unknown.length === 0) return
    for (const id of unknown) {
      api.detokenize([id]).then(({ text }) => {
        set({ bias: form.peek().bias.map((b) => (b.id === id && b.text === null ? { ...b, text } : b)) })
      }, () => {}) // an id of another vocabulary stays a number
    }
  }, [ready, unknown.join()])
}
