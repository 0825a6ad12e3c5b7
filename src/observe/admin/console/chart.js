import { clock, shortCount } from './format.js';
import { h } from './dom.js';

/** Milliseconds that a chart shows, up to now. */
const SPAN = 300_000;
const HEIGHT = 190;
const PAD = { top: 10, right: 8, bottom: 22, left: 46 };

/**
 * Lines over the last five minutes on a canvas. Colours come from the style sheet, for dark and light. The tables have the same
 * figures for screen readers.
 *
 * `update(points, series, now)`: points ascend by `at` (milliseconds); a series is `{name, color, read(point)}`.
 */
export class Chart {
  #figure;
  #canvas = h('canvas', { role: 'img', tabindex: '0' });
  #tip = h('div', { class: 'tip', hidden: true });
  #legend;
  #title;
  #format;
  /** @type {{ points: any[], series: any[], now: number }} */
  #data = { points: [], series: [], now: Date.now() };
  /** Time under the pointer, or chosen by arrow keys; null without one. */
  #at = null;
  #width = 0;

  /** @param format writes a value in the legend and under the pointer; the axis has shorter ones */
  constructor(figure, { title, format }) {
    this.#figure = figure;
    this.#title = title;
    this.#format = format;
    this.#legend = figure.querySelector('.legend');
    const plot = h('div', { class: 'plot' }, this.#canvas, this.#tip);
    figure.append(plot);
    new ResizeObserver(() => this.#draw()).observe(plot);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw());
    this.#canvas.addEventListener('pointermove', (event) => this.#point(event.offsetX));
    this.#canvas.addEventListener('pointerleave', () => this.#choose(null));
    this.#canvas.addEventListener('blur', () => this.#choose(null));
    this.#canvas.addEventListener('keydown', (event) => this.#key(event));
  }

  update(points, series, now) {
    this.#data = { points, series, now };
    this.#drawLegend();
    this.#draw();
  }

  #drawLegend() {
    const { series, points } = this.#data;
    const last = points.at(-1);
    const items = series.map(({ name, color, read }) => {
      const value = last === undefined ? '' : this.#format(read(last));
      return h(
        'li',
        {},
        h('span', { class: `swatch ${color}` }),
        h('span', { text: name }),
        h('b', { text: value }),
      );
    });
    this.#legend.replaceChildren(...items);
    const spoken = series.map(
      ({ name, read }) => `${name} ${last === undefined ? 'no data' : this.#format(read(last))}`,
    );
    this.#canvas.setAttribute('aria-label', `${this.#title}, now: ${spoken.join(', ')}`);
  }

  #draw() {
    const width = this.#canvas.parentElement.clientWidth;
    if (width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const canvas = this.#canvas;
    this.#width = width;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(HEIGHT * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(HEIGHT * ratio);
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, HEIGHT);
    const style = getComputedStyle(this.#figure);
    const colorOf = (name) => style.getPropertyValue(`--${name}`).trim();
    const top = this.#top();
    this.#drawAxes(context, colorOf, top);
    // The first series is drawn last, on top.
    for (const one of this.#data.series.toReversed()) this.#drawLine(context, colorOf, one, top);
    this.#drawChosen(context, colorOf, top);
  }

  /** The round value at the upper edge; at least five, so that an idle chart does not jump. */
  #top() {
    const { points, series } = this.#data;
    let largest = 5;
    for (const point of points) for (const { read } of series) largest = Math.max(largest, read(point));
    const step = niceStep(largest / 4);
    return Math.ceil(largest / step) * step;
  }

  #x(at) {
    const { now } = this.#data;
    return PAD.left + (1 - (now - at) / SPAN) * (this.#width - PAD.left - PAD.right);
  }

  #y(value, top) {
    return PAD.top + (1 - value / top) * (HEIGHT - PAD.top - PAD.bottom);
  }

  #drawAxes(context, colorOf, top) {
    context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    context.lineWidth = 1;
    const step = niceStep(top / 4);
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (let value = 0; value <= top + step / 2; value += step) {
      const y = Math.round(this.#y(value, top)) + 0.5;
      context.strokeStyle = colorOf(value === 0 ? 'line-strong' : 'line');
      stroke(context, PAD.left, y, this.#width - PAD.right, y);
      context.fillStyle = colorOf('muted');
      context.fillText(shortCount(value), PAD.left - 8, y);
    }
    context.textBaseline = 'alphabetic';
    const every = this.#width < 440 ? 2 : 1;
    for (let minutes = 0; minutes <= 5; minutes += every) {
      const x = this.#x(this.#data.now - minutes * 60_000);
      context.textAlign = minutes === 0 ? 'right' : minutes === 5 ? 'left' : 'center';
      context.fillText(minutes === 0 ? 'now' : `−${minutes} min`, x, HEIGHT - 5);
    }
  }

  #drawLine(context, colorOf, { color, read, fill = false }, top) {
    const visible = this.#data.points.filter(({ at }) => at > this.#data.now - SPAN);
    if (visible.length === 0) return;
    const path = new Path2D();
    let last = null;
    for (const point of visible) {
      const [x, y] = [this.#x(point.at), this.#y(read(point), top)];
      // A new line begins after a gap: the values between are unknown.
      if (last === null || point.at - last > 5000) path.moveTo(x, y);
      else path.lineTo(x, y);
      last = point.at;
    }
    context.strokeStyle = colorOf(color);
    context.lineWidth = 1.75;
    context.lineJoin = 'round';
    context.stroke(path);
    if (!fill) return;
    const area = new Path2D(path);
    area.lineTo(this.#x(visible.at(-1).at), this.#y(0, top));
    area.lineTo(this.#x(visible[0].at), this.#y(0, top));
    context.globalAlpha = 0.1;
    context.fillStyle = colorOf(color);
    // oxlint-disable-next-line unicorn/no-array-fill-with-reference-type -- a canvas, not an array
    context.fill(area);
    context.globalAlpha = 1;
  }

  #drawChosen(context, colorOf, top) {
    const point = this.#chosen();
    this.#tip.hidden = point === null;
    if (point === null) return;
    const x = Math.round(this.#x(point.at)) + 0.5;
    context.strokeStyle = colorOf('line-strong');
    context.lineWidth = 1;
    stroke(context, x, PAD.top, x, HEIGHT - PAD.bottom);
    for (const { color, read } of this.#data.series) {
      context.fillStyle = colorOf(color);
      context.beginPath();
      context.arc(x, this.#y(read(point), top), 3, 0, 2 * Math.PI);
      context.fill();
    }
    this.#tip.replaceChildren(
      h('div', { class: 'muted', text: clock(point.at) }),
      ...this.#data.series.map(({ name, color, read }) =>
        h(
          'div',
          {},
          h('span', { class: `swatch ${color}` }),
          h('span', { text: name }),
          h('b', { text: this.#format(read(point)) }),
        ),
      ),
    );
    const isRight = x > this.#width / 2;
    this.#tip.style.left = isRight ? '' : `${x + 10}px`;
    this.#tip.style.right = isRight ? `${this.#width - x + 10}px` : '';
  }

  #chosen() {
    if (this.#at === null) return null;
    let nearest = null;
    for (const point of this.#data.points) {
      if (nearest === null || Math.abs(point.at - this.#at) < Math.abs(nearest.at - this.#at))
        nearest = point;
    }
    return nearest;
  }

  #choose(at) {
    this.#at = at;
    this.#draw();
  }

  #point(offset) {
    const share = (offset - PAD.left) / (this.#width - PAD.left - PAD.right);
    this.#choose(this.#data.now - (1 - Math.min(1, Math.max(0, share))) * SPAN);
  }

  /** Arrow keys choose a point, which is announced. */
  #key(event) {
    const steps = { ArrowLeft: -1000, ArrowRight: 1000, PageUp: -30_000, PageDown: 30_000 };
    const step = steps[event.key];
    if (event.key === 'Escape') return this.#choose(null);
    if (step === undefined) return;
    event.preventDefault();
    const { now } = this.#data;
    this.#choose(Math.min(now, Math.max(now - SPAN, (this.#at ?? now) + step)));
    const point = this.#chosen();
    if (point === null) return;
    const spoken = this.#data.series.map(({ name, read }) => `${name} ${this.#format(read(point))}`);
    this.#canvas.setAttribute('aria-label', `${clock(point.at)}: ${spoken.join(', ')}`);
  }
}

function stroke(context, fromX, fromY, toX, toY) {
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
}

/** 1, 2 or 5 times a power of ten, at least `value`. */
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  for (const factor of [1, 2, 5]) if (factor * power >= value) return factor * power;
  return 10 * power;
}
