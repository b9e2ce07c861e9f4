// The playground: prompt and answer on the left, parameters on the right.
import { html, useEffect } from '../html.js'
import { runner } from '../play.js'
import { Prompt } from './prompt.js'
import { Output } from './output.js'
import { Parameters } from './parameters.js'
import { Announcer } from './announcer.js'

export function Playground() {
  useEffect(() => {
    const key = (e) => {
      if (e.key === 'Escape' && runner.busy && !e.defaultPrevented) runner.stop()
    }
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [])
  return html`
    <div class="play">
      <div class="play-main">
        <${Prompt} />
        <${Output} />
      </div>
      <${Parameters} />
      <${Announcer} />
    </div>`
}
