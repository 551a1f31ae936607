'use strict';
// The explorer: an open job, a list of transforms, and the prediction, which follows every change. Predictions that are kept stay
// beside it in a table; other questions are answered in its place.
(async () => {
  const {element, time, bytes} = page, by_id = id => document.getElementById(id);
  const kTasks = 60000;  // Most tasks that are drawn one by one; for others, only the load of their lane is drawn.
  const kHeading = by_id('heading').textContent;
  const status = text => by_id('status').textContent = text;

  // Makes a program that runs in a worker. If several questions wait under the same name, only the last one is asked.
  const make_program = module => {
    const waiting = new Map(), named = new Map();
    let worker = null, count = 0, busy = false;
    const begin = () => {
      worker = new Worker('worker.js');
      worker.onmessage = take;
      worker.postMessage({module});
    };
    const next = () => {
      const first = named.entries().next();
      if (busy || first.done) return;
      const [name, {message, resolve}] = first.value;
      named.delete(name), waiting.set(message.id, resolve), busy = true;
      worker.postMessage(message);
    };
    const take = ({data}) => {
      if (data.stopped) worker.terminate(), begin();  // Its memory may be corrupt.
      busy = false;
      waiting.get(data.id)(data.answer), waiting.delete(data.id);
      next();
    };
    begin();
    return {
      ask: (name, question, groups) => new Promise(resolve => {
        named.get(name)?.resolve(null);
        named.set(name, {message: {id: ++count, question, groups}, resolve});
        next();
      }),
    };
  };

  let module;
  try {
    const response = await fetch('foretrace.wasm');
    if (!response.ok) throw new Error(`foretrace.wasm: ${response.status} ${response.statusText}`);
    module = await WebAssembly.compile(await response.arrayBuffer());
  } catch (error) {
    return status(`The program cannot be loaded: ${error.message}. A folder on a disk must be served, for example by: python3 -m http.server`);
  }
  // Three programs: the first answers at once while a slider moves, the second adds intervals and pictures, and the third looks
  // for advice and compares recordings.
  const live = make_program(module), whole_answers = make_program(module), beside = make_program(module);
  const {transforms, version} = await live.ask('transforms', {ask: 'transforms'});
  const {machines} = await live.ask('machines', {ask: 'machines'});
  const known = new Map(transforms.map(one => [one.name, one]));
  by_id('version').textContent = version;
  for (const {name, summary} of transforms) by_id('known').append(element('option', {value: name, label: summary}));
  for (const name of machines) by_id('machine').append(element('option', {value: name, textContent: name}));

  // The question. `kept` are those that are kept to be compared: {asked, found}, where `found` is the prediction, or null.
  let steps = [], kept = [], files = [], job = null, answer = null, drawn = null;
  const scenario = () => ({
    transforms: steps.map(({use, settings}) => ({use, ...settings})),
    ...(by_id('machine').value ? {machine: by_id('machine').value} : {}),
    ...(by_id('limit').value.trim() ? {memory: {limit: by_id('limit').value.trim()}} : {}),
  });
  const is_empty = asked => !asked.transforms.length && !asked.machine && !asked.memory;
  const to_link = () => {
    const beside = kept.map(one => one.asked), asked = {...scenario(), ...(beside.length ? {kept: beside} : {})};
    const is_plain = is_empty(asked) && !beside.length;
    history.replaceState(null, '', is_plain ? location.pathname + location.search : '#' + encodeURIComponent(JSON.stringify(asked)));
  };
  // The part of a scenario that the page can ask.
  const known_part = ({transforms = [], machine, memory}) => ({
    transforms: transforms.filter(({use}) => known.has(use)),
    ...(machines.includes(machine) ? {machine} : {}),
    ...(typeof memory?.limit === 'string' ? {memory: {limit: memory.limit}} : {}),
  });
  const set_question = ({transforms, machine = '', memory}) => {
    steps = transforms.map(({use, ...settings}) => ({use, settings}));
    by_id('machine').value = machine, by_id('limit').value = memory?.limit ?? '';
    show_steps();
  };
  const from_link = () => {
    if (location.hash.length < 2) return;
    try {
      const asked = JSON.parse(decodeURIComponent(location.hash.slice(1))), mine = known_part(asked);
      kept = (asked.kept ?? []).map(one => ({asked: known_part(one), found: null}));
      set_question(mine);
      if (!job && !is_empty(mine)) status(`The link asks: ${name_of(mine)}. Open the trace that it is about.`);
    } catch {
      steps = [], kept = [];
      status('The link does not contain a valid scenario.');
    }
  };
  // A scenario in the words of the field "Add".
  const assigned = (settings, before = '') => Object.entries(settings).flatMap(([name, value]) =>
    value?.constructor === Object ? assigned(value, `${before}${name}.`) : [`${before}${name}=${value}`]);
  const name_of = ({transforms, machine, memory}) => [
    ...transforms.map(({use, ...settings}) => [use, assigned(settings).join()].filter(one => one).join(':')),
    ...(machine ? [`on ${machine}`] : []), ...(memory ? [`within ${memory.limit}`] : [])].join(', ') || 'as recorded';

  // Words of the command line, as what the page has for them: a button that does it, or the name of a field.
  const in_page_words = text => {
    const press = (text, onclick) => element('button', {type: 'button', className: 'inline', textContent: text, onclick});
    const kWords = /`--with "?([^"`]+)"?`|did you mean "([^"]+)"|`foretrace list (\w+)`|`foretrace ([a-z]+)[^`]*`|`?--([a-z][a-z-]*)[^\s`,;:]*`?/g;
    const parts = [];
    let end = 0;
    for (const found of text.matchAll(kWords)) {
      const [all, use, meant, list, question, option] = found;
      parts.push(text.slice(end, found.index)), end = found.index + all.length;
      if (use) parts.push(press(use, () => add(use)));
      else if (meant) parts.push('did you mean ', press(meant, () => add(meant)));
      else if (list) parts.push({transforms: 'the list of the field "Add"', devices: 'the list of the field "On"'}[list] ?? `the program's list of ${list}`);
      else if (question && questions.some(one => one.name === question)) parts.push(press(`Ask: ${question}`, () => choose_question(question)));
      else if (question) parts.push(all);
      else parts.push({machine: 'the field "On"', 'memory-limit': 'the field "Memory limit"', with: 'the field "Add"'}[option] ?? (job ? `the setting "${page.title(option.replaceAll('-', '_'))}"` : `the program's option --${option}`));
    }
    return [...parts, text.slice(end)];
  };
  const refuse = text => by_id('refused').replaceChildren(...in_page_words(text));

  const show_steps = () => {
    by_id('changes').replaceChildren(...steps.map((step, place) => {
      const {summary, settings, order, defaults} = known.get(step.use);
      const move = by => () => {
        const [one] = steps.splice(place, 1);
        steps.splice(place + by, 0, one);
        show_steps(), changed();
      };
      const act = (text, label, onclick, disabled = false) => element('button', {type: 'button', textContent: text, ariaLabel: label, onclick, disabled});
      const remove = () => { steps.splice(place, 1), show_steps(), changed(); };
      return element('div', {className: 'step', role: 'group', ariaLabel: step.use},
        element('div', {className: 'head'}, element('h3', {textContent: step.use}),
          act('\u2191', `${step.use} earlier`, move(-1), place === 0), act('\u2193', `${step.use} later`, move(1), place + 1 === steps.length),
          act('\u00d7', `Remove ${step.use}`, remove)),
        element('p', {className: 'quiet', textContent: summary}),
        ...page.make_fields(settings, order, defaults, step.settings, changed, `step${place}`));
    }));
    show_varied();
  };
  // The settings of all steps that can be varied, and values for the chosen one.
  const show_varied = () => {
    const all = steps.flatMap(({use, settings: given}, place) => {
      const {settings, order, defaults} = known.get(use), is_single = steps.filter(one => one.use === use).length === 1;
      return order.map(name => ({name: `${is_single ? use : `transforms[${place}]`}.${name}`, title: `${page.title(name)} of ${use}`,
        values: page.values_of(settings[name], given[name], defaults[name])})).filter(one => one.values);
    });
    const select = by_id('vary-setting'), was = select.value;
    select.replaceChildren(...all.map(({name, title, values}) => element('option', {value: name, textContent: title, 'data-values': values})));
    if (all.some(one => one.name === was)) select.value = was;
    else show_values();
    by_id('vary').hidden = !all.length;
  };
  const show_values = () => by_id('vary-values').value = by_id('vary-setting').selectedOptions[0]?.dataset.values ?? '';
  // Adds the steps in `text`, written as for --with: "bf16", "loader:workers=4, amp".
  const add = async text => {
    const {error, transforms: read} = await live.ask('read', {ask: 'read', steps: text}) ?? {error: ''};
    refuse(error ?? '');
    if (!read) return;
    for (const {use, ...settings} of read) {
      const {defaults} = known.get(use);
      const own = Object.entries(settings).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name]));
      steps.push({use, settings: Object.fromEntries(own)});
    }
    by_id('add').value = '';
    show_steps(), changed();
  };

  // The answer.
  const percent = (now, then) => `${then > now ? '+' : ''}${((then / now - 1) * 100).toFixed(1)} %`;
  const figure = (name, main, ...rest) => [element('dt', {textContent: name}), element('dd', {}, element('span', {className: main ? 'main' : '', textContent: rest[0]}), ...rest.slice(1))];
  const peak = run => Math.max(...(run.memory ?? []).filter(one => one.device >= 0).map(one => one.peak_reserved_bytes ?? one.peak_allocated_bytes), -Infinity);
  const show_figures = found => {
    const {measured, baseline, predicted} = found, is_what_if = found.steps.length > 0, each = measured.has_steps ? ' a step' : ' for the whole recording';
    const now = baseline.step_time_ns, then = predicted.step_time_ns;
    const change = element('span', {className: then <= now ? 'better' : 'worse', textContent: ` ${percent(now, then)}`});
    by_id('figures').replaceChildren(...[
      ...(!measured.has_times ? [] : [...figure('measured', false, time(measured.step_time_ns) + each),
        ...(is_what_if ? figure('predicted', true, time(then) + each, change) : figure('replayed', true, time(now) + each))]),
      ...(is_what_if && measured.has_times ? figure('between', false, `${time(predicted.lower_ns)} and ${time(predicted.upper_ns)}`) : []),
      ...(peak(baseline) > 0 ? figure('memory', false, bytes(peak(baseline)) + (is_what_if ? ` \u2192 ${bytes(peak(predicted))}` : '')) : []),
      ...figure('trust', false, found.trust.grade),
    ]);
    page.say(by_id('figures').textContent);
  };
  // The recording, what is kept, and the current prediction, each in a row.
  const show_kept = () => {
    const act = (text, label, onclick) => element('button', {type: 'button', textContent: text, ariaLabel: `${label}`, onclick});
    const row = (name, run, found, ...buttons) => element('tr', {}, element('td', {className: 'left', textContent: name}),
      ...(!run ? ['...', '', '', '', ''] : [...(now.measured.has_times ? [time(run.step_time_ns), run.lower_ns ? `${time(run.lower_ns)} to ${time(run.upper_ns)}` : '',
        found ? percent(found.baseline.step_time_ns, run.step_time_ns) : '', found ? `${found.speedup.toFixed(2)}x` : ''] : ['', '', '', '']), peak(run) > 0 ? bytes(peak(run)) : ''])
        .map(text => element('td', {textContent: text})), element('td', {className: 'left'}, ...buttons));
    const now = answer && JSON.parse(answer.json), asked = answer?.asked ?? scenario(), is_kept = kept.some(one => name_of(one.asked) === name_of(asked));
    by_id('keep').disabled = is_empty(asked) || is_kept;
    if (!kept.length || !now) return by_id('kept').replaceChildren();
    const heading = ['alternative', 'step', 'between', 'change', 'speedup', 'memory', ''];
    by_id('kept').replaceChildren(element('h2', {textContent: 'Alternatives'}),
      element('div', {className: 'table', role: 'group', tabIndex: 0, ariaLabel: 'Alternatives'}, element('table', {ariaLabel: 'Alternatives'},
        element('thead', {}, element('tr', {}, ...heading.map((text, i) => element(text ? 'th' : 'td', {textContent: text, className: i ? '' : 'left'})))),
        element('tbody', {}, row('as recorded', now.baseline, null),
          ...kept.map((one, place) => row(name_of(one.asked) + (name_of(one.asked) === name_of(asked) ? ' (below)' : ''), one.found?.predicted, one.found,
            act('Show', `Show ${name_of(one.asked)}`, () => { set_question(one.asked), changed(); }),
            act('\u00d7', `Remove ${name_of(one.asked)}`, () => { kept.splice(place, 1), to_link(), show_kept(); }))),
          ...(is_empty(asked) || is_kept ? [] : [row(name_of(asked) + ' (below)', now.predicted, now)])))));
  };
  const keep = () => {
    const asked = structuredClone(scenario()), is_answered = answer && name_of(answer.asked) === name_of(asked);
    kept.push({asked, found: is_answered ? JSON.parse(answer.json) : null});
    to_link(), ask_kept();
  };
  // Asks about this job what was kept of another one, or came with a link.
  const ask_kept = async () => {
    const opened = files;
    for (const one of kept.filter(each => !each.found)) {
      const found = await whole_answers.ask('kept', {ask: 'predict', scenario: one.asked, tasks: 0});
      if (files !== opened) return;
      if (found?.json) one.found = JSON.parse(found.json);
      else kept = kept.filter(each => each !== one);
    }
    show_kept();
  };
  const controls_of = root => [...root.querySelectorAll('#timeline, #levels, .controls [id]')].map(one => one.id).join();
  // Moves the texts of the new section `fresh` into the section `old`, which keeps the elements of its pictures, so that the visible
  // time range stays. Returns false if their pictures differ.
  const take_over = (old, fresh) => {
    for (const [i, part] of [...old.querySelectorAll('details')].entries()) {
      const other = fresh.querySelectorAll('details')[i];
      if (other) other.open = part.open;
    }
    if (!controls_of(fresh) || controls_of(old) !== controls_of(fresh)) return false;
    const pick = root => [...root.children].filter(one => one.matches('details, p.quiet:not(#keys), .bars, .legend, .table'));
    const [mine, theirs] = [pick(old), pick(fresh)];
    if (mine.length !== theirs.length) return false;
    mine.forEach((one, i) => one.replaceWith(theirs[i]));
    return true;
  };
  const capital = text => text.replace(/^./, letter => letter.toUpperCase());
  let shown = null;
  // Shows an answer. Answers about the same `subject` take over each other's pictures, so that the stretch that is looked at stays.
  const show_parts = ({heading, lead, sections, timelines, memory}, subject) => {
    if (subject !== shown) by_id('sections').replaceChildren(), drawn = null;
    shown = subject, by_id('shown').hidden = subject === files;
    by_id('heading').textContent = heading.replace(/^the /, 'The ');
    by_id('lead').innerHTML = lead;  // Safe: the program escapes all texts of the trace.
    const old = new Map([...by_id('sections').children].map(one => [one.id, one])), stays = new Set();
    const made = sections.map(({id: name, heading: title, html}) => {
      const id = 'part-' + name, fresh = element('section', {id}, element('h2', {id: id + '-heading', textContent: title}));
      fresh.setAttribute('aria-labelledby', id + '-heading');
      fresh.insertAdjacentHTML('beforeend', html);
      if (!old.has(id) || !take_over(old.get(id), fresh)) return fresh;
      stays.add(id);
      return old.get(id);
    });
    const same = made.length === old.size && made.every((one, i) => by_id('sections').children[i] === one || !stays.has(one.id));
    if (same) made.forEach((one, i) => stays.has(one.id) || by_id('sections').children[i].replaceWith(one));
    else by_id('sections').replaceChildren(...made);
    by_id('nav').replaceChildren(...sections.map(({id, heading: title}) => element('li', {}, element('a', {href: '#part-' + id, textContent: title, onclick: event => {
      event.preventDefault(), by_id('part-' + id).scrollIntoView();
    }}))));
    if (!by_id('timeline')) drawn = null;
    else if (!drawn || !stays.has('part-timelines') || !same) drawn = page.make_timeline();
    drawn?.load(JSON.parse(timelines));
    if (by_id('levels')) by_id('levels').replaceChildren(), page.make_levels(JSON.parse(memory), drawn);
  };

  let version_asked = 0, is_live = false;
  // Asks the question `name` about the scenario `asked`. Returns null after an error, which it shows, or if a newer question
  // replaced this one.
  const ask = async (program, name, asked, more) => {
    const found = await program.ask(name, {ask: name, scenario: asked, ...more});
    if (found === null) return null;
    refuse(found.error ?? '');
    return found.error ? null : found;
  };
  const changed = async () => {
    to_link();
    if (!job) return;
    const number = ++version_asked, asked = scenario(), began = performance.now();
    document.body.classList.add('waiting');
    const quick = is_live ? await ask(live, 'quick', asked) : null;
    if (quick) show_figures(quick.json), document.body.dataset.answered = Math.round(performance.now() - began);
    if (number !== version_asked) return;
    const whole = await ask(whole_answers, 'predict', asked, {tasks: kTasks});
    if (number !== version_asked) return;
    document.body.classList.remove('waiting');
    if (!whole) return;
    answer = {...whole, asked: structuredClone(asked)}, window.foretrace_answer = whole;  // Scripts and tests read it there.
    show_figures(JSON.parse(whole.json)), show_parts(whole.parts, files), show_kept();
    document.body.dataset.drawn = number;
  };

  // Shows an answer in place of the prediction, until the question changes or the button leads back.
  const show_other = parts => {
    show_parts(parts, {});
    by_id('heading').scrollIntoView();
  };

  const advice_says = (...content) => by_id('advice').replaceChildren(element('h2', {textContent: 'What would help'}), ...content);
  const show_advice = ({error, json}) => {
    if (error) return advice_says(element('p', {}, ...in_page_words(error)));
    const advice = JSON.parse(json), now = advice.now.step_time_ns;
    const good = advice.suggestions.filter(one => one.recommended).slice(0, 8);
    const try_it = use => element('button', {type: 'button', textContent: 'Try', ariaLabel: `Try ${use}`, onclick: () => add(use)});
    const gain = one => `${time(one.step_time_ns)} a step (${percent(now, one.step_time_ns)}), confidence ${one.confidence.word}`;
    const suggestion = (name, text, use) => element('div', {className: 'suggestion'}, element('span', {}, element('strong', {textContent: name}), ` ${text}`), try_it(use));
    const ceilings = advice.ladder.filter(one => one.there).map(one => element('li', {textContent: `${one.title === 'all of these' ? 'none' : 'no'} ${one.title.replace(/^all /, '')}: ${time(one.step_time_ns)} (${percent(now, one.step_time_ns)})`}));
    const joint = advice.joint?.members.map(one => one.use) ?? [];
    advice_says(element('p', {}, element('strong', {textContent: 'Bound by '}), advice.verdict.bound_by),
      ...advice.first.map(text => element('p', {}, ...in_page_words(text))),
      ...good.map(one => suggestion(one.use, one.goal === 'time' ? gain(one) : `${gain(one)}; ${one.summary}`, one.use)),
      ...(joint.length > 1 ? [suggestion('together', `${joint.join(', ')}: ${time(advice.joint.step_time_ns)} (${percent(now, advice.joint.step_time_ns)})`, joint.join())] : []),
      element('p', {}, element('strong', {textContent: 'At best '}), advice.verdict.at_best),
      element('h3', {textContent: 'Ceilings: if it took no time'}), element('ul', {}, ...ceilings));
    document.body.dataset.advised = 'yes';
  };

  // Lists the chosen files. Files of a chosen folder get their paths relative to it.
  const listed = chosen => [...chosen].map(file => ({path: file.webkitRelativePath?.replace(/^[^/]*\//, '') || file.name, data: file}));
  const group_of = (name, all) => ({name: all.length > 1 ? name : all[0].path.replaceAll('/', '_'), files: all});
  // Clears the answer about the former file, so that nothing of it can be taken for one about the next.
  const close = () => {
    job = answer = null, is_live = false, ++version_asked;
    kept = kept.map(({asked}) => ({asked, found: null}));
    document.body.classList.remove('has-job', 'waiting'), by_id('work').hidden = true;
    scrollTo(0, 0);
    by_id('heading').textContent = kHeading;
    for (const id of ['problem', 'figures', 'refused', 'difference', 'any-answer', 'varied', 'kept', 'lead', 'sections', 'nav']) by_id(id).replaceChildren();
    for (const mark of ['advised', 'opened']) delete document.body.dataset[mark];
    advice_says(element('p', {className: 'quiet', textContent: 'Looking for changes that would help ...'}));
  };
  const problem = (title, ...text) => by_id('problem').replaceChildren(element('p', {className: 'verdict', textContent: title}), element('p', {}, ...text));
  // Why the recording is not whole, in the words of the program; empty if it is.
  const damage_of = ({trust, notes}) => trust.reasons.find(one => one.name === 'cut_off')?.text ??
    notes.find(one => one.severity === 'warning' && /damaged|are not JSON|end too early|is cut off/.test(one.text))?.text ?? '';
  const open = async chosen => {
    if (!chosen.length) return;
    files = chosen, close();
    const group = group_of('job', files);
    const began = performance.now(), what = files.length > 1 ? `${files.length} files` : group.name;
    status(`Reading ${what} ...`);
    const opened = files, groups = [group];
    const read = await whole_answers.ask('open', {ask: 'open', path: group.name}, groups);
    if (!read || files !== opened) return;
    if (read.error) return status(''), problem(`There is no answer: ${what} cannot be read`, ...in_page_words(read.error));
    job = group.name;
    document.body.classList.add('has-job'), by_id('work').hidden = false;
    show_form();
    await changed();
    if (files !== opened) return;
    status('');
    const damage = answer ? damage_of(JSON.parse(answer.json)) : '', is_unanswered = !answer && is_empty(scenario());
    if (is_unanswered) problem(`There is no answer about ${what}`, ...by_id('refused').childNodes);
    if (damage) problem(`${what} is damaged`, `${capital(damage)}. The answer is about that part alone, and nothing is advised: copy the file again, or record it again.`);
    if (damage || is_unanswered) advice_says(element('p', {textContent: `Nothing is advised about ${damage ? 'a damaged recording' : 'a recording without an answer'}.`}));
    document.body.dataset.opened = Math.round(performance.now() - began);
    const of_job = async (program, question) => {
      const found = await program.ask(question.ask, question, groups);
      return files === opened ? found : null;
    };
    await ask_kept();
    is_live = !(await of_job(live, {ask: 'open', path: job}))?.error;
    if (damage || is_unanswered) return document.body.dataset.advised = 'none';
    const advised = await of_job(beside, {ask: 'question', name: 'advise', settings: {trace: job}});
    if (advised) show_advice(advised);
  };
  const compare = async chosen => {
    if (!chosen.length || !job) return;
    by_id('difference').textContent = 'Comparing ...';
    const [before, after] = [group_of('before', files), group_of('after', chosen)], names = [before.name, after.name];
    if (before.name === after.name) before.name = 'before-' + before.name, after.name = 'after-' + after.name;
    const opened = files, found = await beside.ask('compare', {ask: 'compare', before: before.name, after: after.name, tasks: kTasks}, [before, after]);
    if (!found || files !== opened) return;
    if (found.error) return by_id('difference').replaceChildren(...in_page_words(found.error));
    by_id('difference').textContent = found.parts.heading;
    show_other(found.parts);
    by_id('lead').prepend(element('p', {textContent: `A is ${names[0]}, B is ${names[1]}.`}));
  };
  const vary = async () => {
    by_id('varied').replaceChildren();
    const number = version_asked, setting = by_id('vary-setting').value;
    const found = await whole_answers.ask('vary', {ask: 'vary', scenario: scenario(), setting, values: by_id('vary-values').value});
    if (!found || number !== version_asked) return;
    if (found.error) return by_id('varied').replaceChildren(...in_page_words(found.error));
    show_other(found.parts);
    document.body.dataset.varied = setting;
  };

  // Any other question, in a form made of its settings. It is about the open job where it takes a trace.
  const {questions} = await beside.ask('questions', {ask: 'questions'});
  let other = null;
  for (const {name, summary} of questions) by_id('any').append(element('option', {value: name, textContent: `${page.title(name)}: ${summary}`}));
  const show_form = () => {
    const {name, settings, order, defaults, required, files: named} = questions.find(one => one.name === by_id('any').value);
    const given = job && 'trace' in settings ? {trace: settings.trace.type === 'array' ? [job] : job} : {};
    other = {name, given, groups: new Map()};
    const take = (setting, chosen) => {
      const group = group_of(setting, listed(chosen));
      if (group.name === job) group.name = `${setting}-${group.name}`;
      other.groups.set(setting, group);
      return group.name;
    };
    by_id('any-fields').replaceChildren(...page.make_fields(settings, [...required, ...order.filter(one => !required.includes(one))], defaults, given, () => {}, 'any', named, take));
  };
  const choose_question = name => {
    by_id('any').value = name, show_form();
    by_id('others').scrollIntoView();
  };
  const ask_other = async () => {
    if (!other) return;
    by_id('any-answer').textContent = 'Asking ...';
    const groups = [...(job ? [group_of('job', files)] : []), ...other.groups.values()];
    const opened = files, {name} = other, found = await beside.ask('question', {ask: 'question', name, settings: other.given}, groups);
    if (!found || files !== opened) return;
    window.foretrace_other = found;  // Scripts and tests read it there.
    by_id('any-answer').replaceChildren(...in_page_words([found.error, ...(found.remarks ?? [])].filter(one => one).join(' ')),
      ...(found.written ?? []).map(({name: file, data}) => element('a', {href: URL.createObjectURL(new Blob([data])), download: file, textContent: `Save ${file}`})));
    if (!found.error) show_other(found.parts);
    document.body.dataset.asked = name;
  };

  const copy = async (button, text) => {
    const was = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not allowed here';
    }
    setTimeout(() => button.textContent = was, 1500);
  };
  const written = () => JSON.stringify({$schema: 'scenario.schema.json', version: 1, trace: job, ...scenario()}, null, 2) + '\n';
  const on = (id, event, act) => by_id(id).addEventListener(event, act);
  on('question', 'submit', event => { event.preventDefault(), by_id('add').value.trim() && add(by_id('add').value.trim()); });
  on('add', 'input', () => { if (known.has(by_id('add').value)) add(by_id('add').value); });
  on('machine', 'change', changed), on('limit', 'change', changed);
  on('any', 'change', show_form), on('ask', 'click', ask_other);
  on('vary-setting', 'change', show_values), on('draw', 'click', vary), on('back', 'click', changed), on('keep', 'click', keep);
  on('reset', 'click', () => { set_question({transforms: []}), changed(); });
  on('copy-command', 'click', event => answer && copy(event.target, answer.command));
  on('copy-json', 'click', event => copy(event.target, written()));
  on('copy-link', 'click', event => copy(event.target, location.href));
  on('save-answer', 'click', () => {
    if (!answer) return;
    const link = element('a', {href: URL.createObjectURL(new Blob([answer.json], {type: 'application/json'})), download: 'prediction.json'});
    link.click(), URL.revokeObjectURL(link.href);
  });
  on('files', 'change', event => open(listed(event.target.files))), on('folder', 'change', event => open(listed(event.target.files)));
  on('other', 'change', event => compare(listed(event.target.files)));
  on('sample', 'click', async () => {
    const name = 'resnet18-v100-loader0.pt.trace.json.gz', response = await fetch(name);
    open([{path: name, data: await response.blob()}]);
  });
  const entries_of = async (entry, folder = '') => {
    if (entry.isFile) return [{path: folder + entry.name, data: await new Promise((resolve, reject) => entry.file(resolve, reject))}];
    const reader = entry.createReader(), all = [];
    for (let some; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length;) all.push(...some);
    return (await Promise.all(all.map(one => entries_of(one, one.isDirectory ? `${folder}${one.name}/` : folder)))).flat();
  };
  addEventListener('dragover', event => { event.preventDefault(), by_id('drop').classList.add('over'); });
  addEventListener('dragleave', () => by_id('drop').classList.remove('over'));
  addEventListener('drop', async event => {
    event.preventDefault(), by_id('drop').classList.remove('over');
    const entries = [...event.dataTransfer.items].map(one => one.webkitGetAsEntry?.()).filter(one => one);
    open(entries.length ? (await Promise.all(entries.map(one => entries_of(one)))).flat() : listed(event.dataTransfer.files));
  });
  addEventListener('hashchange', () => { from_link(), changed(), job && ask_kept(); });
  status('');
  from_link();
  document.body.dataset.ready = 'yes';
})();
