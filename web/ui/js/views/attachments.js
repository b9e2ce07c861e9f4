// What is attached to the prompt: previews, what the model will see, and how to add more.
import { html, useEffect, useRef, useState } from '../html.js'
import { server } from '../store.js'
import { bytes } from '../format.js'
import { attach, attached, detach, problem } from '../attached.js'
import { factsOf, faultsOf, measuring, otherFaults } from '../measured.js'
import { accept, filmNote, inOrder, refusal, seen } from '../media.js'
import { inWords } from '../film.js'
import { Frames, SendAs } from './film.js'
import { Clip, Close, Film, Picture, Sound, Warn } from './icons.js'

const icons = { images: Picture, audios: Sound, videos: Film }
const names = { images: 'Picture', audios: 'Sound', videos: 'Film' }

/** The button that chooses files. */
export function Attach() {
  const input = useRef(null)
  const choose = (e) => {
    attach([...e.target.files])
    e.target.value = ''
  }
  return html`
    <input ref=${input} class="hidden" type="file" multiple accept=${accept} tabindex="-1" aria-label="Media files" onChange=${choose} />
    <button class="button ghost small" onClick=${() => input.current.click()}><${Clip} size="16" /><span>Attach</span></button>`
}

/** Handlers for a place where files may be dropped; over tells that they hang above it. */
export function useDrop() {
  const [over, setOver] = useState(false)
  const files = (e) => [...(e.dataTransfer?.files ?? [])]
  const holds = (e) => [...(e.dataTransfer?.types ?? [])].includes('Files')
  return {
    over,
    handlers: {
      onDragOver: (e) => { if (holds(e)) { e.preventDefault(); setOver(true) } },
      onDragLeave: (e) => { if (!e.currentTarget.contains(e.relatedTarget)) setOver(false) },
      onDrop: (e) => {
        if (!holds(e)) return
        e.preventDefault()
        setOver(false)
        attach(files(e))
      },
    },
  }
}

/** Takes files from the clipboard; text is left to the browser. */
export function onPaste(e) {
  const files = [...(e.clipboardData?.files ?? [])]
  if (!files.length || e.clipboardData.types.includes('text/plain')) return
  e.preventDefault()
  attach(files)
}

export function Attachments({ invalid }) {
  const items = inOrder(attached.value)
  const encoder = server.value.data?.encoder
  const whys = server.value.data?.state === 'ready' ? items.map((i) => refusal(i.kind, encoder)).filter(Boolean) : []
  const faults = items.flatMap(faultsOf).filter((f) => !f.wish).map((f) => f.words) // what is wrong with a wish stands at it
  const notes = [...new Set([problem.value, invalid, ...whys, ...faults, ...otherFaults()].filter(Boolean))]
  const film = filmNote(items, server.value.data?.films)
  if (!items.length && !notes.length) return null
  return html`
    <div class="attachments" id="p-media" tabindex="-1" role="group" aria-label="Attached media">
      ${items.length > 0 && html`<ul class="attached">${items.map((item) => html`<${Item} key=${item.id} item=${item} />`)}</ul>`}
      <div role="status">${film && html`<p class="muted wrap">${film}</p>`}${notes.map((n) => html`<p class="problem" key=${n}><${Warn} size="16" /><span class="wrap">${n}</span></p>`)}</div>
    </div>`
}

function Item({ item }) {
  const film = item.kind === 'videos'
  const waits = measuring.value && !faultsOf(item).length
  const facts = [names[item.kind], seen(factsOf(item)) || (waits ? 'measuring…' : bytes(item.bytes)), !film && inWords(item.hints)].filter(Boolean).join(', ')
  return html`
    <li class=${`attachment ${item.kind} ${item.moving ? 'moving' : ''}`}>
      <${Preview} item=${item} />
      <div class="attachment-name"><span class="wrap">${item.name}</span><span class="muted" aria-live=${film ? 'polite' : undefined}>${facts}</span></div>
      <button class="icon-button small" aria-label=${`Remove ${item.name}`} title="Remove" onClick=${() => detach(item.id)}><${Close} size="16" /></button>
      ${item.moving && html`<${SendAs} item=${item} />`}
      ${film && html`<${Frames} item=${item} />`}
    </li>`
}

/** A picture, or a player; item is {kind, name, file}. A film that is a moving picture shows its first frame. */
export function Preview({ item }) {
  if (item.kind === 'images' || item.moving || item.file.type.startsWith('image/')) return html`<${Thumbnail} item=${item} />`
  return html`<${Player} item=${item} />`
}

const edge = 96 // of a thumbnail, in pixels of the screen at its finest

/** Drawn, not shown as an address: the page's content policy has no pictures from elsewhere. */
function Thumbnail({ item }) {
  const canvas = useRef(null)
  const [failed, setFailed] = useState(false)
  useEffect(() => {
    let gone = false
    createImageBitmap(item.file).then((bitmap) => {
      const at = canvas.current
      if (!gone && at) {
        const scale = Math.min((2 * edge) / bitmap.width, (2 * edge) / bitmap.height, 1)
        at.width = Math.max(Math.round(bitmap.width * scale), 1)
        at.height = Math.max(Math.round(bitmap.height * scale), 1)
        at.getContext('2d').drawImage(bitmap, 0, 0, at.width, at.height)
      }
      bitmap.close()
    }, () => gone || setFailed(true)) // a file that the server reads and this browser does not
    return () => { gone = true }
  }, [item.file])
  const Icon = icons.images
  return failed ? html`<span class="thumb blank"><${Icon} size="26" /></span>` : html`<canvas ref=${canvas} class="thumb" role="img" aria-label=${`Preview of ${item.name}`}></canvas>`
}

function Player({ item }) {
  const [failed, setFailed] = useState(false)
  const media = useRef(null)
  useEffect(() => {
    const url = URL.createObjectURL(item.file)
    media.current.src = url
    return () => URL.revokeObjectURL(url)
  }, [item.file])
  const Icon = icons[item.kind]
  if (failed) return html`<span class="thumb blank"><${Icon} size="26" /></span>`
  const tag = item.kind === 'audios' ? 'audio' : 'video'
  return html`<${tag} ref=${media} class="player" controls preload="metadata" aria-label=${`Preview of ${item.name}`} onError=${() => setFailed(true)}></${tag}>`
}
