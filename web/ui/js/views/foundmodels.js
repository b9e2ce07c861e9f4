// The model files found on this machine, read-only and in place.
import { html, useState } from '../html.js'
import { api, refreshStatus, say } from '../store.js'
import { bytes, sourceName } from '../format.js'

export function FoundModels({ found, data }) {
  if (found.error && !found.list) return html`<p class="problem" role="alert">${found.error.message}</p>`
  if (!found.list) return html`<div class="skeletons" role="status"><span class="hidden">Looking for models</span><div class="skeleton" aria-hidden="true"></div></div>`
  if (found.list.length === 0) {
    return html`<p class="muted">None was found in Ganglion’s folder, nor in those of Hugging Face, llama.cpp, LM Studio, Ollama and Jan.</p>`
  }
  return html`<ul class="found" aria-label="Found models">${found.list.map((f) => html`<${Item} key=${f.id} f=${f} data=${data} />`)}</ul>`
}

function Item({ f, data }) {
  const [failed, setFailed] = useState('')
  const [asked, setAsked] = useState(false)
  const serving = data.model?.path === f.path
  const loading = data.loading?.name === f.name
  const load = async () => {
    setFailed('')
    setAsked(true)
    try {
      await api.load(f.id)
      say(`Loading ${f.name}`)
    } catch (error) {
      setFailed(error.message)
    }
    await refreshStatus()
    setAsked(false)
  }
  return html`
    <li class="found-item">
      <div class="found-text">
        <p class="found-name wrap">${f.name}</p>
        <p class="muted small-text wrap">${sourceName(f.source)}${f.available ? ` · ${bytes(f.bytes)}` : ''}</p>
        <p class="muted small-text path wrap">${f.path}</p>
        ${f.note && html`<p class="muted small-text wrap">${f.note}</p>`}
        ${!f.available && html`<p class="small-text">Its folder cannot be read right now: is the disk connected?</p>`}
        ${failed && html`<p class="problem small-text wrap" role="alert">${failed}</p>`}
      </div>
      ${serving ? html`<span class="badge good">Serving</span>`
        : html`<button class="button" disabled=${!f.available || asked || Boolean(data.loading)} aria-label=${`Load ${f.name}`} onClick=${load}>${loading ? 'Loading' : 'Load'}</button>`}
    </li>`
}
