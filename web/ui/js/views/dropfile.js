// A place to drop a file, or to choose one; it sends the file and shows how that goes.
import { html, useEffect, useRef, useState } from '../html.js'
import { api } from '../store.js'
import { isAbort } from '../api.js'
import { Upload as Icon } from './icons.js'

/**
 * accept and label are of the file chooser, what names the files that are wanted. check says
 * why a file is not sent; send(file, options of upload) sends it and gives what done(result,
 * file) shows; sending({file, sent}, stop) shows how far it is.
 */
export function DropFile({ accept, label, what, check, send, sending, done }) {
  const [over, setOver] = useState(false)
  const [state, setState] = useState({ phase: 'idle' })
  const control = useRef(null)
  const input = useRef(null)
  useEffect(() => () => control.current?.abort(), [])
  const take = async (file) => {
    if (!file || state.phase === 'sending') return
    const problem = check(file)
    if (problem) {
      setState({ phase: 'failed', message: problem })
      return
    }
    const { signal } = (control.current = new AbortController())
    const onProgress = (sent) => setState({ phase: 'sending', file, sent })
    onProgress(0)
    try {
      setState({ phase: 'done', file, result: await send(file, { headers: api.auth(), signal, onProgress }) })
    } catch (error) {
      setState(isAbort(error) ? { phase: 'idle' } : { phase: 'failed', message: error.message })
    }
  }
  const drop = (e) => {
    e.preventDefault()
    setOver(false)
    take(e.dataTransfer.files[0])
  }
  return html`
    <div class=${`drop ${over ? 'drop-over' : ''}`} onDragOver=${(e) => { e.preventDefault(); setOver(true) }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      ${state.phase === 'sending' ? sending(state, () => control.current.abort()) : html`
        <${Icon} size="26" />
        <p>Drop ${what} here, or</p>
        <input ref=${input} class="hidden" type="file" accept=${accept} tabindex="-1" aria-label=${label} onChange=${(e) => { take(e.target.files[0]); e.target.value = '' }} />
        <button class="button" onClick=${() => input.current.click()}>Choose a file</button>`}
      ${state.phase === 'done' && done(state.result, state.file)}
      ${state.phase === 'failed' && html`<p class="problem wrap" role="alert">${state.message}</p>`}
    </div>`
}
