'use strict';
// The page of one prediction. Everything that can be read without a script is on the screen first.
requestAnimationFrame(() => setTimeout(() => {
  const has = id => document.getElementById(id) !== null;
  const timeline = has('timeline') ? page.make_timeline() : null;
  if (has('levels')) page.make_levels(page.data('memory-data'), timeline);
  if (!timeline) return;
  timeline.load(page.data('timeline-data'));
  performance.mark('timeline drawn');
}));
