'use strict';
// Draws the level and the blocks over time on the canvases "level" and "blocks". html.cc of report/memory describes "data".
(() => {
  const {bytes, colour} = page;
  const m = page.data('data');
  const level = document.getElementById('level'), blocks = document.getElementById('blocks');
  const hover = document.getElementById('hover');
  const end = Math.max(m.length, 1);
  // If the host runs far ahead, it makes its blocks almost at the same time. Then every change gets the same width, instead of
  // every nanosecond. So a place on the axis is a time, or the number of a change.
  let by_change = m.crowded, spots = [];
  const changes = [...new Set([0, end].concat(...[m.level, m.reserved, m.needed, m.rest].map(curve => curve.map(point => point[0])),
    m.blocks.map(b => b[0]), m.blocks.map(b => b[0] + b[1])))].filter(t => t >= 0 && t <= end).sort((a, b) => a - b);
  const number_at = t => {  // The number of the last change up to t.
    let low = 1, high = changes.length - 1;
    while (low < high) { const mid = (low + high) >> 1; if (changes[mid] > t) high = mid; else low = mid + 1; }
    return low - 1;
  };
  const place = t => {
    if (!by_change) return t;
    const i = number_at(t);
    return i + (t - changes[i]) / (changes[i + 1] - changes[i]);
  };
  const moment = u => {
    if (!by_change) return u;
    const i = Math.min(Math.max(Math.floor(u), 0), changes.length - 2);
    return changes[i] + (u - i) * (changes[i + 1] - changes[i]);
  };
  const left = 76;  // Room for the labels of the axis.
  const time = value => m.has_times ? page.time(value) : 'event ' + value;
  const rest_top = m.rest.reduce((most, point) => Math.max(most, point[1]), 0);
  const height = Math.max(m.height + rest_top, 1);
  const peak = m.level.reduce((best, point) => point[1] > best[1] ? point : best, [0, 0]);
  const highest = Math.max(m.limit, ...[m.level, m.reserved, m.needed].map(
    curve => curve.reduce((most, point) => Math.max(most, point[1]), 0)), 1) * 1.05;

  const prepare = canvas => {
    const p = page.prepare(canvas);
    p.x = t => left + (place(t) - view.from) / (view.to - view.from) * (p.w - left);
    return p;
  };
  const axis = (p, y, top) => {
    p.c.fillStyle = colour('--quiet'), p.c.strokeStyle = colour('--line'), p.c.lineWidth = 1;
    p.c.textAlign = 'right', p.c.textBaseline = 'middle';
    for (const tick of page.ticks(0, top, 4)) {
      p.c.fillText(bytes(tick), left - 6, Math.min(Math.max(y(tick), 8), p.h - 8));
      p.c.beginPath(), p.c.moveTo(left, y(tick)), p.c.lineTo(p.w, y(tick)), p.c.stroke();
    }
  };
  const clip = p => { p.c.save(), p.c.beginPath(), p.c.rect(left, 0, p.w - left, p.h), p.c.clip(); };
  const steps_at = (p, name) => {
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
  const draw_level = () => {
    const p = prepare(level), y = b => p.h - b / highest * (p.h - 18);  // The names of steps are above.
    axis(p, y, highest), clip(p), steps_at(p, true);
    stair(p, m.needed, y, '--needed'), stair(p, m.reserved, y, '--reserved'), stair(p, m.level, y, '--allocated');
    const [t, most] = peak, x = p.x(t), is_left = x > p.w - 120;
    const label = ['peak ' + bytes(most), x + (is_left ? -8 : 8), y(most) + 4];
    p.c.fillStyle = colour('--allocated'), p.c.beginPath(), p.c.arc(x, y(most), 4, 0, 7), p.c.fill();
    p.c.textAlign = is_left ? 'right' : 'left', p.c.textBaseline = 'top', p.c.lineWidth = 4, p.c.strokeStyle = colour('--page');
    p.c.strokeText(...label), p.c.fillText(...label);
    p.c.strokeStyle = colour('--limit'), p.c.lineWidth = 1.5;
    if (m.limit > 0) p.c.beginPath(), p.c.moveTo(left, y(m.limit)), p.c.lineTo(p.w, y(m.limit)), p.c.stroke();
    p.c.restore();
  };
  const draw_blocks = () => {
    const room = 18, p = prepare(blocks), y = b => (p.h - room) * (1 - b / height);
    axis(p, y, height), clip(p);
    const uses = m.uses.map((_, i) => colour('--use-' + i));
    const line = colour('--page');
    // Blocks are drawn from the largest to the smallest, so that large ones do not hide small ones.
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
    steps_at(p, false);
    p.c.fillStyle = colour('--quiet'), p.c.textBaseline = 'bottom', p.c.textAlign = 'center';
    for (const tick of page.ticks(view.from, view.to, Math.max(Math.floor((p.w - left) / 110), 2))) {
      const label = by_change ? 'change ' + tick : time(tick + m.from);
      const half = p.c.measureText(label).width / 2 + 3;
      p.c.fillText(label, Math.min(Math.max(left + (tick - view.from) * scale, left + half), p.w - half), p.h - 2);
    }
    p.c.restore();
  };
  const draw = () => { draw_level(), draw_blocks(); };
  const view = page.view_of({left, changed: page.later(draw)});
  const widths = document.getElementById('widths');
  const draw_by = change => {
    by_change = change;
    spots = m.blocks.map(b => [place(b[0]), place(b[0] + b[1])]);
    document.getElementById('scale').textContent = change ? 'changes in order, each as wide as any other' :
      m.has_times ? 'time' : 'events in order';
    widths.textContent = change ? 'Draw by time' : 'Draw by change';
    view.last = change ? Math.max(changes.length - 1, 1) : end, view.least = change ? 2 : 10;
    view.whole();
  };
  const block_at = event => {
    const box = blocks.getBoundingClientRect(), t = view.at(blocks, event);
    const offset = (1 - (event.clientY - box.top) / (box.height - 18)) * height;
    const near = (view.to - view.from) / (box.width - left);
    let found = null;  // The last block found is the smallest, which is drawn on top.
    for (const [i, b] of m.blocks.entries()) {
      const [first, last] = spots[i];
      if (t >= first && t <= Math.max(last, first + near) && offset >= b[2] && offset < b[2] + b[3]) found = b;
    }
    return found;
  };
  const hide = () => hover.style.display = 'none';
  const tell = (canvas, event, is_asked) => {
    const at = view.at(canvas, event), t = moment(at);
    if (at < view.from || at > view.to) return hide();
    const b = canvas === blocks && block_at(event);
    if (!b) {
      const lines = [time(Math.round(t + m.from)), bytes(page.level_at(m.level, t)) + ' allocated'];
      if (m.reserved.length) lines.push(bytes(page.level_at(m.reserved, t)) + ' reserved');
      return page.show(hover, event, lines);
    }
    const lines = [bytes(b[3]) + ', ' + m.uses[b[4]], m.names[b[5]]];
    if (m.names[b[6]]) lines.push(m.names[b[6]]);
    lines.push((b[7] & 1 ? 'there before' : 'made at ' + time(b[0] + m.from)) + ', ' +
      (b[7] & 2 ? 'not freed' : 'freed after ' + time(b[1])));
    const stack = m.stacks[b[8]].split(';').filter(frame => frame);
    if (is_asked) lines.push(...stack);
    else if (stack.length > 1) lines.push('click for the ' + stack.length + ' frames of its stack');
    page.show(hover, event, lines);
  };
  for (const canvas of [level, blocks]) {
    view.attach(canvas, {hover: event => tell(canvas, event), leave: hide});
    canvas.addEventListener('click', event => tell(canvas, event, true));
  }
  document.getElementById('whole').addEventListener('click', view.whole);
  widths.addEventListener('click', () => draw_by(!by_change));
  window.addEventListener('resize', page.later(draw));
  page.on_theme(draw);
  draw_by(by_change);
})();
