// The card of one token: how likely it was, and what else it could have been.
// A tooltip while hovered or focused; pinned (click or Enter) it is a dialog whose
// alternatives are buttons.
import { html, useLayoutEffect, useRef } from '../html.js'
import { percent, probability, visible } from '../format.js'
import { changeText } from '../plugins.js'
import { bias } from '../play.js'
import { say } from '../store.js'
import { Close } from './icons.js'

// Half a character shows as U+FFFD, and some tokens as nothing: their ids tell them apart.
const unreadable = /^\ufffd*$/

export function TokenCard({ token, index, pinned, wrap, onClose, onBranch }) {
  const card = useRef(null)
  usePlace(card, wrap, index)
  useLayoutEffect(() => {
    if (pinned) card.current.querySelector('button')?.focus({ preventScroll: true })
  }, [pinned, index])
  const ban = () => {
    bias(token.id, token.text, -100)
    say(`Token ${token.id} is banned from the next run`)
    onClose()
  }
  const title = `“${visible(token.text) || '∅'}”`
  return html`
    <div class=${`token-card ${pinned ? 'pinned' : ''}`} id="token-card" ref=${card}
      role=${pinned ? 'dialog' : 'tooltip'} aria-label=${pinned ? `Token ${title}` : undefined}>
      <p class="token-head">
        <span class="token-name">${title}</span>
        ${token.id !== null && html`<span class="muted">token ${token.id}</span>`}
        ${pinned && html`<button class="icon-button small" aria-label="Close" onClick=${onClose}><${Close} size="16" /></button>`}
      </p>
      ${token.logprob == null ? html`<p class="muted">Its probability was not asked for.</p>` : html`
        <p class="token-odds"><strong>${percent(probability(token.logprob))}</strong> <span class="muted">log-probability ${token.logprob.toFixed(3)}</span></p>`}
      ${token.changes?.length > 0 && html`<${Changes} changes=${token.changes} />`}
      ${token.top?.length > 0 && html`<${Alternatives} token=${token} pinned=${pinned} onBranch=${onBranch} />`}
      ${pinned && token.id !== null && html`<p class="token-actions"><button class="button small" onClick=${ban}>Ban this token</button></p>`}
    </div>`
}

/** Which plugin or built-in stage did what to the token. */
function Changes({ changes }) {
  return html`
    <ul class="changes" aria-label=${changes.some((c) => c.stage) ? 'What each stage did' : 'What plugins did'}>${changes.map((c, i) => html`
      <li key=${i}><strong>${c.plugin ?? c.stage}</strong> ${changeText(c, (text) => `“${visible(text) || '∅'}”`)}</li>`)}</ul>`
}

function Alternatives({ token, pinned, onBranch }) {
  const known = token.top.some((a) => a.id === token.id)
  const list = known ? token.top : [...token.top, { id: token.id, text: token.text, logprob: token.logprob }]
  const rest = Math.max(0, 1 - list.reduce((sum, a) => sum + probability(a.logprob), 0))
  const branching = pinned && onBranch
  return html`
    <ol class="alternatives" aria-label=${branching ? 'Continue from here with' : 'Alternatives'}>
      ${list.map((a) => {
        const p = probability(a.logprob)
        const chosen = a.id === token.id
        const text = html`<span class="alt-text">${visible(a.text) || '∅'}${unreadable.test(a.text) && html` <small class="muted">${a.id}</small>`}</span>`
        return html`
          <li key=${a.id} class=${chosen ? 'chosen' : ''}>
            ${branching && !chosen ? html`<button class="alt-pick" onClick=${() => onBranch(a)} title="Continue from here with this token">${text}</button>` : text}
            <span class="bar" aria-hidden="true"><svg viewBox="0 0 100 6" preserveAspectRatio="none"><rect width=${p * 100} height="6" /></svg></span>
            <span class="alt-odds">${percent(p)}</span>${chosen && html`<span class="hidden"> (chosen)</span>`}
          </li>`
      })}
      <li class="rest"><span class="alt-text">all others</span><span class="bar" aria-hidden="true"><svg viewBox="0 0 100 6" preserveAspectRatio="none"><rect width=${rest * 100} height="6" /></svg></span><span class="alt-odds">${percent(rest)}</span></li>
    </ol>
    ${branching ? html`<p class="muted small-text">Pick one to continue from here with it.</p>`
      : !pinned && html`<p class="muted small-text">Click, or press Enter, for more.</p>`}`
}

/** Places the card under its token, or above where there is no room. */
function usePlace(card, wrap, index) {
  useLayoutEffect(() => {
    const token = wrap.current?.querySelector(`[data-i="${index}"]`)
    const rects = token?.getClientRects()
    const box = (rects && rects[rects.length > 1 && rects[0].width < 2 ? 1 : 0]) ?? token?.getBoundingClientRect()
    if (!box) return
    const frame = wrap.current.getBoundingClientRect()
    const { offsetWidth: w, offsetHeight: h } = card.current
    const below = innerHeight - box.bottom > h + 12 || box.top < h + 12
    const left = Math.max(0, Math.min(box.left - frame.left, frame.width - w))
    const top = below ? box.bottom - frame.top + 4 : box.top - frame.top - h - 4
    card.current.style.left = `${left}px`
    card.current.style.top = `${top}px`
  })
}
