// The plugins of the real binary, where there is one: what the stand-in of plugins.test.mjs
// answers is what a server answers.
import { after, before, test } from 'node:test'
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { newestRow, nextRecord, noEnd, openBrowser, pluginsRead, soon, startReal, withPage, work } from './harness.mjs'

const skip = process.env.GANGLION_BIN ? false : 'GANGLION_BIN is not set'
const script = new URL('../../plugins/js/example/top-a.js', import.meta.url)

let browser
let server
before(async () => {
  if (skip) return
  browser = await openBrowser()
  server = await startReal(['--plugin-upload', '--shadow-plugins', 'min-p;p=1'])
  await pluginsRead(server.url)
})
after(async () => {
  await browser?.close()
  await server?.close()
})

const page = (options, f) => withPage(browser, server.url, options, f)
const minP = encodeURIComponent(JSON.stringify({ name: 'min-p', config: { p: 1 } }))
const asked = `prompt=abc&seed=5&temperature=1&max_completion_tokens=30&bias=${noEnd}`

async function finish(p) {
  await p.getByRole('button', { name: 'Run', exact: true }).click()
  await p.getByRole('status').filter({ hasText: /^Finished: / }).waitFor({ timeout: work })
}

/** The words of every card that the tokens of an answer have, until one fits. */
async function cardSays(p, list, words) {
  const tokens = p.locator('.tokens').getByRole('option')
  const card = p.getByRole('list', { name: list, exact: true })
  await p.mouse.move(0, 0) // a token below the pointer shows its own card
  for (let i = 0; i < (await tokens.count()); i++) {
    await tokens.nth(i).focus()
    await soon(() => tokens.nth(i).getAttribute('aria-describedby'), 'token-card', `token ${i} has its card`)
    if ((await card.count()) && words.test(await card.innerText())) return i
  }
  throw new Error(`no token has a card that says ${words}`)
}

test('plugins/real/the list is the binary’s own', { skip }, async () => {
  await page({ hash: '#/plugins' }, async (p) => {
    await p.locator('summary').filter({ hasText: 'pii' }).click()
    await p.getByText('read, rewrite and end the text that is sent').waitFor()
    await p.locator('summary').filter({ hasText: 'green-list' }).click()
    await p.getByText('Share of the vocabulary that is green').waitFor()
    await soon(() => p.getByText('Part of the program').count(), 2)
  })
})

test('plugins/real/a file is dropped and runs', { skip }, async () => {
  await page({ hash: '#/plugins' }, async (p) => {
    await p.getByLabel('Plugin file').setInputFiles({ name: 'top-a.js', mimeType: 'text/javascript', buffer: await readFile(script) })
    await p.locator('summary').filter({ hasText: 'Top-a' }).waitFor({ timeout: work }) // the server compiles and tries it first
  })
  await page({ hash: `#/playground?${asked}&plugin=top-a` }, async (p) => {
    await p.getByRole('list', { name: 'Plugins of the request' }).getByText('Settings').click()
    await p.getByRole('spinbutton', { name: /Share of the best/ }).fill('0.5')
    await finish(p)
    await p.getByRole('list', { name: 'What plugins did and cost' }).getByText(/per token/).waitFor()
  })
})

test('plugins/real/tokens tell what a cut did, and each built-in stage where asked', { skip }, async () => {
  await page({ hash: `#/playground?${asked}&plugin=${minP}` }, async (p) => {
    await finish(p)
    const said = await p.getByRole('list', { name: 'What plugins did and cost' }).innerText()
    const changed = Number(/(\d+) tokens? changed/.exec(said)?.[1])
    assert.ok(changed > 0, said)
    assert.equal(await p.locator('.tokens .token.changed').count(), changed)
    await cardSays(p, 'What plugins did', /min-p changed which token comes; it would have been .*\(left 1 token\)/)
    await p.getByRole('spinbutton', { name: 'Temperature' }).fill('0.5')
    await p.getByRole('checkbox', { name: 'Stages' }).check()
    await finish(p)
    await cardSays(p, 'What each stage did', /logit_bias .*\n*min-p .*\n*temperature .*\(set the temperature to 0.5\)/)
  })
})

test('plugins/real/a record tells what a plugin that watched would have had', { skip }, async () => {
  await page({ hash: `#/playground?${asked}&top_p=1` }, async (p) => {
    const before = await newestRow(server.url)
    await finish(p)
    assert.equal(await p.getByRole('list', { name: 'What plugins did and cost' }).count(), 0, 'a shadow in an answer')
    await nextRecord(server.url, before)
    await p.goto(`${server.url}/#/history`)
    await p.getByRole('list', { name: 'Requests, newest first' }).getByRole('link').first().click()
    const reports = p.getByRole('list', { name: 'What plugins did and cost' })
    const said = await reports.innerText()
    const others = Number(/(\d+) tokens? would be others/.exec(said)?.[1])
    assert.ok(others > 0, said)
    await reports.getByText(/other choices?$/).click()
    await soon(() => p.getByRole('list', { name: 'Choices that were not used' }).getByRole('listitem').count(), others)
    await cardSays(p, 'What plugins did', /min-p only watches; it would have had/)
  })
})
