// The view of plugins and the plugins of a request. Always against the stand-in, whose
// plugins are in every state.
import { after, before, beforeEach, test } from 'node:test'
import assert from 'node:assert/strict'
import { noticed, openBrowser, startScripted, violations, withPage, soon } from './harness.mjs'
import { freshPlugins } from './mockplugins.mjs'

let browser
let mock
before(async () => {
  browser = await openBrowser()
  mock = await startScripted()
})
after(async () => {
  await browser?.close()
  await mock?.close()
})
beforeEach(() => mock.tell({ reset: true }))

const page = (options, f) => withPage(browser, mock.url, options, f)
const run = (p) => p.getByRole('button', { name: 'Run', exact: true })
const finished = (p) => p.getByRole('status').filter({ hasText: /^Finished: / }).waitFor()
const picked = (p) => p.getByRole('list', { name: 'Plugins of the request' })

/** The request that the page sends when it runs. */
async function sent(p) {
  const [request] = await Promise.all([p.waitForRequest((r) => r.url().endsWith('/v1/completions')), run(p).click()])
  return request.postDataJSON()
}

test('plugins/the list tells what is wrong, and clears a quarantine', async () => {
  await page({ hash: '#/plugins' }, async (p) => {
    await p.getByText('broken.wasm').waitFor()
    await p.getByText('section 1: ends at byte 910').waitFor()
    await p.getByText('golden test 2').waitFor()
    assert.equal(await p.getByText('Quarantined').count(), 1)
    await p.getByRole('button', { name: 'Clear the quarantine of looping' }).click()
    await noticed(p, 'looping is out of quarantine')
    await soon(() => p.getByText('Quarantined').count(), 0)
    assert.equal(await p.evaluate(() => window.P), undefined)
    assert.equal(await p.getByRole('button', { name: 'Choose a file' }).count(), 0, 'upload without the operator’s word')
  })
})

test('plugins/details open by keyboard and stand in the address', async () => {
  await page({ hash: '#/plugins' }, async (p) => {
    await p.locator('summary').filter({ hasText: 'dry' }).press('Enter')
    await p.getByText('87 of 3').waitFor()
    await p.getByText('read the vocabulary; see the tokens so far').waitFor()
    await soon(() => p.evaluate(() => location.hash), '#/plugins?name=dry')
    await p.getByRole('link', { name: 'Try it in the playground' }).click()
    await picked(p).getByText('dry').waitFor()
  })
})

test('plugins/a file is dropped or chosen where the operator allows it', async () => {
  await mock.tell({ plugins: { ...freshPlugins(), upload: true } })
  await page({ hash: '#/plugins', expect: [/status of 400/] }, async (p) => {
    const input = p.getByLabel('Plugin file')
    await input.setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('a') })
    await p.getByRole('alert').filter({ hasText: 'neither a .wasm nor a .js' }).waitFor()
    await input.setInputFiles({ name: 'bad.wasm', mimeType: 'application/wasm', buffer: Buffer.from('a') })
    await p.getByRole('alert').filter({ hasText: 'no module' }).waitFor()
    const data = await p.evaluateHandle(() => {
      const d = new DataTransfer()
      d.items.add(new File(['x'], 'mine.js'))
      return d
    })
    await p.locator('.drop').dispatchEvent('drop', { dataTransfer: data })
    await p.getByRole('status').filter({ hasText: 'mine 1.0.0 is ready' }).waitFor()
    await p.locator('summary').filter({ hasText: 'mine' }).waitFor()
  })
})

test('plugins/a form of the schema fills the field of the request', async () => {
  await page({ hash: '#/playground?prompt=a&seed=1' }, async (p) => {
    await p.getByLabel('Add a plugin').selectOption('house-style')
    await p.getByRole('button', { name: 'Add the plugin' }).click()
    await p.getByLabel('Add a plugin').selectOption('dry')
    await p.getByRole('button', { name: 'Add the plugin' }).click()
    const form = p.getByRole('group', { name: 'house-style' })
    await form.getByRole('combobox', { name: 'Manner' }).selectOption('warm')
    await form.getByRole('switch', { name: 'Refuse all others' }).press('Space')
    await form.getByRole('textbox', { name: 'Words to prefer' }).fill('slow')
    await form.getByRole('textbox', { name: 'Weights' }).fill('{"a":')
    await form.getByText('This is no JSON.').waitFor()
    await form.getByRole('textbox', { name: 'Weights' }).fill('{"a":1}')
    await form.getByRole('combobox', { name: 'When it fails' }).selectOption('restart')
    await picked(p).getByText('Settings').nth(1).click()
    const dry = p.getByRole('group', { name: 'dry' })
    await dry.getByRole('spinbutton', { name: 'Tokens that may be repeated freely' }).fill('0')
    await dry.getByText('This must be at least 1.').waitFor()
    await dry.getByRole('spinbutton', { name: 'Tokens that may be repeated freely' }).fill('3')
    const multiplier = dry.getByRole('spinbutton', { name: 'Penalty of the shortest' })
    await multiplier.pressSequentially('1e') // on its way to a number, and left there
    await dry.getByText('This is no number.').waitFor()
    await multiplier.blur()
    await soon(() => dry.getByText('This is no number.').count(), 0)
    await multiplier.fill('')
    await multiplier.pressSequentially('0.05')
    await soon(() => multiplier.inputValue(), '0.05')
    await dry.getByRole('button', { name: 'Remove :' }).click()
    await dry.getByRole('textbox', { name: 'Texts across which' }).fill('\\t')
    await dry.getByRole('textbox', { name: 'Texts across which' }).press('Enter')
    await p.getByRole('button', { name: 'Move dry up' }).click()
    const want = [
      { name: 'dry', config: { multiplier: 0.05, allowed_length: 3, breakers: ['\n', '\t'] } },
      { name: 'house-style', config: { mode: 'warm', strict: true, words: 'slow', table: { a: 1 } }, on_error: 'restart' },
    ]
    assert.deepEqual((await sent(p)).plugins, want)
    await finished(p)
    await p.reload() // all of it stands in the address
    await picked(p).getByText('house-style').waitFor()
    assert.deepEqual((await sent(p)).plugins, want)
    await finished(p)
    await p.getByRole('button', { name: 'Remove dry' }).click()
    await p.getByRole('button', { name: 'Remove house-style' }).click()
    await soon(() => p.evaluate(() => document.activeElement.id), 'p-plugins')
    assert.equal((await sent(p)).plugins, undefined)
    await finished(p)
  })
})

test('plugins/a refusal leads to its setting', async () => {
  const text = encodeURIComponent(JSON.stringify({ name: 'dry', config: { multiplier: 900 } }))
  await page({ hash: `#/playground?prompt=a&plugin=anti-slop&plugin=${text}`, expect: [/status of 400/] }, async (p) => {
    await p.getByRole('group', { name: 'dry' }).waitFor()
    await run(p).click()
    await p.getByRole('alert').filter({ hasText: '/plugins/1/config/multiplier' }).waitFor()
    await soon(() => p.evaluate(() => document.activeElement.id), 'p-/plugins/1/config/multiplier')
    await soon(() => p.getByRole('spinbutton', { name: 'Penalty of the shortest' }).getAttribute('aria-invalid'), 'true')
    assert.equal(await p.getByLabel('Add a plugin').getAttribute('aria-invalid'), null)
  })
})

test('plugins/tokens tell which plugin changed them', async () => {
  await page({ hash: '#/playground?prompt=a&seed=1&plugin=dry' }, async (p) => {
    await run(p).click()
    await finished(p)
    const list = p.getByRole('list', { name: 'What plugins did', exact: true })
    await p.getByRole('option').nth(1).focus()
    await list.filter({ hasText: 'dry changed which token comes' }).waitFor()
    await p.getByRole('option').nth(0).hover()
    await soon(() => list.count(), 0)
    await p.getByText('changed', { exact: true }).waitFor()
    await p.getByRole('list', { name: 'What plugins did and cost' }).getByText('12 tokens changed · 3.1 µs and 1.78 k fuel per token · 22 µs and 9.4 k fuel outside of tokens').waitFor()
  })
})

test('plugins/a record tells what was left, and choices that were not used', async () => {
  await page({ hash: '#/history' }, async (p) => {
    await scenes['a record'].ready(p)
    await p.getByLabel('What it left').first().getByText('longest').waitFor()
    await p.getByLabel('What it left').nth(1).getByText('["a","b"]').waitFor()
    await p.getByText('2 other choices').click()
    await p.getByRole('list', { name: 'Choices that were not used' }).getByText(/token 2: “.other” in the place of /).waitFor()
    await p.locator('.tokens').getByRole('option').nth(1).focus()
    await p.getByText('only watches; it would have had').waitFor()
  })
})

test('plugins/the server’s own can be left out', async () => {
  await mock.tell({ plugins: { ...freshPlugins(), defaults: ['dry'] } })
  await page({ hash: '#/playground?prompt=a&seed=1' }, async (p) => {
    await p.getByText('Where none is picked the server runs dry.').waitFor()
    await p.getByRole('switch', { name: 'The server’s own' }).press('Space')
    assert.deepEqual((await sent(p)).plugins, [])
    await finished(p)
  })
})

const wrong = encodeURIComponent(JSON.stringify({ name: 'dry', config: { multiplier: 900 } }))
const scenes = {
  upload: { hash: '#/plugins?name=house-style', ready: (p) => p.getByText('Signed with a known key').waitFor() },
  'a refused file': {
    hash: '#/plugins',
    ready: async (p) => {
      await p.getByLabel('Plugin file').setInputFiles({ name: 'bad.wasm', mimeType: 'application/wasm', buffer: Buffer.from('a') })
      await p.getByRole('alert').waitFor()
    },
  },
  'each control': {
    hash: '#/playground?plugin=house-style&plugin=looping&plugin=not-here',
    ready: async (p) => {
      await p.getByText('This server has no plugin of this name.').waitFor()
      await p.getByRole('textbox', { name: 'Weights' }).fill('{')
      await p.getByText('This is no JSON.').waitFor()
    },
  },
  'a refused setting': {
    hash: `#/playground?prompt=a&plugin=${wrong}`,
    ready: async (p) => {
      await p.getByRole('group', { name: 'dry' }).waitFor()
      await run(p).click()
      await p.getByRole('alert').waitFor()
    },
  },
  'a record': {
    hash: '#/history',
    ready: async (p) => {
      await fetch(`${mock.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ prompt: 'a', plugins: ['dry', 'anti-slop'] }) })
      await p.getByRole('button', { name: 'Refresh' }).click()
      await p.getByRole('list', { name: 'Requests, newest first' }).getByRole('link').click()
      await p.getByRole('list', { name: 'What plugins did and cost' }).waitFor()
    },
  },
}

for (const [name, scene] of Object.entries(scenes)) {
  for (const [scheme, width] of [['light', 360], ['dark', 1280]]) {
    test(`plugins/axe/${name}/${scheme}/${width}`, async () => {
      await mock.tell({ plugins: { ...freshPlugins(), upload: true, defaults: ['dry'] } })
      await page({ hash: scene.hash, scheme, width, expect: [/status of 400/] }, async (p) => {
        await scene.ready(p)
        assert.deepEqual(await violations(p), [])
        const wide = await p.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        assert.ok(wide <= 0, `scrolls sideways by ${wide} px`)
      })
    })
  }
}
