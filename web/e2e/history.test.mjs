// The request log against the server under test.
import { after, before, test } from 'node:test'
import assert from 'node:assert/strict'
import { newestRow, nextRecord, noEnd, openBrowser, startServer, withPage, soon } from './harness.mjs'

let browser
let server
before(async () => {
  browser = await openBrowser()
  server = await startServer()
})
after(async () => {
  await browser?.close()
  await server?.close()
})

const page = (options, f) => withPage(browser, server.url, options, f)
const items = (p) => p.getByRole('list', { name: 'Requests, newest first' }).getByRole('listitem')
const finished = (p) => p.getByRole('status').filter({ hasText: /^Finished: / }).waitFor()

async function complete(body) {
  const before = await newestRow(server.url)
  const answer = await fetch(`${server.url}/v1/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  assert.equal(answer.status, 200, await answer.text())
  await nextRecord(server.url, before)
}

test('history/empty, then one row, its record, replay byte-equal, and back to the playground', async () => {
  await page({ hash: '#/history' }, async (p) => {
    if (!process.env.GANGLION_URL) await p.getByRole('heading', { name: 'No requests yet' }).waitFor()
    const before = await newestRow(server.url)
    await p.goto(`${server.url}/#/playground?prompt=The%20capital%20of%20France%20is&temperature=1&max_completion_tokens=9&stop=zzz&bias=${noEnd}`)
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    await finished(p)
    const text = (await p.getByRole('listbox', { name: 'Generated tokens' }).getByRole('option').allTextContents()).join('')
    await nextRecord(server.url, before)
    await p.getByRole('link', { name: 'History', exact: true }).click()
    await items(p).first().getByText('The capital of France is').waitFor()
    await items(p).first().getByRole('link').click()
    await p.getByRole('heading', { name: 'Figures' }).waitFor()
    await soon(async () => (await p.getByRole('listbox', { name: 'Recorded tokens' }).getByRole('option').allTextContents()).join(''), text)
    assert.notEqual(await p.locator('.token.level-0, .token.level-1, .token.level-2, .token.level-3, .token.level-4').count(), 0, 'tokens are coloured')
    await p.getByRole('row', { name: /^max_completion_tokens 9 your request/ }).waitFor()
    await p.getByText('The request as received').click()
    await p.getByRole('region', { name: 'The request as received' }).getByText('"max_completion_tokens":9').waitFor()
    await p.getByRole('button', { name: 'Replay' }).click()
    await p.getByText('Byte-equal.').waitFor()
    const seed = await p.locator('.facts div', { has: p.getByText('Seed', { exact: true }) }).locator('dd').innerText()
    await p.getByRole('button', { name: 'Open in playground' }).click()
    await p.getByRole('textbox', { name: 'Prompt' }).waitFor()
    await soon(() => p.getByRole('textbox', { name: 'Prompt' }).inputValue(), 'The capital of France is')
    await soon(() => p.getByLabel('Seed', { exact: true }).inputValue(), seed)
    await soon(() => p.getByLabel('Maximum tokens', { exact: true }).inputValue(), '9')
    await p.getByRole('button', { name: 'Remove stop string zzz' }).waitFor()
    await p.goBack()
    await p.getByRole('heading', { name: 'Figures' }).waitFor()
  })
})

test('history/replay shows where a text differs', async () => {
  await complete({ prompt: 'differ', max_completion_tokens: 6, seed: 3 })
  await page({ hash: '#/history?q=differ' }, async (p) => {
    await items(p).first().getByRole('link').click()
    await p.getByRole('button', { name: 'Replay' }).waitFor()
    await p.route('**/v1/completions', async (route) => {
      const answer = await route.fetch()
      const value = await answer.json()
      value.choices[0].text = `${value.choices[0].text.slice(0, 2)}☃`
      delete value.choices[0].details
      await route.fulfill({ response: answer, json: value })
    })
    await p.getByRole('button', { name: 'Replay' }).click()
    await p.getByText(/^Different from byte \d+ on\.$/).waitFor()
    assert.match(await p.locator('.diff mark').nth(1).innerText(), /☃/)
  })
})

test('history/search and outcome filter, both in the address', async () => {
  await complete({ prompt: 'needle in the hay', max_completion_tokens: 2 })
  await complete({ prompt: 'only hay', max_completion_tokens: 2 })
  await page({ hash: '#/history' }, async (p) => {
    await p.getByLabel('Search in prompts and answers').fill('needle')
    await p.waitForURL(/q=needle/)
    await items(p).filter({ hasText: 'only hay' }).waitFor({ state: 'detached' })
    await soon(() => items(p).count(), 1)
    await p.getByLabel('Outcome').selectOption('interrupted')
    await p.getByRole('heading', { name: 'Nothing matches' }).waitFor()
    await p.waitForURL(/outcome=interrupted/)
    await p.getByRole('link', { name: 'Show all' }).click()
    await items(p).filter({ hasText: 'only hay' }).waitFor()
    await soon(() => p.getByLabel('Search in prompts and answers').inputValue(), '')
  })
})

test('history/paging reaches the oldest record', async () => {
  await complete({ prompt: 'paging first', max_completion_tokens: 0 })
  for (let i = 0; i < 34; i++) await complete({ prompt: `paging ${i}`, max_completion_tokens: 0 })
  await page({ hash: '#/history?q=paging' }, async (p) => {
    await items(p).nth(29).waitFor()
    await soon(() => items(p).count(), 30)
    await p.getByRole('button', { name: 'Show older' }).click()
    await items(p).nth(34).waitFor()
    assert.match(await items(p).nth(34).innerText(), /paging first/)
    assert.equal(await p.getByRole('button', { name: 'Show older' }).count(), 0)
  })
})

test('history/a record that is gone is said in plain words', async () => {
  await page({ hash: '#/history?id=cmpl-none', expect: [/status of 404/] }, async (p) => {
    await p.getByRole('heading', { name: 'This record is gone' }).waitFor()
  })
})

test('history/a log that cannot be read offers to try again', async () => {
  await page({ hash: '#/models', expect: [/status of 500/] }, async (p) => {
    await p.route('**/v1/log?*', (r) => r.fulfill({ status: 500, json: { error: { message: 'storage: disk I/O error' } } }))
    await p.getByRole('link', { name: 'History', exact: true }).click()
    await p.getByRole('alert').getByText('storage: disk I/O error').waitFor()
    await p.unroute('**/v1/log?*')
    await p.getByRole('button', { name: 'Try again' }).click()
    await p.getByRole('alert').waitFor({ state: 'detached' })
  })
})
