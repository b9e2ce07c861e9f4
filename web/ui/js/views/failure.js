// A failed request in plain words, with what can be done about it.
import { html, useEffect, useState } from '../html.js'
import { isRefusal } from '../api.js'
import { controlOf } from '../params.js'
import { Warn } from './icons.js'

/** Title and advice for an error of the API. */
export function explain(error) {
  if (error.kind === 'network') return { title: 'The server cannot be reached', advice: 'Is Ganglion still running? Your prompt is safe here.' }
  if (error.kind === 'cut') return { title: 'The answer broke off', advice: 'The connection was lost. What had arrived is kept above.' }
  if (error.status === 401) return { title: 'The key is missing or wrong', advice: 'Enter it at the top of the page.' }
  if (error.status === 503 && error.code === 'queue_full') return { title: 'Too many requests are waiting', advice: '' }
  if (error.status === 503) return { title: 'Not ready yet', advice: 'Try again as soon as a model is loaded.' }
  if (error.plugin) return { title: `The plugin ${error.plugin} failed`, advice: 'Leave it out, or choose what happens when it fails in its settings.' }
  if (error.code === 'context_length_exceeded') return { title: 'The prompt is too long for this model', advice: 'Nothing was cut: shorten the prompt, or load the model with a larger context.' }
  if (error.code === 'media_timeout') return { title: 'A file took too long to decode', advice: 'The server may be busy; a shorter or smaller file helps too.' }
  if (isRefusal(error)) return { title: 'The server refused the request', advice: controlOf(error.param) ? 'The field is marked in the form.' : '' }
  return { title: 'Something went wrong on the server', advice: 'Its log has the details.' }
}

export function Failure({ error, partial, onRetry }) {
  const { title, advice } = explain(error)
  const retry = !isRefusal(error)
  return html`
    <div class="failure" role="alert">
      <h3><${Warn} />${title}</h3>
      <p class="wrap">${error.message}</p>
      ${advice && html`<p class="muted">${error.kind === 'cut' && !partial ? 'The connection was lost before the first token.' : advice}</p>`}
      ${retry && html`<p class="row"><button class="button" onClick=${onRetry}>Try again</button><${Countdown} seconds=${error.retryAfter} key=${error} /></p>`}
    </div>`
}

/** The server's Retry-After, counted down; it is advice, the button works at once. */
function Countdown({ seconds }) {
  const [left, setLeft] = useState(seconds)
  useEffect(() => {
    if (left <= 0) return undefined
    const timer = setTimeout(() => setLeft(left - 1), 1000)
    return () => clearTimeout(timer)
  }, [left])
  if (!seconds) return null
  // aria-live off: the alert has been read, the seconds need not be.
  return html`<span class="muted" aria-live="off">${left > 0 ? `The server suggests ${left} s from now.` : 'Now is a good time.'}</span>`
}
