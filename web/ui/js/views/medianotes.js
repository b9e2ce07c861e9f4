// What the log keeps of the media of a request: facts, and where it is set so, the files.
import { html, useEffect, useState } from '../html.js'
import { api } from '../store.js'
import { isAbort } from '../api.js'
import { bytes } from '../format.js'
import { inWords } from '../film.js'
import { kindOfParam, seen } from '../media.js'
import { Preview } from './attachments.js'
import { Film, Picture, Sound } from './icons.js'

const icons = { images: Picture, audios: Sound, videos: Film }

export function MediaNotes({ record }) {
  return html`<ul class="media-notes">${record.media.map((m, i) => html`<${Note} key=${i} id=${record.id} place=${i} m=${m} />`)}</ul>`
}

function Note({ id, place, m }) {
  const kind = kindOfParam(m.param)
  const item = useFile(id, place, m, kind)
  const Icon = icons[kind] ?? Picture
  return html`
    <li class="media-note">
      ${item ? html`<${Preview} item=${item} />` : html`<${Icon} size="22" />`}
      <span>${m.param}: ${m.mime}, ${bytes(m.bytes)}, ${seen(m)}${m.hints && `; wished: ${inWords(m.hints)}`}</span>
      <span class="muted">${m.sha256 ? `SHA-256 ${m.sha256}` : 'The log keeps no text, so it does not say which file it was.'}</span>
    </li>`
}

/** The file as an item that can be shown, once it is there. */
function useFile(id, place, m, kind) {
  const [item, setItem] = useState(null)
  useEffect(() => {
    if (!m.kept) return undefined
    const control = new AbortController()
    api.mediaFile(id, place, control.signal).then(
      (file) => setItem({ kind, name: m.param, file: new Blob([file], { type: m.mime }) }),
      (error) => isAbort(error) || setItem(null)) // the facts stand there all the same
    return () => control.abort()
  }, [id, place, m.kept])
  return item
}
