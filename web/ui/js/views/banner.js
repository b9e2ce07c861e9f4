// What stands above every view when the server is gone, locked or could not load.
import { html, useState } from '../html.js'
import { refreshStatus, server, setToken } from '../store.js'
import { Warn } from './icons.js'

export function Banner() {
  const { state, data } = server.value
  if (state === 'offline') {
    return html`
      <section class="banner banner-bad" aria-label="Connection" role="alert">
        <${Warn} /><p><strong>Ganglion does not answer.</strong> Is it still running on this machine? The page keeps trying; nothing you typed is lost.</p>
        <button class="button small" onClick=${refreshStatus}>Try now</button>
      </section>`
  }
  if (state === 'locked') return html`<${KeyForm} />`
  if (data?.error) {
    return html`
      <section class="banner banner-bad" aria-label="Model" role="alert">
        <${Warn} /><p><strong>The model could not be loaded.</strong> <span class="wrap">${data.error}</span>
        ${data.model && html` <span>${data.model.name} goes on serving.</span>`}</p>
      </section>`
  }
  return null
}

function KeyForm() {
  const [key, setKey] = useState('')
  const send = (e) => {
    e.preventDefault()
    if (key.trim() !== '') setToken(key.trim())
  }
  return html`
    <section class="banner" aria-label="Key">
      <form class="key-form" onSubmit=${send}>
        <label for="key"><strong>This server asks for its key.</strong> It is kept for this tab only.</label>
        <div class="row">
          <input id="key" class="input" type="password" autocomplete="off" value=${key} onInput=${(e) => setKey(e.target.value)} />
          <button class="button primary" type="submit">Unlock</button>
        </div>
      </form>
    </section>`
}
