// Generated text, token by token: coloured by probability, walked by arrow keys,
// each token opening a card with what else it could have been. A listbox with a
// roving tabindex: one Tab stop however long the text is.
import { html, Component, useEffect, useLayoutEffect, useRef, useState } from '../html.js'
import { look } from '../store.js'
import { level, percent, probability, visible } from '../format.js'
import { isChanged } from '../plugins.js'
import { TokenCard } from './tokencard.js'

const blockSize = 64 // tokens redrawn together: keeps a long stream linear
const tailLength = 80 // characters of the prompt shown before the answer

/** The end of the prompt's last line, so that prompt and answer read as one. */
export function tailOf(prompt) {
  const line = prompt.slice(prompt.lastIndexOf('\n') + 1)
  return line.length > tailLength ? `…${line.slice(-tailLength)}` : line
}

export function TokenText({ r, tail = '', onBranch, live = false, label = 'Generated tokens' }) {
  const wrap = useRef(null)
  const scroller = useRef(null)
  const card = useCard(wrap, r)
  useStickToEnd(scroller, live, r.tokens.length)
  const { colour, space, mono } = look.value
  const blocks = []
  for (let i = 0; i < r.tokens.length; i += blockSize) blocks.push(i)
  const shown = card.index
  return html`
    <div class="tokens-wrap" ref=${wrap} ...${card.handlers}>
      <div class=${`tokens ${mono ? 'mono' : ''} ${colour ? 'coloured' : ''}`} ref=${scroller}>
        ${tail !== '' && html`<span class="tail">${space ? signs(tailOf(tail)) : tailOf(tail)}</span>`}
        ${r.tokens.length === 0 ? html`<span>${r.text}</span>` : html`
          <span role="listbox" aria-label=${label} aria-orientation="horizontal">${blocks.map((first) => html`
            <${Block} key=${first} first=${first} r=${r} space=${space} active=${inBlock(card.active, first)}
              pinned=${inBlock(card.pinned, first)} described=${shown === card.active && shown !== null && card.pinned === null} />`)}</span>`}
        ${live && r.phase === 'streaming' && html`<span class="caret" aria-hidden="true"></span>`}
      </div>
      ${shown !== null && r.tokens[shown] && html`
        <${TokenCard} token=${r.tokens[shown]} index=${shown} pinned=${card.pinned !== null} wrap=${wrap} onClose=${card.close}
          onBranch=${onBranch && ((alternative) => {
            card.close()
            onBranch(r.prompt + r.pieces.slice(0, shown).join('') + alternative.text)
          })} />`}
    </div>`
}

const inBlock = (i, first) => (i !== null && i >= first && i < first + blockSize ? i : -1)

class Block extends Component {
  /** A block's look is decided by its text, its length and its active token. */
  static signature({ first, r, space, active, pinned, described }) {
    let length = 0
    const end = Math.min(first + blockSize, r.tokens.length)
    for (let i = first; i < end; i++) length += r.pieces[i].length
    return `${r.started} ${end} ${length} ${space} ${active} ${pinned} ${active >= 0 && described}`
  }

  shouldComponentUpdate(next) {
    return this.drawn !== Block.signature(next)
  }

  render() {
    this.drawn = Block.signature(this.props)
    const { first, r, space, active, pinned, described } = this.props
    return r.tokens.slice(first, first + blockSize).map((t, k) => {
      const i = first + k
      const step = t.logprob == null ? 'none' : level(t.logprob)
      const changed = isChanged(t) ? ' changed' : ''
      return html`<span key=${i} role="option" data-i=${i} class=${`token level-${step}${changed}`} tabindex=${i === active ? 0 : -1}
        aria-selected=${i === pinned ? 'true' : 'false'} aria-label=${space || r.pieces[i].trim() === '' ? name(r.pieces[i]) : undefined}
        aria-describedby=${i === active && described ? 'token-card' : undefined}>${space ? signs(r.pieces[i]) : r.pieces[i]}</span>`
    })
  }
}

// A line may break after a sign as it may after the space it stands for.
const signs = (piece) => (piece === '' ? '∅' : visible(piece).replaceAll('⏎', '⏎\n').replaceAll('·', '·\u200b'))
const name = (piece) => (piece.trim() !== '' ? piece : piece === '' ? 'no text of its own' : /\n/.test(piece) ? 'line break' : 'space')

/** A token in one line: for the card's title and the chart. */
export function tokenLine(token) {
  return `“${visible(token.text)}” ${token.logprob == null ? '' : percent(probability(token.logprob))}`.trim()
}

/** Which token is active (in the Tab order), hovered, focused and pinned. */
function useCard(wrap, r) {
  const [active, setActive] = useState(0)
  const [hover, setHover] = useState(null)
  const [focus, setFocus] = useState(null)
  const [pinned, setPinned] = useState(null)
  const leaving = useRef(0)
  // In the step that draws the text: done later, it would take away what was pointed at meanwhile.
  useLayoutEffect(() => {
    setActive(0)
    setHover(null)
    setPinned(null)
  }, [r.started])
  useEffect(() => () => clearTimeout(leaving.current), [])
  const at = (e) => {
    const i = e.target.closest?.('[data-i]')?.dataset.i
    return i === undefined ? null : Number(i)
  }
  const move = (i) => {
    setActive(i)
    wrap.current.querySelector(`[data-i="${i}"]`)?.focus()
  }
  const close = () => {
    setHover(null)
    setPinned(null)
    if (pinned !== null) wrap.current.querySelector(`[data-i="${pinned}"]`)?.focus({ preventScroll: true })
    setFocus(null) // after the focus has moved: the token is focused, its card stays shut
  }
  const pin = (i) => {
    setActive(i)
    setPinned(i)
  }
  const handlers = {
    onPointerOver: (e) => {
      clearTimeout(leaving.current)
      const i = at(e)
      if (i !== null && e.pointerType !== 'touch') setHover(i)
    },
    // The card stays reachable: leaving a token gives time to enter its card.
    onPointerLeave: () => { leaving.current = setTimeout(() => setHover(null), 120) },
    onFocusIn: (e) => {
      const i = at(e)
      if (i === null) return
      setFocus(i)
      setActive(i)
    },
    onFocusOut: (e) => {
      if (wrap.current?.contains(e.relatedTarget)) return // still within, or the text itself goes away
      setFocus(null)
      setPinned(null)
    },
    onClick: (e) => {
      const i = at(e)
      if (i !== null && getSelection().isCollapsed) pin(i)
    },
    onKeyDown: (e) => {
      if (e.key === 'Escape' && (hover ?? focus ?? pinned) !== null) {
        e.preventDefault()
        close()
        return
      }
      const i = at(e)
      if (i === null || e.ctrlKey || e.metaKey || e.altKey) return
      const to = target(e, i, r.tokens.length, wrap.current)
      if (e.key === 'Enter' || e.key === ' ') pin(i)
      else if (to !== null) move(to)
      else return
      e.preventDefault()
    },
  }
  const last = r.tokens.length - 1
  return { active: Math.min(active, Math.max(last, 0)), pinned, index: pinned ?? hover ?? focus, handlers, close }
}

/** Where an arrow key leads: along the text, or to the nearest token of another line. */
function target(e, i, n, root) {
  switch (e.key) {
    case 'ArrowRight': return Math.min(i + 1, n - 1)
    case 'ArrowLeft': return Math.max(i - 1, 0)
    case 'Home': return 0
    case 'End': return n - 1
    case 'ArrowDown': return byLine(i, 1, n, root)
    case 'ArrowUp': return byLine(i, -1, n, root)
    default: return null
  }
}

function byLine(i, step, n, root) {
  const place = (k) => root.querySelector(`[data-i="${k}"]`).getClientRects()[0]
  const from = place(i)
  if (!from) return i
  let best = i
  let line = null
  for (let k = i + step; k >= 0 && k < n; k += step) {
    const to = place(k)
    if (!to || Math.abs(to.top - from.top) < from.height / 2) continue
    line ??= to.top
    if (Math.abs(to.top - line) > from.height / 2) break
    if (best === i || Math.abs(to.left - from.left) < Math.abs(place(best).left - from.left)) best = k
  }
  return best
}

/** Keeps the end of a growing text in view, unless the person scrolled up. */
function useStickToEnd(ref, live, n) {
  const stick = useRef(true)
  useEffect(() => {
    const el = ref.current
    const seen = () => { stick.current = el.scrollHeight - el.scrollTop - el.clientHeight < 40 }
    el.addEventListener('scroll', seen, { passive: true })
    return () => el.removeEventListener('scroll', seen)
  }, [])
  useLayoutEffect(() => {
    if (live && stick.current) ref.current.scrollTop = ref.current.scrollHeight
  }, [live, n])
}
