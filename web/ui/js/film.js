// What a person may wish of a film: which of its frames the model sees. Pure.

/** The wishes, as members of a film's descriptor; what is empty is left to the model. */
export const wishes = [
  { name: 'fps', label: 'Frames a second', empty: 'model’s own', most: 240, least: 0.001 },
  { name: 'max_frames', label: 'Frames at most', empty: 'model’s own', most: 65536, whole: true },
  { name: 'start', label: 'From second', empty: 'beginning', most: 1000000 },
  { name: 'end', label: 'To second', empty: 'end', most: 1000000 },
]

/** No wishes. */
export const noWishes = () => Object.fromEntries(wishes.map(({ name }) => [name, '']))

/** Typed text as the value it means: a number (1,5 is 1.5), else the text, which a server refuses. */
function valueOf(text) {
  const plain = text.trim().replace(/^(\d*),(\d{1,2})$/, '$1.$2')
  const n = Number(plain)
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) && Number.isFinite(n) ? n : text
}

/** Why a wish cannot be, in the words of the server; '' when it can, as far as one sees without the film. */
export function wishProblem({ most, least = 0, whole = false }, text) {
  if (text.trim() === '') return ''
  const v = valueOf(text)
  if (whole) return Number.isInteger(v) && v >= 1 && v <= most ? '' : `must be an integer from 1 to ${most}`
  if (typeof v !== 'number' || v < 0 || v > most) return `must be a number from 0 to ${most}`
  return v > 0 && v < least ? `must be ${least} or more` : ''
}

/** Whether an item has a wish that cannot be. */
export const wishesWrong = (item) => item.kind === 'videos' && wishes.some((w) => wishProblem(w, item.wishes?.[w.name] ?? '') !== '')

/** The hints of an item's descriptor: the wishes about a film, and those that its record had beside them. */
export function hintsOf(item) {
  const hints = { ...item.hints }
  if (item.kind !== 'videos') return hints
  for (const { name } of wishes) {
    const text = item.wishes?.[name] ?? ''
    if (text.trim() !== '') hints[name] = valueOf(text)
  }
  return hints
}

/** The hints of a record as {wishes, hints} of an item. */
export function fromHints(hints = {}) {
  const own = noWishes()
  const rest = {}
  for (const [name, value] of Object.entries(hints)) {
    if (Object.hasOwn(own, name)) own[name] = String(value)
    else rest[name] = value
  }
  return { wishes: own, hints: rest }
}

/** Hints in words: 2 frames a second, from 1 s. */
export function inWords(hints = {}) {
  const words = {
    fps: (v) => `${v} frames a second`, max_frames: (v) => `at most ${v} frames`, start: (v) => `from ${v} s`, end: (v) => `to ${v} s`,
    max_tokens: (v) => `at most ${v} tokens a picture`, video_compat: (v) => `as ${v} sees it`,
  }
  return Object.entries(words).filter(([name]) => hints[name] != null).map(([name, word]) => word(hints[name])).join(', ')
}

/** The wish that the server means by a name such as videos[0].fps; '' for none. */
export function wishOf(param) {
  const name = /^videos\[\d+\]\.(\w+)$/.exec(param ?? '')?.[1]
  return wishes.some((w) => w.name === name) ? name : ''
}

/** What the server says of a wish, without its name in front. */
export const saidOf = (message, param) => (message.startsWith(`${param}: `) ? message.slice(param.length + 2) : message)

/** The id of the control of a wish. */
export const wishID = (item, name) => `p-media-${item.id}-${name}`
