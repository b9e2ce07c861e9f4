// The page's drawings. Decorative: the control around an icon carries the name.
import { html } from '../html.js'

const icon = (paths) => ({ size = 18 } = {}) => html`
  <svg class="icon" width=${size} height=${size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">${paths}</svg>`

export const Run = icon(html`<path d="M7 4.5v15l12.5-7.5z" class="solid" />`)
export const Stop = icon(html`<rect x="6" y="6" width="12" height="12" rx="2" class="solid" />`)
export const Copy = icon(html`<rect x="8" y="8" width="12" height="12" rx="2.5" /><path d="M16 8V6.5A2.5 2.5 0 0 0 13.5 4h-7A2.5 2.5 0 0 0 4 6.5v7A2.5 2.5 0 0 0 6.5 16H8" />`)
export const Link = icon(html`<path d="M10 14a4 4 0 0 0 5.7 0l3.5-3.5a4 4 0 0 0-5.7-5.7L12 6.3M14 10a4 4 0 0 0-5.7 0l-3.5 3.5a4 4 0 0 0 5.7 5.7l1.5-1.5" />`)
export const Terminal = icon(html`<rect x="3" y="4.5" width="18" height="15" rx="2.5" /><path d="m7 9.5 3 2.5-3 2.5M12.5 15H17" />`)
export const Reset = icon(html`<path d="M4.5 12a7.5 7.5 0 1 0 2.3-5.4L4.5 9M4.5 4.5V9H9" />`)
export const Close = icon(html`<path d="m6.5 6.5 11 11m0-11-11 11" />`)
export const Plus = icon(html`<path d="M12 5v14M5 12h14" />`)
export const Dice = icon(html`<rect x="4" y="4" width="16" height="16" rx="3.5" /><g class="solid"><circle cx="8.8" cy="8.8" r="1.3" /><circle cx="15.2" cy="15.2" r="1.3" /><circle cx="12" cy="12" r="1.3" /></g>`)
export const Pin = icon(html`<path d="M12 15.5V21M7.5 15.5h9l-1.5-4V4.5h-6v7z" />`)
export const Back = icon(html`<path d="m14.5 5.5-6.5 6.5 6.5 6.5" />`)
export const Warn = icon(html`<path d="M12 4 2.8 19.5h18.4zM12 10v4.5M12 17v.2" />`)
export const Replay = icon(html`<path d="M19.5 12a7.5 7.5 0 1 1-2.3-5.4l2.3 2.4M19.5 4.5V9H15" /><path d="M10.5 9.2v5.6l4.3-2.8z" class="solid" />`)
export const Upload = icon(html`<path d="M12 15.5V5m-4 4 4-4 4 4M5 15v2.5A2.5 2.5 0 0 0 7.5 20h9a2.5 2.5 0 0 0 2.5-2.5V15" />`)
export const Disk = icon(html`<rect x="3.5" y="5" width="17" height="14" rx="2.5" /><path d="M3.5 14.5h17M7 17h.1M10 17h.1" />`)
export const Sun = icon(html`<circle cx="12" cy="12" r="4" /><path d="M12 3v2m0 14v2m9-9h-2M5 12H3m15.4-6.4L17 7M7 17l-1.4 1.4m12.8 0L17 17M7 7 5.6 5.6" />`)
export const Moon = icon(html`<path d="M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z" />`)
export const Auto = icon(html`<circle cx="12" cy="12" r="8" /><path d="M12 4a8 8 0 0 1 0 16z" class="solid" />`)
export const Check = icon(html`<path d="m5 12.5 4.5 4.5L19 7.5" />`)
export const Refresh = Reset

/** The mark: three cells tied in a knot, their fibres reaching out. */
export const Mark = () => html`
  <svg class="mark" width="30" height="30" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <g class="fibre"><path d="M11.5 12.5C8.5 10.5 7 8.5 6.2 5.6M20.8 11.5c2-1.6 3-3.4 3.6-6M10 19.6c-2 .9-3.8 2.2-5.2 4.3M17.4 23.6c.2 1.7.8 3 2 4.4M24 17.8c1.5.4 2.7 1.1 3.8 2.2" /></g>
    <g class="knot"><path d="M12 13.5q4.5 3.5 9-.8M12 14.5q-.6 6 5 7.6M21.5 13.5q2 6-4 8.4" /></g>
    <g class="cell"><circle cx="11.6" cy="13.4" r="3.7" /><circle cx="21.2" cy="12.8" r="3.2" /><circle cx="16.8" cy="21.7" r="3.4" /></g>
    <g class="tip"><circle cx="6.2" cy="5.6" r="1.3" /><circle cx="24.4" cy="5.5" r="1.3" /><circle cx="4.8" cy="23.9" r="1.3" /><circle cx="19.4" cy="28" r="1.3" /><circle cx="27.8" cy="20" r="1.3" /></g>
    <circle class="nucleus" cx="11.6" cy="13.4" r="1.4" />
  </svg>`
