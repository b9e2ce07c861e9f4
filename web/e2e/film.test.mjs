// Films on the page: moving pictures that are sent as one, and which frames the model sees.
import { after, before, test } from 'node:test'
import assert from 'node:assert/strict'
import { nextRecord, noticed, openBrowser, soon, startScripted, startSeeing, violations, withPage } from './harness.mjs'
import { choose, clip, encoder, finished, items, picture, sentBy, sound, watching, wave } from './attaching.mjs'
import { wishes, wishProblem } from '../ui/js/film.js'

let browser
let server
before(async () => {
  browser = await openBrowser()
  server = await startScripted()
})
after(async () => {
  await browser?.close()
  await server?.close()
})

const page = (options, f) => withPage(browser, server.url, options, f)
const framesOf = (p, name) => p.locator('summary').filter({ hasText: `Frames of ${name}` })
const wishAt = (p, name, label) => p.getByRole('group', { name: `Frames of ${name}` }).getByRole('textbox', { name: label })
/** What a screen reader says of a control behind its name. */
const description = (control) => control.evaluate((e) => e.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id).textContent).join(' ').trim())

test('film/a moving picture is sent as a person chooses, by keyboard too', async () => {
  await server.tell({ reset: true, encoder: watching, films: { state: 'compiling', share: 0.25, error: '' } })
  await page({ hash: '#/playground?prompt=a&max_completion_tokens=2' }, async (p) => {
    await p.evaluate(() => { for (const kind of [Element, DocumentFragment, Document]) delete kind.prototype.moveBefore }) // not every browser keeps the focus of what moves
    await choose(p, [wave, picture, sound])
    await items(p).getByText('Film, 2.5 s, 2 frames, 512 tokens').waitFor()
    assert.equal(await p.getByRole('radio').count(), 2, 'a picture that does not move has no choice')
    assert.equal(await p.getByText('The decoder of films').count(), 0, 'it needs no decoder')
    await soon(() => items(p).filter({ hasText: 'wave.gif' }).locator('canvas.thumb').evaluate((c) => c.width), 40, 'its first frame is drawn')
    const still = p.getByRole('group', { name: 'It moves. Send wave.gif as' }).getByRole('radio', { name: 'still picture' })
    await p.getByRole('radio', { name: 'film' }).focus()
    await p.keyboard.press('ArrowLeft')
    await soon(() => still.isChecked(), true)
    await items(p).filter({ hasText: 'wave.gif' }).getByText('Picture, 640 × 480, 256 tokens').waitFor()
    await soon(() => still.evaluate((e) => e === document.activeElement), true, 'the list moved, the focus went along')
    assert.equal(await p.getByText(/Frames of/).count(), 0)
    assert.deepEqual(await violations(p), [])
    const body = await sentBy(p)
    assert.deepEqual([body.images, body.videos], [[wave.buffer.toString('base64'), picture.buffer.toString('base64')], undefined])
    await finished(p)
    await still.focus()
    await p.keyboard.press('ArrowRight')
    await items(p).last().getByText('Film, 2.5 s, 2 frames, 512 tokens').waitFor()
    await soon(() => p.getByRole('radio', { name: 'film' }).evaluate((e) => e === document.activeElement), true, 'and back')
    assert.deepEqual((await sentBy(p)).videos, [wave.buffer.toString('base64')])
    await finished(p)
  })
})

test('film/a moving picture is a still one where no film may be sent', async () => {
  await server.tell({ reset: true, encoder, media: { body_bytes: 2 ** 20, item_bytes: 2 ** 20, bytes: 2 ** 20, images: 16, audios: 4, videos: 1 } })
  await page({ hash: '#/playground' }, async (p) => {
    const checked = (n) => p.getByRole('radio', { name: 'still picture' }).nth(n).isChecked()
    await choose(p, [wave])
    await items(p).first().getByText('Picture, 640 × 480').waitFor()
    await p.getByRole('radio', { name: 'film' }).check()
    await p.getByText('The model’s encoder eyes takes no film.').waitFor()
    await p.getByRole('radio', { name: 'still picture' }).check()
    await soon(() => p.getByText('takes no film').count(), 0)
    await p.getByRole('button', { name: 'Remove wave.gif' }).click()
    await choose(p, [wave])
    await soon(() => checked(0), true)
    await server.tell({ encoder: watching }) // another model, which the page hears of by itself
    await soon(() => checked(0), false, 'nobody chose: it is a film now')
    await choose(p, [wave])
    await soon(() => items(p).count(), 2)
    assert.deepEqual([await checked(0), await checked(1)], [true, false], 'there is room for one film, and pictures stand first')
    await p.getByRole('radio', { name: 'film' }).first().click()
    await p.getByText('“wave.gif” is one too many: a request takes 1 film.').waitFor()
    await soon(() => checked(0), true, 'the choice went back')
  })
})

for (const [scheme, width] of [['light', 1280], ['dark', 360]]) {
  test(`film/wishes about frames are measured, sent, copied and kept, ${scheme} at ${width} px`, async () => {
    await server.tell({ reset: true, encoder: watching, logMedia: true })
    await page({ hash: '#/playground?prompt=a&max_completion_tokens=2', scheme, width }, async (p) => {
      await choose(p, [clip, wave])
      await items(p).first().getByText('2 frames, 512 tokens').waitFor()
      await framesOf(p, 'clip.mp4').focus()
      await p.keyboard.press('Enter')
      for (const label of ['Frames a second', 'Frames at most', 'From second', 'To second']) {
        await p.keyboard.press('Tab')
        assert.ok(await wishAt(p, 'clip.mp4', label).evaluate((e) => e === document.activeElement), label)
        assert.equal(await description(wishAt(p, 'clip.mp4', label)), 'What is empty is left to the model.')
      }
      await wishAt(p, 'clip.mp4', 'Frames a second').fill('4')
      await items(p).first().getByText('Film, 2.5 s, 10 frames, 2560 tokens').waitFor()
      await p.getByText(/3\s072 of them media/).waitFor()
      await wishAt(p, 'clip.mp4', 'From second').fill('0,5')
      await wishAt(p, 'clip.mp4', 'To second').fill('2')
      await wishAt(p, 'clip.mp4', 'Frames at most').fill('5')
      await items(p).first().getByText('Film, 0.5 to 2.0 s of 2.5 s, 5 frames, 1280 tokens').waitFor()
      await framesOf(p, 'clip.mp4').getByText('4 frames a second, at most 5 frames, from 0.5 s, to 2 s').waitFor()
      assert.deepEqual(await violations(p), [])
      assert.ok(await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out')
      await p.getByRole('button', { name: 'Copy as curl' }).click()
      await noticed(p, 'Command copied')
      assert.match(await p.evaluate(() => navigator.clipboard.readText()), /"videos":\[\{"data":"'; base64 < 'clip.mp4' [^]*'","fps":4,"max_frames":5,"start":0.5,"end":2\},"'; base64 < 'wave.gif'/)
      const want = [{ data: clip.buffer.toString('base64'), fps: 4, max_frames: 5, start: 0.5, end: 2 }, wave.buffer.toString('base64')]
      assert.deepEqual((await sentBy(p)).videos, want)
      await finished(p)
      await p.getByRole('link', { name: 'History' }).click()
      await p.locator('.log-item').first().click()
      await p.getByText('5 frames, 1280 tokens; wished: 4 frames a second, at most 5 frames, from 0.5 s, to 2 s').waitFor()
      await p.getByRole('button', { name: 'Copy as curl' }).click()
      await soon(async () => /"videos":\[\{"data":"'; base64 < 'videos\[0\]' [^]*'","fps":4,"max_frames":5,"start":0.5,"end":2\},"'; base64 < 'videos\[1\]'/.test(await p.evaluate(() => navigator.clipboard.readText())), true, 'the command of the record has them too')
      await p.getByRole('button', { name: 'Open in playground' }).click()
      await items(p).first().getByText('0.5 to 2.0 s of 2.5 s, 5 frames, 1280 tokens').waitFor()
      await framesOf(p, 'videos[0]').click()
      assert.equal(await wishAt(p, 'videos[0]', 'From second').inputValue(), '0.5')
      assert.deepEqual((await sentBy(p)).videos, want)
      await finished(p)
    })
  })
}

test('film/a wish that cannot be is refused where it stands', async () => {
  await server.tell({ reset: true, encoder: watching })
  await page({ hash: '#/playground?prompt=a&max_completion_tokens=2', expect: [/400/] }, async (p) => {
    const asked = []
    p.on('request', (r) => r.url().endsWith('/measure') && asked.push(r.postData()))
    await choose(p, [clip, picture])
    await framesOf(p, 'clip.mp4').click()
    const [fps, end] = [wishAt(p, 'clip.mp4', 'Frames a second'), wishAt(p, 'clip.mp4', 'To second')]
    await fps.fill('two')
    await soon(() => description(fps), 'What is empty is left to the model. must be a number from 0 to 240')
    assert.equal(await fps.getAttribute('aria-invalid'), 'true')
    await items(p).filter({ hasText: 'clip.mp4' }).getByText('Film, 12 B').waitFor() // the others were measured without it
    await items(p).filter({ hasText: 'cat.png' }).getByText('640 × 480, 256 tokens').waitFor()
    await fps.fill('2')
    await items(p).filter({ hasText: 'clip.mp4' }).getByText('5 frames, 1280 tokens').waitFor()
    assert.equal(await fps.getAttribute('aria-invalid'), null)
    assert.ok(asked.length > 0 && asked.every((body) => !body.includes('two')), 'what is wrong by itself is not asked')
    await wishAt(p, 'clip.mp4', 'From second').fill('2')
    await end.fill('1')
    await soon(() => description(end), 'What is empty is left to the model. the part from 2s to 1s is empty, the film lasts 2.5s', 'the server saw the film')
    assert.deepEqual(await violations(p), [])
    await framesOf(p, 'clip.mp4').click()
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    await p.getByRole('alert').getByText('The server refused the request').waitFor()
    await soon(() => end.evaluate((e) => e === document.activeElement), true, 'the control is open and has the focus')
    await end.fill('3')
    await soon(() => description(end), 'What is empty is left to the model.')
    await items(p).filter({ hasText: 'clip.mp4' }).getByText('2.0 to 2.5 s of 2.5 s, 1 frame, 256 tokens').waitFor()
    await p.getByRole('button', { name: 'Run', exact: true }).click()
    await finished(p)
  })
})

test('film/what is wrong with a film is shown when it comes back', async () => {
  await server.tell({ reset: true, encoder: watching })
  await page({ hash: '#/playground' }, async (p) => {
    await choose(p, [wave])
    await framesOf(p, 'wave.gif').click()
    await wishAt(p, 'wave.gif', 'Frames at most').fill('0')
    await p.getByRole('radio', { name: 'still picture' }).check()
    await items(p).first().getByText('Picture, 640 × 480').waitFor()
    await p.getByRole('radio', { name: 'film' }).check()
    await p.getByText('must be an integer from 1 to 65536').waitFor()
    assert.equal(await wishAt(p, 'wave.gif', 'Frames at most').inputValue(), '0')
  })
})

test('film/hints that the page has no field for go along when a request is opened again', async () => {
  await server.tell({ reset: true, encoder: watching, logMedia: true })
  const data = picture.buffer.toString('base64')
  await fetch(`${server.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ prompt: 'a', max_completion_tokens: 2, images: [{ data, max_tokens: 85 }], videos: [{ data, video_compat: 'llama.cpp', fps: 2 }] }) })
  await page({ hash: '#/history' }, async (p) => {
    await p.locator('.log-item').first().click()
    await p.getByRole('button', { name: 'Open in playground' }).click()
    await items(p).first().getByText('256 tokens, at most 85 tokens a picture').waitFor()
    await framesOf(p, 'videos[0]').getByText('2 frames a second, as llama.cpp sees it').waitFor()
    const body = await sentBy(p)
    assert.deepEqual([body.images, body.videos], [[{ data, max_tokens: 85 }], [{ data, video_compat: 'llama.cpp', fps: 2 }]])
    await finished(p)
  })
})

test('film/what is typed is measured after a pause, and no answer is shown for anything else', async () => {
  await server.tell({ reset: true, encoder: watching })
  await page({ hash: '#/playground?prompt=a' }, async (p) => {
    const asked = [] // for fps, and how the answer is let go
    await p.route('**/v1/media/measure', (route) => {
      const request = route.request()
      const { fps } = request.postDataJSON().videos[0]
      if (fps) asked.push({ fps, request, go: () => route.continue() })
      else route.continue()
    })
    const over = new Set()
    for (const end of ['requestfinished', 'requestfailed']) p.on(end, (r) => over.add(r))
    await choose(p, [clip])
    const fact = items(p).first()
    await fact.getByText('2 frames, 512 tokens').waitFor()
    await framesOf(p, 'clip.mp4').click()
    await p.clock.install()
    await p.clock.pauseAt(Date.now() + 60000)
    const fps = wishAt(p, 'clip.mp4', 'Frames a second')
    for (const text of ['1', '12', '120']) {
      await fps.fill(text)
      await fact.getByText('Film, measuring…').waitFor()
      await p.getByText('media not counted yet').waitFor()
      await p.clock.runFor(200)
    }
    assert.deepEqual(asked, [], 'nobody is asked while a person types')
    await p.clock.runFor(200)
    await soon(() => asked.length, 1)
    await fps.fill('2')
    await p.clock.runFor(400)
    await soon(() => asked.length, 2)
    assert.deepEqual(asked.map((a) => a.fps), [120, 2])
    await asked[1].go()
    await fact.getByText('5 frames, 1280 tokens').waitFor()
    await asked[0].go().catch(() => {}) // the page may have given it up
    await soon(() => over.has(asked[0].request), true, 'the first question is over')
    await p.evaluate(() => fetch('/v1/status')) // whatever its answer did is done
    assert.match(await fact.innerText(), /Film, 2\.5 s, 5 frames, 1280 tokens/)
    await wishAt(p, 'clip.mp4', 'Frames at most').fill('3')
    await fact.getByText('Film, measuring…').waitFor()
    await p.clock.runFor(400)
    await soon(() => asked.length, 3)
    await asked[2].go()
    await fact.getByText('3 frames, 768 tokens').waitFor()
  })
})

// The words of the page about a wish are those of the server, and what it measures is what it does.
test('film/a moving picture is looked at as wished by a model that sees', async () => {
  const seeing = await startSeeing('gemma3')
  try {
    const data = wave.buffer.toString('base64')
    for (const [name, text, value] of [['fps', 'x', 'x'], ['fps', '241', 241], ['fps', '1e-9', 1e-9], ['max_frames', '0', 0], ['max_frames', '1.5', 1.5], ['start', '-1', -1], ['end', '1e7', 1e7]]) {
      const answer = await fetch(`${seeing.url}/v1/media/measure`, { method: 'POST', body: JSON.stringify({ videos: [{ data, [name]: value }] }) })
      const { error } = await answer.json()
      assert.deepEqual([answer.status, error.param, error.message], [400, `videos[0].${name}`, `videos[0].${name}: ${wishProblem(wishes.find((w) => w.name === name), text)}`])
    }
    await withPage(browser, seeing.url, { hash: '#/playground?prompt=a&max_completion_tokens=2&temperature=0', expect: [/400/] }, async (p) => {
      await choose(p, [wave])
      await p.getByRole('radio', { name: 'film' }).check()
      await framesOf(p, 'wave.gif').click()
      await wishAt(p, 'wave.gif', 'Frames a second').fill('8')
      await items(p).first().getByText(seeing.real ? 'Film, 40 × 30, 0.6 s, 5 frames, 105 tokens' : 'Film, 2.5 s, 20 frames, 5120 tokens').waitFor()
      await wishAt(p, 'wave.gif', 'From second').fill('9')
      await soon(async () => / the part from 9s to (590m|2\.5)s is empty, the film lasts (590m|2\.5)s$/.test(await description(wishAt(p, 'wave.gif', 'From second'))), true)
      await wishAt(p, 'wave.gif', 'From second').fill('')
      await wishAt(p, 'wave.gif', 'Frames at most').fill('3')
      const told = seeing.real ? /3 frames, \d+ tokens/ : /3 frames, 768 tokens/
      await items(p).first().getByText(told).waitFor()
      await p.getByRole('button', { name: 'Run', exact: true }).click()
      await finished(p)
      const [note] = (await nextRecord(seeing.url)).media
      assert.deepEqual([note.param, note.mime, note.frames, note.hints, note.kept], ['videos[0]', 'image/gif', 3, { fps: 8, max_frames: 3 }, true])
      await p.getByRole('link', { name: 'History' }).click()
      await p.locator('.log-item').first().click()
      await p.getByRole('img', { name: 'Preview of videos[0]' }).waitFor()
      await p.getByRole('button', { name: 'Open in playground' }).click()
      await items(p).first().getByText(told).waitFor()
      assert.deepEqual((await sentBy(p)).videos, [{ data, fps: 8, max_frames: 3 }])
      await finished(p)
    })
  } finally {
    await seeing.close()
  }
})
