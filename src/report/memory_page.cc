#include "report/memory_page.h"

namespace foretrace {

// Colours of uses differ in lightness as well, for those who do not tell all hues apart.
std::string_view memory_page_style() {
  return R"css(
:root { color-scheme: light dark; --page: #ffffff; --text: #1c2330; --quiet: #5b6575; --line: #d4d9e1;
  --allocated: #1c2330; --reserved: #b3541e; --needed: #2b6cb0; --limit: #c01f2e; --rest: #9aa3b0;
  --use-0: #8b95a5; --use-1: #2f5fa8; --use-2: #c77b12; --use-3: #7a4fa3; --use-4: #2e9467;
  --use-5: #d7a6b3; --use-6: #c8443c; --use-7: #35b0c9; }
@media (prefers-color-scheme: dark) { :root { --page: #14181f; --text: #e6e9ee; --quiet: #9aa5b5; --line: #364050;
  --allocated: #e6e9ee; --reserved: #f0a06b; --needed: #7db4ee; --limit: #ff6b76; --rest: #667080;
  --use-0: #8b95a5; --use-1: #6d9ce8; --use-2: #eaa640; --use-3: #b28ae0; --use-4: #57c294;
  --use-5: #8f5f6d; --use-6: #ef7a70; --use-7: #5fd0e6; } }
body { margin: 0 auto; max-width: 1400px; padding: 1rem 1.5rem 4rem; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: .5rem 0; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
p { margin: .2rem 0; } .verdict { font-size: 1.05rem; font-weight: 600; } .quiet { color: var(--quiet); }
.picture { position: relative; margin-top: .8rem; }
canvas { display: block; width: 100%; border: 1px solid var(--line); cursor: crosshair; touch-action: none; }
canvas:focus-visible, button:focus-visible { outline: 2px solid var(--needed); outline-offset: 1px; }
#level { height: 150px; } #blocks { height: 480px; margin-top: 4px; }
#hover { position: absolute; display: none; max-width: 34rem; padding: .4rem .6rem; pointer-events: none; z-index: 2;
  background: var(--page); border: 1px solid var(--line); box-shadow: 0 2px 8px #0004; font-size: 13px; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .5rem 0; font-size: 13px; }
.legend span::before { content: ""; display: inline-block; width: .8em; height: .8em; margin-right: .4em; background: var(--c); }
td .bar { display: inline-block; height: .7em; min-width: 1px; background: var(--quiet); }
button { font: inherit; color: inherit; background: none; border: 1px solid var(--line); border-radius: 4px; padding: .1rem .6rem; cursor: pointer; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .7rem .15rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 500; } .left { text-align: left; }
)css";
}

std::string_view memory_page_script() {
  return R"js(
'use strict';
(() => {
  const m = JSON.parse(document.getElementById('data').textContent);
  const level = document.getElementById('level'), blocks = document.getElementById('blocks');
  const hover = document.getElementById('hover');
  const end = Math.max(m.length, 1);
  // Blocks of a host that runs far ahead are made in an instant: then every change takes the same
  // width, in place of every nanosecond. A place is a time, or the number of a change.
  let byChange = m.crowded, whole = end, spots = [];
  const changes = [...new Set([0, end].concat(...[m.level, m.reserved, m.needed, m.rest].map(curve => curve.map(point => point[0])),
    m.blocks.map(b => b[0]), m.blocks.map(b => b[0] + b[1])))].filter(t => t >= 0 && t <= end).sort((a, b) => a - b);
  const numberAt = t => {  // Of the last change not behind t.
    let low = 1, high = changes.length - 1;
    while (low < high) { const mid = (low + high) >> 1; if (changes[mid] > t) high = mid; else low = mid + 1; }
    return low - 1;
  };
  const place = t => {
    if (!byChange) return t;
    const i = numberAt(t);
    return i + (t - changes[i]) / (changes[i + 1] - changes[i]);
  };
  const moment = u => {
    if (!byChange) return u;
    const i = Math.min(Math.max(Math.floor(u), 0), changes.length - 2);
    return changes[i] + (u - i) * (changes[i + 1] - changes[i]);
  };
  const view = {from: 0, to: end};
  const left = 76;  // Room for the labels of the axis.
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const scaled = (value, units, step) => {
    let at = 0;
    while (at + 1 < units.length && Math.abs(value) >= step) value /= step, ++at;
    return (at === 0 ? value : +value.toPrecision(4)) + ' ' + units[at];
  };
  const bytes = value => scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], 1000);
  const time = value => m.has_times ? scaled(value, ['ns', 'us', 'ms', 's'], 1000) : 'event ' + value;
  const restTop = m.rest.reduce((most, point) => Math.max(most, point[1]), 0);
  const height = Math.max(m.height + restTop, 1);
  const highest = Math.max(m.limit, ...[m.level, m.reserved, m.needed].map(
    curve => curve.reduce((most, point) => Math.max(most, point[1]), 0)), 1) * 1.05;

  const prepare = canvas => {
    const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const width = Math.round(box.width * ratio), tall = Math.round(box.height * ratio);
    if (canvas.width !== width || canvas.height !== tall) canvas.width = width, canvas.height = tall;
    const c = canvas.getContext('2d');
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, box.width, box.height);
    c.font = '12px system-ui, sans-serif';
    return {c, w: box.width, h: box.height, x: t => left + (place(t) - view.from) / (view.to - view.from) * (box.width - left)};
  };
  const ticks = (from, to, count) => {
    const raw = (to - from) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = Math.max([1, 2, 5, 10].find(n => n * power >= raw) * power, 1), all = [];
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) all.push(t);
    return all;
  };
  const axis = (p, y, top) => {
    p.c.fillStyle = colour('--quiet'), p.c.strokeStyle = colour('--line'), p.c.lineWidth = 1;
    p.c.textAlign = 'right', p.c.textBaseline = 'middle';
    for (const tick of ticks(0, top, 4)) {
      p.c.fillText(bytes(tick), left - 6, Math.min(Math.max(y(tick), 8), p.h - 8));
      p.c.beginPath(), p.c.moveTo(left, y(tick)), p.c.lineTo(p.w, y(tick)), p.c.stroke();
    }
  };
  const clip = p => { p.c.save(), p.c.beginPath(), p.c.rect(left, 0, p.w - left, p.h), p.c.clip(); };
  const stepsAt = (p, name) => {
    p.c.strokeStyle = colour('--quiet'), p.c.fillStyle = colour('--quiet'), p.c.setLineDash([3, 3]);
    p.c.textAlign = 'left', p.c.textBaseline = 'top';
    let last = -1e9;
    for (const [label, t] of m.steps) {
      const x = p.x(t);
      if (x < left || x > p.w) continue;
      p.c.beginPath(), p.c.moveTo(x, 0), p.c.lineTo(x, p.h), p.c.stroke();
      if (name && x > last + 110) p.c.fillText(label, x + 3, 2), last = x;
    }
    p.c.setLineDash([]);
  };
  const stair = (p, curve, y, name) => {
    if (!curve.length) return;
    p.c.strokeStyle = colour(name), p.c.lineWidth = 1.5, p.c.beginPath();
    let before = y(curve[0][1]);
    p.c.moveTo(p.x(curve[0][0]), before);
    for (const [t, b] of curve) p.c.lineTo(p.x(t), before), before = y(b), p.c.lineTo(p.x(t), before);
    p.c.lineTo(p.x(end), before), p.c.stroke();
  };
  const drawLevel = () => {
    const p = prepare(level), y = b => p.h - b / highest * (p.h - 18);  // Names of steps stand on top.
    axis(p, y, highest), clip(p), stepsAt(p, true);
    stair(p, m.needed, y, '--needed'), stair(p, m.reserved, y, '--reserved'), stair(p, m.level, y, '--allocated');
    p.c.strokeStyle = colour('--limit'), p.c.lineWidth = 1.5;
    if (m.limit > 0) p.c.beginPath(), p.c.moveTo(left, y(m.limit)), p.c.lineTo(p.w, y(m.limit)), p.c.stroke();
    p.c.restore();
  };
  const drawBlocks = () => {
    const room = 18, p = prepare(blocks), y = b => (p.h - room) * (1 - b / height);
    axis(p, y, height), clip(p);
    const uses = m.uses.map((_, i) => colour('--use-' + i));
    const line = colour('--page');
    // The smallest last, as large ones would hide them.
    const scale = (p.w - left) / (view.to - view.from);
    for (const [i, [, , offset, size, use]] of m.blocks.entries()) {
      const x = left + (spots[i][0] - view.from) * scale, w = Math.max((spots[i][1] - spots[i][0]) * scale, .6);
      if (x > p.w || x + w < left) continue;
      const top = y(offset + size), h = Math.max(y(offset) - top, .4);
      p.c.fillStyle = uses[use], p.c.fillRect(x, top, w, h);
      if (w > 4 && h > 4) p.c.strokeStyle = line, p.c.lineWidth = .6, p.c.strokeRect(x, top, w, h);
    }
    if (m.rest.length) {
      p.c.fillStyle = colour('--rest'), p.c.beginPath(), p.c.moveTo(p.x(m.rest[0][0]), y(m.height));
      let before = m.height;
      for (const [t, b] of m.rest) p.c.lineTo(p.x(t), y(before)), before = m.height + b, p.c.lineTo(p.x(t), y(before));
      p.c.lineTo(p.x(end), y(before)), p.c.lineTo(p.x(end), y(m.height)), p.c.fill();
    }
    stepsAt(p, false);
    p.c.fillStyle = colour('--quiet'), p.c.textBaseline = 'bottom', p.c.textAlign = 'center';
    for (const tick of ticks(view.from, view.to, Math.max(Math.floor((p.w - left) / 110), 2))) {
      const label = byChange ? 'change ' + tick : time(tick + m.from);
      const half = p.c.measureText(label).width / 2 + 3;
      p.c.fillText(label, Math.min(Math.max(left + (tick - view.from) * scale, left + half), p.w - half), p.h - 2);
    }
    p.c.restore();
  };
  let waiting = false;
  const draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false, drawLevel(), drawBlocks(); });
  };
  const look = (from, to) => {
    const width = Math.min(Math.max(to - from, byChange ? 2 : 10), whole);
    view.from = Math.min(Math.max(from, 0), whole - width), view.to = view.from + width;
    draw();
  };
  const widths = document.getElementById('widths');
  const drawBy = change => {
    byChange = change, whole = change ? Math.max(changes.length - 1, 1) : end;
    spots = m.blocks.map(b => [place(b[0]), place(b[0] + b[1])]);
    document.getElementById('scale').textContent = change ? 'changes in order, each as wide as any other' :
      m.has_times ? 'time' : 'events in order';
    widths.textContent = change ? 'Draw by time' : 'Draw by change';
    look(0, whole);
  };
  const zoom = (factor, at) => look(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const placeAt = (canvas, event) => {
    const box = canvas.getBoundingClientRect();
    return view.from + (event.clientX - box.left - left) / (box.width - left) * (view.to - view.from);
  };
  const levelAt = (curve, t) => {
    let low = 0, high = curve.length;
    while (low < high) { const mid = (low + high) >> 1; if (curve[mid][0] <= t) low = mid + 1; else high = mid; }
    return low ? curve[low - 1][1] : 0;
  };
  const show = (event, lines) => {
    hover.replaceChildren(...lines.map((text, i) => {
      const div = document.createElement('div');
      div.textContent = text;
      if (i === 0) div.style.fontWeight = '600';
      return div;
    }));
    const box = hover.parentElement.getBoundingClientRect();
    hover.style.display = 'block';
    hover.style.left = Math.max(Math.min(event.clientX - box.left + 14, box.width - hover.offsetWidth - 4), 0) + 'px';
    hover.style.top = event.clientY - box.top + 14 + 'px';
  };
  const blockAt = event => {
    const box = blocks.getBoundingClientRect(), t = placeAt(blocks, event);
    const offset = (1 - (event.clientY - box.top) / (box.height - 18)) * height;
    const near = (view.to - view.from) / (box.width - left);
    let found = null;  // The smallest is drawn last.
    for (const [i, b] of m.blocks.entries()) {
      const [first, last] = spots[i];
      if (t >= first && t <= Math.max(last, first + near) && offset >= b[2] && offset < b[2] + b[3]) found = b;
    }
    return found;
  };
  const tell = (canvas, event) => {
    const at = placeAt(canvas, event), t = moment(at);
    if (at < view.from || at > view.to) return void (hover.style.display = 'none');
    const b = canvas === blocks && blockAt(event);
    if (!b) {
      const lines = [time(Math.round(t + m.from)), bytes(levelAt(m.level, t)) + ' allocated'];
      if (m.reserved.length) lines.push(bytes(levelAt(m.reserved, t)) + ' reserved');
      return show(event, lines);
    }
    const lines = [bytes(b[3]) + ', ' + m.uses[b[4]], m.names[b[5]]];
    if (m.names[b[6]]) lines.push(m.names[b[6]]);
    lines.push((b[7] & 1 ? 'there before' : 'made at ' + time(b[0] + m.from)) + ', ' +
      (b[7] & 2 ? 'not freed' : 'freed after ' + time(b[1])));
    show(event, lines);
  };
  for (const canvas of [level, blocks]) {
    let drag = null;
    canvas.addEventListener('wheel', event => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const move = event.deltaX / 1000 * (view.to - view.from);
        return look(view.from + move, view.to + move);
      }
      zoom(Math.exp(event.deltaY / 400), placeAt(canvas, event));
    }, {passive: false});
    canvas.addEventListener('pointerdown', event => {
      drag = {x: event.clientX, from: view.from, to: view.to};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => {
      if (!drag) return tell(canvas, event);
      const box = canvas.getBoundingClientRect();
      const move = (drag.x - event.clientX) / (box.width - left) * (drag.to - drag.from);
      look(drag.from + move, drag.to + move);
    });
    canvas.addEventListener('pointerup', () => drag = null);
    canvas.addEventListener('pointercancel', () => drag = null);
    canvas.addEventListener('pointerleave', () => hover.style.display = 'none');
    canvas.addEventListener('dblclick', () => look(0, whole));
    canvas.addEventListener('keydown', event => {
      const width = view.to - view.from, middle = view.from + width / 2;
      if (event.key === 'ArrowLeft') look(view.from - width / 8, view.to - width / 8);
      else if (event.key === 'ArrowRight') look(view.from + width / 8, view.to + width / 8);
      else if (event.key === '+' || event.key === '=') zoom(.7, middle);
      else if (event.key === '-') zoom(1 / .7, middle);
      else if (event.key === '0' || event.key === 'Home') look(0, whole);
      else return;
      event.preventDefault();
    });
  }
  document.getElementById('whole').addEventListener('click', () => look(0, whole));
  widths.addEventListener('click', () => drawBy(!byChange));
  window.addEventListener('resize', draw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  drawBy(byChange);
})();
)js";
}

}  // namespace foretrace
