// What the stand-in says of media: every picture has 256 tokens, every sound 187; every film
// lasts 2.5 s, and a model looks at two frames of it, of 256 tokens each, unless a request
// wishes others.
import { createHash } from 'node:crypto'

const dataOf = (item) => (typeof item === 'string' ? item : item.data)

/** The file of an item of a request. */
export const bytesOf = (item) => Buffer.from(dataOf(item), 'base64')

const seconds = 2.5

function film(hints) {
  const { fps = 0, max_frames = 64, start = 0, end = 0 } = hints
  const wanted = fps ? Math.max(Math.round((Math.min(end || seconds, seconds) - start) * fps), 1) : 2
  const frames = Math.min(wanted, max_frames)
  return { seconds, frames, tokens: 256 * frames, pieces: Array(frames).fill(256) }
}

const facts = {
  images: () => ({ width: 640, height: 480, tokens: 256, pieces: [256] }),
  audios: () => ({ seconds, tokens: 187, pieces: [187] }),
  videos: film,
}
const mimes = { images: 'image/png', audios: 'audio/wav', videos: 'video/mp4' }

/** The media of a request as the log notes them, and as they are measured. */
export function measure(body) {
  return Object.keys(facts).flatMap((field) => (body[field] ?? []).map((item, i) => {
    const { data, ...hints } = typeof item === 'string' ? { data: item } : item
    const bytes = bytesOf(item)
    return {
      param: `${field}[${i}]`, mime: bytes.subarray(0, 3).toString() === 'GIF' ? 'image/gif' : mimes[field], sha256: createHash('sha256').update(data).digest('hex'), bytes: bytes.length,
      ...facts[field](hints), ...(Object.keys(hints).length ? { hints } : {}),
    }
  }))
}

/** What is wrong with a wish about a film, in the words of the server, as [name, words]. */
function refuseWish({ fps = 0, max_frames = 1, start = 0, end = 0 }) {
  const number = (v, most) => typeof v === 'number' && v >= 0 && v <= most
  if (!number(fps, 240)) return ['fps', 'must be a number from 0 to 240']
  if (fps > 0 && fps < 0.001) return ['fps', 'must be 0.001 or more']
  if (!Number.isInteger(max_frames) || max_frames < 1 || max_frames > 65536) return ['max_frames', 'must be an integer from 1 to 65536']
  for (const [name, v] of Object.entries({ start, end })) if (!number(v, 1000000)) return [name, 'must be a number from 0 to 1000000']
  const until = Math.min(end || seconds, seconds)
  return start >= until && [end > 0 && end <= start ? 'end' : 'start', `the part from ${start}s to ${until}s is empty, the film lasts ${seconds}s`]
}

/** What is wrong with the media of a request, as arguments of a failure; a picture may have bytes that are not read. */
export function refuseMedia(body, broken) {
  const at = (body.images ?? []).findIndex((item) => bytesOf(item).toString() === broken)
  if (at >= 0) return [415, `images[${at}]: is a broken PNG file: it is cut short`, { param: `images[${at}]`, code: 'unsupported_media_type' }]
  for (const [i, item] of (body.videos ?? []).entries()) {
    const [name, words] = refuseWish(typeof item === 'string' ? {} : item) || []
    if (name) return [400, `videos[${i}].${name}: ${words}`, { param: `videos[${i}].${name}`, code: 'invalid_value' }]
  }
  return null
}
