// htm bound to preact: the page's template tag, and the hooks the views use.
import { h, render, Component, Fragment, createRef } from '../vendor/preact.js'
import htm from '../vendor/htm.js'

export const html = htm.bind(h)
export { h, render, Component, Fragment, createRef }
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useId, useErrorBoundary } from '../vendor/hooks.js'
export { signal, computed, effect, batch, untracked } from '../vendor/signals.js'
