// The answer: every state of a run, from the empty page to the failed request.
import { html } from '../html.js'
import { look, server, copy } from '../store.js'
import { form, run, set, start } from '../play.js'
import { levels } from '../format.js'
import { isChanged } from '../plugins.js'
import { Copy } from './icons.js'
import { Failure } from './failure.js'
import { Stats } from './stats.js'
import { TokenText } from './tokentext.js'
import { Chart } from './chart.js'

const examples = [
  'The capital of France is',
  'Once upon a time there was a',
  'def fibonacci(n):\n',
]

export function Output() {
  const r = run.value
  const known = r.tokens.some((t) => t.logprob != null)
  const changed = r.tokens.some(isChanged)
  return html`
    <section class=${`card output phase-${r.phase}`} aria-labelledby="output-title" aria-busy=${r.phase === 'waiting' || r.phase === 'streaming' ? 'true' : 'false'}>
      <header class="card-head">
        <h2 id="output-title">Answer</h2>
        <${Look} known=${known} />
        <button class="button ghost small" disabled=${r.text === ''} onClick=${() => copy(r.text, 'Answer')}><${Copy} size="16" /><span>Copy text</span></button>
      </header>
      ${r.phase === 'idle' ? html`<${Empty} />` : html`<${Body} r=${r} />`}
      ${(known && look.value.colour || changed) && html`<${Legend} colour=${known && look.value.colour} changed=${changed} />`}
      ${(r.tokens.length > 0 || r.phase === 'done') && html`<${Stats} r=${r} />`}
      ${r.tokens.length > 1 && html`<${Chart} r=${r} known=${known} />`}
    </section>`
}

function Look({ known }) {
  const toggle = (name, text, disabled, title) => html`
    <label class="toggle" title=${title}><input type="checkbox" checked=${look.value[name]} disabled=${disabled}
      onChange=${(e) => { look.value = { ...look.peek(), [name]: e.target.checked } }} /><span>${text}</span></label>`
  return html`
    <fieldset class="look">
      <legend class="hidden">How the answer is shown</legend>
      ${known && toggle('colour', 'Colour')}
      ${toggle('space', 'White space')}
      ${toggle('mono', 'Monospace')}
      ${toggle('stages', 'Stages', false, 'The next run asks what temperature, top_p and the other stages did to each token. Tokens take longer then.')}
    </fieldset>`
}

function Body({ r }) {
  if (r.phase === 'waiting') return html`<${Waiting} />`
  const nothing = r.text === '' && r.tokens.length === 0
  const fine = r.phase === 'done' || r.phase === 'cancelled'
  return html`
    ${!nothing && html`<${TokenText} r=${r} tail=${r.prompt} onBranch=${(prompt) => start({ prompt })} live=${true} />`}
    ${nothing && fine && html`<p class="note">${r.phase === 'cancelled' ? 'Stopped before the first token.'
      : r.finish === 'length' ? 'No tokens were asked for or there was no room for any.' : 'The model ended at once: it has nothing to add to this prompt.'}</p>`}
    ${r.phase === 'cancelled' && !nothing && html`<p class="note">You stopped it here.</p>`}
    ${r.phase === 'failed' && html`<${Failure} error=${r.error} partial=${!nothing} onRetry=${() => start()} />`}`
}

function Waiting() {
  const data = server.value.data
  const queued = data?.queued > 0
  return html`
    <div class="waiting">
      <span class="pulse" aria-hidden="true"><i></i><i></i><i></i></span>
      <p>${queued ? `Waiting in the queue (${data.queued} ahead or beside you)…` : 'Reading the prompt…'}</p>
    </div>`
}

function Empty() {
  const data = server.value.data
  if (data && !data.model) {
    return html`
      <div class="empty-output">
        <p>${data.loading ? `The model ${data.loading.name} is being loaded. You can write your prompt meanwhile.` : 'No model is loaded yet.'}</p>
        ${!data.loading && html`<p><a class="button primary" href="#/models">Choose a model</a></p>`}
      </div>`
  }
  const use = (prompt) => {
    set({ prompt })
    start()
  }
  return html`
    <div class="empty-output">
      <p>The model continues your text. It does not chat: give it a beginning, and it writes what comes next. Try one:</p>
      <ul class="examples">
        ${examples.map((e) => html`<li key=${e}><button class="example" onClick=${() => use(e)}>${e.trimEnd()}</button></li>`)}
      </ul>
      ${form.value.prompt === '' && html`<p class="muted small-text">Every token can be inspected: how likely it was, and what else it could have been.</p>`}
    </div>`
}

function Legend({ colour, changed }) {
  return html`
    <dl class="legend" aria-label="How tokens are marked">
      ${colour && levels.map((l, i) => html`
        <div key=${i}><dt><span class=${`token level-${i}`}>${l.name}</span></dt><dd>${l.range}</dd></div>`)}
      ${changed && html`<div><dt><span class="token changed">changed</span></dt><dd>by a plugin</dd></div>`}
    </dl>`
}
