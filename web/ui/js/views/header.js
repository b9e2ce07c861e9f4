// The top of the page: name, views, what is serving, light or dark.
import { html } from '../html.js'
import { formatHash, route, server, theme } from '../store.js'
import { Mark, Sun, Moon, Auto } from './icons.js'

const tabs = [['playground', 'Playground'], ['history', 'History'], ['models', 'Models'], ['plugins', 'Plugins']]

export function Header() {
  const { view } = route.value
  return html`
    <header class="top">
      <a class="brand" href="#/playground"><${Mark} /><span class="wordmark">Ganglion</span></a>
      <nav class="tabs" aria-label="Views">
        ${tabs.map(([id, name]) => html`
          <a key=${id} href=${formatHash(id)} aria-current=${view === id ? 'page' : undefined}>${name}</a>`)}
      </nav>
      <${Serving} />
      <${ThemeButton} />
    </header>`
}

/** What serves right now, in a few words. */
export function summary({ state, data }) {
  if (state === 'connecting') return { tone: 'wait', text: 'Connecting' }
  if (state === 'offline') return { tone: 'bad', text: 'No connection' }
  if (state === 'locked') return { tone: 'bad', text: 'Key needed' }
  if (data.loading) {
    const { done, total } = data.loading
    return { tone: 'wait', text: total > 0 ? `Loading ${Math.floor((done / total) * 100)} %` : 'Loading' }
  }
  if (data.model) return { tone: 'good', text: data.model.name, where: data.model.backend }
  return { tone: 'wait', text: 'No model' }
}

function Serving() {
  const s = summary(server.value)
  const busy = server.value.data?.running > 0
  return html`
    <a class=${`serving tone-${s.tone}`} href="#/models">
      <span class="hidden">Serving: </span>
      <span class=${`dot ${busy ? 'dot-busy' : ''}`}></span>
      <span class="serving-name">${s.text}</span>
      ${s.where && html`<span class="serving-where">${s.where}</span>`}
    </a>`
}

const next = { auto: 'light', light: 'dark', dark: 'auto' }
const names = { auto: 'as the system', light: 'light', dark: 'dark' }
const icons = { auto: Auto, light: Sun, dark: Moon }

function ThemeButton() {
  const Icon = icons[theme.value] ?? Auto
  const label = `Colours: ${names[theme.value] ?? names.auto}`
  return html`
    <button class="icon-button" onClick=${() => { theme.value = next[theme.peek()] ?? 'auto' }} aria-label=${label} title=${label}>
      <${Icon} />
    </button>`
}
