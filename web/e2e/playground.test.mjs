// The playground against the server under test: the real binary where there is one.
import { after, before, test } from 'node:test'
import assert from 'node:assert/strict'
import { noticed, openBrowser, startServer, withPage, soon } from './harness.mjs'

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

const seeded = '#/playground?prompt=The%20capital%20of%20France%20is&seed=7&max_completion_tokens=12'
const page = (options, f) => withPage(browser, server.url, options, f)
const run = (p) => p.getByRole('button', { name: 'Run', exact: true })
const box = (p) => p.getByRole('textbox', { name: 'Prompt' })
const tokens = (p) => p.getByRole('listbox', { name: 'Generated tokens' }).getByRole('option')
const answer = async (p) => (await tokens(p).allTextContents()).join('')
/** Waits for the end of a run by what a screen reader is told. */
const finished = (p) => p.getByRole('status').filter({ hasText: /^Finished: / }).waitFor()
const stat = (p, name) => p.locator('.stats div', { has: p.getByText(name, { exact: true }) }).locator('dd')

test('playground/by keyboard alone: prompt, run, tokens, alternatives', async () => {
  await page({ hash: '#/playground?seed=7' }, async (p) => {
    await p.getByRole('heading', { name: 'Prompt' }).waitFor()
    await p.keyboard.press('Tab')
    await assertFocus(p, 'Skip to the content')
    await p.keyboard.press('Enter')
    for (let i = 0; i < 12 && (await p.evaluate(() => document.activeElement.id)) !== 'p-prompt'; i++) await p.keyboard.press('Tab')
    await p.keyboard.type('The capital of France is')
    await p.keyboard.press('Control+Enter')
    await finished(p)
    assert.ok((await tokens(p).count()) > 0)
    for (let i = 0; i < 40 && (await p.evaluate(() => document.activeElement.getAttribute('role'))) !== 'option'; i++) await p.keyboard.press('Tab')
    await soon(() => p.evaluate(() => document.activeElement.dataset.i), '0')
    await p.keyboard.press('ArrowRight')
    await soon(() => p.evaluate(() => document.activeElement.dataset.i), '1')
    const card = p.getByRole('tooltip')
    await checkAlternatives(card)
    await soon(() => p.evaluate(() => document.activeElement.getAttribute('aria-describedby')), 'token-card')
    await p.keyboard.press('Escape')
    await card.waitFor({ state: 'detached' })
    await p.keyboard.press('Enter')
    await p.getByRole('dialog', { name: /^Token/ }).waitFor()
    await p.keyboard.press('Escape')
    await p.getByRole('dialog').waitFor({ state: 'detached' })
    await soon(() => p.evaluate(() => document.activeElement.dataset.i), '1', 'focus is back at the token')
    await p.keyboard.press('End')
    await soon(() => p.evaluate(() => document.activeElement.dataset.i), String((await tokens(p).count()) - 1))
    await soon(() => p.getByRole('option').and(p.locator('[tabindex="0"]')).count(), 1, 'one Tab stop')
  })
})

async function assertFocus(p, text) {
  await soon(() => p.evaluate(() => document.activeElement.textContent), text)
}

async function checkAlternatives(card) {
  await card.waitFor()
  const rows = await card.locator('li:not(.rest) .alt-odds').allTextContents()
  const shares = rows.map((r) => (r.startsWith('<') ? 0 : parseFloat(r)))
  assert.ok(shares.length >= 5, `${shares.length} alternatives`)
  assert.ok(shares.reduce((a, b) => a + b, 0) <= 100.0001, rows.join(', '))
}

test('playground/hover lists alternatives', async () => {
  await page({ hash: seeded }, async (p) => {
    await run(p).click()
    await finished(p)
    await tokens(p).nth(2).hover()
    await checkAlternatives(p.getByRole('tooltip'))
  })
})

test('playground/every token has its probability in colour and in line style', async () => {
  await page({ hash: `${seeded}&temperature=1.5` }, async (p) => {
    await run(p).click()
    await finished(p)
    const styles = await tokens(p).evaluateAll((list) => list.map((e) => {
      const s = getComputedStyle(e)
      return { level: /level-(\w+)/.exec(e.className)[1], line: s.textDecorationLine === 'none' ? 'none' : s.textDecorationStyle, fill: s.backgroundColor }
    }))
    const lines = { 0: 'none', 1: 'dotted', 2: 'dashed', 3: 'solid', 4: 'double' }
    for (const s of styles) assert.equal(s.line, lines[s.level], JSON.stringify(s))
    for (const s of styles) assert.equal(s.fill === 'rgba(0, 0, 0, 0)', s.level === '0', JSON.stringify(s))
    await p.getByLabel('Colour', { exact: true }).uncheck()
    await soon(() => tokens(p).evaluateAll((l) => l.filter((e) => getComputedStyle(e).backgroundColor !== 'rgba(0, 0, 0, 0)').length), 0, 'tokens with a colour')
  })
})

test('playground/figures of a run', async () => {
  await page({ hash: seeded }, async (p) => {
    await run(p).click()
    await finished(p)
    assert.match(await stat(p, 'Speed').innerText(), /\d tok\/s/)
    assert.match(await stat(p, 'First token').innerText(), /\d m?s/)
    assert.match(await stat(p, 'Prompt').innerText(), /^\d+/)
    assert.equal(Number(await stat(p, 'Generated').innerText()), await tokens(p).count())
    assert.match(await stat(p, 'Finish').innerText(), /^(stop|length)$/)
    await p.getByText('Details of this run').click()
    await p.getByRole('row', { name: /^max_completion_tokens 12 your request/ }).waitFor()
    await p.getByRole('img', { name: /^Log-probability of each token/ }).waitFor()
    await p.getByLabel('Time per token').check()
    await p.getByRole('img', { name: /^Time per token of each token/ }).waitFor()
  })
})

test('playground/same seed, same text; whole answer equals the stream', async () => {
  await page({ hash: seeded }, async (p) => {
    await run(p).click()
    await finished(p)
    const first = await answer(p)
    assert.ok(first.length > 0)
    await p.getByRole('switch', { name: 'Stream' }).setChecked(false, { force: true })
    await run(p).click()
    await finished(p)
    await soon(() => answer(p), first)
    await p.getByRole('button', { name: 'Keep the last seed' }).click()
    await soon(() => p.getByLabel('Seed', { exact: true }).inputValue(), '7')
  })
})

test('playground/the state is in the address', async () => {
  await page({ hash: '#/playground' }, async (p) => {
    await box(p).fill('one & two # é')
    await p.getByLabel('Temperature', { exact: true }).fill('0.5')
    await p.getByLabel('Seed', { exact: true }).fill('9223372036854775807')
    await p.getByLabel('Stop strings').first().fill('\\n\\n')
    await p.getByLabel('Stop strings').first().press('Enter')
    await p.getByRole('button', { name: 'Share link' }).click()
    await noticed(p, 'Link copied')
    const link = await p.evaluate(() => navigator.clipboard.readText())
    await page({ hash: link.slice(link.indexOf('#')) }, async (q) => {
      await soon(() => box(q).inputValue(), 'one & two # é')
      await soon(() => q.getByLabel('Temperature', { exact: true }).inputValue(), '0.5')
      await soon(() => q.getByLabel('Seed', { exact: true }).inputValue(), '9223372036854775807')
      await q.getByRole('button', { name: 'Remove stop string \\n\\n' }).waitFor()
      await q.getByRole('button', { name: 'Reset' }).click()
      await soon(() => q.getByLabel('Temperature', { exact: true }).inputValue(), '')
      await soon(() => box(q).inputValue(), 'one & two # é', 'the prompt stays')
    })
  })
})

test('playground/what is sent is what is set', async () => {
  await page({ hash: '#/playground?prompt=a&temperature=0&top_k=0&top_p=0.5&min_p=0.1&presence_penalty=1&frequency_penalty=-1&seed=9223372036854775807&stop=%0A&bias=3:-100&max_completion_tokens=2' }, async (p) => {
    const sent = p.waitForRequest('**/v1/completions')
    await run(p).click()
    const body = (await sent).postData()
    assert.match(body, /"seed":9223372036854775807/, 'a 64-bit seed keeps its digits')
    const { seed, ...rest } = JSON.parse(body)
    assert.deepEqual(rest, { prompt: 'a', max_completion_tokens: 2, temperature: 0, top_p: 0.5, top_k: 0, min_p: 0.1, presence_penalty: 1, frequency_penalty: -1, stop: ['\n'], logit_bias: { 3: -100 }, logprobs: true, top_logprobs: 6, stream: true })
    await finished(p)
  })
})

test('playground/prompt tokens are counted and shown', async () => {
  await page({ hash: '#/playground?prompt=one%20two%20three' }, async (p) => {
    await p.getByText(/^\d+ tokens of/).waitFor()
    await p.getByText('How the model reads it').click()
    await p.locator('.piece').nth(2).waitFor()
  })
})

test('playground/F51 trailing space is pointed out, and removed on demand only', async () => {
  await page({ hash: '#/playground' }, async (p) => {
    await box(p).fill('meaning of life is')
    assert.equal(await p.getByText(/The prompt ends in/).count(), 0)
    await box(p).fill('meaning of life is ')
    await p.getByText('The prompt ends in a space.').waitFor()
    const sent = p.waitForRequest('**/v1/completions')
    await p.getByLabel('Maximum tokens', { exact: true }).fill('1')
    await run(p).click()
    assert.equal((await sent).postDataJSON().prompt, 'meaning of life is ', 'sent as it is')
    await finished(p)
    await p.getByRole('button', { name: 'Remove it' }).click()
    await soon(() => box(p).inputValue(), 'meaning of life is')
  })
})

test('playground/F77 Enter during composition never sends', async () => {
  await page({ hash: '#/playground?max_completion_tokens=1' }, async (p) => {
    await p.getByRole('switch', { name: 'Enter runs' }).setChecked(true, { force: true })
    const prompt = box(p)
    await prompt.fill('にほん')
    let sent = 0
    p.on('request', (r) => { if (r.url().endsWith('/v1/completions')) sent++ })
    const key = (init) => prompt.evaluate((el, i) => el.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, ...i })), init)
    for (const init of [{ isComposing: true }, { keyCode: 229 }, { isComposing: true, ctrlKey: true }, { keyCode: 229, metaKey: true }, { shiftKey: true }]) {
      assert.equal(await key(init), true, `${JSON.stringify(init)} was taken from the text`)
    }
    assert.equal(await p.getByRole('button', { name: 'Stop', exact: true }).count(), 0)
    assert.equal(sent, 0)
    await prompt.press('Enter')
    await finished(p)
    assert.equal(sent, 1)
  })
})

test('playground/plain Enter is a line break unless chosen otherwise', async () => {
  await page({ hash: '#/playground' }, async (p) => {
    await box(p).fill('a')
    await box(p).press('Enter')
    await soon(() => box(p).inputValue(), 'a\n')
  })
})

test('playground/F18 the bias editor shows all spellings of a word', async () => {
  await page({ hash: '#/playground?prompt=a' }, async (p) => {
    // A tiny vocabulary has no cats: take the first word that this one has.
    const words = ['cat', 'the', 'a']
    const counts = await Promise.all(words.map(async (w) => (await (await fetch(`${server.url}/v1/tokens?contains=${w}`)).json()).tokens.length))
    const word = words[counts.findIndex((n) => n > 0)]
    const answered = p.waitForResponse(`**/v1/tokens?contains=${word}`)
    await p.getByLabel('Token bias').fill(word)
    const { tokens: list } = await (await answered).json()
    const same = list.filter((t) => t.text.trim().toLowerCase() === word)
    assert.ok(list.length > 0)
    for (const t of list) await p.getByRole('button', { name: new RegExp(`^Bias token ${t.id},`) }).waitFor()
    const pick = same[0] ?? list[0]
    await p.getByRole('button', { name: new RegExp(`^Bias token ${pick.id},`) }).click()
    await soon(() => p.getByLabel(/^Bias of/).inputValue(), '-100')
    if (same.length > 1) {
      await p.getByRole('button', { name: `Ban all ${same.length}` }).click()
      await soon(() => p.getByRole('list', { name: 'Biased tokens' }).getByRole('listitem').count(), same.length)
    }
    await p.getByLabel(/^Effect on/).first().selectOption('More often')
    await soon(() => p.getByLabel(/^Bias of/).first().inputValue(), '2')
    await p.waitForURL(/bias=\d+%3A2/)
    await p.getByRole('button', { name: /^Remove the bias of/ }).first().click()
  })
})

test('playground/branching from an alternative continues with it', async () => {
  await page({ hash: seeded }, async (p) => {
    await run(p).click()
    await finished(p)
    const before = (await tokens(p).allTextContents()).slice(0, 3).join('')
    await tokens(p).nth(3).click()
    const other = p.getByRole('dialog').getByRole('list').getByRole('button').first()
    await other.waitFor()
    const sent = p.waitForRequest('**/v1/completions')
    await other.click()
    const { prompt } = (await sent).postDataJSON()
    assert.ok(prompt.startsWith(`The capital of France is${before}`), prompt)
    await soon(() => box(p).inputValue(), prompt)
    await finished(p)
  })
})

test('playground/copy text and copy as curl', async () => {
  await page({ hash: seeded }, async (p) => {
    await run(p).click()
    await finished(p)
    await p.getByRole('button', { name: 'Copy text' }).click()
    await noticed(p, 'Answer copied')
    await soon(() => p.evaluate(() => navigator.clipboard.readText()), await answer(p))
    await p.getByRole('button', { name: 'Copy as curl' }).click()
    await noticed(p, 'Command copied')
    assert.match(await p.evaluate(() => navigator.clipboard.readText()), /^curl -N 'http.*\/v1\/completions' \\\n.*\n  -d '\{"prompt":"The capital of France is"/)
  })
})

test('playground/white space is shown on demand', async () => {
  await page({ hash: seeded }, async (p) => {
    await run(p).click()
    await finished(p)
    const plain = await answer(p)
    await p.getByLabel('White space').check()
    await soon(async () => (await answer(p)).includes(' '), false, 'a space without a sign')
    if (plain.includes(' ')) assert.match(await answer(p), /·/)
  })
})

test('playground/a refused value is marked at its control', async () => {
  await page({ hash: '#/playground?prompt=a&top_p=1.5', expect: [/status of 400/] }, async (p) => {
    await run(p).click()
    await p.getByRole('alert').getByText('The server refused the request').waitFor()
    const field = p.getByLabel('Top p', { exact: true })
    await soon(() => field.getAttribute('aria-invalid'), 'true')
    await soon(() => field.evaluate((e) => e === document.activeElement), true)
    await field.fill('0.9')
    await soon(() => field.getAttribute('aria-invalid'), null)
    await p.getByLabel('Maximum tokens', { exact: true }).fill('1')
    await run(p).click()
    await finished(p)
  })
})

test('playground/F76 markup in the prompt is text', async () => {
  const hostile = ['<img src=x onerror=window.P=1>', '<script>window.P=1</script>', '[a](javascript:window.P=1)', '<svg/onload=window.P=1>'].join('\n')
  await page({ hash: `#/playground?${new URLSearchParams({ prompt: hostile, max_completion_tokens: '2' })}` }, async (p) => {
    await run(p).click()
    await finished(p)
    await p.getByText('How the model reads it').click()
    assert.equal(await p.evaluate(() => window.P), undefined)
    assert.equal(await p.locator('img, main script, a[href^="javascript"]').count(), 0)
  })
})
