'use strict';
// What the gateway says each second, drawn. Everything that comes from it is put in as text.

const remembered = 120;
const shades = 7;
const width = 600;
const height = 180;
let history = [];
const slots = new Map(); // tenant -> shade, kept while the history has it

const at = (id) => document.getElementById(id);
const say = (id, text) => { at(id).textContent = text; };

function rate(n) {
  if (n >= 10000) return (n / 1000).toFixed(1) + 'k';
  return n >= 100 || n === 0 ? n.toFixed(0) : n.toFixed(1);
}
function count(n) { return n.toLocaleString('en'); }
function percent(p) { return (100 * p).toFixed(p > 0 && p < 0.0995 ? 1 : 0) + ' %'; }
function ms(n) {
  if (n === 0) return '0 ms';
  if (n < 1) return n.toFixed(2) + ' ms';
  if (n < 1000) return n.toFixed(n < 10 ? 1 : 0) + ' ms';
  return (n / 1000).toFixed(n < 10000 ? 2 : 0) + ' s';
}
function span(s) {
  const d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
  if (d > 0) return `${d} d ${h} h`;
  if (h > 0) return `${h} h ${m} min`;
  return m > 0 ? `${m} min ${Math.floor(s) % 60} s` : `${Math.floor(s)} s`;
}

function make(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
}
function path(cls, d) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  e.setAttribute('class', cls);
  e.setAttribute('d', d);
  return e;
}

// --- charts ---------------------------------------------------------------------------------

// The newest sample is at the right edge; half a minute at least is shown.
function x(i, n) {
  const shown = Math.max(n, 30);
  return (width * (i + shown - n) / (shown - 1)).toFixed(1);
}
const y = (part) => (height - part * height).toFixed(1);

function line(values, top) {
  return values.map((v, i) => `${i ? 'L' : 'M'}${x(i, values.length)} ${y(v / top)}`).join('');
}
function band(low, high) {
  const n = low.length;
  const up = high.map((v, i) => `${i ? 'L' : 'M'}${x(i, n)} ${y(v)}`).join('');
  const down = low.map((v, i) => `L${x(i, n)} ${y(v)}`).reverse().join('');
  return up + down + 'Z';
}
function grid() {
  return path('grid', [0.25, 0.5, 0.75].map((p) => `M0 ${y(p)}H${width}`).join(''));
}
function nice(n) {
  const power = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 2, 5, 10].map((k) => k * power).find((k) => k >= n) || 10;
}

function draw_rates() {
  const offered = history.map((s) => s.offered);
  const served = history.map((s) => s.served);
  const top = nice(1.05 * Math.max(...offered, ...served, 1));
  at('rates').replaceChildren(grid(),
    path('served', band(served.map(() => 0), served.map((v) => v / top))),
    path('offered', line(offered, top)), path('served-line', line(served, top)));
  say('rates_top', `to ${rate(top)}`);
}

function shade(name) {
  if (name === 'other') return 'rest';
  if (!slots.has(name) && slots.size < shades) {
    const taken = new Set(slots.values());
    slots.set(name, [...Array(shades).keys()].find((slot) => !taken.has(slot)));
  }
  return slots.has(name) ? `s${slots.get(name)}` : 'rest';
}

function draw_shares() {
  const names = [...slots.keys()];
  const low = history.map(() => 0);
  const layers = names.map((name) => {
    const from = [...low];
    history.forEach((s, i) => {
      const t = s.tenants.find((one) => one.name === name);
      low[i] += t ? t.share : 0;
    });
    return path(`layer ${shade(name)}`, band(from, low));
  });
  const rest = history.map((s) => Math.min(1, s.tenants.reduce((sum, t) => sum + t.share, 0)));
  at('shares').replaceChildren(path('layer rest', band(low, rest)), ...layers, grid());
  const key = names.map((name) => {
    const e = make('span', '', '');
    e.append(make('span', `swatch ${shade(name)}`), document.createTextNode(name));
    return e;
  });
  at('shares_key').replaceChildren(...key);
}

// --- tables ---------------------------------------------------------------------------------

function rows(id, all, cells) {
  const body = at(id).tBodies[0];
  body.replaceChildren(...all.map((one) => {
    const row = make('tr');
    row.append(...cells(one));
    return row;
  }));
}
function number(text, more) {
  return make('td', `n ${more || ''} ${/^0( |$)/.test(text) ? 'zero' : ''}`, text);
}

function tenant_cells(t) {
  const name = make('td');
  name.append(make('span', `swatch ${shade(t.name)}`), document.createTextNode(t.name));
  name.title = t.name;
  const meter = make('td', 'meter wide');
  const track = make('div', 'track');
  const got = make('span');
  const due = make('i');
  got.style.width = `${Math.min(100, 100 * t.share)}%`;
  due.style.left = `calc(${Math.min(100, 100 * t.entitled)}% - 1px)`;
  track.append(got, due);
  meter.append(track);
  return [name, number(count(t.weight), 'wide'), number(percent(t.entitled)),
    number(percent(t.share)), meter, number(count(t.in_flight), 'wide'), number(count(t.queued)),
    number(ms(t.wait_p99_ms)), number(count(t.refusals))];
}
function backend_cells(b) {
  return [make('td', '', b.address), make('td', b.set_aside ? 'bad' : '', b.set_aside ? 'set aside' : 'well'),
    make('td', 'wide', b.server), make('td', 'wide', b.route), number(count(b.weight), 'wide'),
    number(rate(b.rate)), number(count(b.requests), 'wide'),
    number(count(b.failures), b.failures ? 'bad' : '')];
}
function server_cells(s) {
  return [make('td', '', s.name), make('td', 'wide', s.addresses.join(', ')),
    number(`${count(s.connections)} of ${count(s.max_connections)}`), number(rate(s.rate)),
    number(count(s.requests), 'wide'), number(ms(s.p50_ms), 'wide'), number(ms(s.p99_ms))];
}

// --- all of it ------------------------------------------------------------------------------

function fill(id, part) { at(id).style.width = `${Math.min(100, 100 * part)}%`; }

function show(s) {
  const turns = s.limit > 0;
  say('version', s.version);
  say('config_version', count(s.config_version));
  say('uptime', span(s.uptime_s));
  const state = s.draining ? 'draining' : 'running';
  say('state', state);
  at('state').dataset.state = state;
  at('drain').hidden = !s.draining;
  // Also those that wait in line, or need no turn.
  const unanswered = s.servers.reduce((sum, one) => sum + one.in_flight, 0);
  say('drain', `Ending: ${count(s.connections)} connections are open, ${count(unanswered)} requests are not answered yet.`);
  say('offered', rate(s.offered));
  say('served', rate(s.served));
  say('in_flight', count(s.in_flight));
  say('limit', turns ? `of ${count(s.limit)}` : 'no limit');
  fill('in_flight_bar', turns ? s.in_flight / s.limit : 0);
  say('queued', turns ? count(s.queued) : '–');
  say('capacity', turns ? `of ${count(s.capacity)}` : 'no queue');
  fill('queued_bar', s.capacity > 0 ? s.queued / s.capacity : 0);
  say('wait_p50', turns ? ms(s.wait_p50_ms) : '–');
  say('wait_p99', turns ? ms(s.wait_p99_ms) : '–');
  say('p50', ms(s.p50_ms));
  say('p99', ms(s.p99_ms));
  say('connections', count(s.connections));
  const refused = s.tenants.reduce((sum, t) => sum + t.refusals, 0);
  say('refusals', turns ? `${count(refused)} requests refused` : '');
  const some = s.tenants.length > 0;
  at('tenants_panel').hidden = !some;
  at('shares_panel').hidden = !some;
  document.querySelector('.charts').classList.toggle('single', !some);
  rows('tenants', s.tenants, tenant_cells);
  rows('backends', s.backends, backend_cells);
  rows('servers', s.servers, server_cells);
  draw_rates();
  if (some) draw_shares();
}

// Who has left the history gives its shade to one that has none.
function give_shades() {
  const shown = new Set(history.flatMap((one) => one.tenants.map((t) => t.name)));
  [...slots.keys()].filter((name) => !shown.has(name)).forEach((name) => slots.delete(name));
  shown.forEach((name) => shade(name));
}

function take(s) {
  history.push(s);
  if (history.length > remembered) history.shift();
  give_shades();
}

// A browser asks again by itself if it gets no answer, but not after one that says no, as when too
// many watch or what is in between has nobody to ask.
const pause = 5000;
function watch() {
  const events = new EventSource('events');
  events.addEventListener('history', (e) => {
    history = JSON.parse(e.data).slice(-remembered);
    give_shades();
    if (history.length > 0) show(history[history.length - 1]);
  });
  events.addEventListener('status', (e) => {
    take(JSON.parse(e.data));
    show(history[history.length - 1]);
  });
  events.onerror = () => {
    say('state', 'no answer');
    at('state').dataset.state = 'lost';
    if (events.readyState === EventSource.CLOSED) setTimeout(watch, pause);
  };
}
watch();
