// The settings of a plugin as a form: what its JSON Schema asks for, in the words of
// controls. Ganglion's plugins use a part of JSON Schema 2020-12; whatever has no
// control of its own here is edited as JSON, and the server has the last word. Pure.
import { formatJSON, parseJSON } from './json.js'

/**
 * The fields of a schema, in its order. kind: "boolean", "number", "enum", "text",
 * "list" (of texts) or "json".
 */
export function fieldsOf(schema) {
  const required = new Set(schema?.required ?? [])
  return Object.entries(schema?.properties ?? {}).map(([name, s]) => {
    const types = [].concat(s.type ?? [])
    return {
      name, kind: kindOf(s, types), label: s.title ?? name, help: s.description ?? '', required: required.has(name), default: s.default,
      integer: types.length === 1 && types[0] === 'integer', min: s.minimum ?? s.exclusiveMinimum, max: s.maximum ?? s.exclusiveMaximum,
      above: s.exclusiveMinimum !== undefined, below: s.exclusiveMaximum !== undefined, options: s.enum,
      minLength: s.minLength, maxLength: s.maxLength, minItems: s.minItems, maxItems: s.maxItems, items: s.items,
      long: !(s.maxLength <= 300),
    }
  })
}

function kindOf(s, types) {
  if (Array.isArray(s.enum)) return 'enum'
  if (types.includes('string')) return 'text' // an object that may come as text too: as text
  if (types.length !== 1) return 'json'
  if (types[0] === 'boolean') return 'boolean'
  if (types[0] === 'number' || types[0] === 'integer') return 'number'
  if (types[0] === 'array' && s.items?.type === 'string' && !s.items.enum) return 'list'
  return 'json'
}

/** The bounds of a field in words, for the line below it; '' where there are none. */
export function boundsText(f) {
  if (f.kind === 'number') return numberBounds(f)
  if (f.kind === 'list') return countBounds(f.minItems, f.maxItems, 'entries')
  if (f.kind === 'text') return f.maxLength !== undefined && !f.long ? `at most ${f.maxLength} characters` : ''
  return ''
}

function numberBounds({ min, max, above, below, integer }) {
  const what = integer ? 'a whole number' : ''
  let range = ''
  if (min !== undefined && max !== undefined && !above && !below) range = `${min} to ${max}`
  else range = [min !== undefined && `${above ? 'above' : 'at least'} ${min}`, max !== undefined && `${below ? 'below' : 'at most'} ${max}`].filter(Boolean).join(', ')
  return [what, range].filter(Boolean).join(', ')
}

function countBounds(min, max, what) {
  if (min > 0 && max !== undefined) return `${min} to ${max} ${what}`
  if (max !== undefined) return `at most ${max} ${what}`
  return min > 0 ? `at least ${min} ${what}` : ''
}

/** A value on one line, as the form shows a default. */
export function valueLine(v) {
  if (v === undefined) return ''
  if (typeof v === 'boolean') return v ? 'on' : 'off'
  if (Array.isArray(v) && v.length === 0) return 'none'
  return typeof v === 'string' ? JSON.stringify(v) : formatJSON(v)
}

/** What is wrong with the value of a field; '' when nothing is. undefined is not set. */
export function problemOf(f, value) {
  if (value === undefined) return f.required && f.default === undefined ? 'This is needed.' : ''
  if (f.kind === 'number') return numberProblem(f, value)
  if (f.kind === 'text') return lengthProblem(f, value)
  if (f.kind === 'list') return listProblem(f, value)
  if (f.kind === 'enum' && !f.options.some((o) => formatJSON(o) === formatJSON(value))) return 'This is none of the choices.'
  return ''
}

function numberProblem(f, value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'This is no number.'
  if (f.integer && !Number.isInteger(value)) return 'This must be a whole number.'
  if (f.min !== undefined && (f.above ? value <= f.min : value < f.min)) return `This must be ${f.above ? 'above' : 'at least'} ${f.min}.`
  if (f.max !== undefined && (f.below ? value >= f.max : value > f.max)) return `This must be ${f.below ? 'below' : 'at most'} ${f.max}.`
  return ''
}

function lengthProblem({ minLength, maxLength }, value) {
  if (typeof value !== 'string') return ''
  const n = [...value].length
  if (minLength !== undefined && n < minLength) return minLength === 1 ? 'This must not be empty.' : `At least ${minLength} characters are needed.`
  return maxLength !== undefined && n > maxLength ? `At most ${maxLength} characters fit.` : ''
}

function listProblem(f, value) {
  if (!Array.isArray(value)) return 'This is no list.'
  if (value.length < (f.minItems ?? 0)) return f.minItems === 1 ? 'At least one entry is needed.' : `At least ${f.minItems} entries are needed.`
  if (f.maxItems !== undefined && value.length > f.maxItems) return `At most ${f.maxItems} entries fit.`
  const bad = value.findIndex((v) => lengthProblem(f.items ?? {}, v) !== '')
  return bad < 0 ? '' : `Entry ${bad + 1}: ${lengthProblem(f.items, value[bad])}`
}

/** The setting that a JSON pointer of the server is about: {index, field}; null for none. */
export function ownerOf(pointer) {
  const m = /^\/plugins\/(\d+)\/config\/([^/]+)/.exec(pointer ?? '')
  return m && { index: Number(m[1]), field: m[2].replaceAll('~1', '/').replaceAll('~0', '~') }
}

/** A configuration with one field set, or back at its default where value is undefined. */
export function withField(config, name, value) {
  const out = { ...config }
  if (value === undefined) delete out[name]
  else out[name] = value
  return out
}

/** Reads what was typed for a "json" field: {value} or {problem}. */
export function readJSON(text) {
  if (text.trim() === '') return { value: undefined }
  try {
    return { value: parseJSON(text) }
  } catch {
    return { problem: 'This is no JSON.' }
  }
}
