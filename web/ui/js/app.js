// Starts the page: the frame around the views, and which view is shown.
import { html, render, useLayoutEffect, useRef, useErrorBoundary } from './html.js'
import { route, refreshStatus } from './store.js'
import { Header } from './views/header.js'
import { Banner } from './views/banner.js'
import { Notice } from './views/notice.js'
import { Playground } from './views/playground.js'
import { History } from './views/history.js'
import { Models } from './views/models.js'
import { Plugins } from './views/plugins.js'

const titles = { playground: 'Playground', history: 'History', models: 'Models', plugins: 'Plugins' }
const bodies = { playground: Playground, history: History, models: Models, plugins: Plugins }

function App() {
  const { view } = route.value
  const main = useRef(null)
  const [broken, mend] = useErrorBoundary((e) => console.error(e))
  const View = bodies[view]
  // In the same step as the view: whoever sees the new heading sees its title.
  useLayoutEffect(() => { document.title = `${titles[view]} – Ganglion` }, [view])
  const skip = (e) => {
    e.preventDefault() // the hash holds the view's state
    main.current.focus()
  }
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Header} />
    <${Banner} />
    <main id="main" class=${`view view-${view}`} tabindex="-1" ref=${main}>
      <h1 class="hidden">${titles[view]}</h1>
      ${broken ? html`<${Broken} onRetry=${mend} />` : html`<${View} key=${view} />`}
    </main>
    <${Notice} />`
}

function Broken({ onRetry }) {
  return html`
    <section class="card empty" role="alert">
      <h2>This view stopped working</h2>
      <p>That is a fault of the page, not of yours. Nothing on the server was lost.</p>
      <p><button class="button" onClick=${onRetry}>Show it again</button></p>
    </section>`
}

const root = document.getElementById('app')
root.textContent = ''
render(html`<${App} />`, root)
refreshStatus()
