// How a film is looked at: which of its frames, and whether a moving picture is one at all.
import { html, useLayoutEffect, useRef, useState } from '../html.js'
import { allWell, invalid } from '../play.js'
import { sendAs, wish } from '../attached.js'
import { factsOf, faultsOf } from '../measured.js'
import { hintsOf, inWords, wishes, wishID, wishProblem } from '../film.js'
import { Warn } from './icons.js'

/** Whether a moving picture is sent as its first frame or as a film. */
export function SendAs({ item }) {
  const group = useRef(null)
  const chose = useRef(false)
  const [round, setRound] = useState(0) // a choice that is not taken goes back
  useLayoutEffect(() => {
    if (chose.current) group.current.querySelector(':checked').focus() // where the list put it
    chose.current = false
  }, [item.kind, round])
  const choose = (kind) => {
    chose.current = true
    if (!sendAs(item, kind)) setRound(round + 1)
  }
  const radio = (kind, label) => html`
    <label class="toggle"><input type="radio" name=${`p-media-${item.id}-kind`} checked=${item.kind === kind} onChange=${() => choose(kind)} /><span>${label}</span></label>`
  return html`
    <fieldset class="send-as" ref=${group}>
      <legend>It moves. Send <span class="hidden">${item.name}</span> as</legend>
      ${radio('images', 'still picture')}${radio('videos', 'film')}
    </fieldset>`
}

/** What is wrong with a wish: as one sees it, as the server measured, or as it refused the request. */
function problemOf(item, w) {
  const refused = invalid.value.control === wishID(item, w.name) ? invalid.value.message : ''
  return wishProblem(w, item.wishes[w.name]) || faultsOf(item).find((f) => f.wish === w.name)?.words || refused
}

export function Frames({ item }) {
  const details = useRef(null)
  const wrong = wishes.some((w) => problemOf(item, w))
  useLayoutEffect(() => { if (wrong) details.current.open = true }, [wrong])
  return html`
    <details class="disclosure frames" ref=${details}>
      <summary><span>Frames<span class="hidden"> of ${item.name}</span></span><span>${inWords(hintsOf(item)) || 'as the model wants'}</span></summary>
      <div class="wishes" role="group" aria-label=${`Frames of ${item.name}`}>
        ${wishes.map((w) => html`<${Wish} key=${w.name} item=${item} w=${w} problem=${problemOf(item, w)} />`)}
        <p class="help" id=${`p-media-${item.id}-help`}>What is empty is left to the model.</p>
      </div>
    </details>`
}

function Wish({ item, w, problem }) {
  const id = wishID(item, w.name)
  const put = (e) => {
    if (invalid.value.control === id) invalid.value = allWell()
    wish(item.id, w.name, e.target.value)
  }
  const seconds = w.name === 'end' ? factsOf(item)?.seconds : undefined
  return html`
    <div class="wish">
      <label for=${id}>${w.label}</label>
      <input id=${id} class="input number" type="text" inputmode=${w.whole ? 'numeric' : 'decimal'} autocomplete="off" value=${item.wishes[w.name]} placeholder=${seconds ? Number(seconds.toFixed(2)) : w.empty}
        aria-invalid=${problem ? 'true' : undefined} aria-describedby=${`p-media-${item.id}-help ${id}-bad`} onInput=${put} />
      <div id=${`${id}-bad`} aria-live="polite">${problem && html`<p class="problem small-text wrap"><${Warn} size="14" /><span>${problem}</span></p>`}</div>
    </div>`
}
