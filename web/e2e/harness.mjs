// What all browser tests share: the server under test, the browser, and the rule
// that a console error or a violation of the content policy fails the test.
//
//   GANGLION_URL=http://…                 a server that runs already
//   GANGLION_BIN=… GANGLION_TEST_MODEL=…  the real binary, started here
//   neither                               the stand-in of mock.mjs
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { startMock } from './mock.mjs'

const exact = ['--numerics', 'exact']

/** As `bias` in an address: the tiny models end a text on their token 2 alone. */
export const noEnd = '2:-100'

const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

// How long a test waits for what must come, in ms. Only a test that fails waits that long, so
// the bounds are for the slowest machine: work is for what starts a process, compiles or loads.
const patience = 60_000
export const work = 300_000

/** The browser; one for a test file. */
export async function openBrowser() {
  return chromium.launch({ executablePath: process.env.GANGLION_CHROMIUM ?? '/usr/bin/chromium', headless: true, args: flags, timeout: work })
}

/**
 * Starts the server under test: {url, real, close}. Numerics are exact, so that a seed
 * gives the same text on every processor. A test that looks at the tokens of an answer
 * gives a seed, or bans the end token (noEnd) where a drawn seed is what it is about.
 */
export async function startServer() {
  if (process.env.GANGLION_URL) return { url: process.env.GANGLION_URL.replace(/\/$/, ''), real: true, close: async () => {} }
  if (process.env.GANGLION_BIN) return startBinary(process.env.GANGLION_BIN, process.env.GANGLION_TEST_MODEL, exact)
  return { ...(await startMock()), real: false }
}

/** The recorded models, pictures and answers of the encoders' tests. */
export const recorded = fileURLToPath(new URL('../../gpu/encoder/testdata/', import.meta.url))

/** Starts the real binary with a recorded model that sees, or the stand-in that says so. */
export async function startSeeing(family) {
  if (process.env.GANGLION_BIN) return startBinary(process.env.GANGLION_BIN, `${recorded}models/${family}-text.gguf`, ['--mmproj', `${recorded}models/${family}-mmproj.gguf`, ...exact, '--log-media'])
  const mock = await startScripted()
  await mock.tell({ encoder: { name: 'eyes', path: '/m', images: true, audios: false, videos: true }, logMedia: true })
  return { ...mock, real: false }
}

/** Starts the real binary with more settings; only where there is one. */
export const startReal = (flags) => startBinary(process.env.GANGLION_BIN, process.env.GANGLION_TEST_MODEL, [...exact, ...flags])

/** The stand-in, whatever the environment says: for scripted failures. */
export async function startScripted() {
  const mock = await startMock()
  const tell = async (patch) => (await fetch(`${mock.url}/__mock`, { method: 'POST', body: JSON.stringify(patch) })).json()
  return { ...mock, tell }
}

async function startBinary(binary, model, flags = []) {
  if (!model) throw new Error('GANGLION_BIN is set but GANGLION_TEST_MODEL is not')
  const data = await mkdtemp(join(tmpdir(), 'ganglion-e2e-'))
  const child = spawn(binary, ['serve', '--listen', '127.0.0.1:0', '--model', model, '--data', data, ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: data } })
  const over = new Promise((resolve) => child.once('exit', resolve).once('error', resolve))
  const close = async () => {
    child.kill('SIGTERM')
    await over
    await removeFolder(data)
  }
  try {
    const url = await listening(child, over)
    await ready(url)
    return { url, real: true, close }
  } catch (error) {
    await close() // or the tests would never end
    throw error
  }
}

/** The address that a server says it listens at; over tells that it ended. */
async function listening(child, over) {
  let output = ''
  return new Promise((resolve, reject) => {
    const hear = (chunk) => {
      output += chunk
      const m = /listening on (http:\/\/[^\s"]+)/.exec(output)
      if (m) resolve(m[1].replace(/\/$/, ''))
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    over.then((why) => reject(new Error(`the server ended with ${why}: ${output}`)))
  })
}

/** Removes a folder in which a process that was ended may still have written something. */
export const removeFolder = (folder) => rm(folder, { recursive: true, force: true, maxRetries: 20 })

/** Waits until the server can produce a token. */
export async function ready(url) {
  await soon(async () => (await fetch(`${url}/health`)).ok, true, 'the server is ready', work)
}

/** Waits until the server has read its plugins: until then it lists some, and a request may have to wait. */
export async function pluginsRead(url) {
  await soon(async () => (await (await fetch(`${url}/v1/plugins`)).json()).loading, false, 'the plugins are read', work)
}

const bearing = (token) => (token ? { headers: { Authorization: `Bearer ${token}` } } : {})

/** The newest row of a server's log; undefined where there is none. */
export async function newestRow(url, token) {
  return (await (await fetch(`${url}/v1/log?limit=1`, bearing(token))).json()).records[0]
}

/** The record of the request that was made after before, a row, once it has ended: a disk that is busy has it later than the answer. */
export async function nextRecord(url, before, token) {
  let row
  await soon(async () => {
    row = await newestRow(url, token)
    return row !== undefined && row.id !== before?.id && row.outcome !== 'open'
  }, true, 'the newest row is another one and closed')
  return (await fetch(`${url}/v1/log/${row.id}`, bearing(token))).json()
}

/**
 * Runs a test in a page of its own. Console errors fail it, but for those that the
 * test expects (Chromium reports every failed fetch as one).
 */
export async function withPage(browser, base, { hash = '#/playground', width = 1280, height = 900, scheme = 'light', expect = [], motion = 'reduce' } = {}, test) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion, permissions: ['clipboard-read', 'clipboard-write'], baseURL: base })
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  const faults = []
  page.on('console', (m) => {
    if (m.type() === 'error' && !expect.some((e) => e.test(m.text()))) faults.push(`console: ${m.text()}`)
  })
  page.on('pageerror', (e) => faults.push(`error: ${e.message}`))
  page.on('request', (r) => {
    if (!r.url().replace(/^blob:/, '').startsWith(base)) faults.push(`request to another host: ${r.url()}`)
  })
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (e) => console.error(`content policy: ${e.violatedDirective} ${e.blockedURI}`))
    // Short messages go away by themselves: what was shown is kept for noticed().
    window.notices = []
    new MutationObserver(() => {
      const text = document.querySelector('.toast.toast-on[role=status]')?.textContent
      if (text) window.notices.push(text)
    }).observe(document, { childList: true, subtree: true, characterData: true, attributes: true })
  })
  try {
    await page.goto(`/${hash}`)
    await test(page)
    if (faults.length) throw new Error(faults.join('\n'))
  } finally {
    await page.unrouteAll({ behavior: 'ignoreErrors' }) // a call that is on its way ends with the page
    await context.close()
  }
}

/** Waits until a short message was shown, whether it still stands or not. */
export async function noticed(p, text) {
  await soon(() => p.evaluate((t) => window.notices.some((n) => n.includes(t)), text), true, `“${text}” is shown`)
}

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
let source

/** What axe-core finds wrong with a page as it stands, once nothing is dimmed because it is asked anew. */
export async function violations(p) {
  await soon(() => p.locator('.stale').count(), 0, 'nothing is dimmed')
  source ??= await readFile(axe, 'utf8')
  // Playwright evaluates the script itself: the page's content policy does not apply.
  await p.evaluate(source)
  const result = await p.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }))
  return result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).join('; ')}`)
}

/**
 * Waits until read() gives want and fails with both values when it does not in
 * time: what the page shows follows an action in a later step of the browser.
 */
export async function soon(read, want, what, ms = patience) {
  const end = performance.now() + ms
  for (;;) {
    const got = await read()
    if (got === want) return
    if (performance.now() > end) assert.equal(got, want, what)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
