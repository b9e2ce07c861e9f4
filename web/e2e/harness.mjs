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

/** The browser; one for a test file. */
export async function openBrowser() {
  return chromium.launch({ executablePath: process.env.GANGLION_CHROMIUM ?? '/usr/bin/chromium', headless: true, args: flags })
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
  await mock.tell({ encoder: { name: 'eyes', path: '/m', images: true, audios: false, videos: false }, logMedia: true })
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
  let output = ''
  const url = await new Promise((resolve, reject) => {
    const hear = (chunk) => {
      output += chunk
      const m = /listening on (http:\/\/[^\s"]+)/.exec(output)
      if (m) resolve(m[1].replace(/\/$/, ''))
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${output}`)))
  })
  await ready(url)
  return {
    url, real: true,
    close: async () => {
      child.removeAllListeners('exit')
      const over = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await over
      await rm(data, { recursive: true, force: true })
    },
  }
}

/** Waits until the server can produce a token; it tells itself when to ask again. */
async function ready(url) {
  for (let i = 0; i < 600; i++) {
    const answer = await fetch(`${url}/health`)
    if (answer.ok) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('the server did not become ready')
}

/**
 * Runs a test in a page of its own. Console errors fail it, but for those that the
 * test expects (Chromium reports every failed fetch as one).
 */
export async function withPage(browser, base, { hash = '#/playground', width = 1280, height = 900, scheme = 'light', expect = [], motion = 'reduce' } = {}, test) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion, permissions: ['clipboard-read', 'clipboard-write'], baseURL: base })
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
  })
  try {
    await page.goto(`/${hash}`)
    await test(page)
    if (faults.length) throw new Error(faults.join('\n'))
  } finally {
    await context.close()
  }
}

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
let source

/** What axe-core finds wrong with a page as it stands. */
export async function violations(p) {
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
export async function soon(read, want, what, ms = 5000) {
  const end = Date.now() + ms
  for (;;) {
    const got = await read()
    if (got === want) return
    if (Date.now() > end) assert.equal(got, want, what)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
