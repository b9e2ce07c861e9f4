// How sure the model was, or how long each token took, over the answer. uPlot draws
// on a canvas; the same facts stand in a sentence for those who cannot see it.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../html.js'
import uPlot from '../../vendor/uplot.js'
import { look, theme, systemDark } from '../store.js'
import { duration, percent, probability, visible } from '../format.js'

const kinds = { logprob: 'Log-probability', time: 'Time per token' }

export function Chart({ r, known }) {
  const kind = known ? look.value.chart : 'time'
  const values = kind === 'logprob' ? r.tokens.map((t) => t.logprob) : gaps(r.times)
  const [at, setAt] = useState(null)
  const pick = (name) => html`
    <label class="toggle"><input type="radio" name="chart" checked=${kind === name} disabled=${name === 'logprob' && !known}
      onChange=${() => { look.value = { ...look.peek(), chart: name } }} /><span>${kinds[name]}</span></label>`
  if (values.every((v) => v === null)) return null
  return html`
    <figure class="chart">
      <figcaption>
        <fieldset class="look"><legend class="hidden">What the chart shows</legend>${pick('logprob')}${pick('time')}</fieldset>
        <span class="chart-at muted">${at !== null && r.tokens[at] ? describe(r, kind, values, at) : summary(kind, values)}</span>
      </figcaption>
      <${Plot} kind=${kind} values=${values} onHover=${setAt} scheme=${`${theme.value}${systemDark.value}`} label=${`${kinds[kind]} of each token. ${summary(kind, values)}`} />
    </figure>`
}

/** Time since the token before; the first has none. Tokens of one chunk share a time. */
export function gaps(times) {
  return times.map((t, i) => (i === 0 ? null : t - times[i - 1]))
}

function describe(r, kind, values, i) {
  const token = `${i + 1}: “${visible(r.pieces[i]) || '∅'}”`
  if (values[i] == null) return token
  return `${token} ${kind === 'time' ? duration(values[i]) : percent(probability(values[i]))}`
}

/** The chart in a sentence. */
export function summary(kind, values) {
  const known = values.filter((v) => v != null)
  if (known.length === 0) return ''
  const mean = known.reduce((a, b) => a + b, 0) / known.length
  const edge = kind === 'time' ? Math.max(...known) : Math.min(...known)
  const place = values.indexOf(edge) + 1
  return kind === 'time' ? `Mean ${duration(mean)}, slowest ${duration(edge)} at token ${place}`
    : `Mean ${mean.toFixed(2)}, lowest ${edge.toFixed(2)} at token ${place}`
}

function Plot({ kind, values, onHover, scheme, label }) {
  const box = useRef(null)
  const plot = useRef(null)
  const data = [values.map((_, i) => i + 1), values]
  useEffect(() => {
    const el = box.current
    plot.current = new uPlot(options(el, kind, onHover), data, el)
    const resize = new ResizeObserver(() => plot.current.setSize({ width: el.clientWidth, height: 96 }))
    resize.observe(el)
    return () => {
      resize.disconnect()
      plot.current.destroy()
      plot.current = null
    }
  }, [kind, scheme])
  useLayoutEffect(() => plot.current?.setData(data), [values.length, values[values.length - 1]])
  return html`<div class="plot" ref=${box} role="img" aria-label=${label}></div>`
}

function options(el, kind, onHover) {
  // Canvas needs plain colours: resolve the style sheet's light-dark() by probes.
  const colour = (name) => getComputedStyle(el.querySelector(`.${name}`) ?? probe(el, name)).color
  const axis = { stroke: colour('probe-muted'), grid: { stroke: colour('probe-line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' }
  const line = colour('probe-accent')
  return {
    width: el.clientWidth, height: 96, legend: { show: false }, padding: [6, 14, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false }, y: { range: (_, min, max) => (kind === 'time' ? [0, Math.max(max * 1.1, 1)] : [Math.min(min * 1.1, -1), 0]) } },
    axes: [{ ...axis, size: 22, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }, { ...axis, size: 44, space: 28, values: (_, v) => v.map((y) => (kind === 'time' ? (y >= 1000 ? `${y / 1000} s` : `${y} ms`) : y)) }],
    series: [{}, { stroke: line, width: 1.5, points: { size: 4, fill: line }, fill: colour('probe-soft') }],
    hooks: { setCursor: [(u) => onHover(u.cursor.idx ?? null)] },
  }
}

function probe(el, name) {
  const i = document.createElement('i')
  i.className = `probe ${name}`
  el.append(i)
  return i
}
