'use strict';
// The report of one editgate run. No dependency, no network.
//
// Model output is hostile: every text from the data goes into the page as a
// text node or through setAttribute of a harmless attribute. Nothing here uses
// innerHTML, and every link is a hash that this script builds itself.
(() => {
  const FIRST_ROWS = 60;      // rows drawn at once; more follow on scrolling
  const MORE_ROWS = 150;
  const LONG_TEXT = 4000;     // longer texts hide behind a button
  const MANY_LINES = 400;     // longer panes too
  const FILTERS = ['q', 'model', 'tool', 'set', 'prompt', 'tag', 'verdict', 'class', 'flip', 'harm'];
  const GATES = {
    pass: ['✓', 'PASS'], fail: ['✗', 'FAIL'], inconclusive: ['?', 'INCONCLUSIVE'],
    incomplete: ['…', 'INCOMPLETE'], ungated: ['○', 'UNGATED'],
  };
  const VERDICTS = { fail: '✗', error: '!', skipped: '–', pass: '✓' };

  const byId = (id) => document.getElementById(id);
  const integer = new Intl.NumberFormat('en-US');
  const collator = new Intl.Collator('en', { numeric: true });

  // ---------------------------------------------------------------- elements

  /** An element with attributes and children; strings become text nodes. A
   *  function among the attributes is an event listener. */
  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === 'function') node.addEventListener(name, value);
      else node.setAttribute(name, value === true ? '' : String(value));
    }
    add(node, children);
    return node;
  }

  function add(parent, children) {
    for (const child of [].concat(children)) {
      if (child === null || child === undefined || child === false) continue;
      if (Array.isArray(child)) add(parent, child);
      else parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
  }

  /** Text from the run, isolated so that its direction cannot leak. */
  const t = (text, extra) => el('span', { class: 't' + (extra ? ' ' + extra : '') }, text);
  const icon = (text) => el('span', { 'aria-hidden': 'true' }, text);
  const sr = (text) => el('span', { class: 'sr' }, text);

  function facts(pairs) {
    const list = el('dl', { class: 'facts' });
    for (const [name, value] of pairs) {
      list.append(el('dt', {}, name), el('dd', { class: 't' }, value));
    }
    return list;
  }

  /** A scroll container that the keyboard can scroll. */
  const scroller = (label, extra, child) =>
    el('div', { class: 'scroll ' + extra, role: 'region', 'aria-label': label, tabindex: '0' }, child);

  // -------------------------------------------------------------------- data

  let data;
  try {
    data = JSON.parse(byId('data').textContent);
  } catch (problem) {
    byId('main').append(el('p', { class: 'callout' }, 'The data of this report cannot be read: ' + problem.message));
    return;
  }
  const attempts = data.attempts || [];
  const cells = data.cells || [];
  const text = (index) => (data.texts || [])[index] ?? '';
  const classMeaning = (name) => (data.classes || {})[name] || '';
  const distinct = (values) => [...new Set(values.filter((v) => v !== null && v !== undefined && v !== ''))];
  const hasPrompts = distinct([...attempts, ...cells].map((a) => a.prompt)).length > 1;
  const hasRepeats = attempts.some((a) => a.repeat > 0);
  const hasCost = attempts.some((a) => typeof a.cost === 'number');
  const hasFlips = attempts.some((a) => a.flip);
  const hasHarm = attempts.some((a) => a.harm);
  const gate = GATES[data.gate] ? data.gate : 'ungated';
  const attemptSets = new Set(attempts.map((a) => a.set));

  /** "fail.wrong.target" stays, but a class may be missing. */
  const className = (a) => a.class || a.verdict;

  /** A column may be part of a set ("crlf/release"). Where no attempt bears
   *  that name, it means the attempts of the set with that split or tag. */
  function inSet(a, wanted) {
    if (a.set === wanted) return true;
    if (attemptSets.has(wanted)) return false;
    const slash = wanted.lastIndexOf('/');
    if (slash < 0 || a.set !== wanted.slice(0, slash)) return false;
    const part = wanted.slice(slash + 1);
    return a.split === part || (a.tags || []).includes(part);
  }

  // Haystacks are made once. Tasks are shared by many attempts, so they are
  // lower-cased once per text and not once per attempt.
  const lowered = new Map();
  function lower(index) {
    if (!lowered.has(index)) lowered.set(index, text(index).toLowerCase());
    return lowered.get(index);
  }
  /** The last thing that went wrong: the error, or the last refused answer. */
  function lastRefusal(a) {
    const refused = (a.messages || []).filter((m) => m.refused);
    return refused.length ? refused[refused.length - 1].text : undefined;
  }
  const haystacks = attempts.map((a) => ({
    short: [a.case, a.set, className(a), a.error].filter(Boolean).join('\n').toLowerCase(),
    refusal: lastRefusal(a),
  }));
  function mentions(index, words) {
    const { short, refusal } = haystacks[index];
    const task = attempts[index].task;
    return words.every((word) => short.includes(word) ||
      (task !== undefined && lower(task).includes(word)) ||
      (refusal !== undefined && lower(refusal).includes(word)));
  }

  // ----------------------------------------------------------------- numbers

  const count = (n, one, many) => integer.format(n) + ' ' + (n === 1 ? one : many || one + 's');
  const percent = (rate) => Math.round(rate * 100) + ' %';
  const interval = (low, high) => `[${Math.round(low * 100)}–${Math.round(high * 100)}]`;
  const money = (cost) => (cost === 0 ? '0' : cost >= 1 ? cost.toFixed(2) : String(Number(cost.toPrecision(3))));
  /** Colour step of a rate; the last step is kept for "all of them". */
  const rateStep = (rate) => (rate === null || rate === undefined ? 'rx' : 'r' + Math.min(5, Math.floor(rate * 5 + 1e-9)));

  // ---------------------------------------------------------- hash and state

  let state = { view: 'list', index: -1, filters: {}, sort: '' };

  function readHash() {
    const [path, query] = location.hash.replace(/^#/, '').split(/\?(.*)/s);
    const parameters = new URLSearchParams(query || '');
    const filters = {};
    for (const name of FILTERS) if (parameters.get(name)) filters[name] = parameters.get(name);
    const match = /^\/attempt\/(\d{1,9})$/.exec(path);
    return {
      view: match ? 'attempt' : 'list', index: match ? Number(match[1]) : -1,
      filters, sort: parameters.get('sort') || '',
    };
  }

  function hashFor(path, filters, sort) {
    const parameters = new URLSearchParams();
    for (const name of FILTERS) if (filters[name]) parameters.set(name, filters[name]);
    if (sort) parameters.set('sort', sort);
    const query = parameters.toString();
    return '#' + path + (query ? '?' + query : '');
  }
  const listHash = () => hashFor('/', state.filters, state.sort);
  const attemptHash = (index) => hashFor('/attempt/' + index, state.filters, state.sort);

  /** Typing must not fill the history, so it replaces the address. */
  function replaceHash(hash) {
    try {
      history.replaceState(null, '', hash);
      route();
    } catch {
      location.replace(hash); // some viewers forbid replaceState
    }
  }
  function setFilters(filters) {
    location.hash = hashFor('/', filters, state.sort);
  }

  // ------------------------------------------------------------ small pieces

  const verdictChip = (verdict) => el('span', { class: 'chip ' + verdict }, icon(VERDICTS[verdict] || '?'), verdict);
  const flipChip = (flip) => el('span', { class: 'chip ' + flip }, icon(flip === 'lost' ? '↓' : '↑'), flip);
  const harmChip = () => el('span', { class: 'chip harm', title: 'Something outside the asked edit was damaged' }, icon('⚠'), 'harm');

  /** "read edit✗ edit": failed steps get a colour; the mark is in the text. */
  function stepsText(steps) {
    return (steps || '').split(/(\s+)/).map((step) => (step.includes('✗') ? el('span', { class: 'no' }, step) : step));
  }

  /** Cuts between code points, never inside a surrogate pair. */
  function cutAt(string, end) {
    const code = string.charCodeAt(end - 1);
    return code >= 0xd800 && code < 0xdc00 ? end - 1 : end;
  }

  /** A text in <pre>; a long one shows its beginning and a button. */
  function longText(string) {
    const pre = el('pre', { class: 'raw' });
    if (string.length <= LONG_TEXT) {
      pre.append(string);
      return pre;
    }
    const part = document.createTextNode(string.slice(0, cutAt(string, LONG_TEXT)));
    const button = el('button', { type: 'button', class: 'more', click: () => { part.data = string; button.remove(); } },
      `show all ${integer.format(string.length)} characters`);
    pre.append(part);
    return el('div', {}, pre, button);
  }

  /** Appends text; signs such as ␊ and ␍ are tiny in most fonts and get a span
   *  of their own, so that the style can make them larger. */
  function addSigns(parent, string) {
    for (const part of string.split(/([\u2400-\u2421]+)/)) {
      if (part) parent.append(/^[\u2400-\u2421]/.test(part) ? el('span', { class: 'sign' }, part) : part);
    }
  }

  /** A long piece of a line keeps both ends: marks lie next to them. */
  function addLongSegment(parent, string) {
    if (string.length <= LONG_TEXT) {
      addSigns(parent, string);
      return;
    }
    const half = LONG_TEXT / 10;
    const hidden = string.slice(cutAt(string, half), cutAt(string, string.length - half));
    const button = el('button', { type: 'button', class: 'more', click: () => button.replaceWith(hidden) },
      `show all ${integer.format(string.length)} characters`);
    parent.append(string.slice(0, cutAt(string, half)), ' … ', button, ' … ', string.slice(cutAt(string, string.length - half)));
    // The ellipses belong to the button; they go when it goes.
    const [before, after] = [button.previousSibling, button.nextSibling];
    button.addEventListener('click', () => { before.remove(); after.remove(); });
  }

  // ------------------------------------------------------------- top of page

  function drawTopbar() {
    const [mark, word] = GATES[gate];
    const run = (data.about || []).find(([name]) => name === 'run');
    byId('topbar').append(
      el('a', { class: 'brand', href: '#/' }, 'editgate report'),
      el('span', { class: 'chip ' + gate }, icon(mark), word),
      run ? t(run[1], 'muted') : '',
      el('span', { class: 'right' }, el('button', { type: 'button', class: 'btn', click: showKeys }, 'Keys ', el('kbd', {}, '?'))));
  }

  function banner() {
    const [mark, word] = GATES[gate];
    // The word stands in the coloured field; it need not be said twice.
    const headline = String(data.headline || '').replace(new RegExp('^' + word + ':\\s*', 'i'), '');
    const notes = data.notes || [];
    return el('section', { class: 'banner ' + gate, 'aria-label': 'Result' },
      el('div', { class: 'word', 'aria-hidden': 'true' }, el('span', { class: 'icon' }, mark), el('span', {}, word)),
      el('div', { class: 'body' },
        el('h1', { tabindex: '-1', class: 't' }, sr(word + ': '), headline),
        data.reconciliation ? el('p', { class: 't' }, data.reconciliation) : '',
        data.origin ? el('p', { class: 't muted' }, data.origin) : '',
        data.baseline ? baselineLine(data.baseline) : '',
        notes.length ? el('ul', {}, notes.map((note) => el('li', { class: 't' }, note))) : ''));
  }

  function baselineLine(baseline) {
    const link = (name) => !hasFlips || !baseline[name] ? `${integer.format(baseline[name])} ${name}` : el('button', { type: 'button', class: 'linkish', click: () => { setFilters({ flip: name }); showList(); } },
      `${integer.format(baseline[name])} ${name}`);
    const counts = typeof baseline.lost === 'number' ? [' (', link('lost'), ' · ', link('gained'),
      ` · ${integer.format(baseline.both)} passed in both · ${integer.format(baseline.neither)} in neither)`] : '';
    return el('p', { class: 'against' }, 'Against ', t(baseline.name, 'mono'), ': ', t(baseline.words), counts);
  }

  // ------------------------------------------------------------------ matrix

  const sum = (list, key) => list.reduce((total, cell) => total + (cell[key] || 0), 0);

  function matrix() {
    const sets = distinct(cells.map((c) => c.set));
    const models = distinct(cells.map((c) => c.model));
    const rows = [];
    for (const model of models) {
      const own = cells.filter((c) => c.model === model);
      const keys = distinct(own.map((c) => JSON.stringify([c.tool, hasPrompts ? c.prompt : '']))).map((k) => JSON.parse(k));
      keys.forEach(([tool, prompt], position) => rows.push({
        model, tool, prompt, span: position === 0 ? keys.length : 0,
        cells: own.filter((c) => c.tool === tool && (!hasPrompts || c.prompt === prompt)),
      }));
    }
    const head = ['Model', 'Tool', hasPrompts && 'Prompt'].filter(Boolean);
    const col = (label, extra) => el('th', { scope: 'col', class: extra }, label);
    const body = rows.map((row) => el('tr', {},
      row.span ? el('th', { scope: 'rowgroup', rowspan: row.span, class: 't' }, row.model) : '',
      el('th', { scope: 'row', class: 't tool' }, row.tool),
      hasPrompts ? el('th', { scope: 'row', class: 't tool' }, row.prompt || '–') : '',
      sets.map((set) => setCell(row.cells.filter((c) => c.set === set))),
      totalCell(row.cells, pick(row), `${row.model}, ${row.tool}, all sets`, 'total')));
    return el('section', { 'aria-labelledby': 'h-matrix' },
      el('div', { class: 'head' }, el('h2', { id: 'h-matrix' }, 'Pass rates'), legend()),
      scroller('Pass rates', '', el('table', { class: 'matrix' },
        el('thead', {}, el('tr', {}, head.map((h) => col(h)), sets.map((s) => col(s, 't')), col('All sets', 'total'))),
        el('tbody', {}, body),
        el('tfoot', {}, el('tr', {}, el('th', { scope: 'row', colspan: head.length }, 'All rows'),
          sets.map((set) => totalCell(cells.filter((c) => c.set === set), { set }, `all rows, ${set}`)),
          totalCell(cells, {}, 'the whole run', 'total'))))));
  }

  const pick = (row) => ({ model: row.model, tool: row.tool, ...(hasPrompts && row.prompt ? { prompt: row.prompt } : {}) });

  function legend() {
    const steps = ['0', '20', '40', '60', '80', '100'];
    return el('span', { class: 'legend' }, 'passed/planned, rate, 95 % interval, ⚠ harm · % passed from ',
      steps.map((step, i) => el('i', { class: 'r' + i }, step)));
  }

  function setCell(found) {
    if (!found.length) return el('td', { class: 'none' }, icon('–'), sr('not planned'));
    const c = found[0];
    const state = { BELOW: 'below', incomplete: 'open', inconclusive: 'open' }[c.judgement] || '';
    const floor = c.floor === null || c.floor === undefined ? '' : `floor ${c.floor}`;
    const flag = state === 'below' ? '▼ BELOW' : state === 'open' ? c.judgement : '';
    const lines = [
      el('span', {}, el('b', {}, `${c.passed}/${c.planned}`), c.rate === null || c.rate === undefined ? '–' : percent(c.rate)),
      el('span', {}, typeof c.low === 'number' && c.rate !== null ? interval(c.low, c.high) : '', extras(c)),
      flag || floor ? el('span', {}, floor ? el('span', {}, floor) : '', flag ? el('span', { class: 'flag' }, flag) : floor && c.judgement === 'ok' ? '✓' : '') : '',
    ];
    const words = `${c.model}, ${c.tool}, ${c.set}: ${c.passed} of ${c.planned} passed` +
      (typeof c.rate !== 'number' || typeof c.low !== 'number' ? ', no rate' : `, ${percent(c.rate)}, interval ${Math.round(c.low * 100)} to ${Math.round(c.high * 100)}`) +
      (floor ? `, ${floor}` : '') + (state ? `, ${state === 'below' ? 'below the floor' : c.judgement}` : '') + problems(c);
    return el('td', { class: rateStep(c.rate) }, cellButton(lines, words, { ...pick(c), set: c.set }, state));
  }

  function totalCell(list, filters, label, extra) {
    const [passed, planned] = [sum(list, 'passed'), sum(list, 'planned')];
    if (!list.length || !planned) return el('td', { class: 'none ' + (extra || '') }, '–');
    const rest = { errors: sum(list, 'errors'), skipped: sum(list, 'skipped'), harm: sum(list, 'harm') };
    const below = list.filter((c) => c.judgement === 'BELOW').length;
    const lines = [
      el('span', {}, el('b', {}, `${passed}/${planned}`), percent(passed / planned)),
      el('span', {}, below ? `${below} below` : '', extras(rest)),
    ];
    const words = `${label}: ${passed} of ${planned} passed, ${percent(passed / planned)}` + (below ? `, ${below} below the floor` : '') + problems(rest);
    return el('td', { class: rateStep(passed / planned) + ' ' + (extra || '') }, cellButton(lines, words, filters, ''));
  }

  const extraList = (c) => [c.harm ? `⚠ ${c.harm}` : '', c.errors ? `${c.errors} err` : '', c.skipped ? `${c.skipped} skip` : ''].filter(Boolean);
  const extras = (c) => (extraList(c).length ? el('span', {}, extraList(c).join(' · ')) : '');
  const problems = (c) => (c.harm ? `, ${c.harm} with harm` : '') + (c.errors ? `, ${count(c.errors, 'error')}` : '') + (c.skipped ? `, ${c.skipped} skipped` : '');

  const cellButtons = [];
  function cellButton(lines, words, filters, state) {
    const tip = words.replace(/^[^:]*: /, '');
    const button = el('button', { type: 'button', class: 'cell ' + state, 'aria-label': words, title: tip, 'aria-pressed': 'false',
      click: () => { setFilters(filters); showList(); } }, lines);
    cellButtons.push({ button, filters });
    return button;
  }
  function pressCells() {
    const active = hashFor('/', state.filters, '');
    for (const { button, filters } of cellButtons) {
      const on = Object.keys(filters).length > 0 && hashFor('/', filters, '') === active;
      button.setAttribute('aria-pressed', String(on));
    }
  }

  /** After a click far above it, the list has to come into sight. */
  function showList() {
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const top = byId('h-list').getBoundingClientRect().top;
    if (top > innerHeight * 0.6) byId('h-list').scrollIntoView({ block: 'start', behavior: calm ? 'auto' : 'smooth' });
  }

  // ----------------------------------------------------------------- filters

  const controls = {};

  function select(name, label, values, amount) {
    const box = el('select', { id: 'f-' + name, change: () => setFilters({ ...state.filters, [name]: box.value }) },
      el('option', { value: '' }, 'all'),
      values.map((value) => el('option', { value }, amount ? `${value} (${integer.format(amount(value))})` : value)));
    controls[name] = box;
    return el('label', {}, label, box);
  }

  function filterBar() {
    const tally = (pickOut) => {
      const tallied = new Map();
      for (const a of attempts) for (const value of [].concat(pickOut(a))) tallied.set(value, (tallied.get(value) || 0) + 1);
      return (value) => tallied.get(value) || 0;
    };
    const by = (pickOut) => [distinct(attempts.flatMap(pickOut)), tally(pickOut)];
    const sorted = (pickOut) => [distinct(attempts.flatMap(pickOut)).sort(collator.compare), tally(pickOut)];
    const verdicts = Object.keys(VERDICTS).filter((v) => attempts.some((a) => a.verdict === v));
    const sets = distinct([...attempts.map((a) => a.set), ...cells.map((c) => c.set)]);
    const search = el('input', { type: 'search', id: 'f-q', autocomplete: 'off', spellcheck: 'false', placeholder: 'case, set, class, task, error',
      input: () => replaceHash(hashFor('/', { ...state.filters, q: search.value }, state.sort)) });
    controls.q = search;
    const harm = el('input', { type: 'checkbox', id: 'f-harm', change: () => setFilters({ ...state.filters, harm: harm.checked ? '1' : '' }) });
    controls.harm = harm;
    return el('form', { class: 'filters', role: 'search', 'aria-label': 'Filter the attempts', submit: (event) => event.preventDefault() },
      el('label', { class: 'grow' }, 'Search', search),
      select('tool', 'Tool', ...by((a) => a.tool)),
      select('model', 'Model', ...by((a) => a.model)),
      hasPrompts ? select('prompt', 'Prompt', ...by((a) => a.prompt)) : '',
      select('set', 'Set', sets, (value) => attempts.filter((a) => inSet(a, value)).length),
      select('tag', 'Tag', ...sorted((a) => a.tags || [])),
      select('verdict', 'Verdict', verdicts, tally((a) => a.verdict)),
      select('class', 'Class', ...sorted(className)),
      hasFlips ? select('flip', 'Flip', ['lost', 'gained'], tally((a) => a.flip)) : '',
      hasHarm ? el('label', { class: 'check' }, harm, 'harm only') : '');
  }

  function syncControls() {
    for (const [name, control] of Object.entries(controls)) {
      const wanted = state.filters[name] || '';
      if (control.type === 'checkbox') control.checked = Boolean(wanted);
      else if (control.value !== wanted) {
        // A linked view may name a value that this run does not have.
        if (control.tagName === 'SELECT' && ![...control.options].some((o) => o.value === wanted)) control.append(el('option', { value: wanted }, wanted));
        control.value = wanted;
      }
      control.classList.toggle('on', Boolean(wanted));
    }
    byId('clear').disabled = !FILTERS.some((name) => state.filters[name]);
  }

  function matching(filters) {
    const words = (filters.q || '').toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (let i = 0; i < attempts.length; i++) {
      const a = attempts[i];
      if (filters.model && a.model !== filters.model) continue;
      if (filters.tool && a.tool !== filters.tool) continue;
      if (filters.prompt && a.prompt !== filters.prompt) continue;
      if (filters.set && !inSet(a, filters.set)) continue;
      if (filters.tag && !(a.tags || []).includes(filters.tag)) continue;
      if (filters.verdict && a.verdict !== filters.verdict) continue;
      if (filters.class && className(a) !== filters.class) continue;
      if (filters.flip && a.flip !== filters.flip) continue;
      if (filters.harm && !a.harm) continue;
      if (words.length && !mentions(i, words)) continue;
      found.push(i);
    }
    return found;
  }

  // -------------------------------------------------------------------- list

  const verdictOrder = Object.keys(VERDICTS);
  const flipOrder = { lost: 0, gained: 1 };
  const COLUMNS = [
    { key: 'flip', label: 'Flip', show: hasFlips, width: 12.5, value: (a) => flipOrder[a.flip] ?? null, cell: (a) => (a.flip ? flipChip(a.flip) : '') },
    { key: 'case', label: 'Case', show: true, width: [16, 34], value: (a) => a.case },
    { key: 'set', label: 'Set', show: true, width: [8, 18], value: (a) => a.set, cell: (a) => t(a.set) },
    { key: 'model', label: 'Model', show: true, width: [9, 24], value: (a) => a.model, cell: (a) => t(a.model) },
    { key: 'tool', label: 'Tool', show: true, width: [8, 18], value: (a) => a.tool, cell: (a) => t(a.tool) },
    { key: 'prompt', label: 'Prompt', show: hasPrompts, width: [9, 14], value: (a) => a.prompt, cell: (a) => t(a.prompt) },
    { key: 'repeat', label: 'Rep.', title: 'Repeat', show: hasRepeats, width: 6.5, num: true, value: (a) => a.repeat, cell: (a) => a.repeat },
    { key: 'verdict', label: 'Verdict', show: true, width: 13, value: (a) => verdictOrder.indexOf(a.verdict), cell: (a) => verdictChip(a.verdict) },
    { key: 'class', label: 'Class', show: true, width: [27, 32], value: className, cell: (a) => [a.verdict === 'pass' && className(a) === 'pass' ? '' : t(className(a)), a.harm ? [' ', harmChip()] : ''] },
    { key: 'steps', label: 'Steps', show: true, width: [10, 21], value: (a) => a.steps, cell: (a) => t(stepsText(a.steps)) },
    { key: 'ms', label: 'ms', show: true, width: 9, num: true, value: (a) => a.ms, cell: (a) => (a.ms === null || a.ms === undefined ? '' : integer.format(a.ms)) },
    { key: 'cost', label: 'Cost', show: hasCost, width: 10, num: true, value: (a) => a.cost, cell: (a) => (typeof a.cost === 'number' ? money(a.cost) : '') },
  ].filter((column) => column.show);

  /** Widths come from all the data, so that rows drawn later move nothing. */
  function columnWidths() {
    return COLUMNS.map(({ key, width }) => {
      if (!Array.isArray(width)) return width;
      const longest = attempts.reduce((most, a) => Math.max(most, String(a[key] ?? '').length), 0);
      return Math.min(width[1], Math.max(width[0], longest * 1.12 + 3.5));
    });
  }

  let visible = [];        // attempt indices, filtered and sorted
  let items = [];          // the same, with block titles between them
  let drawn = 0;           // how many items are in the table
  let lastSeen = -1;       // the attempt that was open last
  let listScroll = 0;
  const rows = new Map();  // attempt index -> row, made when first needed

  function listSection() {
    const widths = columnWidths();
    const total = widths.reduce((a, b) => a + b, 0);
    const headers = COLUMNS.map((column) => el('th', { scope: 'col', class: column.num ? 'num' : null, 'data-key': column.key },
      el('button', { type: 'button', title: column.title, click: () => sortBy(column.key) },
        column.label, el('span', { class: 'arrow', 'aria-hidden': 'true' }))));
    const table = el('table', { class: 'list', id: 'list' },
      el('caption', { class: 'sr' }, 'Attempts'),
      el('colgroup', {}, widths.map((w) => {
        const col = el('col');
        col.style.width = (100 * w / total) + '%';
        return col;
      })),
      el('thead', {}, el('tr', {}, headers)),
      el('tbody', { id: 'rows', click: openRow }));
    table.style.minWidth = total * 0.56 + 'rem';
    return el('section', { 'aria-labelledby': 'h-list' },
      el('h2', { id: 'h-list' }, 'Attempts'),
      filterBar(),
      el('div', { class: 'countline' },
        el('span', { class: 'count', id: 'count', 'aria-live': 'polite' }),
        el('button', { type: 'button', class: 'btn', id: 'clear', click: () => { setFilters({}); controls.q.focus(); } }, 'Clear filters')),
      el('div', { class: 'scroll listbox', role: 'region', 'aria-label': 'List of attempts' }, table),
      el('p', { class: 'empty', id: 'empty', hidden: true }, 'No attempt matches these filters.'),
      el('div', { class: 'sentinel', id: 'sentinel' }));
  }

  /** A click anywhere on a row opens it, unless it selects text. */
  function openRow(event) {
    const row = event.target.closest('tr[data-index]');
    if (!row || event.target.closest('a') || String(getSelection())) return;
    location.hash = attemptHash(Number(row.dataset.index));
  }

  function sortBy(key) {
    const next = state.sort === key ? '-' + key : state.sort === '-' + key ? '' : key;
    location.hash = hashFor('/', state.filters, next);
  }

  /** Missing values stay at the end in both directions. */
  function sortIndices(indices, sort) {
    const column = COLUMNS.find((c) => c.key === sort.replace(/^-/, ''));
    if (!column) return indices;
    const sign = sort.startsWith('-') ? -1 : 1;
    const keyed = indices.map((i) => [column.value(attempts[i]) ?? null, i]);
    keyed.sort(([a, i], [b, j]) => {
      if (a === null || b === null) return (a === null) - (b === null) || i - j;
      const order = typeof a === 'number' ? a - b : collator.compare(a, b);
      return order * sign || i - j;
    });
    return keyed.map(([, i]) => i);
  }

  /** With a baseline the flips come first: lost, then gained, then the rest. */
  function blocks(indices) {
    if (!hasFlips) return [{ title: '', list: indices }];
    const part = (flip) => indices.filter((i) => (attempts[i].flip || '') === flip);
    return [
      { title: 'Lost: passed in the baseline, not here', list: part('lost') },
      { title: 'Gained: passes here, not in the baseline', list: part('gained') },
      { title: 'No change against the baseline, or not compared', list: part('') },
    ].filter((block) => block.list.length);
  }

  function updateList() {
    const parts = blocks(sortIndices(matching(state.filters), state.sort));
    visible = parts.flatMap((block) => block.list);
    items = parts.flatMap((block) => [...(block.title ? [block] : []), ...block.list]);
    drawn = 0;
    byId('rows').replaceChildren();
    drawRows(FIRST_ROWS);
    const words = `${integer.format(visible.length)} of ${count(attempts.length, 'attempt')}`;
    if (byId('count').textContent !== words) byId('count').textContent = words;
    byId('empty').hidden = visible.length > 0;
    for (const th of byId('list').tHead.rows[0].cells) {
      const key = th.dataset.key;
      const direction = state.sort === key ? 'ascending' : state.sort === '-' + key ? 'descending' : 'none';
      th.setAttribute('aria-sort', direction);
      th.querySelector('.arrow').textContent = { ascending: '▲', descending: '▼', none: '' }[direction];
    }
    syncControls();
    pressCells();
    watchAgain();
  }

  function drawRows(howMany) {
    const until = Math.min(items.length, drawn + howMany);
    const fragment = document.createDocumentFragment();
    for (; drawn < until; drawn++) {
      const item = items[drawn];
      fragment.append(typeof item === 'number' ? rowFor(item) : blockRow(item));
    }
    byId('rows').append(fragment);
  }

  const blockRow = (block) => el('tr', { class: 'block' },
    el('th', { scope: 'colgroup', colspan: COLUMNS.length }, `${block.title} (${integer.format(block.list.length)})`));

  function rowFor(index) {
    let row = rows.get(index);
    if (!row) {
      const a = attempts[index];
      row = el('tr', { 'data-index': index }, COLUMNS.map((column) => {
        if (column.key === 'case') return el('td', {}, el('a', { class: 't case' }, a.case));
        return el('td', { class: column.num ? 'num' : null }, column.cell(a));
      }));
      rows.set(index, row);
    }
    row.querySelector('a').setAttribute('href', attemptHash(index)); // the filters go along
    row.classList.toggle('last', index === lastSeen);
    return row;
  }

  /** Draws as far as the attempt's row; its link, or null when filtered out. */
  function rowLink(index) {
    const position = items.indexOf(index);
    if (position < 0) return null;
    if (position >= drawn) drawRows(position + 20 - drawn);
    return rows.get(index).querySelector('a');
  }

  // ------------------------------------------------------------ attempt page

  function drawAttempt(index) {
    const page = byId('attempt');
    page.replaceChildren();
    const a = attempts[index];
    if (!a) {
      page.append(crumbs(index), el('h1', { tabindex: '-1' }, `There is no attempt ${index} in this report`));
      return;
    }
    const meaning = classMeaning(className(a));
    page.append(
      crumbs(index),
      el('h1', { tabindex: '-1', class: 't' }, a.case),
      el('div', { class: 'verdictline' }, verdictChip(a.verdict), a.harm ? harmChip() : '', a.flip ? flipChip(a.flip) : '',
        className(a) === a.verdict ? '' : t(className(a), 'mono'), meaning ? t(meaning, 'muted') : ''),
      a.error ? el('div', { class: 'callout' }, el('b', {}, 'Error: '), longText(a.error)) : '',
      el('div', { class: 'two gap' }, factSection(a, index), siblingSection(a, index)),
      section('Task', el('div', { class: 'box' }, longText(text(a.task)))),
      (a.diagnosis || []).length ? section('Diagnosis', el('p', {}, a.diagnosis.map((d) => [el('span', { class: 'chip plain t' }, d), ' ']))) : '',
      filesSection(a),
      transcript(a));
  }

  const section = (title, ...children) => el('section', {}, el('h2', {}, title), children);

  function crumbs(index) {
    const position = visible.indexOf(index);
    const step = (by, label, key, name) => {
      const target = position < 0 ? undefined : visible[position + by];
      const content = [label, ' ', el('kbd', { 'aria-hidden': 'true' }, key)];
      return target === undefined ? el('span', { class: 'btn', 'aria-disabled': 'true' }, content)
        : el('a', { class: 'btn', id: name, href: attemptHash(target) }, content);
    };
    return el('nav', { class: 'crumbs', 'aria-label': 'Attempts' },
      el('a', { class: 'btn', id: 'back', href: listHash() }, icon('←'), 'All attempts'),
      el('span', { class: 'pos' }, position < 0 ? 'not in the filtered list'
        : `${integer.format(position + 1)} of ${integer.format(visible.length)}` + (Object.keys(state.filters).length ? ' in the filtered list' : '')),
      step(-1, 'Previous', 'k', 'prev'), step(1, 'Next', 'j', 'next'));
  }

  function factSection(a, index) {
    const number = (n) => (typeof n === 'number' ? integer.format(n) : null);
    const pairs = [
      ['Model', a.model], ['Tool', a.tool], ['Prompt', a.prompt], ['Set', a.set], ['Split', a.split],
      ['Tags', (a.tags || []).join(', ')], ['Repeat', hasRepeats ? String(a.repeat) : null],
      ['Steps', a.steps ? stepsText(a.steps) : null], ['Turns', number(a.turns)],
      ['Time', typeof a.ms === 'number' ? integer.format(a.ms) + ' ms' : null],
      ['Cost', typeof a.cost === 'number' ? money(a.cost) : null],
      ['Tokens', typeof a.input === 'number' || typeof a.output === 'number' ? `${number(a.input) ?? '–'} in, ${number(a.output) ?? '–'} out` : null],
      ['Baseline', a.flip ? { lost: 'passed there, not here', gained: 'passes here, not there' }[a.flip] : null],
      ['Attempt', String(index)],
    ];
    return section('Facts', facts(pairs.filter(([, value]) => value !== null && value !== undefined && value !== '')));
  }

  function siblingSection(a, index) {
    const same = attempts.map((_, i) => i).filter((i) => attempts[i].case === a.case && attempts[i].set === a.set);
    if (same.length < 2) return section('Other attempts of this case', el('p', { class: 'muted' }, 'There are none: this case was tried once.'));
    const heads = ['Model', 'Tool', hasPrompts && 'Prompt', hasRepeats && 'Rep.', 'Verdict', 'Class', 'Steps'].filter(Boolean);
    const passed = same.filter((i) => attempts[i].verdict === 'pass').length;
    const body = same.map((i) => {
      const o = attempts[i];
      return el('tr', { 'aria-current': i === index ? 'true' : null },
        el('td', { class: 't' }, i === index ? el('b', {}, o.model) : el('a', { href: attemptHash(i) }, o.model)),
        el('td', { class: 't' }, o.tool), hasPrompts ? el('td', { class: 't' }, o.prompt) : '', hasRepeats ? el('td', {}, String(o.repeat)) : '',
        el('td', {}, verdictChip(o.verdict)), el('td', { class: 't' }, className(o) === o.verdict ? '' : className(o)), el('td', { class: 't' }, stepsText(o.steps)));
    });
    return section(`All ${same.length} attempts of this case: ${passed} passed`,
      scroller('Attempts of this case', 'tall', el('table', { class: 'outcomes' },
        el('thead', {}, el('tr', {}, heads.map((h) => el('th', { scope: 'col' }, h)))), el('tbody', {}, body))));
  }

  // ------------------------------------------------------------------- bytes

  function filesSection(a) {
    const files = a.files || [];
    if (!files.length) return '';
    const layout = el('button', { type: 'button', class: 'btn layout', 'aria-pressed': String(stacked), click: () => {
      stacked = !stacked;
      layout.setAttribute('aria-pressed', String(stacked));
      for (const panes of document.querySelectorAll('.panes')) panes.classList.toggle('stacked', stacked);
    } }, 'Stack the panes');
    return el('section', {},
      el('div', { class: 'head' }, el('h2', {}, 'Bytes'),
        el('span', { class: 'muted' }, 'Differing bytes are ', el('mark', {}, 'shaded and underlined'), '.', glyphLegend(files)), layout),
      files.map((file) => el('div', { class: 'file' }, el('h3', { class: 't' }, file.path),
        el('div', { class: 'panes' + (stacked ? ' stacked' : '') },
          pane('before', file.before), pane('expected', file.expected), pane('actual', file.actual, file.expected)))));
  }
  let stacked = false;

  /** Explains only the signs that occur. */
  function glyphLegend(files) {
    const signs = { '␊': 'line feed', '␍': 'carriage return', '→': 'tab', '·': 'space', '␛': 'escape', '␀': 'NUL', '\uFEFF': 'BOM' };
    const all = JSON.stringify(files.map((f) => [f.before, f.expected, f.actual]));
    const found = Object.keys(signs).filter((sign) => all.includes(sign));
    return found.length ? ' ' + found.map((sign) => `${sign} ${signs[sign]}`).join(', ') + '.' : '';
  }

  function pane(title, side, reference) {
    const head = el('h4', {}, title);
    const box = el('div', { class: 'pane' }, head);
    if (!side) {
      box.classList.add('absent');
      box.append(el('div', { class: 'lines' }, 'The file does not exist here.'));
      return box;
    }
    const differs = reference && (reference.note || null) !== (side.note || null);
    if (side.note) head.append(differs ? el('mark', { class: 't' }, side.note) : t(side.note, 'muted'));
    else if (differs) head.append(el('mark', {}, 'not: ', t(reference.note)));
    if (side.cut) head.append(el('span', { class: 'chip warn' }, 'cut: not the whole file'));
    const lines = el('div', { class: 'lines' });
    const all = numbered(side.lines || []);
    if (!all.length) lines.append(el('div', { class: 'ln' }, el('div', { class: 'raw muted' }, side.note && side.note.startsWith('symlink') ? '(no content of its own)' : '(empty)')));
    const draw = (from, to) => lines.append(...all.slice(from, to).map(lineRow));
    draw(0, MANY_LINES);
    if (all.length > MANY_LINES) {
      const button = el('button', { type: 'button', class: 'more', click: () => { button.remove(); draw(MANY_LINES, all.length); } },
        `show all ${integer.format(all.length)} lines`);
      lines.append(button);
    }
    box.append(lines);
    return box;
  }

  /** Line numbers count the elided lines too. When their number cannot be
   *  read, no number is shown from there on: better none than a wrong one. */
  function numbered(lines) {
    let next = 1;
    return lines.map((segments) => {
      const elided = segments.length === 1 && segments[0][0] === 2;
      if (!elided) return { segments, elided, number: next === null ? '' : next++ };
      const found = /(\d[\d,. ]*)\s[^\d]*lines?\b/.exec(segments[0][1]);
      next = found && next !== null ? next + Number(found[1].replace(/\D/g, '')) : null;
      return { segments, elided, number: '' };
    });
  }

  function lineRow({ segments, elided, number }) {
    const content = el('div', { class: 'raw' });
    let changed = false;
    for (const [kind, string] of segments) {
      if (kind === 1) {
        changed = true;
        const mark = el('mark');
        addLongSegment(mark, string);
        content.append(mark);
      } else if (kind === 2) content.append(el('span', { class: 'muted' }, string));
      else addLongSegment(content, string);
    }
    return el('div', { class: 'ln' + (changed ? ' changed' : '') + (elided ? ' elided' : ''), 'data-n': number }, content);
  }

  // -------------------------------------------------------------- transcript

  function transcript(a) {
    const messages = a.messages || [];
    const body = messages.length ? messages.map(messageBox)
      : el('p', { class: 'muted' }, 'No messages: the model was not asked, or nothing was recorded.');
    return section(messages.length ? `Transcript: ${count(messages.length, 'message')}` : 'Transcript', body);
  }

  function messageBox(message, position) {
    const content = text(message.text);
    const calls = message.calls || [];
    const who = message.role === 'tool' ? 'tool answer' : message.role;
    const inside = el('div', { class: 'in' });
    if (message.thought !== undefined && message.thought !== null) inside.append(thoughtBox(text(message.thought)));
    if (content) inside.append(longText(content));
    for (const call of calls) inside.append(callBox(call));
    if (!inside.childNodes.length) inside.append(el('span', { class: 'muted' }, '(empty)'));
    return el('details', { class: `msg ${message.role}${message.refused ? ' refused' : ''}`, open: message.role !== 'system' },
      el('summary', {}, el('span', { class: 'muted' }, String(position + 1)), el('span', { class: 'who' }, who),
        message.name ? t(message.name, 'mono') : '',
        calls.length ? el('span', { class: 'muted' }, 'calls ', t(calls.map((c) => c.name).join(', '), 'mono')) : '',
        message.refused ? el('span', { class: 'chip fail' }, icon('✗'), 'refused') : '',
        message.role === 'system' ? el('span', { class: 'muted' }, count(content.length, 'character')) : ''),
      inside);
  }

  const thoughtBox = (thought) => el('details', { class: 'thought', open: thought.length <= 600 },
    el('summary', {}, `thought, ${count(thought.length, 'character')}`), longText(thought));

  function callBox(call) {
    const raw = text(call.arguments);
    const pretty = call.malformed ? null : prettyJson(raw);
    const body = el('div', { class: 'args' }, longText(pretty ?? raw));
    const head = el('div', { class: 'callhead' }, el('b', { class: 't mono' }, call.name),
      call.malformed ? el('span', { class: 'chip fail' }, icon('✗'), 'malformed arguments') : '');
    if (pretty !== null && pretty !== raw) {
      const toggle = el('button', { type: 'button', class: 'btn', 'aria-pressed': 'false', click: () => {
        const on = toggle.getAttribute('aria-pressed') !== 'true';
        toggle.setAttribute('aria-pressed', String(on));
        body.replaceChildren(longText(on ? raw : pretty));
      } }, 'Raw');
      head.append(toggle);
    }
    return el('div', { class: 'call' }, head, body);
  }

  /** Valid JSON with new line breaks and indents, else null. It works on the
   *  text and not on the parsed value: numbers, double keys and escapes stay
   *  exactly as the model wrote them, and no escape becomes an invisible
   *  character. After an escaped \n the line is broken, to be readable. */
  function prettyJson(raw) {
    if (raw.length > 200000) return null; // would only be slow
    try { JSON.parse(raw); } catch { return null; }
    const tokens = raw.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g) || [];
    let out = '';
    let depth = 0;
    const newline = () => '\n' + '  '.repeat(depth);
    tokens.forEach((token, i) => {
      if (token === '{' || token === '[') {
        const empty = tokens[i + 1] === '}' || tokens[i + 1] === ']';
        depth++;
        out += token + (empty ? '' : newline());
      } else if (token === '}' || token === ']') {
        depth--;
        const empty = tokens[i - 1] === '{' || tokens[i - 1] === '[';
        out += (empty ? '' : newline()) + token;
      } else if (token === ',') out += ',' + newline();
      else if (token === ':') out += ': ';
      else if (token[0] === '"') out += token.replace(/\\[^]/g, (escape, at) => (escape === '\\n' && at + 3 < token.length ? '\\n\n' : escape));
      else out += token;
    });
    return out;
  }

  // ------------------------------------------------------------------ footer

  function drawFooter() {
    const about = (data.about || []).map(([name, value]) => [t(name), String(value)]);
    const classes = Object.entries(data.classes || {}).map(([name, meaning]) => [t(name, 'mono'), meaning]);
    byId('footer').hidden = false; // hidden until now, so that nothing pushes it down
    byId('footer').append(
      about.length ? el('details', { id: 'about' }, el('summary', {}, 'About this run and its fingerprint'), facts(about)) : '',
      classes.length ? el('details', {}, el('summary', {}, 'What the classes mean'), facts(classes)) : '');
  }

  // ---------------------------------------------------------------- keyboard

  let keysOn = true;
  const keysDialog = el('dialog', { id: 'keys', 'aria-labelledby': 'h-keys' });

  function buildKeys() {
    const keys = (...names) => names.map((name, i) => [i ? ' ' : '', el('kbd', {}, name)]);
    const list = el('dl', { class: 'facts' });
    for (const [names, does] of [
      [['j', '→'], 'next attempt (in the list: j only)'], [['k', '←'], 'previous attempt (in the list: k only)'],
      [['Enter'], 'open the attempt in focus'], [['/'], 'search'], [['Esc'], 'back to the list'], [['?'], 'this help'],
    ]) list.append(el('dt', {}, keys(...names)), el('dd', {}, does));
    const box = el('input', { type: 'checkbox', checked: true, change: () => { keysOn = box.checked; } });
    keysDialog.append(el('h2', { id: 'h-keys' }, 'Keys'), list,
      el('p', {}, el('label', {}, box, ' single-key shortcuts on')),
      el('p', { class: 'gap' }, el('button', { type: 'button', class: 'btn', click: () => keysDialog.close() }, 'Close')));
    document.body.append(keysDialog);
  }
  function showKeys() { if (!keysDialog.open) keysDialog.showModal(); }

  const follow = (id) => { const link = byId(id); if (link) location.hash = link.getAttribute('href'); };

  function moveInList(by) {
    const row = document.activeElement.closest ? document.activeElement.closest('tr[data-index]') : null;
    const from = row ? visible.indexOf(Number(row.dataset.index)) : by > 0 ? -1 : visible.length;
    const target = visible[from + by];
    if (target === undefined) return;
    const link = rowLink(target);
    link.focus({ preventScroll: true });
    link.closest('tr').scrollIntoView({ block: 'nearest' });
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing || keysDialog.open) return;
    const inAttempt = state.view === 'attempt';
    const typing = event.target.closest && event.target.closest('input, select, textarea');
    if (event.key === 'Escape') {
      if (inAttempt) location.hash = listHash();
      else if (typing && !event.target.value) event.target.blur();
      return;
    }
    if (typing || !keysOn) return;
    const box = event.target.closest && event.target.closest('.scroll');
    if (event.key.startsWith('Arrow') && box && box.scrollWidth > box.clientWidth) return; // it scrolls
    const action = {
      '/': () => { if (inAttempt) { focusSearch = true; location.hash = listHash(); } else controls.q.focus(); },
      '?': showKeys,
      j: () => (inAttempt ? follow('next') : moveInList(1)),
      k: () => (inAttempt ? follow('prev') : moveInList(-1)),
      ArrowRight: inAttempt && (() => follow('next')),
      ArrowLeft: inAttempt && (() => follow('prev')),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
  let focusSearch = false;

  // ----------------------------------------------------------------- routing

  let listKey = null; // what the list on the page was made for
  let shown = null;   // what the page shows

  function route() {
    const before = state;
    state = readHash();
    const key = hashFor('/', state.filters, state.sort);
    if (key !== listKey) {
      listKey = key;
      updateList();
    }
    const now = state.view === 'attempt' ? 'attempt ' + state.index : 'list';
    if (now === shown) {
      if (state.view === 'attempt' && before !== state) refreshCrumbs();
      return; // only filters changed: leave scroll position and focus alone
    }
    const first = shown === null;
    if (shown === 'list') listScroll = scrollY;
    shown = now;
    byId('overview').hidden = state.view !== 'list';
    byId('attempt').hidden = state.view !== 'attempt';
    if (state.view === 'attempt') enterAttempt(first);
    else enterList(first);
  }

  function refreshCrumbs() {
    byId('attempt').querySelector('.crumbs').replaceWith(crumbs(state.index));
  }

  function enterAttempt(first) {
    drawAttempt(state.index);
    const a = attempts[state.index];
    document.title = (a ? `${a.case} – ${a.verdict}` : 'not found') + ' – editgate report';
    markLast(state.index);
    scrollTo(0, 0);
    if (!first) byId('attempt').querySelector('h1').focus({ preventScroll: true });
  }

  /** Coming back, the reader is where they left: at the row last looked at.
   *  Without such a row the focus goes to the heading. */
  function enterList(first) {
    byId('attempt').replaceChildren();
    document.title = `${GATES[gate][1]} – editgate report`;
    if (first) return;
    const link = lastSeen >= 0 ? rowLink(lastSeen) : null;
    scrollTo(0, link ? listScroll : 0);
    if (focusSearch) controls.q.focus();
    else if (link) {
      link.focus({ preventScroll: true });
      link.closest('tr').scrollIntoView({ block: 'nearest' });
    } else byId('overview').querySelector('h1').focus({ preventScroll: true });
    focusSearch = false;
  }

  function markLast(index) {
    if (rows.has(lastSeen)) rows.get(lastSeen).classList.remove('last');
    lastSeen = index;
    if (rows.has(index)) rows.get(index).classList.add('last');
  }

  // ------------------------------------------------------------------- start

  drawTopbar();
  byId('overview').append(banner(), cells.length ? matrix() : '', listSection());
  buildKeys();
  // The address holds the view, so the skip link must not change it.
  byId('skip').addEventListener('click', (event) => { event.preventDefault(); byId('main').focus(); });
  addEventListener('hashchange', route);
  addEventListener('keydown', onKey);
  addEventListener('beforeprint', () => { if (state.view === 'list') drawRows(items.length); });
  if ('scrollRestoration' in history) history.scrollRestoration = 'manual';
  route();
  drawFooter();
  // Lower-casing all texts is the slow part of the first search: do it early,
  // when the browser has nothing else to do.
  const whenIdle = window.requestIdleCallback || ((work) => setTimeout(work, 300));
  whenIdle(() => matching({ q: '\u0000' }));
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && drawn < items.length) {
      drawRows(MORE_ROWS);
      watchAgain();
    }
  }, { rootMargin: '1200px' }).observe(byId('sentinel'));
  // An observer reports changes only. Where the end is still in sight after a
  // chunk, the next frame looks again.
  function watchAgain() {
    requestAnimationFrame(() => {
      if (!byId('overview').hidden && drawn < items.length && byId('sentinel').getBoundingClientRect().top < innerHeight + 1200) {
        drawRows(MORE_ROWS);
        watchAgain();
      }
    });
  }
})();
