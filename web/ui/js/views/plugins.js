// The plugins of the server: what each is and may do, what it cost, what is wrong with
// it, and how to bring one. The one whose details are open stands in the address.
import { html } from '../html.js'
import { refreshPlugins, route } from '../store.js'
import { useFreshPlugins } from './freshplugins.js'
import { PluginItem } from './pluginitem.js'
import { PluginUpload } from './pluginupload.js'
import { ago } from '../format.js'
import { Refresh, Warn } from './icons.js'

export function Plugins() {
  const { list, error } = useFreshPlugins()
  return html`
    <div class="plugins">
      <header class="view-head">
        <h2>Plugins</h2>
        <button class="button ghost small" onClick=${() => refreshPlugins()}><${Refresh} size="16" /><span>Refresh</span></button>
      </header>
      ${error && html`<div class="card empty" role="alert"><h3>The plugins could not be read</h3><p class="wrap">${error.message}</p><p><button class="button" onClick=${() => refreshPlugins()}>Try again</button></p></div>`}
      ${!list && !error && html`<div class="skeletons" role="status"><span class="hidden">Asking for the plugins</span><div class="skeleton" aria-hidden="true"></div><div class="skeleton" aria-hidden="true"></div></div>`}
      ${list && html`<${Body} list=${list} />`}
    </div>`
}

function Body({ list }) {
  const own = list.plugins.filter((p) => !p.built_in)
  const builtIn = list.plugins.filter((p) => p.built_in)
  const open = route.value.query.get('name') ?? ''
  return html`
    <p class="muted">A plugin takes part in choosing the tokens of a text. It runs in its own memory, pays for every instruction, and reaches nothing but what it asks for here.</p>
    <div role="status">${list.loading && html`<p class="note">The server is still loading plugins…</p>`}</div>
    <${Everywhere} list=${list} />
    ${list.rejected.length > 0 && html`<${Rejected} files=${list.rejected} />`}
    <section aria-labelledby="own-title">
      <h3 id="own-title">From the folder</h3>
      ${own.length > 0 ? html`<ul class="plugin-list">${own.map((p) => html`<${PluginItem} key=${p.hash + p.place} p=${p} open=${open === p.name} />`)}</ul>`
        : html`<p class="note wrap">None yet. A .wasm or .js file in ${list.folder || 'the folder of plugins'} is found while the server runs.</p>`}
      ${list.upload && html`<${PluginUpload} />`}
    </section>
    <section aria-labelledby="built-in-title">
      <h3 id="built-in-title">Part of the program</h3>
      ${builtIn.length > 0 ? html`<ul class="plugin-list">${builtIn.map((p) => html`<${PluginItem} key=${p.hash + p.place} p=${p} open=${open === p.name} />`)}</ul>`
        : html`<p class="note">None.</p>`}
    </section>`
}

/** The plugins that run without being asked for. */
function Everywhere({ list }) {
  const rows = [['Run where a request names none', list.defaults], ['Run in every request', list.required], ['Only watch', list.shadow]].filter(([, names]) => names?.length > 0)
  if (rows.length === 0) return null
  return html`<dl class="card facts everywhere">${rows.map(([k, names]) => html`<div key=${k}><dt>${k}</dt><dd class="wrap">${names.join(', ')}</dd></div>`)}</dl>`
}

function Rejected({ files }) {
  return html`
    <section aria-labelledby="rejected-title">
      <h3 id="rejected-title">Files that are not in use</h3>
      <ul class="plugin-list">${files.map((f) => html`
        <li class="card rejected" key=${f.place}>
          <p class="problem"><${Warn} size="16" /><span class="wrap"><strong>${f.place}</strong> was rejected <time datetime=${f.at} title=${new Date(f.at).toLocaleString()}>${ago(f.at)}</time></span></p>
          <p class="wrap small-text">${f.reason}</p>
          <p class="muted small-text path wrap">SHA-256 ${f.hash}</p>
        </li>`)}</ul>
    </section>`
}
