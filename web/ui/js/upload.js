// Sends a file with progress. XMLHttpRequest, because fetch tells nothing about how
// far an upload has come.
import { APIError } from './api.js'

/** Why a file cannot be a model; '' when it may be one. */
export function checkFile(file) {
  if (!/\.gguf$/i.test(file.name)) return `“${file.name}” is not a .gguf file.`
  if (file.size === 0) return `“${file.name}” is empty.`
  return ''
}

/** Why a file cannot be a plugin; '' when it may be one. */
export function checkPlugin(file) {
  if (!/\.(wasm|js)$/i.test(file.name)) return `“${file.name}” is neither a .wasm nor a .js file.`
  if (file.size === 0) return `“${file.name}” is empty.`
  return ''
}

/** Where the server takes a model's file. */
export const modelPlace = (file) => `/v1/models/files/${encodeURIComponent(file.name.replace(/\.gguf$/i, '.gguf'))}`

/** Where it takes a plugin's file. */
export const pluginPlace = (file) => `/v1/plugins/files/${encodeURIComponent(file.name.replace(/\.(wasm|js)$/i, (end) => end.toLowerCase()))}`

/**
 * Puts a file where the server takes it. Resolves with the answer; onProgress gets the
 * bytes sent so far; abort the signal to stop.
 */
export function upload(file, { to = modelPlace(file), headers = {}, onProgress = () => {}, signal } = {}) {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest()
    xhr.open('PUT', to)
    for (const [k, v] of Object.entries(headers)) xhr.setRequestHeader(k, v)
    xhr.setRequestHeader('Content-Type', 'application/octet-stream')
    xhr.upload.addEventListener('progress', (e) => onProgress(e.loaded))
    xhr.addEventListener('load', () => {
      const body = read(xhr.responseText)
      if (xhr.status < 300) resolve(body ?? {})
      else reject(new APIError('http', body?.error?.message ?? `The server answered with status ${xhr.status}.`, { status: xhr.status, code: body?.error?.code }))
    })
    xhr.addEventListener('error', () => reject(new APIError('network', 'The server cannot be reached.')))
    xhr.addEventListener('abort', () => reject(new DOMException('stopped', 'AbortError')))
    signal?.addEventListener('abort', () => xhr.abort())
    xhr.send(file)
  })
}

function read(text) {
  try { return JSON.parse(text) } catch { return null }
}
