// What somebody does in the very step in which the page draws, and answers that come in
// another order than they were asked for: nothing of it is lost. Always against the stand-in.
import { after, before, beforeEach, test } from 'node:test'
import assert from 'node:assert/strict'
import { openBrowser, startScripted, withPage, soon } from './harness.mjs'
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
const complete = (body) => fetch(`${mock.url}/v1/completions`, { method: 'POST', body: JSON.stringify(body) })

/**
 * Has act(element) called in the step in which the first element of a selector is drawn. What
 * comes back waits for it, and for two frames more.
 */
async function atOnce(p, selector, act) {
  await p.evaluate(`(${watch})(${JSON.stringify(selector)}, ${act})`)
  return () => p.evaluate(() => window.acted)
}

/** Of atOnce, in the page. */
function watch(selector, act) {
  window.acted = new Promise((done) => new MutationObserver((_, observer) => {
    const element = document.querySelector(selector)
    if (!element) return
    observer.disconnect()
    act(element)
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))
  }).observe(document.body, { childList: true, subtree: true }))
}

test('haste/a token that is pointed at as it appears keeps its card', async () => {
  await mock.tell({ hold: 3 })
  await page({ hash: '#/playground?prompt=a&seed=1' }, async (p) => {
    const acted = await atOnce(p, '[data-i="0"]', (token) => token.dispatchEvent(new PointerEvent('pointerover', { bubbles: true })))
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    await acted()
    assert.equal(await p.getByRole('tooltip').count(), 1)
    await mock.tell({ release: true })
    await p.getByRole('status').filter({ hasText: /^Finished/ }).waitFor()
  })
})

test('haste/what is typed into the search as it appears stands there', async () => {
  await page({ hash: '#/playground' }, async (p) => {
    const acted = await atOnce(p, '#log-q', (box) => {
      box.value = 'cat'
      box.dispatchEvent(new Event('input', { bubbles: true }))
      window.typed = []
      requestAnimationFrame(() => window.typed.push(box.value)) // the search itself would mend it later
      Promise.resolve().then(() => Promise.resolve()).then(() => window.typed.push(box.value))
    })
    await p.getByRole('link', { name: 'History', exact: true }).click()
    await acted()
    assert.deepEqual(await p.evaluate(() => window.typed), ['cat', 'cat'])
    await p.waitForURL(/q=cat/)
  })
})

test('haste/the focus stays where it was put as a record appears', async () => {
  await complete({ prompt: 'a', logprobs: true })
  await page({ hash: '#/history' }, async (p) => {
    const acted = await atOnce(p, '.replay button', (button) => button.focus())
    await p.locator('.log-item').click()
    await acted()
    assert.equal(await p.evaluate(() => document.activeElement.textContent), 'Replay')
  })
})

test('haste/a record that is still being written shows its end by itself', async () => {
  await mock.tell({ hold: 2 })
  await page({ hash: '#/history' }, async (p) => {
    const answer = await complete({ prompt: 'slowly', stream: true, max_completion_tokens: 4 })
    await p.getByRole('button', { name: 'Refresh' }).click()
    await p.locator('.log-item').click()
    await p.getByText('It is still running.').waitFor()
    await soon(() => p.evaluate(() => document.activeElement.id), 'record-title')
    await p.getByRole('button', { name: 'Open in playground' }).focus()
    await mock.tell({ release: true })
    await answer.text()
    await p.locator('.record').getByText('limit reached').waitFor()
    await p.locator('.log-item').getByText('limit reached').waitFor()
    await soon(() => p.getByRole('listbox', { name: 'Recorded tokens' }).getByRole('option').count(), 4)
    await soon(() => p.getByRole('button', { name: 'Replay' }).isEnabled(), true)
    assert.equal(await p.evaluate(() => document.activeElement.textContent), 'Open in playground', 'the focus stays')
  })
})

test('haste/an answer that comes late does not bring an older list of plugins back', async () => {
  await page({ hash: '#/plugins' }, async (p) => {
    await p.getByText('broken.wasm').waitFor()
    let late
    const held = new Promise((asked) => p.route('**/v1/plugins', (route) => {
      late = route
      asked()
    }, { times: 1 }))
    await p.getByRole('button', { name: 'Refresh' }).click()
    await held
    const list = freshPlugins()
    await mock.tell({ plugins: { ...list, plugins: [...list.plugins, { ...list.plugins[0], name: 'mine', built_in: false }] } })
    await p.getByRole('button', { name: 'Refresh' }).click()
    const mine = p.locator('summary').filter({ hasText: 'mine' })
    await mine.waitFor()
    await Promise.all([p.waitForEvent('requestfinished', (r) => r === late.request()), late.fulfill({ json: list })])
    await p.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))))
    assert.equal(await mine.count(), 1)
  })
})
