// Drop a plugin's file, or choose one. The server tries it before it takes it.
import { html } from '../html.js'
import { refreshPlugins, say } from '../store.js'
import { checkPlugin, pluginPlace, upload } from '../upload.js'
import { DropFile } from './dropfile.js'

export function PluginUpload() {
  const send = async (file, options) => {
    const { name, version } = await upload(file, { ...options, to: pluginPlace(file) })
    say(`${name} ${version} was added`)
    refreshPlugins()
    return { name, version }
  }
  return html`
    <${DropFile} accept=".wasm,.js" label="Plugin file" what=${html`a <code>.wasm</code> or <code>.js</code> file`} check=${checkPlugin} send=${send}
      sending=${({ file }, stop) => html`
        <p role="status" class="wrap">The server is testing ${file.name}…</p>
        <button class="button small" onClick=${stop}>Stop</button>`}
      done=${({ name, version }) => html`<p role="status" class="wrap">${name} ${version} is ready.</p>`} />`
}
