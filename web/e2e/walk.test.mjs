// The first five minutes of somebody who double-clicks the program: the real binary
// with no arguments, the real model where LM Studio keeps its models, an empty HOME.
// GANGLION_WALK_MODEL names the model; without a binary and a model there is no walk.
import { after, before, test } from 'node:test'
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newestRow, nextRecord, openBrowser, ready, removeFolder, soon, withPage, work } from './harness.mjs'

const { GANGLION_BIN: binary, GANGLION_WALK_MODEL: model } = process.env
const skip = binary && model ? false : 'GANGLION_BIN and GANGLION_WALK_MODEL are not set'
if (skip && (process.env.GANGLION_REQUIRE ?? '').split(',').includes('model')) throw new Error(`the walk is required, and ${skip}`)

let browser
before(async () => { if (!skip) browser = await openBrowser() })
after(async () => { await browser?.close() })

/** A home with a browser that only notes the addresses it is sent to. */
async function desk() {
  const home = await mkdtemp(join(tmpdir(), 'ganglion-walk-'))
  const notes = join(home, 'urls')
  const script = join(home, 'browser.sh')
  await writeFile(script, `#!/bin/sh\necho "$1" >> '${notes}'\n`)
  await chmod(script, 0o700)
  return { home, notes, env: { PATH: process.env.PATH, HOME: join(home, 'user'), BROWSER: script } }
}

async function withModel(d) {
  const folder = join(d.env.HOME, '.lmstudio/models/a/b')
  await mkdir(folder, { recursive: true })
  await symlink(model, join(folder, 'M.gguf'))
}

/** Starts the program with no arguments and waits for the address it opens. */
async function doubleClick(d, already = 0) {
  const child = spawn(binary, [], { env: d.env, cwd: d.home, stdio: 'ignore' })
  const gone = new Promise((resolve) => child.once('exit', resolve).once('error', resolve))
  const end = async (signal) => {
    child.kill(signal)
    await gone
  }
  let urls = []
  try {
    await soon(async () => {
      urls = (await readFile(d.notes, 'utf8').catch(() => '')).split('\n').slice(0, -1) // whole lines
      return urls.length > already || child.exitCode !== null
    }, true, 'a page is opened', work)
    assert.ok(urls.length > already, `the program ended with ${child.exitCode}, and no page was opened`)
  } catch (error) {
    await end('SIGKILL')
    throw error
  }
  const page = new URL(urls[already])
  return { base: page.origin, hash: page.hash, token: page.hash.replace('#token=', ''), end }
}

const finished = (p) => p.getByRole('status').filter({ hasText: /^Finished: / }).waitFor({ timeout: work })

test('walk/double-click: model card, first token, alternatives, history, replay', { skip }, async () => {
  const d = await desk()
  await withModel(d)
  const app = await doubleClick(d)
  try {
    await withPage(browser, app.base, { hash: app.hash }, async (p) => {
      await p.getByRole('link', { name: 'Models', exact: true }).click()
      await p.getByText('LM Studio').first().waitFor()
      await p.getByRole('link', { name: 'Playground', exact: true }).click()
      await p.getByRole('link', { name: /^Serving: M/ }).waitFor({ timeout: work })
      await ready(app.base)
      // Draws near the top of every distribution, where no rounding leads to the end token.
      await p.getByLabel('Seed', { exact: true }).fill('273')
      await p.getByRole('textbox', { name: 'Prompt' }).fill('The capital of France is')
      const first = p.getByRole('listbox', { name: 'Generated tokens' }).getByRole('option').first()
      await p.keyboard.press('Control+Enter')
      await first.waitFor()
      await finished(p)
      const record = await nextRecord(app.base, undefined, app.token)
      assert.ok(record.first_token_ms > 0 && record.first_token_ms < 5000, `first token after ${record.first_token_ms} ms`)
      await first.focus()
      await p.getByRole('tooltip').waitFor()
      const odds = (await p.getByRole('tooltip').locator('li:not(.rest) .alt-odds').allTextContents()).map((r) => (r.startsWith('<') ? 0 : parseFloat(r)))
      assert.ok(odds.length >= 5 && odds.reduce((a, b) => a + b, 0) <= 100.0001, odds.join(', '))
      await p.getByRole('link', { name: 'History', exact: true }).click()
      await p.getByRole('list', { name: 'Requests, newest first' }).getByRole('listitem').first().getByRole('link').click()
      await p.getByRole('button', { name: 'Replay' }).click()
      await p.getByText('Byte-equal.').waitFor({ timeout: work })
    })
  } finally {
    await app.end('SIGTERM')
    await removeFolder(d.home)
  }
})

test('walk/killed while it generates: the next start shows the request as interrupted', { skip }, async () => {
  const d = await desk()
  await withModel(d)
  const app = await doubleClick(d)
  try {
    await ready(app.base)
    const answer = await fetch(`${app.base}/v1/completions`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ prompt: 'Once upon a time', max_completion_tokens: 3000, stream: true, logit_bias: { 1: -100, 106: -100 } }),
    })
    await answer.body.getReader().read()
    // A disk that is busy may have the row a moment later.
    await soon(async () => (await newestRow(app.base, app.token))?.prompt, 'Once upon a time')
  } finally {
    await app.end('SIGKILL')
  }
  const again = await doubleClick(d, 1)
  try {
    await withPage(browser, again.base, { hash: again.hash }, async (p) => {
      await p.getByRole('link', { name: 'History', exact: true }).click()
      await p.getByRole('listitem').filter({ hasText: 'Once upon a time' }).getByText(/interrupted/i).waitFor()
    })
  } finally {
    await again.end('SIGTERM')
    await removeFolder(d.home)
  }
})

test('walk/no model: three ways to one, and no error', { skip }, async () => {
  const d = await desk()
  await mkdir(d.env.HOME, { recursive: true })
  const app = await doubleClick(d)
  try {
    await withPage(browser, app.base, { hash: app.hash }, async (p) => {
      await p.getByRole('link', { name: 'Models', exact: true }).click()
      await p.getByRole('heading', { name: 'Ganglion is ready. It needs a model.' }).waitFor()
      for (const name of ['Drop a file', 'Pick one that is here', 'Pull one with the command line']) await p.getByRole('heading', { name }).waitFor()
      assert.equal(await p.getByRole('alert').count(), 0)
    })
  } finally {
    await app.end('SIGTERM')
    await removeFolder(d.home)
  }
})
