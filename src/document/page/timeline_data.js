'use strict';
// Reads the data that timeline_json.h describes into arrays that can be drawn and searched.
page.read_timelines = all => {
  const sums = deltas => {
    let sum = 0;
    return deltas.map(delta => sum += delta);
  };
  // Unpacks a column only when it is needed, because few readers ask for it.
  const lazy = make => {
    let made = null;
    return () => made ??= make();
  };

  const read_path = (path, lanes) => {
    const lane = page.numbers(path.lane), from = sums(page.numbers(path.from, true)), length = page.numbers(path.length);
    const by_lane = new Map(lanes.map(one => [one.lane, {from: [], to: []}]));
    for (let i = 0; i < lane.length; ++i) {
      const stretches = by_lane.get(lane[i]);
      if (stretches) stretches.from.push(from[i]), stretches.to.push(from[i] + length[i]);
    }
    return {lane, from, to: from.map((at, i) => at + length[i]), by_lane};
  };

  const read_run = (run, number) => {
    const columns = run.columns;
    let first = 0;
    const lanes = run.lanes.map(([lane, tasks, shown, busy], place) => {
      const made = {lane, tasks, shown, busy, place, first, last: first + shown, overlaps: false};
      first += shown;
      return made;
    });
    const deltas = page.numbers(columns.start, true), lengths = page.numbers(columns.duration, true);
    const step_deltas = lazy(() => page.numbers(columns.step, true));
    const start = new Float64Array(deltas.length), end = new Float64Array(deltas.length);
    for (const lane of lanes) {
      let at = 0, latest = 0;
      for (let i = lane.first; i < lane.last; ++i) {
        at += deltas[i], start[i] = at, end[i] = at + lengths[i];
        if (at < latest) lane.overlaps = true;
        latest = Math.max(latest, end[i]);
      }
    }
    const kind = Uint8Array.from(page.numbers(columns.kind));
    return {
      number, title: run.title, length: run.length, steps: run.steps, step: run.step, lanes, start, end, kind,
      name: Uint32Array.from(page.numbers(columns.name)),
      bins: page.unpacked(run.bins),
      path: read_path(run.path, lanes),
      reasons: run.reasons,
      module: lazy(() => page.numbers(columns.module)),
      waited: lazy(() => page.numbers(columns.waited)),
      reason: lazy(() => page.numbers(columns.reason)),
      before: lazy(() => page.numbers(columns.before, true)),
      step_of: lazy(() => {
        const steps = new Int32Array(start.length), from = step_deltas();
        for (const lane of lanes) {
          let at = -1;
          for (let i = lane.first; i < lane.last; ++i) steps[i] = at += from[i];
        }
        return steps;
      }),
      lane_of: task => lanes.find(lane => task >= lane.first && task < lane.last),
    };
  };

  const runs = all.runs.map(read_run);
  return {
    runs, names: all.names, lanes: all.lanes, bins: all.bins, bin_ns: all.bin_ns,
    class_of: kind => all.class_of_kind[kind & 15],
    kind_name: kind => all.kinds[kind & 15],
    phase_name: kind => all.phases[kind >> 4],
    class_name: number => all.classes[number],
    // Returns the first task of a lane that may end at or after `time`.
    first_at: (run, lane, time) => {
      if (lane.overlaps) return lane.first;
      let low = lane.first, high = lane.last;
      while (low < high) {
        const mid = (low + high) >> 1;
        if (run.end[mid] < time) low = mid + 1;
        else high = mid;
      }
      return low;
    },
  };
};
