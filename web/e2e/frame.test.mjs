// The frame and what holds for every view: accessibility in both schemes and at
// both widths, no sideways scrolling, theme, models, the content policy.
import { after, before, test } from 'node:test'
import assert from 'node:assert/strict'
import { newestRow, nextRecord, openBrowser, pluginsRead, startServer, violations, withPage, soon } from './harness.mjs'

let browser
let server
let id
before(async () => {
  browser = await openBrowser()
  server = await startServer()
  await pluginsRead(server.url)
  const before = await newestRow(server.url)
  const answer = await fetch(`${server.url}/v1/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ prompt: 'The capital of France is', max_completion_tokens: 8, seed: 7, logprobs: true, top_logprobs: 5 }) })
  id = (await answer.json()).id
  await nextRecord(server.url, before)
})
after(async () => {
  await browser?.close()
  await server?.close()
})

const page = (options, f) => withPage(browser, server.url, options, f)
const finished = (p) => p.getByRole('status').filter({ hasText: /^Finished: / }).waitFor()

const views = {
  'playground, empty': { hash: () => '#/playground', ready: (p) => p.getByText('The model continues your text.').waitFor() },
  'playground, answered': {
    hash: () => '#/playground?prompt=The%20capital%20of%20France%20is%20&seed=7&max_completion_tokens=12&stop=zz&bias=5:-1',
    ready: async (p) => {
      await p.getByRole('button', { name: 'Run', exact: true }).click()
      await finished(p)
      await p.getByText('Details of this run').click()
      await p.getByText('How the model reads it').click()
      await p.getByRole('option').nth(3).focus()
      await p.getByRole('tooltip').waitFor()
    },
  },
  'playground, pinned token': {
    hash: () => '#/playground?prompt=The%20capital%20of%20France%20is&seed=7&max_completion_tokens=12',
    ready: async (p) => {
      await p.getByRole('button', { name: 'Run', exact: true }).click()
      await finished(p)
      await p.getByRole('option').nth(3).press('Enter')
      await p.getByRole('dialog').waitFor()
    },
  },
  'playground, refused': {
    hash: () => '#/playground?prompt=a&top_p=2',
    ready: async (p) => {
      await p.getByRole('button', { name: 'Run', exact: true }).click()
      await p.getByRole('alert').waitFor()
    },
  },
  history: { hash: () => '#/history', ready: (p) => p.getByRole('list', { name: 'Requests, newest first' }).waitFor() },
  record: { hash: () => `#/history?id=${id}`, ready: (p) => p.getByRole('heading', { name: 'Figures' }).waitFor() },
  'playground, plugins': {
    hash: () => '#/playground?prompt=The%20capital%20of%20France%20is&seed=7&max_completion_tokens=12&plugin=dry&plugin=%7B%22name%22%3A%22anti-slop%22%2C%22config%22%3A%7B%22phrases%22%3A%5B%22in%20a%20nutshell%22%5D%7D%7D',
    ready: async (p) => {
      await p.getByRole('list', { name: 'Plugins of the request' }).getByText('Settings').first().click()
      await p.getByRole('button', { name: 'Run', exact: true }).click()
      await finished(p)
      await p.getByRole('list', { name: 'What plugins did and cost' }).waitFor()
    },
  },
  plugins: {
    hash: () => '#/plugins?name=dry',
    ready: async (p) => {
      await p.getByRole('heading', { name: 'Part of the program' }).waitFor()
      await p.getByRole('heading', { name: 'Since the server started' }).waitFor()
    },
  },
  models: { hash: () => '#/models', ready: (p) => p.getByRole('heading', { name: 'Found on this machine' }).waitFor() },
}

for (const [name, view] of Object.entries(views)) {
  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 360]) {
      test(`frame/axe/${name}/${scheme}/${width}`, async () => {
        await page({ hash: view.hash(), scheme, width, expect: [/status of 400/] }, async (p) => {
          await view.ready(p)
          assert.deepEqual(await violations(p), [])
          const wide = await p.evaluate(() => document.documentElement.scrollWidth - innerWidth)
          assert.ok(wide <= 0, `scrolls sideways by ${wide} px`)
        })
      })
    }
  }
}

test('frame/axe finds a planted fault', async () => {
  await page({}, async (p) => {
    await p.getByRole('navigation').waitFor()
    await p.evaluate(() => document.querySelector('main').append(document.createElement('button')))
    assert.match((await violations(p)).join(), /button-name/)
  })
})

test('frame/a violation of the content policy fails a test', async () => {
  await assert.rejects(page({}, async (p) => {
    await p.getByRole('navigation').waitFor()
    await p.evaluate(() => new Promise((violated) => {
      document.addEventListener('securitypolicyviolation', () => violated(), { once: true })
      const s = document.createElement('script')
      s.textContent = 'window.P = 1'
      document.head.append(s)
    }))
    assert.equal(await p.evaluate(() => window.P), undefined)
  }), /content policy|Content Security Policy/i)
})

test('frame/what never comes fails', async () => {
  await assert.rejects(soon(async () => 'a', 'b', 'never', 30), /never/)
})

test('frame/landmarks, one h1, titles', async () => {
  await page({}, async (p) => {
    for (const [name, title] of [['Playground', 'Playground – Ganglion'], ['History', 'History – Ganglion'], ['Models', 'Models – Ganglion'], ['Plugins', 'Plugins – Ganglion']]) {
      await p.getByRole('link', { name, exact: true }).click()
      await p.getByRole('heading', { level: 1, name }).waitFor({ state: 'attached' })
      await soon(() => p.title(), title)
      for (const role of ['banner', 'main', 'navigation']) assert.equal(await p.getByRole(role).count(), 1, role)
      await soon(() => p.getByRole('navigation').locator('[aria-current=page]').innerText(), name)
    }
    await p.goBack()
    await p.getByRole('heading', { level: 1, name: 'Models' }).waitFor({ state: 'attached' })
  })
})

test('frame/colours follow the system until chosen, and the choice stays', async () => {
  await page({ scheme: 'dark' }, async (p) => {
    const scheme = () => p.evaluate(() => getComputedStyle(document.documentElement).colorScheme)
    await p.getByRole('navigation').waitFor()
    await soon(() => scheme(), 'dark')
    await p.getByRole('button', { name: 'Colours: as the system' }).click()
    await p.getByRole('button', { name: 'Colours: light' }).waitFor()
    await soon(() => scheme(), 'light')
    await p.reload()
    await p.getByRole('button', { name: 'Colours: light' }).waitFor()
    await soon(() => scheme(), 'light')
  })
})

test('frame/reduced motion stops every animation', async () => {
  await page({ motion: 'reduce' }, async (p) => {
    await p.getByRole('navigation').waitFor()
    assert.equal(await p.evaluate(() => document.getAnimations().filter((a) => a.playState === 'running').length), 0)
  })
})

test('frame/a device that was set aside is told with the reason', async () => {
  await page({ hash: '#/models' }, async (p) => {
    const machine = p.getByRole('region', { name: 'This machine', exact: true })
    const card = machine.getByRole('list', { name: 'Devices' }).getByRole('listitem').filter({ hasText: 'Card through vulkan' })
    await machine.waitFor()
    assert.equal(await card.count(), 0)
    await p.route('**/v1/status', async (route) => {
      const answer = await route.fetch()
      const status = await answer.json()
      const aside = { name: 'Card', backend: 'vulkan', state: 'quarantined', note: 'norms: row 3: a tile is wrong' }
      await route.fulfill({ response: answer, json: { ...status, devices: [...(status.devices ?? []), aside] } })
    })
    await p.reload()
    await card.getByText('set aside', { exact: true }).waitFor()
    await card.getByText('Norms: row 3: a tile is wrong.', { exact: true }).waitFor()
  })
})

test('frame/the model card tells what serves', async () => {
  await page({ hash: '#/models' }, async (p) => {
    const { model, version } = await (await fetch(`${server.url}/v1/status`)).json()
    await p.getByRole('heading', { name: model.name, exact: true }).waitFor()
    const facts = await p.getByRole('region', { name: model.name }).innerText()
    for (const v of [model.architecture, model.quantization, model.backend, model.numerics, model.path]) assert.ok(facts.includes(v), `${v} in ${facts}`)
    await p.getByRole('region', { name: 'This machine' }).getByText(version, { exact: true }).waitFor()
    await p.getByRole('link', { name: new RegExp('^Serving: ') }).waitFor()
  })
})
