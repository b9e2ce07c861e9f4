import { test } from 'node:test'
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile, readdir } from 'node:fs/promises'

const ui = new URL('../', import.meta.url)
const read = (path) => readFile(new URL(path, ui))

test('vendor/files are those of files.sha256', async () => {
  const lines = (await read('vendor/files.sha256')).toString().trim().split('\n')
  const names = (await readdir(new URL('vendor/', ui))).filter((n) => /\.(js|css)$/.test(n)).sort()
  assert.deepEqual(lines.map((l) => l.split(/\s+/)[1]).sort(), names)
  for (const line of lines) {
    const [hash, name] = line.split(/\s+/)
    assert.equal(createHash('sha256').update(await read(`vendor/${name}`)).digest('hex'), hash, name)
  }
})

test('vendor/the README tells the archives of archives.sha256', async () => {
  const readme = (await read('vendor/README.md')).toString()
  for (const line of (await read('vendor/archives.sha256')).toString().trim().split('\n')) assert.ok(readme.includes(line.split(/\s+/)[0]), line)
})

test('page/nothing inline, nothing from another host', async () => {
  const html = (await read('index.html')).toString()
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|(?:src|href)="(?:https?:)?\/\//)
  const files = [...(await readdir(new URL('js/', ui))).map((n) => `js/${n}`), ...(await readdir(new URL('js/views/', ui))).map((n) => `js/views/${n}`)].filter((n) => n.endsWith('.js'))
  for (const name of files) {
    const text = (await read(name)).toString()
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function/, name)
    assert.ok(text.split('\n').length < 400, `${name} is too long`)
    for (const [, from] of text.matchAll(/from '([^']+)'/g)) assert.match(from, /^\.{1,2}\//, `${name} imports ${from}`)
  }
})
