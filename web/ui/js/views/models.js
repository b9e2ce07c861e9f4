// Models: what serves, what was found on this machine, how to get one, and what it
// all runs on.
import { html, useEffect, useState } from '../html.js'
import { api, server } from '../store.js'
import { isAbort } from '../api.js'
import { ModelCard } from './modelcard.js'
import { FoundModels } from './foundmodels.js'
import { Upload } from './upload.js'
import { Devices } from './devices.js'

export function Models() {
  const { data, state } = server.value
  const found = useFound(data)
  if (!data) {
    return html`<div class="skeletons" role="status"><span class="hidden">${state === 'connecting' ? 'Asking the server' : 'No answer from the server'}</span>
      <div class="skeleton tall" aria-hidden="true"></div><div class="skeleton" aria-hidden="true"></div></div>`
  }
  const none = !data.model && !data.loading
  return html`
    <div class="models">
      ${none ? html`<${FirstModel} found=${found} data=${data} />` : html`
        <${ModelCard} data=${data} found=${found.list} />
        <section class="card" aria-labelledby="found-title">
          <header class="card-head"><h2 id="found-title">Found on this machine</h2><button class="button ghost small" onClick=${found.reload}>Look again</button></header>
          <${FoundModels} found=${found} data=${data} />
        </section>
        <section class="card" aria-labelledby="add-title">
          <header class="card-head"><h2 id="add-title">Add a model</h2></header>
          <${Upload} onDone=${found.reload} />
        </section>`}
      <${Devices} data=${data} />
    </div>`
}

/** No model yet: three ways to one, none of them an error. */
function FirstModel({ found, data }) {
  return html`
    <section class="first" aria-labelledby="first-title">
      <h2 id="first-title">Ganglion is ready. It needs a model.</h2>
      <p class="lead">A model is one file that ends in <code>.gguf</code>. Choose a way to bring one:</p>
      <ol class="ways">
        <li class="card">
          <h3>Drop a file</h3>
          <${Upload} onDone=${found.reload} />
        </li>
        <li class="card">
          <h3>Pick one that is here</h3>
          <${FoundModels} found=${found} data=${data} />
          <p><button class="button ghost small" onClick=${found.reload}>Look again</button></p>
        </li>
        <li class="card">
          <h3>Pull one with the command line</h3>
          <p>In the folder of Ganglion’s source, this fetches a small model, checks it, and starts with it:</p>
          <pre class="command"><code>./build.sh run</code></pre>
          <p>Or start with a file of your own:</p>
          <pre class="command"><code>ganglion serve --model FILE.gguf</code></pre>
        </li>
      </ol>
    </section>`
}

/** The found models, asked anew when a load ends or something was added. */
function useFound(data) {
  const [state, setState] = useState({ list: null, error: null })
  const [round, setRound] = useState(0)
  const serving = data?.model?.path ?? ''
  const online = data !== null
  useEffect(() => {
    if (!online) return undefined
    const control = new AbortController()
    api.found(control.signal).then(
      ({ models }) => setState({ list: models ?? [], error: null }),
      (error) => isAbort(error) || setState((s) => ({ ...s, error })))
    return () => control.abort()
  }, [online, serving, round])
  return { ...state, reload: () => setRound((n) => n + 1) }
}
