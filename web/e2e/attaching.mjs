// What the tests of media share: files to attach, and what the page shows of them.
import { readFile } from 'node:fs/promises'

export const encoder = { name: 'eyes', path: '/m/mmproj-eyes.gguf', images: true, audios: true, videos: false }
export const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAbElEQVR42hXNQRUAUQhCUZOYhCQmeUlIQhISzR+XXA7ODDtouIHBQ4YOM8suWm5h8ZKl+0CskDiBsIioHhx76LiDw0eO3oN/4FVf+J8h0PduzBqZ8x/bxNQPwgaFy192SGgelC0q13/CJaXlA+odUoEVKnyAAAAAAElFTkSuQmCC', 'base64')
export const wav = Buffer.concat([Buffer.from('RIFF'), Buffer.from([68, 0, 0, 0]), Buffer.from('WAVEfmt '), Buffer.from([16, 0, 0, 0, 1, 0, 1, 0, 0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, 16, 0]), Buffer.from('data'), Buffer.from([32, 0, 0, 0]), Buffer.alloc(32)])
export const picture = { name: 'cat.png', mimeType: 'image/png', buffer: png }
export const sound = { name: 'meow.wav', mimeType: 'audio/wav', buffer: wav }
export const clip = { name: 'clip.mp4', mimeType: 'video/mp4', buffer: Buffer.from('....ftypisom') }
export const wave = { name: 'wave.gif', mimeType: 'image/gif', buffer: await readFile(new URL('../../appliance/media/picture/testdata/moving1.gif', import.meta.url)) }
export const watching = { ...encoder, videos: true }

export const choose = (p, files) => p.getByLabel('Media files').setInputFiles(files)
export const items = (p) => p.getByRole('group', { name: 'Attached media' }).getByRole('listitem')
export const finished = (p) => p.getByRole('status').filter({ hasText: /^Finished: / }).waitFor()

export const sentBy = async (p) => {
  const sent = p.waitForRequest((r) => r.url().endsWith('/v1/completions'))
  await p.getByRole('button', { name: 'Run', exact: true }).click()
  return (await sent).postDataJSON()
}
