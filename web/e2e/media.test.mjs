// Media on the page: attach, drop, paste, what they take, what the log says of them.
import { after, before, test } from 'node:test'
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { nextRecord, noticed, openBrowser, recorded, soon, startScripted, startSeeing, violations, withPage } from './harness.mjs'
import { choose, clip, encoder, finished, items, picture, sound, watching } from './attaching.mjs'

let browser
let server
before(async () => {
  browser = await openBrowser()
  server = await startScripted()
})
after(async () => {
  await browser?.close()
  await server?.close()
})

const page = (options, f) => withPage(browser, server.url, options, f)

/** Drops files on the prompt as a desktop does. */
async function drop(p, files) {
  const data = await p.evaluateHandle((list) => {
    const d = new DataTransfer()
    for (const { name, type, bytes } of list) d.items.add(new File([new Uint8Array(bytes)], name, { type }))
    return d
  }, files.map((f) => ({ name: f.name, type: f.mimeType, bytes: [...f.buffer] })))
  const card = p.locator('.prompt')
  await card.dispatchEvent('dragover', { dataTransfer: data })
  await soon(() => p.locator('.prompt.drop-over').count(), 1, 'the place shows that it takes files')
  await card.dispatchEvent('drop', { dataTransfer: data })
  await soon(() => p.locator('.prompt.drop-over').count(), 0)
}

test('media/dropped files are measured, sent and noted in the log', async () => {
  await server.tell({ reset: true, encoder })
  await page({ hash: '#/playground?prompt=Say%20what%20you%20see&seed=7&max_completion_tokens=6' }, async (p) => {
    await p.getByRole('heading', { name: 'Prompt' }).waitFor()
    await drop(p, [picture, sound])
    await soon(() => items(p).count(), 2)
    await items(p).first().getByText('640 × 480, 256 tokens').waitFor()
    await items(p).last().getByText('2.5 s, 187 tokens').waitFor()
    await p.getByText(/443 of them media/).waitFor()
    await soon(() => p.locator('canvas.thumb').evaluate((c) => c.width), 8, 'the thumbnail is drawn')
    assert.deepEqual(await violations(p), [])
    const sent = p.waitForRequest((r) => r.url().endsWith('/v1/completions'))
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    const body = (await sent).postDataJSON()
    assert.deepEqual(body.images, [picture.buffer.toString('base64')])
    assert.deepEqual(body.audios, [sound.buffer.toString('base64')])
    assert.equal('videos' in body, false)
    await finished(p)
    assert.equal(new URL(p.url()).hash.includes('iVBOR'), false, 'no media in the address')
    await p.getByRole('link', { name: /History|Requests|Log/ }).first().click()
    await p.locator('.log-item').first().click()
    await p.getByText('images[0]: image/png').waitFor()
    await p.getByText(/audios\[0\]: audio\/wav/).waitFor()
    await p.getByText('The log keeps no pictures, sound or film to send again.').waitFor()
    assert.equal(await p.getByRole('button', { name: 'Replay', exact: true }).isDisabled(), true)
    await p.getByRole('button', { name: 'Open in playground' }).click()
    await noticed(p, 'The log holds no media: attach them again')
    await soon(() => items(p).count(), 0)
  })
})

test('media/what is removed is not sent', async () => {
  await server.tell({ reset: true, encoder })
  await page({ hash: '#/playground?prompt=a&max_completion_tokens=2' }, async (p) => {
    await choose(p, [picture, sound])
    await soon(() => items(p).count(), 2)
    await p.getByRole('button', { name: 'Remove cat.png' }).click()
    await soon(() => items(p).count(), 1)
    const sent = p.waitForRequest((r) => r.url().endsWith('/v1/completions'))
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    const body = (await sent).postDataJSON()
    assert.equal('images' in body, false)
    assert.equal(body.audios.length, 1)
    await finished(p)
  })
})

test('media/other files and kinds are refused in words', async () => {
  await server.tell({ reset: true, encoder: { ...encoder, audios: false } })
  await page({ hash: '#/playground' }, async (p) => {
    await choose(p, [{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') }])
    await p.getByText('“notes.txt” is no picture, sound or film that can be read.').waitFor()
    await choose(p, [sound])
    await p.getByText('The model’s encoder eyes takes no sound.').waitFor()
  })
  await server.tell({ encoder: null })
  await page({ hash: '#/playground' }, async (p) => {
    await choose(p, [picture])
    await p.getByText(/start Ganglion with --mmproj FILE/).waitFor()
  })
})

test('media/what the server takes no more of is refused before it is sent', async () => {
  await server.tell({ reset: true, encoder, media: { body_bytes: 2 ** 20, item_bytes: 150, bytes: 400, images: 2, audios: 1, videos: 1 } })
  await page({ hash: '#/playground' }, async (p) => {
    await p.getByRole('link', { name: /^Serving: gemma/ }).waitFor() // with the name come the limits
    await choose(p, [picture])
    await p.getByText(/“cat.png” is larger than/).waitFor()
    await choose(p, [sound])
    await soon(() => items(p).count(), 1)
    await choose(p, [sound])
    await p.getByText('“meow.wav” is one too many: a request takes 1 sound.').waitFor()
    await soon(() => items(p).count(), 1)
  })
})

test('media/a film tells how far its decoder is, and what it takes', async () => {
  await server.tell({ reset: true, encoder: watching, films: { state: 'compiling', share: 0.25, error: '' } })
  await page({ hash: '#/playground' }, async (p) => {
    await choose(p, [clip])
    await p.getByText('The decoder of films is being made ready, 25 % so far.').waitFor()
    await items(p).first().getByText('Film, 2.5 s, 2 frames, 512 tokens').waitFor()
    assert.deepEqual(await violations(p), [])
    await server.tell({ films: { state: 'ready', share: 1, error: '' } })
    await soon(() => p.getByText('The decoder of films is being made ready').count(), 0)
  })
})

test('media/a picture is pasted, text stays text', async () => {
  await server.tell({ reset: true, encoder })
  await page({ hash: '#/playground' }, async (p) => {
    const paste = (type, content) => p.getByRole('textbox', { name: 'Prompt' }).evaluate((box, [t, c]) => {
      const d = new DataTransfer()
      if (t === 'file') d.items.add(new File([new Uint8Array(c)], 'image.png', { type: 'image/png' }))
      else d.setData('text/plain', c)
      return box.dispatchEvent(new ClipboardEvent('paste', { clipboardData: d, bubbles: true, cancelable: true }))
    }, [type, content])
    assert.equal(await paste('text', 'hello'), true, 'left to the browser')
    assert.equal(await paste('file', [...picture.buffer]), false, 'taken')
    await items(p).first().getByText('image.png').waitFor()
  })
})

test('media/a record shows the files that the log keeps', async () => {
  await server.tell({ reset: true, encoder, logMedia: true })
  await page({ hash: '#/playground?prompt=a&max_completion_tokens=2' }, async (p) => {
    await choose(p, [picture, sound])
    await soon(() => items(p).count(), 2)
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    await finished(p)
    await p.getByRole('link', { name: 'History' }).click()
    await p.locator('.log-item').first().click()
    await p.getByRole('img', { name: 'Preview of images[0]' }).waitFor()
    await soon(() => p.locator('.media-note canvas').evaluate((c) => c.width), 8, 'the picture is drawn')
    await soon(() => p.locator('.media-note audio').count(), 1)
    assert.deepEqual(await violations(p), [])
    await p.getByText('Open it in the playground to send its media again.').waitFor()
    await p.getByRole('button', { name: 'Open in playground' }).click()
    await soon(() => items(p).count(), 2)
    const sent = p.waitForRequest((r) => r.url().endsWith('/v1/completions'))
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    const body = (await sent).postDataJSON()
    assert.deepEqual([body.images, body.audios], [[picture.buffer.toString('base64')], [sound.buffer.toString('base64')]])
    await finished(p)
  })
})

test('media/a file that the server cannot read is told by its name, and the others are measured', async () => {
  await server.tell({ reset: true, encoder, broken: 'bad.png' })
  await page({ hash: '#/playground', expect: [/415/] }, async (p) => {
    await choose(p, [picture, { name: 'bad.png', mimeType: 'image/png', buffer: Buffer.from('bad.png') }, sound])
    await p.getByText(/“bad.png” is a broken PNG file/).waitFor()
    await soon(() => items(p).count(), 3)
    await items(p).first().getByText('640 × 480, 256 tokens').waitFor()
    await items(p).last().getByText('2.5 s, 187 tokens').waitFor()
    await p.getByRole('textbox', { name: 'Prompt' }).fill('What is it?')
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    const alert = p.getByRole('alert')
    await alert.getByText('The server refused the request').waitFor()
    assert.equal(await alert.getByRole('button').count(), 0, 'it would be refused again')
    await p.getByRole('button', { name: 'Remove bad.png' }).click()
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    await finished(p)
    await soon(() => p.getByText('is a broken PNG file').count(), 0)
  })
})

// With the real binary the answer is the one that another program gave to this picture.
test('media/a dropped picture is answered by a model that sees', async () => {
  const seeing = await startSeeing('gemma3')
  try {
    const { cases } = JSON.parse(await readFile(`${recorded}expected/gemma3.json`))
    const want = cases.find((c) => c.name === 'a')
    const query = new URLSearchParams({ prompt: want.prompt, max_completion_tokens: want.tokens.length, temperature: 0 })
    await withPage(browser, seeing.url, { hash: `#/playground?${query}` }, async (p) => {
      await p.getByRole('heading', { name: 'Prompt' }).waitFor()
      await drop(p, [{ name: 'img-a.png', mimeType: 'image/png', buffer: await readFile(`${recorded}media/img-a.png`) }])
      await items(p).first().getByText(seeing.real ? /18 tokens/ : /256 tokens/).waitFor()
      await p.getByRole('button', { name: 'Run', exact: true }).click()
      await finished(p)
      const log = await nextRecord(seeing.url)
      if (seeing.real) {
        assert.deepEqual(log.tokens.map((t) => t.id), want.tokens)
        assert.equal(log.prompt_tokens, want.prompt_tokens)
      }
      assert.equal(log.media.length, 1)
      assert.equal(log.media[0].kept, true)
      await p.getByRole('link', { name: 'History' }).click()
      await p.locator('.log-item').first().click()
      await p.getByRole('img', { name: 'Preview of images[0]' }).waitFor()
    })
  } finally {
    await seeing.close()
  }
})
