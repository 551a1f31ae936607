'use strict';
// The page of one prediction. The browser first shows everything that needs no script.
requestAnimationFrame(() => setTimeout(() => {
  const has = id => document.getElementById(id) !== null;
  const timeline = has('timeline') ? page.make_timeline() : null;
  if (has('levels')) page.make_levels(page.data('memory-data'), timeline);
  if (!timeline) return;
  timeline.load(page.data('timeline-data'));
  performance.mark('timeline drawn');
}));
