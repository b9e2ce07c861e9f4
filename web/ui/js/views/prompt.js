// The prompt: text, its tokens, and the button that runs it.
import { html, useEffect, useState } from '../html.js'
import { api, look, server } from '../store.js'
import { copyCurl, form, invalid, run, runner, set, share, start } from '../play.js'
import { isAbort } from '../api.js'
import { integer, trailingSpace, visible } from '../format.js'
import { attached } from '../attached.js'
import { measuring, mediaTokens } from '../measured.js'
import { Attach, Attachments, onPaste, useDrop } from './attachments.js'
import { Link, Run, Stop, Terminal, Warn } from './icons.js'

const mac = /Mac|iPhone|iPad/.test(navigator.platform)

export function Prompt() {
  const { prompt } = form.value
  const busy = run.value.phase === 'waiting' || run.value.phase === 'streaming'
  const bad = invalid.value.name === 'prompt'
  const drop = useDrop()
  const tokens = useTokens(prompt)
  const toggle = () => (busy ? runner.stop() : start())
  return html`
    <section class=${`card prompt ${drop.over ? 'drop-over' : ''}`} aria-labelledby="prompt-title" ...${drop.handlers}>
      <header class="card-head">
        <h2 id="prompt-title"><label for="p-prompt">Prompt</label></h2>
        <div class="row tight">
          <${Attach} />
          <button class="button ghost small" onClick=${copyCurl}><${Terminal} size="16" /><span>Copy as curl</span></button>
          <button class="button ghost small" onClick=${share}><${Link} size="16" /><span>Share link</span></button>
        </div>
      </header>
      <textarea id="p-prompt" class=${`prompt-text ${look.value.mono ? 'mono' : ''}`} rows="5" spellcheck=${false}
        placeholder="Write the beginning. The model continues it." value=${prompt}
        onInput=${(e) => set({ prompt: e.target.value })} onKeyDown=${onKey} onPaste=${onPaste}
        aria-invalid=${bad ? 'true' : undefined} aria-describedby="prompt-notes"></textarea>
      <div id="prompt-notes" class="prompt-notes">
        ${bad && html`<p class="problem"><${Warn} size="16" />${invalid.value.message}</p>`}
        <${TrailingSpace} prompt=${prompt} />
      </div>
      <${Attachments} invalid=${invalid.value.name === 'media' && !invalid.value.control ? invalid.value.message : ''} />
      <footer class="prompt-foot">
        <${Count} tokens=${tokens} prompt=${prompt} />
        <span class="grow"></span>
        <kbd class="hint">${look.value.enter ? 'Enter' : mac ? '⌘ Enter' : 'Ctrl Enter'}</kbd>
        <button class=${`button run ${busy ? 'stop' : 'primary'}`} onClick=${toggle}>
          ${busy ? html`<${Stop} /><span>Stop</span>` : html`<${Run} /><span>Run</span>`}
        </button>
      </footer>
      <${PromptTokens} tokens=${tokens} />
    </section>`
}

/**
 * Ctrl or Cmd + Enter runs; plain Enter only where the person chose so. An Enter
 * that ends a composition (an input method for Japanese, say) belongs to the text:
 * browsers mark it by isComposing, Safari by key code 229.
 */
function onKey(e) {
  if (e.key !== 'Enter' || e.isComposing || e.keyCode === 229) return
  const plain = look.peek().enter && !e.shiftKey && !e.altKey
  if (!(e.ctrlKey || e.metaKey || plain)) return
  e.preventDefault()
  start()
}

function TrailingSpace({ prompt }) {
  const tail = trailingSpace(prompt)
  if (!tail) return null
  const trim = () => {
    set({ prompt: prompt.replace(/[ \t\u00a0]+$/, '') })
    document.getElementById('p-prompt')?.focus()
  }
  return html`
    <p class="warning"><${Warn} size="16" />
      <span>The prompt ends in ${tail}. Most models put the space in front of the next word, so this often makes the answer worse.</span>
      <button class="button small" onClick=${trim}>Remove it</button>
    </p>`
}

/** The prompt's tokens as the server counts them, a moment after typing pauses. */
function useTokens(prompt) {
  const [state, setState] = useState({ list: null, stale: true })
  const model = server.value.data?.model
  const ready = model?.hash ?? model?.name ?? ''
  useEffect(() => {
    if (!ready) {
      setState({ list: null, stale: true })
      return undefined
    }
    const control = new AbortController()
    const timer = setTimeout(async () => {
      try {
        const { tokens } = await api.tokenize(prompt, control.signal)
        setState({ list: tokens, stale: false })
      } catch (error) {
        if (!isAbort(error)) setState({ list: null, stale: true })
      }
    }, 250)
    setState((s) => ({ ...s, stale: true }))
    return () => {
      clearTimeout(timer)
      control.abort()
    }
  }, [prompt, ready])
  return state
}

function Count({ tokens, prompt }) {
  const context = server.value.data?.model?.context
  if (!tokens.list) return html`<span class="count muted">${integer([...prompt].length)} characters</span>`
  const media = mediaTokens()
  const n = tokens.list.length + (measuring.value ? 0 : media)
  const full = context > 0 && n >= context
  return html`
    <span class=${`count ${full ? 'problem' : 'muted'} ${tokens.stale || measuring.value ? 'stale' : ''}`}>
      ${full && html`<${Warn} size="16" />`}
      <span><strong>${integer(n)}</strong> ${n === 1 ? 'token' : 'tokens'}${measuring.value ? ', media not counted yet,' : media ? `, ${integer(media)} of them media,` : ''}${context > 0 ? ` of ${integer(context)}` : ''}${full ? ': no room for an answer' : ''}</span>
    </span>`
}

const shownTokens = 1500

function PromptTokens({ tokens }) {
  if (!tokens.list?.length) return null
  const rest = tokens.list.length - shownTokens
  return html`
    <details class="disclosure prompt-tokens">
      <summary>How the model reads it</summary>
      <p class="pieces">${tokens.list.slice(0, shownTokens).map((t, i) => html`
        <span class="piece" key=${i} title=${`token ${t.id}`}>${visible(t.text) || '∅'}</span>`)}
        ${rest > 0 && html`<span class="muted"> and ${integer(rest)} more</span>`}</p>
    </details>`
}
