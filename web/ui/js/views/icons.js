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
export const Up = icon(html`<path d="m6 14.5 6-6 6 6" />`)
export const Down = icon(html`<path d="m6 9.5 6 6 6-6" />`)
export const Dice = icon(html`<rect x="4" y="4" width="16" height="16" rx="3.5" /><g class="solid"><circle cx="8.8" cy="8.8" r="1.3" /><circle cx="15.2" cy="15.2" r="1.3" /><circle cx="12" cy="12" r="1.3" /></g>`)
export const Pin = icon(html`<path d="M12 15.5V21M7.5 15.5h9l-1.5-4V4.5h-6v7z" />`)
export const Back = icon(html`<path d="m14.5 5.5-6.5 6.5 6.5 6.5" />`)
export const Warn = icon(html`<path d="M12 4 2.8 19.5h18.4zM12 10v4.5M12 17v.2" />`)
export const Replay = icon(html`<path d="M19.5 12a7.5 7.5 0 1 1-2.3-5.4l2.3 2.4M19.5 4.5V9H15" /><path d="M10.5 9.2v5.6l4.3-2.8z" class="solid" />`)
export const Upload = icon(html`<path d="M12 15.5V5m-4 4 4-4 4 4M5 15v2.5A2.5 2.5 0 0 0 7.5 20h9a2.5 2.5 0 0 0 2.5-2.5V15" />`)
export const Clip = icon(html`<path d="m19.5 11.5-7.8 7.8a5 5 0 0 1-7.1-7.1l8.3-8.3a3.4 3.4 0 0 1 4.8 4.8l-8.2 8.2a1.7 1.7 0 0 1-2.4-2.4l7.3-7.3" />`)
export const Picture = icon(html`<rect x="3.5" y="4.5" width="17" height="15" rx="2.5" /><path d="m4 17 5-5 4 4 2.5-2.5L20 18" /><circle cx="15.5" cy="9" r="1.5" />`)
export const Sound = icon(html`<path d="M4 10v4h3.5l5 4V6l-5 4zM16 9a4.5 4.5 0 0 1 0 6M18.5 6.5a8 8 0 0 1 0 11" />`)
export const Film = icon(html`<rect x="3.5" y="4.5" width="17" height="15" rx="2.5" /><path d="M8 4.5v15M16 4.5v15M3.5 9.5H8m-4.5 5H8m8-5h4.5m-4.5 5h4.5M8 12h8" />`)
export const Disk = icon(html`<rect x="3.5" y="5" width="17" height="14" rx="2.5" /><path d="M3.5 14.5h17M7 17h.1M10 17h.1" />`)
export const Sun = icon(html`<circle cx="12" cy="12" r="4" /><path d="M12 3v2m0 14v2m9-9h-2M5 12H3m15.4-6.4L17 7M7 17l-1.4 1.4m12.8 0L17 17M7 7 5.6 5.6" />`)
export const Moon = icon(html`<path d="M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z" />`)
export const Auto = icon(html`<circle cx="12" cy="12" r="8" /><path d="M12 4a8 8 0 0 1 0 16z" class="solid" />`)
export const Check = icon(html`<path d="m5 12.5 4.5 4.5L19 7.5" />`)
export const Refresh = Reset

/** The mark: a trefoil knot with a nerve cell at each of its tips, fibres reaching out. */
export const Mark = () => html`
  <svg class="mark" width="32" height="32" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <path class="fibre" d="M24.4 12.5L25.9 8.2M24.4 12.5L28.9 13.5M16.0 27.1L19.1 30.6M16.0 27.1L12.9 30.6M7.6 12.5L3.1 13.5M7.6 12.5L6.1 8.2" />
    <path class="knot" d="M22.4 18.6C23.7 17.6 24.6 16.3 24.8 15.0C25.1 13.8 24.7 12.6 23.9 11.8C23.0 11.0 21.7 10.6 20.2 10.7C18.8 10.9 17.2 11.6 15.8 12.7C14.3 13.9 13.2 15.5 12.5 17.2M11.8 22.3C12.0 24.0 12.7 25.4 13.6 26.2C14.6 27.1 15.8 27.3 16.9 27.0C18.0 26.7 19.0 25.8 19.7 24.4C20.3 23.1 20.5 21.3 20.2 19.5C19.9 17.7 19.1 15.9 17.9 14.4M13.8 11.3C12.3 10.6 10.8 10.5 9.5 11.0C8.3 11.4 7.5 12.3 7.2 13.4C6.9 14.5 7.2 15.9 8.1 17.1C9.0 18.3 10.4 19.3 12.1 20.0C13.8 20.6 15.8 20.8 17.6 20.5" />
    <g class="cell"><circle cx="24.4" cy="12.5" r="2.5" /><circle cx="16" cy="27.1" r="2.5" /><circle cx="7.6" cy="12.5" r="2.5" /></g>
    <g class="tip"><circle cx="25.9" cy="8.2" r="0.9" /><circle cx="28.9" cy="13.5" r="0.9" /><circle cx="19.1" cy="30.6" r="0.9" /><circle cx="12.9" cy="30.6" r="0.9" /><circle cx="3.1" cy="13.5" r="0.9" /><circle cx="6.1" cy="8.2" r="0.9" /></g>
  </svg>`
