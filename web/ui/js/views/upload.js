// Drop a model file, or choose one.
import { html, useEffect, useRef, useState } from '../html.js'
import { api, refreshStatus, say } from '../store.js'
import { isAbort } from '../api.js'
import { bytes } from '../format.js'
import { checkFile, upload } from '../upload.js'
import { Upload as Icon } from './icons.js'

export function Upload({ onDone }) {
  const [over, setOver] = useState(false)
  const [state, setState] = useState({ phase: 'idle' })
  const control = useRef(null)
  const input = useRef(null)
  useEffect(() => () => control.current?.abort(), [])
  const send = async (file) => {
    if (!file || state.phase === 'sending') return
    const problem = checkFile(file)
    if (problem) {
      setState({ phase: 'failed', message: problem })
      return
    }
    control.current = new AbortController()
    setState({ phase: 'sending', file, sent: 0 })
    try {
      const { id } = await upload(file, {
        headers: api.auth(), signal: control.current.signal, onProgress: (sent) => setState({ phase: 'sending', file, sent }),
      })
      setState({ phase: 'done', file, id })
      say(`${file.name} was added`)
      onDone()
      refreshStatus()
    } catch (error) {
      setState(isAbort(error) ? { phase: 'idle' } : { phase: 'failed', message: error.message })
    }
  }
  const drop = (e) => {
    e.preventDefault()
    setOver(false)
    send(e.dataTransfer.files[0])
  }
  return html`
    <div class=${`drop ${over ? 'drop-over' : ''}`} onDragOver=${(e) => { e.preventDefault(); setOver(true) }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      ${state.phase === 'sending' ? html`<${Sending} state=${state} onStop=${() => control.current.abort()} />` : html`
        <${Icon} size="26" />
        <p>Drop a <code>.gguf</code> file here, or</p>
        <input ref=${input} class="hidden" type="file" accept=".gguf" tabindex="-1" aria-label="Model file" onChange=${(e) => { send(e.target.files[0]); e.target.value = '' }} />
        <button class="button" onClick=${() => input.current.click()}>Choose a file</button>`}
      ${state.phase === 'done' && html`<${Added} state=${state} />`}
      ${state.phase === 'failed' && html`<p class="problem wrap" role="alert">${state.message}</p>`}
    </div>`
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
