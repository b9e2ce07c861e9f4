// Pictures that move (GIF, PNG, WebP with more than one frame): a model sees their first
// frame, or all of it as a film. Pure.

/** Whether a file is a picture with more than one frame, by its headers. */
export function moves(b) {
  if (letters(b, 0, 3) === 'GIF') return gifMoves(b)
  if (letters(b, 1, 3) === 'PNG') return pngMoves(b)
  return letters(b, 0, 4) === 'RIFF' && letters(b, 8, 4) === 'WEBP' && webpMoves(b)
}

const letters = (b, at, n) => String.fromCharCode(...b.subarray(at, at + n))
const viewOf = (b) => new DataView(b.buffer, b.byteOffset, b.byteLength)

/** GIF89a specification: blocks, of which those that begin with 2C are frames. */
function gifMoves(b) {
  const palette = (flags) => (flags & 0x80 ? 3 * (2 << (flags & 7)) : 0)
  let frames = 0
  for (let at = 13 + palette(b[10]); at < b.length;) {
    if (b[at] === 0x21) at = behindBlocks(b, at + 2)
    else if (b[at] === 0x2c) {
      at = behindBlocks(b, at + 11 + palette(b[at + 9]))
      if (at <= b.length && ++frames > 1) return true
    } else return false // its end
  }
  return false
}

function behindBlocks(b, at) {
  while (b[at] > 0) at += b[at] + 1
  return at + 1
}

/** PNG, third edition, section 11.3.6: acTL before the pixels, and a chunk fcTL for each frame. */
function pngMoves(b) {
  const view = viewOf(b)
  let animated = false
  let frames = 0
  for (let at = 8; at + 8 <= b.length; at += 12 + view.getUint32(at)) {
    const kind = letters(b, at + 4, 4)
    if (kind === 'acTL') animated = true
    if (kind === 'IDAT' && !animated) return false
    if (kind === 'fcTL' && ++frames > 1) return animated
  }
  return false
}

/** RFC 9649, section 2.7: the flag of an animation, and a chunk ANMF for each frame. */
function webpMoves(b) {
  if (letters(b, 12, 4) !== 'VP8X' || !(b[20] & 2)) return false
  const view = viewOf(b)
  let frames = 0
  for (let at = 12, size; at + 8 <= b.length; at += 8 + size + (size & 1)) {
    size = view.getUint32(at + 4, true)
    if (letters(b, at, 4) === 'ANMF' && ++frames > 1) return true
  }
  return false
}

/**
 * What a moving picture is sent as where nobody chose: a film, if the model of a server's
 * status takes films and the request has room for one beside the others, else a picture.
 */
export function ownKind(others, status) {
  const films = others.filter((i) => i.kind === 'videos').length
  return status?.encoder?.videos && films < (status.media?.videos ?? Infinity) ? 'videos' : 'images'
}

/** The items, with moving pictures that nobody chose a kind for as they are sent by themselves. */
export function settled(items, status) {
  const open = (i) => i.moving && !i.chosen
  const others = items.filter((i) => !open(i))
  return items.map((item) => {
    if (!open(item)) return item
    const kind = ownKind(others, status)
    others.push({ kind })
    return kind === item.kind ? item : { ...item, kind }
  })
}
