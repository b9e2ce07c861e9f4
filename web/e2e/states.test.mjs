// States that a healthy server does not show: held streams, a full queue, a lost
// connection, no model, a locked server. Always against the stand-in, which can be
// told to do each of them at a known moment.
import { after, before, beforeEach, test } from 'node:test'
import assert from 'node:assert/strict'
import { noticed, openBrowser, startScripted, withPage, soon } from './harness.mjs'

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

const refused = [/Failed to load resource/]
const page = (options, f) => withPage(browser, mock.url, options, f)
const run = (p) => p.getByRole('button', { name: 'Run', exact: true })
const stop = (p) => p.getByRole('button', { name: 'Stop', exact: true })
const tokens = (p) => p.getByRole('listbox', { name: 'Generated tokens' }).getByRole('option')
const status = (p, text) => p.getByRole('status').filter({ hasText: text })

/** Waits until the stand-in holds no stream: an event seen from its side. */
const letGo = () => soon(async () => (await mock.tell({})).held, 0, 'streams that are held')

test('states/tokens appear one by one while the stream is open', async () => {
  await mock.tell({ hold: 5 })
  await page({ hash: '#/playground?prompt=a&seed=1' }, async (p) => {
    await run(p).click()
    await tokens(p).nth(4).waitFor()
    assert.equal(await tokens(p).count(), 5)
    await status(p, 'Generating').waitFor()
    assert.equal(await p.getByRole('region', { name: 'Answer' }).getAttribute('aria-busy'), 'true')
    await stop(p).waitFor()
    await tokens(p).nth(1).hover()
    await p.getByRole('tooltip').waitFor()
    await mock.tell({ release: true })
    await status(p, /^Finished: 48 tokens/).waitFor()
    assert.equal(await tokens(p).count(), 48)
  })
})

for (const [name, act] of [['the button', (p) => stop(p).click()], ['Escape', (p) => p.keyboard.press('Escape')]]) {
  test(`states/stop by ${name} keeps the text and ends the request`, async () => {
    await mock.tell({ hold: 5 })
    await page({ hash: '#/playground?prompt=a&seed=1' }, async (p) => {
      await run(p).click()
      await tokens(p).nth(4).waitFor()
      await act(p)
      await status(p, 'Stopped').waitFor()
      await p.getByText('You stopped it here.').waitFor()
      assert.equal(await tokens(p).count(), 5)
      await letGo()
      await mock.tell({ hold: 0 })
      await run(p).click()
      await status(p, /^Finished/).waitFor()
    })
  })
}

test('states/the live region gets sentences, not tokens', async () => {
  await mock.tell({ hold: 30 })
  await page({ hash: '#/playground?prompt=a&seed=1' }, async (p) => {
    await p.evaluate(() => {
      window.changes = 0
      window.began = performance.now()
      new MutationObserver((l) => { window.changes += l.length }).observe(document.querySelector('[role=log]'), { childList: true, subtree: true, characterData: true })
    })
    await run(p).click()
    await tokens(p).nth(29).waitFor()
    const { changes, ms } = await p.evaluate(() => ({ changes: window.changes, ms: performance.now() - window.began }))
    assert.ok(changes <= ms / 2000, `quiet while tokens stream, a sentence in 2 s at most: ${changes} in ${ms} ms`)
    await mock.tell({ release: true })
    await status(p, /^Finished/).waitFor()
    const whole = (await tokens(p).allTextContents()).join('')
    await soon(async () => (await p.getByRole('log').locator('p').allTextContents()).join(''), whole, 'in the end all of it was said')
  })
})

test('states/queue full: plain words, the advice of Retry-After, try again', async () => {
  await mock.tell({ queueFull: true })
  await page({ hash: '#/playground?prompt=a', expect: refused }, async (p) => {
    await run(p).click()
    const alert = p.getByRole('alert')
    await alert.getByText('Too many requests are waiting').waitFor()
    await alert.getByText(/The server suggests [12] s from now|Now is a good time/).waitFor()
    await mock.tell({ queueFull: false })
    await alert.getByRole('button', { name: 'Try again' }).click()
    await status(p, /^Finished/).waitFor()
  })
})

test('states/connection lost in the answer: what had arrived stays', async () => {
  // Held until the page has the six: a broken stream may drop what is still under way.
  await mock.tell({ hold: 6 })
  await page({ hash: '#/playground?prompt=a', expect: [/ERR_/] }, async (p) => {
    await run(p).click()
    await tokens(p).nth(5).waitFor()
    await mock.tell({ breakAfter: 6 })
    await mock.tell({ release: true })
    await p.getByRole('alert').getByText('The answer broke off').waitFor()
    assert.equal(await tokens(p).count(), 6)
    await status(p, 'Failed').waitFor()
  })
})

test('states/server gone: said in the header, above the view and at the run; back by itself', async () => {
  await page({ hash: '#/playground?prompt=a', expect: [/ERR_/] }, async (p) => {
    await p.getByRole('link', { name: /Serving: gemma-3-270m/ }).waitFor()
    await p.route('**/v1/**', (r) => r.abort('connectionrefused'))
    await run(p).click()
    await p.getByText('The server cannot be reached', { exact: true }).waitFor()
    await p.getByText('Ganglion does not answer.').waitFor()
    await p.getByRole('link', { name: 'Serving: No connection' }).waitFor()
    await soon(() => p.getByRole('textbox', { name: 'Prompt' }).inputValue(), 'a')
    await p.unroute('**/v1/**')
    await p.getByRole('button', { name: 'Try now' }).click()
    await p.getByText('Ganglion does not answer.').waitFor({ state: 'detached' })
  })
})

const refusals = [
  { query: 'temperature=-1', label: 'Temperature' }, { query: 'top_k=-1', label: 'Top k' }, { query: 'min_p=2', label: 'Min p' },
  { query: 'presence_penalty=9', label: 'Presence penalty' }, { query: 'frequency_penalty=-9', label: 'Frequency penalty' },
  { query: 'max_completion_tokens=-1', label: 'Maximum tokens' }, { query: 'bias=999999999:5', label: 'Token bias' },
]
for (const { query, label } of refusals) {
  test(`states/400 is marked at ${label}`, async () => {
    await page({ hash: `#/playground?prompt=a&${query}`, expect: refused }, async (p) => {
      await run(p).click()
      await p.getByRole('alert').getByText('The server refused the request').waitFor()
      const field = p.getByLabel(label, { exact: true })
      await soon(() => field.getAttribute('aria-invalid'), 'true')
      const ids = (await field.getAttribute('aria-describedby')).split(' ')
      const texts = await Promise.all(ids.map((id) => p.locator(`[id="${id}"]`).textContent()))
      assert.ok(texts.length === 2 && texts[1].length > 0, texts.join('|'))
    })
  })
}

test('states/a seed that is no number is marked', async () => {
  await page({ hash: '#/playground?prompt=a', expect: refused }, async (p) => {
    await p.getByLabel('Seed', { exact: true }).fill('abc')
    await run(p).click()
    await p.getByText('seed: a whole number is needed').first().waitFor()
    await soon(() => p.getByLabel('Seed', { exact: true }).getAttribute('aria-invalid'), 'true')
  })
})

test('states/a prompt without room is refused, never cut', async () => {
  await page({ hash: '#/playground', expect: refused }, async (p) => {
    await p.getByRole('textbox', { name: 'Prompt' }).fill('a '.repeat(3000))
    await p.getByText(/no room for an answer/).waitFor()
    await run(p).click()
    await p.getByRole('alert').getByText('The prompt is too long for this model').waitFor()
  })
})

test('states/a locked server asks for its key, keeps it for the tab and goes on', async () => {
  await mock.tell({ key: 'secret' })
  await page({ hash: '#/playground?prompt=a', expect: refused }, async (p) => {
    await p.getByLabel('This server asks for its key.').fill('secret')
    await p.getByRole('button', { name: 'Unlock' }).click()
    await p.getByRole('link', { name: /Serving: gemma/ }).waitFor()
    await run(p).click()
    await status(p, /^Finished/).waitFor()
    assert.doesNotMatch(p.url(), /secret/)
    await p.reload()
    await p.getByRole('link', { name: /Serving: gemma/ }).waitFor()
  })
})

test('states/desktop mode: the token leaves the address at once and goes with every call', async () => {
  await mock.tell({ key: 'abc123' })
  await page({ hash: '#token=abc123' }, async (p) => {
    await p.getByRole('link', { name: /Serving: gemma/ }).waitFor()
    assert.doesNotMatch(p.url(), /abc123/)
    await p.getByRole('button', { name: 'The capital of France is' }).click()
    await status(p, /^Finished/).waitFor()
    await p.getByRole('button', { name: 'Copy as curl' }).click()
    await noticed(p, 'Command copied')
    const text = await p.evaluate(() => navigator.clipboard.readText())
    assert.match(text, /\$GANGLION_KEY/)
    assert.doesNotMatch(text, /abc123/)
  })
})

test('states/no model: three ways to one, and no error', async () => {
  await mock.tell({ model: 'none' })
  await page({ hash: '#/playground' }, async (p) => {
    await p.getByRole('link', { name: 'Choose a model' }).click()
    await p.getByRole('heading', { name: 'Ganglion is ready. It needs a model.' }).waitFor()
    for (const name of ['Drop a file', 'Pick one that is here', 'Pull one with the command line']) await p.getByRole('heading', { name }).waitFor()
    assert.equal(await p.getByRole('alert').count(), 0)
    await p.getByRole('button', { name: 'Load gemma-3-270m-Q4_K_M' }).click()
    await p.getByRole('progressbar', { name: /^Loading gemma-3-270m-Q4_K_M 43 %/ }).waitFor()
    await p.getByRole('link', { name: 'Serving: Loading 43 %' }).waitFor()
    await mock.tell({ loading: null, model: 'ready' })
    await p.getByRole('heading', { name: 'gemma-3-270m', exact: true }).waitFor()
  })
})

test('states/a load that fails leaves the old model and says so', async () => {
  await page({ hash: '#/models' }, async (p) => {
    await p.getByRole('heading', { name: 'gemma-3-270m', exact: true }).waitFor()
    await p.getByRole('button', { name: /^Load Загрузки/ }).click()
    await p.getByText('gemma-3-270m goes on serving until it is ready.').waitFor()
    await mock.tell({ loading: null, error: 'gguf: tensor "blk.0.attn_q.weight": ends at byte 910, file has 800' })
    await p.getByRole('alert').getByText(/ends at byte 910/).waitFor()
    await p.getByRole('alert').getByText('gemma-3-270m goes on serving.').waitFor()
  })
})

test('states/upload: a chosen file is sent, and only .gguf', async () => {
  await mock.tell({ model: 'none' })
  await page({ hash: '#/models' }, async (p) => {
    const input = p.getByLabel('Model file')
    await input.setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') })
    await p.getByRole('alert').getByText('“notes.txt” is not a .gguf file.').waitFor()
    await input.setInputFiles({ name: "a'b ü.gguf", mimeType: 'application/octet-stream', buffer: Buffer.alloc(70_000, 1) })
    await p.getByText("a'b ü.gguf is in Ganglion’s model folder.").waitFor()
    await p.getByRole('button', { name: "Load a'b ü" }).waitFor()
    const { files } = await mock.tell({})
    assert.deepEqual(files, [{ name: "a'b ü.gguf", bytes: 70_000 }])
    await p.getByRole('button', { name: 'Load it now' }).click()
    await p.getByRole('progressbar', { name: /^Loading a'b ü/ }).waitFor()
  })
})

test('states/upload by dropping a file', async () => {
  await page({ hash: '#/models' }, async (p) => {
    await p.getByRole('heading', { name: 'Add a model' }).waitFor()
    await p.locator('.drop').evaluate((el) => {
      const data = new DataTransfer()
      data.items.add(new File(['GGUF'], 'tiny.gguf'))
      for (const type of ['dragover', 'drop']) el.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }))
    })
    await p.getByText('tiny.gguf is in Ganglion’s model folder.').waitFor()
  })
})

test('states/a log that drops records says so', async () => {
  await mock.tell({ log: { state: 'ok', dropped: 3, path: '/x' } })
  await page({ hash: '#/history' }, async (p) => {
    await p.getByText('3 records were dropped').waitFor()
  })
})

test('states/F76 hostile names and answers are text, live and in the history', async () => {
  await fetch(`${mock.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ prompt: '<img src=x onerror=window.P=1>', logprobs: true }) })
  await page({ hash: '#/history' }, async (p) => {
    await p.getByRole('link', { name: /<img src=x/ }).click()
    await p.getByRole('heading', { name: 'Figures' }).waitFor()
    await p.getByRole('link', { name: 'Models', exact: true }).click()
    await p.getByRole('heading', { level: 1, name: 'Models' }).waitFor({ state: 'attached' }) // the history shows the text too
    await p.getByText('<img src=x onerror=window.P=1>').waitFor()
    assert.equal(await p.evaluate(() => window.P), undefined)
    assert.equal(await p.locator('img').count(), 0)
  })
})

test('states/where the parts of a model lie is drawn', async () => {
  const part = (backend, device, phase, holds, mb) => ({ backend, device, phase, holds, weight_bytes: mb * 1e6, kv_bytes: 1e6, scratch_bytes: 0 })
  const items = (p) => p.getByRole('list', { name: 'Parts of the model' }).getByRole('listitem')
  const width = (p, i) => items(p).nth(i).locator('svg').evaluate((svg) => [...svg.querySelectorAll('rect')].reduce((sum, r) => sum + r.width.baseVal.value, 0))
  await page({ hash: '#/models' }, async (p) => {
    await p.getByRole('heading', { name: 'Memory' }).waitFor()
    assert.equal(await items(p).count(), 0) // all of it lies on one device
  })
  await mock.tell({ parts: [part('cpu', 'Ryzen', '', 'the embedding, layers 0 to 11', 99), part('vulkan', 'Card <b>', '', 'layers 12 to 17, the head', 199)] })
  await page({ hash: '#/models' }, async (p) => {
    await items(p).nth(1).waitFor()
    assert.match(await items(p).nth(0).innerText(), /Ryzen through cpu\s+the embedding, layers 0 to 11, 100 MB/)
    assert.match(await items(p).nth(1).innerText(), /Card <b> through vulkan\s+layers 12 to 17, the head, 200 MB/)
    assert.equal(Math.round(await width(p, 0)), 50)
    assert.equal(Math.round(await width(p, 1)), 100)
  })
  await mock.tell({ parts: [part('vulkan', 'Card', 'prompt', 'everything', 199), part('cpu', 'Ryzen', 'decode', 'everything', 199)] })
  await page({ hash: '#/models' }, async (p) => {
    await items(p).nth(1).waitFor()
    assert.match(await items(p).nth(0).innerText(), /prompts\s+everything/i)
    assert.match(await items(p).nth(1).innerText(), /tokens\s+everything/i)
  })
})

test('states/what was changed last is in the address when the page is left', async () => {
  await page({ hash: '#/playground?prompt=a' }, async (p) => {
    const prompt = p.getByRole('textbox', { name: 'Prompt' })
    const change = async (text) => { for (let n = 1; n <= text.length; n++) await prompt.fill(text.slice(0, n)) }
    await change('before a reload')
    await p.reload()
    await soon(() => prompt.inputValue(), 'before a reload')
    // The address is written when the reload has begun, and before the page hears of it.
    await prompt.evaluate((box) => addEventListener('beforeunload', () => {
      box.value = 'in a reload'
      box.dispatchEvent(new Event('input', { bubbles: true }))
      document.body.click()
    }, { capture: true }))
    await p.reload()
    await soon(() => prompt.inputValue(), 'in a reload')
    await change('before a link')
    await p.getByRole('link', { name: 'History', exact: true }).click()
    await p.getByRole('searchbox').waitFor()
    await p.goBack()
    await soon(() => prompt.inputValue(), 'before a link')
    await p.goForward()
    await p.getByRole('searchbox').fill('cat')
    await p.reload()
    await soon(() => p.getByRole('searchbox').inputValue(), 'cat')
  })
})

test('states/plugins that could not be read are asked for again', async () => {
  await page({ hash: '#/playground?prompt=a', expect: [/status of 500/] }, async (p) => {
    await p.route('**/v1/plugins', (route) => route.fulfill({ status: 500, json: { error: { message: 'The disk failed.', type: 'server_error' } } }))
    await p.reload()
    await p.getByText('The disk failed.').waitFor()
    await p.unroute('**/v1/plugins')
    await p.getByLabel('Add a plugin').selectOption('dry')
    await p.getByText('The disk failed.').waitFor({ state: 'detached' })
  })
})
