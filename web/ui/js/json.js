// JSON that keeps 64-bit integers. A seed may be any int64, and JSON.parse would
// round those above 2^53, so that a replay would send another seed than the log
// shows. Whole numbers of 16 digits and more become BigInt here, and go back as
// the same digits. Pure.

const token = /"[^"\\]*(?:\\[^][^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Parses JSON text; large integers become BigInt. */
export function parseJSON(text) {
  if (!/(^|[\s:,[])-?\d{16,}/.test(text)) return JSON.parse(text)
  const mark = unused(text)
  const quoted = text.replace(token, (t) => (/^-?\d{16,}$/.test(t) ? `"${mark}${t}"` : t))
  return JSON.parse(quoted, (_, v) => (typeof v === 'string' && v.startsWith(mark) ? BigInt(v.slice(mark.length)) : v))
}

/** Writes JSON text; BigInt values become plain digits. */
export function formatJSON(value, indent) {
  const mark = unused(JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? 0 : v)) ?? '')
  const text = JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? mark + v : v), indent)
  return text?.replace(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1')
}

/** A word that does not occur in text. */
function unused(text) {
  let mark = 'int'
  while (text.includes(mark)) mark += '_'
  return mark
}
