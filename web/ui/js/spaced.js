// Calls that keep a distance. Pure.

/**
 * Spaces calls of f: later() calls it in a moment, and where it was called less than pace
 * ms ago as soon as they are over, however often it is asked meanwhile; now() calls it at
 * once where a call waits.
 */
export function spaced(f, pace, { now = () => performance.now(), set = setTimeout, clear = clearTimeout } = {}) {
  let last = -Infinity
  let timer = null
  const call = () => {
    clear(timer)
    timer = null
    last = now()
    f()
  }
  return {
    later() { timer ??= set(call, Math.max(0, last + pace - now())) },
    now() { if (timer !== null) call() },
  }
}
