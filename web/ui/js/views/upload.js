// Drop a model file, or choose one.
import { html, useState } from '../html.js'
import { api, refreshStatus, say } from '../store.js'
import { bytes } from '../format.js'
import { checkFile, upload } from '../upload.js'
import { DropFile } from './dropfile.js'

export function Upload({ onDone }) {
  const send = async (file, options) => {
    const { id } = await upload(file, options)
    say(`${file.name} was added`)
    onDone()
    refreshStatus()
    return id
  }
  return html`
    <${DropFile} accept=".gguf" label="Model file" what=${html`a <code>.gguf</code> file`} check=${checkFile} send=${send}
      sending=${(state, stop) => html`<${Sending} state=${state} onStop=${stop} />`}
      done=${(id, file) => html`<${Added} state=${{ id, file }} />`} />`
}

function Sending({ state, onStop }) {
  const share = Math.floor((state.sent / state.file.size) * 100)
  return html`
    <label class="wrap" for="upload-progress">Copying ${state.file.name}</label>
    <progress id="upload-progress" max="100" value=${share}></progress>
    <p class="muted small-text">${share} %, ${bytes(state.sent)} of ${bytes(state.file.size)}</p>
    <button class="button small" onClick=${onStop}>Stop</button>`
}

function Added({ state }) {
  const [failed, setFailed] = useState('')
  const load = () => api.load(state.id).then(refreshStatus, (error) => setFailed(error.message))
  return html`
    <p role="status" class="wrap">${state.file.name} is in Ganglion’s model folder.</p>
    <button class="button primary" onClick=${load}>Load it now</button>
    ${failed && html`<p class="problem wrap" role="alert">${failed}</p>`}`
}
