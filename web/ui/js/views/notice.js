// Short messages ("Link copied"): a toast for the eye, a status for the ear.
import { html, useEffect, useState } from '../html.js'
import { notice } from '../store.js'

export function Notice() {
  const { text, n } = notice.value
  const [shown, setShown] = useState(0)
  useEffect(() => {
    if (!text) return undefined
    setShown(n)
    const timer = setTimeout(() => setShown(0), 3500)
    return () => clearTimeout(timer)
  }, [n])
  const visible = shown === n && text !== ''
  return html`<div class=${`toast ${visible ? 'toast-on' : ''}`} role="status">${visible ? text : ''}</div>`
}
