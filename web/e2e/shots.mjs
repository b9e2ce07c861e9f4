// Pictures of every view for a look: node shots.mjs FOLDER. Uses the stand-in.
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openBrowser, startScripted, withPage } from './harness.mjs'
import { freshPlugins } from './mockplugins.mjs'

const folder = process.argv[2]
if (!folder) throw new Error('usage: node shots.mjs FOLDER')
await mkdir(folder, { recursive: true })
const only = process.argv[3]
const browser = await openBrowser()
const mock = await startScripted()

const prompt = encodeURIComponent('The capital of France is')
const run = async (page) => {
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await page.getByText('length', { exact: true }).first().waitFor()
}
const scenes = {
  'play-empty': { hash: '#/playground' },
  'play-done': { hash: `#/playground?prompt=${prompt}&seed=7&temperature=0.8&stop=%0A%0A%0A&bias=0:-100&bias=1:-100`, act: async (page) => { await run(page) } },
  'play-card': { hash: `#/playground?prompt=${prompt}&seed=7`, act: async (page) => { await run(page); await page.getByRole('option').nth(7).hover(); await page.locator('#token-card').waitFor() } },
  'play-pinned': { hash: `#/playground?prompt=${prompt}&seed=7`, act: async (page) => { await run(page); await page.getByRole('option').nth(9).click(); await page.getByRole('dialog').waitFor() } },
  'play-streaming': { hash: `#/playground?prompt=${prompt}%20&seed=7`, state: { hold: 21 }, act: async (page) => { await page.getByRole('button', { name: 'Run', exact: true }).click(); await page.getByRole('option').nth(19).waitFor() } },
  'play-space': { hash: `#/playground?prompt=${prompt}&seed=7`, act: async (page) => { await run(page); await page.getByLabel('White space').check(); await page.getByLabel('Monospace').check() } },
  'play-400': { hash: `#/playground?prompt=${prompt}&top_p=1.5`, act: async (page) => { await page.getByRole('button', { name: 'Run', exact: true }).click(); await page.getByRole('alert').waitFor() } },
  'play-503': { hash: `#/playground?prompt=${prompt}`, state: { queueFull: true }, act: async (page) => { await page.getByRole('button', { name: 'Run', exact: true }).click(); await page.getByRole('alert').waitFor() } },
  'play-bias': { hash: `#/playground?prompt=${prompt}`, act: async (page) => { await page.getByLabel('Token bias').fill('cat'); await page.getByRole('button', { name: /Ban all/ }).click() } },
  'play-media': {
    hash: `#/playground?prompt=${prompt}`,
    state: { encoder: { name: 'eyes', path: '/m', images: true, audios: true, videos: true }, broken: 'bad', films: { state: 'compiling', share: 0.4, error: '' } },
    act: async (page) => {
      await page.getByLabel('Media files').setInputFiles([
        { name: 'cat.png', mimeType: 'image/png', buffer: Buffer.from('x') }, { name: 'bad.png', mimeType: 'image/png', buffer: Buffer.from('bad') },
        { name: 'meow.wav', mimeType: 'audio/wav', buffer: Buffer.from('x') }, { name: 'clip.mp4', mimeType: 'video/mp4', buffer: Buffer.from('x') },
      ])
      await page.getByText('2 frames, 512 tokens').waitFor()
    },
  },
  'play-film': {
    hash: `#/playground?prompt=${prompt}`,
    state: { encoder: { name: 'eyes', path: '/m', images: true, audios: true, videos: true } },
    act: async (page) => {
      await page.getByLabel('Media files').setInputFiles([
        { name: 'wave.gif', mimeType: 'image/gif', buffer: await readFile(new URL('../../appliance/media/picture/testdata/moving1.gif', import.meta.url)) },
        { name: 'clip.mp4', mimeType: 'video/mp4', buffer: Buffer.from('x') },
      ])
      for (const name of ['wave.gif', 'clip.mp4']) await page.getByText(`Frames of ${name}`).click()
      const clip = page.getByRole('group', { name: 'Frames of clip.mp4' })
      await clip.getByLabel('Frames a second').fill('4')
      await clip.getByLabel('From second').fill('1.25')
      await page.getByText('5 frames').first().waitFor()
      await clip.getByLabel('To second').fill('1')
      await clip.getByText('the part from').waitFor()
    },
  },
  'history-empty': { hash: '#/history' },
  'history': { hash: '#/history', fill: true },
  'record': { hash: '#/history?id=cmpl-0002', fill: true, act: async (page) => { await page.getByRole('button', { name: 'Replay' }).click(); await page.getByText('Byte-equal').waitFor() } },
  'models': { hash: '#/models' },
  'models-loading': { hash: '#/models', state: { loading: { name: 'Qwen3-1.7B-Q8_0', done: 789e6, total: 1834e6 } } },
  'models-none': { hash: '#/models', state: { model: 'none' } },
  'plugins': { hash: '#/plugins?name=dry' },
  'plugins-upload': { hash: '#/plugins', state: { plugins: { ...freshPlugins(), upload: true, defaults: ['dry'], required: ['anti-slop'] } } },
  'play-plugins': { hash: `#/playground?prompt=${prompt}&seed=7&plugin=dry&plugin=${encodeURIComponent('{"name":"house-style","config":{"mode":"warm","words":""}}')}`, act: async (page) => { await page.getByText('Settings').first().click(); await page.getByRole('textbox', { name: 'Words to prefer' }).fill('slowly'); await page.getByRole('spinbutton', { name: 'Penalty of the shortest' }).fill('900'); await page.getByRole('spinbutton', { name: 'Penalty of the shortest' }).fill('2'); await run(page); await page.getByRole('option').nth(1).hover(); await page.locator('#token-card').waitFor() } },
  'play-plugins-400': { hash: `#/playground?prompt=${prompt}&plugin=${encodeURIComponent('{"name":"dry","config":{"multiplier":900}}')}`, act: async (page) => { await page.getByRole('button', { name: 'Run', exact: true }).click(); await page.getByRole('alert').waitFor() } },
  'locked': { hash: '#/playground', state: { key: 'secret' } },
}

for (const [name, scene] of Object.entries(scenes)) {
  if (only && !name.match(only)) continue
  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 360]) {
      await mock.tell({ reset: true, ...scene.state })
      if (scene.fill) {
        for (const p of ['The capital of France is', '<img src=x onerror=window.P=1>', 'def fibonacci(n):\n', 'Once upon a time there was a very long prompt that goes on and on until it does not fit on a single line of the list any more, and still it goes on']) {
          await fetch(`${mock.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ prompt: p, logprobs: true, max_completion_tokens: 30 }) })
        }
      }
      await withPage(browser, mock.url, { hash: scene.hash, width, height: width === 360 ? 740 : 860, scheme, expect: [/Failed to load resource/] }, async (page) => {
        await page.getByRole('navigation').waitFor()
        await page.waitForTimeout(400) // a picture, not a test: let the first answers arrive
        await scene.act?.(page)
        await page.screenshot({ path: join(folder, `${name}-${width}-${scheme}.png`), fullPage: true })
      }).catch((e) => console.error(name, width, scheme, e.message))
      await mock.tell({ release: true })
    }
  }
}
await browser.close()
await mock.close()
