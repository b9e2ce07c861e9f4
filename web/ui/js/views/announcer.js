// What a screen reader hears of a run: its phases, and the answer in whole
// sentences at a calm pace. Token by token would drown everything else.
import { html, useEffect, useRef, useState } from '../html.js'
import { run } from '../play.js'

const pace = 2000 // ms between two pieces of text

/** The part of text that is whole: up to its last sentence end or line break. */
export function sentences(text) {
  const m = /^[^]*[.!?…:;\n。！？](?=\s|$)/.exec(text)
  return m ? m[0] : ''
}

const words = {
  idle: '', waiting: 'Waiting for the first token', streaming: 'Generating', cancelled: 'Stopped', failed: 'Failed',
}

/** The phase of a run in words. */
export function phaseText({ phase, finish, tokens }) {
  if (phase !== 'done') return words[phase]
  const n = tokens.length
  return `Finished: ${n} ${n === 1 ? 'token' : 'tokens'}, ${finish === 'length' ? 'the limit was reached' : 'the model came to its end'}`
}

export function Announcer() {
  const { phase, text, started } = run.value
  const [said, setSaid] = useState([])
  const state = useRef({ started: 0, length: 0, last: 0 })
  const over = phase === 'done' || phase === 'cancelled' || phase === 'failed'
  useEffect(() => {
    const s = state.current
    if (s.started !== started) {
      Object.assign(s, { started, length: 0, last: performance.now() })
      setSaid([])
      return
    }
    const rest = text.slice(s.length)
    const piece = over ? rest : performance.now() - s.last > pace ? sentences(rest) : ''
    if (piece.trim() === '') return
    s.length += piece.length
    s.last = performance.now()
    setSaid((list) => [...list, piece])
  }, [started, text, over])
  return html`
    <div class="hidden">
      <p role="status">${phaseText(run.value)}</p>
      <div role="log" aria-label="Answer as it is read out">${said.map((s, i) => html`<p key=${i}>${s}</p>`)}</div>
    </div>`
}
