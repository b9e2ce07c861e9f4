// One run of the playground: from the request to the last token, whatever happens
// on the way. The state is one signal that views read:
//   phase   idle | waiting | streaming | done | cancelled | failed
//   text, tokens, pieces   the answer so far; pieces[i] is what token i shows
//   times   arrival of each token in ms since the start
//   finish, usage, detail  once known; error when failed
import { signal } from './html.js'
import { APIError, isAbort } from './api.js'
import { TokenSlicer } from './format.js'

/** A run before it has begun. */
export const idle = () => ({
  phase: 'idle', prompt: '', text: '', tokens: [], pieces: [], times: [], started: 0, first: 0, elapsed: 0,
  finish: '', usage: null, detail: null, error: null, warnings: [], request: null,
})

/** Drives runs, one at a time. */
export class Runner {
  state = signal(idle())
  #api
  #now
  #frame
  #control = null

  /** frame(f) calls f before the next paint; it bounds redraws, not tokens. */
  constructor({ api, now = () => performance.now(), frame = (f) => requestAnimationFrame(f) }) {
    this.#api = api
    this.#now = now
    this.#frame = frame
  }

  get busy() {
    return this.#control !== null
  }

  /** Stops the run; what was generated stays. */
  stop() {
    this.#control?.abort()
  }

  /** Forgets the answer. */
  clear() {
    this.stop()
    this.state.value = idle()
  }

  /**
   * Runs a request to its end. The promise never rejects; the state tells all. With stages,
   * tokens say what built-in stages did to them.
   */
  async run(request, { stages = false } = {}) {
    if (this.busy) return
    const control = (this.#control = new AbortController())
    const run = { ...idle(), phase: 'waiting', prompt: request.prompt, request, started: this.#now() }
    const slicer = new TokenSlicer()
    let queued = false
    const show = () => {
      queued = false
      run.elapsed = this.#now() - run.started
      if (this.#control === control) this.state.value = { ...run }
    }
    const later = () => {
      if (queued) return
      queued = true
      this.#frame(() => queued && show())
    }
    show()
    try {
      for await (const chunk of this.#api.complete(request, control.signal, { stages })) {
        take(run, chunk, slicer, this.#now() - run.started)
        later()
      }
      run.phase = 'done'
    } catch (error) {
      if (isAbort(error)) run.phase = 'cancelled'
      else {
        run.phase = 'failed'
        run.error = error instanceof APIError ? error : new APIError('format', String(error?.message ?? error))
      }
    }
    show()
    this.#control = null
  }
}

/** Adds a chunk to the run. */
function take(run, chunk, slicer, at) {
  const choice = chunk.choices?.find((c) => (c.index ?? 0) === 0)
  if (choice) {
    const tokens = choice.details?.tokens ?? plainTokens(choice, run.text)
    run.text += choice.text ?? ''
    for (const t of tokens) {
      run.tokens.push(t)
      run.times.push(at)
    }
    slicer.update(run.text, run.tokens)
    run.pieces = slicer.pieces
    if (choice.finish_reason) run.finish = choice.finish_reason
    if (!run.first && (tokens.length || choice.text)) run.first = at
    run.phase = 'streaming'
  }
  if (chunk.usage) run.usage = chunk.usage
  if (chunk.ganglion) {
    run.detail = chunk.ganglion
    run.warnings = chunk.ganglion.warnings ?? []
  }
}

/** Without details a chunk is one token of unknown probability. */
function plainTokens(choice, before) {
  if (!choice.text) return []
  return [{ id: null, text: choice.text, logprob: null, top: [], offset: new TextEncoder().encode(before).length }]
}

/** Tokens per second of a run: the server's own figure, else measured here. */
export function speed(run) {
  const own = run.detail?.timings?.tokens_per_second
  if (own > 0) return own
  const n = run.tokens.length
  return n > 1 ? ((n - 1) * 1000) / (run.times[n - 1] - run.times[0]) : 0
}

/** Time to the first token in ms: the server's figure, else measured here. */
export function firstToken(run) {
  return run.detail?.timings?.first_token_ms ?? run.first
}
