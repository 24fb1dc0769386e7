"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const record = data.record, series = data.series;
const $ = id => document.getElementById(id);
const make = (tag, text, cls) => { const el = document.createElement(tag); if (text !== undefined) el.textContent = text; if (cls) el.className = cls; return el; };

/* Figures for people. */
const bytes = n => n == null ? "–" : n < 1024 ? `${n}\u00a0B` : n < 1024 ** 2 ? `${(n / 1024).toFixed(0)}\u00a0KiB` : n < 1000 * 1024 ** 2 ? `${(n / 1024 ** 2).toFixed(n < 10 * 1024 ** 2 ? 1 : 0)}\u00a0MiB` : `${(n / 1024 ** 3).toFixed(2)}\u00a0GiB`;
const duration = s => s == null ? "–" : s < 9.95 ? `${s.toFixed(s < 0.995 ? 2 : 1)}\u00a0s` : s < 120 ? `${s.toFixed(0)}\u00a0s` : s < 7200 ? `${Math.floor(s / 60)}\u00a0min ${String(Math.floor(s % 60)).padStart(2, "0")}\u00a0s` : `${Math.floor(s / 3600)}\u00a0h ${String(Math.floor(s % 3600 / 60)).padStart(2, "0")}\u00a0min`;
const clock = s => s >= 3600 ? `${Math.floor(s / 3600)}:${String(Math.floor(s % 3600 / 60)).padStart(2, "0")}\u00a0h` : s >= 60 || s === 0 ? `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}` : `${+s.toFixed(2)}\u00a0s`;
const share = (part, all) => all > 0 ? `${(100 * part / all).toFixed(part / all < 0.1 ? 1 : 0)}\u00a0%` : "–";
const sum = (list, f) => list.reduce((n, x) => n + f(x), 0);

const STATE = ["compiled", "from the compiler cache", "made by an earlier run"], KIND = ["unit", "heavy unit", "link"];
const units = data.units.map(([path, source, start, seconds, slot, state, kind, peak]) => ({path, source, start, end: start + seconds, seconds, slot, state, kind, peak}));

/* Parts of the source tree get colours, the ones that took longest first. */
const part = u => {
	if (u.kind === 2) return "links";
	const words = u.source.replace(/^\/ptbuild\/src\/(build\/)?/, "").split("/").filter(w => !["src", "csrc", "ATen", ""].includes(w));
	return words.length > 2 ? `${words[0]}/${words[1]}` : words.length === 2 ? words[0] : words.length === 1 ? "top directory" : "other";
};
const colours = new Map();
{
	const took = new Map();
	for (const u of units) { u.part = part(u); took.set(u.part, (took.get(u.part) || 0) + u.seconds); }
	[...took].filter(([name]) => name !== "other").sort((a, b) => b[1] - a[1]).slice(0, 7).forEach(([name], i) => colours.set(name, `--c${i}`));
	for (const u of units) if (!colours.has(u.part)) u.part = "other";
	colours.set("other", "--other");
}

/* Time without anything in it (between two runs of a build that was killed) is left out: x counts what is left. */
const spans = [];
{
	const busy = units.map(u => [u.start, u.end]);
	if (series.at.length) busy.push([0, series.at[series.at.length - 1]]);
	for (const [, from, to] of data.steps) busy.push([from, to]);
	busy.sort((a, b) => a[0] - b[0]);
	for (const [from, to] of busy) {
		const last = spans[spans.length - 1];
		if (last && from - last.to < 30) last.to = Math.max(last.to, to);
		else spans.push({from, to});
	}
	let at = 0;
	for (const s of spans) { s.at = at; at += s.to - s.from; }
}
const total = spans.length ? spans[spans.length - 1].at + spans[spans.length - 1].to - spans[spans.length - 1].from : 1;
const squeeze = t => { let s = spans[0]; for (const x of spans) if (x.from <= t) s = x; return s ? s.at + Math.min(Math.max(t - s.from, 0), s.to - s.from) : 0; };
for (const u of units) { u.x0 = squeeze(u.start); u.x1 = Math.max(u.x0, squeeze(u.end)); }
const steps = data.steps.map(([name, from, to]) => ({name, x0: squeeze(from), x1: squeeze(to)}));
const points = series.at.map((t, i) => ({x: squeeze(t), memory: series.memory[i], processors: series.processors[i], compilers: series.compilers[i], pressure: series.pressure[i]}));

/* Drawing. */
const LEFT = 62, RIGHT = 14, FONT = "12px system-ui, 'DejaVu Sans', sans-serif";
let css, view = {from: 0, to: total}, filter = "";
const colour = name => css.getPropertyValue(name).trim();
const canvas = (id, height) => {
	const c = $(id), ratio = window.devicePixelRatio || 1, width = c.clientWidth;
	c.style.height = `${height}px`;
	c.width = Math.round(width * ratio);
	c.height = Math.round(height * ratio);
	const g = c.getContext("2d");
	g.scale(ratio, ratio);
	g.font = FONT;
	g.textBaseline = "middle";
	return {g, width, height};
};
const scale = width => { const k = (width - LEFT - RIGHT) / Math.max(view.to - view.from, 1e-9); return x => LEFT + (x - view.from) * k; };
const step_of = (range, most) => {
	const nice = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
	return nice.find(s => range / s <= most) || Math.ceil(range / most / 86400) * 86400;
};
const time_axis = (g, width, height, labels) => {
	const x = scale(width), step = step_of(view.to - view.from, Math.max(2, Math.floor(width / 110)));
	g.strokeStyle = colour("--grid");
	g.fillStyle = colour("--faint");
	g.textAlign = "center";
	for (let t = Math.ceil(view.from / step) * step; t <= view.to + 1e-9; t += step) {
		const at = Math.round(x(t)) + 0.5;
		g.beginPath(); g.moveTo(at, 0); g.lineTo(at, height - (labels ? 20 : 0)); g.stroke();
		if (labels && at < width - 18) g.fillText(clock(Math.round(t * 100) / 100), Math.max(at, LEFT + 14), height - 9);
	}
};
const run_marks = (g, width, height) => {
	const x = scale(width);
	g.strokeStyle = colour("--dim");
	g.setLineDash([4, 3]);
	for (const s of spans.slice(1)) {
		const at = Math.round(x(s.at)) + 0.5;
		if (at > LEFT && at < width - RIGHT) { g.beginPath(); g.moveTo(at, 0); g.lineTo(at, height); g.stroke(); }
	}
	g.setLineDash([]);
};

const slots = units.reduce((n, u) => Math.max(n, u.slot + 1), 1);
const lane = Math.max(7, Math.min(48, Math.floor(420 / slots)));
const TOP = steps.length ? 20 : 0; /* the strip of the steps */
function draw_steps(g, x) {
	steps.forEach((s, i) => {
		const from = x(s.x0), wide = x(s.x1) - from;
		g.fillStyle = colour(i % 2 ? "--grid" : "--line");
		g.fillRect(from, 0, Math.max(wide, 1), TOP - 5);
		if (wide < 34) return;
		g.save();
		g.beginPath(); g.rect(from, 0, wide - 3, TOP); g.clip();
		g.fillStyle = colour("--dim");
		g.textAlign = "left";
		g.fillText(s.name, Math.max(from, LEFT) + 5, (TOP - 5) / 2 + 1);
		g.restore();
	});
}
function draw_timeline() {
	const height = TOP + slots * lane + 22, {g, width} = canvas("timeline", height), x = scale(width);
	time_axis(g, width, height, true);
	g.textAlign = "right";
	g.fillStyle = colour("--faint");
	const every = Math.ceil(13 / lane);
	if (TOP) g.fillText("steps", LEFT - 8, (TOP - 5) / 2 + 1);
	for (let s = 0; s < slots; s += every) g.fillText(slots > 8 ? `${s + 1}` : `slot ${s + 1}`, LEFT - 8, TOP + s * lane + lane / 2);
	g.save();
	g.beginPath(); g.rect(LEFT, 0, width - LEFT - RIGHT, height); g.clip();
	draw_steps(g, x);
	for (const u of units) {
		if (u.x1 < view.from || u.x0 > view.to) continue;
		const from = x(u.x0), wide = Math.max(x(u.x1) - from, 0.6), seen = !filter || u.path.toLowerCase().includes(filter);
		g.globalAlpha = !seen ? 0.08 : u.state === 0 ? 1 : u.state === 1 ? 0.38 : 0.62;
		g.fillStyle = colour(filter && seen ? "--accent" : colours.get(u.part));
		g.fillRect(from, TOP + u.slot * lane + 1, wide > 2 ? wide - 0.7 : wide, lane - 2);
		if (wide > 70 && lane > 15 && seen) {
			g.globalAlpha = 1;
			g.fillStyle = u.state === 0 ? "#fff" : colour("--text");
			g.textAlign = "left";
			const name = u.path.replace(/^.*\//, "").replace(/\.o$/, "");
			g.save(); g.beginPath(); g.rect(from, TOP + u.slot * lane, wide - 3, lane); g.clip();
			g.fillText(name, from + 5, TOP + u.slot * lane + lane / 2 + 0.5);
			g.restore();
		}
	}
	g.globalAlpha = 1;
	run_marks(g, width, height - 20);
	g.restore();
}

function draw_series(id, key, top, label, name) {
	const height = points.length ? 120 : 28, {g, width} = canvas(id, height), x = scale(width), low = height - 20, y = v => low - (low - 8) * v / top;
	if (points.length === 0) {
		g.fillStyle = colour("--faint");
		g.fillText("not in the record", LEFT, 14);
		return;
	}
	time_axis(g, width, height, true);
	g.textAlign = "right";
	for (let i = 0; i <= 2; i++) {
		const v = top * i / 2, at = Math.round(y(v)) + 0.5;
		g.strokeStyle = colour("--grid");
		g.beginPath(); g.moveTo(LEFT, at); g.lineTo(width - RIGHT, at); g.stroke();
		g.fillStyle = colour("--faint");
		g.fillText(label(v), LEFT - 8, at);
	}
	g.save();
	g.beginPath(); g.rect(LEFT, 0, width - LEFT - RIGHT, height); g.clip();
	g.beginPath();
	points.forEach((p, i) => g.lineTo(x(i ? p.x : Math.min(p.x, points[0].x)), y(p[key])));
	g.strokeStyle = colour(name);
	g.lineWidth = 1.6;
	g.lineJoin = "round";
	g.stroke();
	g.lineTo(x(points[points.length - 1].x), low);
	g.lineTo(x(points[0].x), low);
	g.closePath();
	g.globalAlpha = 0.18;
	g.fillStyle = colour(name);
	g.fill();
	g.globalAlpha = 1;
	run_marks(g, width, low);
	g.restore();
}

const ceiling = v => { const p = 10 ** Math.floor(Math.log10(Math.max(v, 1e-9))); return [1, 2, 2.5, 4, 5, 8, 10].map(k => k * p).find(k => k >= v); };
const memory_top = (() => { const most = points.reduce((n, p) => Math.max(n, p.memory), 0) || 2 ** 20, unit = most > 700 * 2 ** 20 ? 2 ** 30 : 2 ** 20; return ceiling(most / unit) * unit; })();
const processors_top = ceiling(Math.max(points.reduce((n, p) => Math.max(n, p.processors), 0), 1));

/* Treemap: rectangles as square as they can be (the squarified layout: a row takes the next item as long as the worst of its rectangles gets no longer). */
const TYPES = [["shared libraries", "--c0", /\.so(\.[0-9.]+)?$/], ["Python", "--c2", /\.pyi?( files)?$/], ["headers", "--c1", /\.(h|hpp|cuh|inc|inl)( files)?$/], ["static libraries", "--c3", /\.a$/], ["other", "--other", /./]];
let by = "p", stack = [data.sizes], boxes = [];
const size = n => n[by];
function squarify(items, x, y, w, h, emit) {
	const list = items.filter(n => size(n) > 0).sort((a, b) => size(b) - size(a));
	let left = sum(list, size), i = 0;
	while (i < list.length && w > 0.5 && h > 0.5) {
		const side = Math.min(w, h), k = w * h / left;
		let row = [], area = 0, worst = Infinity;
		for (; i < list.length; i++) {
			const next = area + size(list[i]) * k, all = [...row, list[i]];
			const ratio = Math.max(...all.map(n => { const a = size(n) * k; const r = next * next / (side * side * a); return Math.max(r, 1 / r); }));
			if (row.length && ratio > worst) break;
			row = all; area = next; worst = ratio;
		}
		const thick = area / side;
		let at = 0;
		for (const n of row) {
			const long = size(n) * k / thick;
			if (w >= h) emit(n, x, y + at, thick, long); else emit(n, x + at, y, long, thick);
			at += long;
		}
		if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
		left -= sum(row, size);
	}
}
function draw_sizes() {
	const {g, width, height} = canvas("sizes", 460);
	const root = stack[stack.length - 1];
	boxes = [];
	const place = (node, path, x, y, w, h, depth) => {
		if (w < 1.5 || h < 1.5) return;
		const here = path ? `${path}/${node.n}` : node.n;
		boxes.push({node, path: here, x, y, w, h, depth});
		if (!node.c) {
			const type = TYPES.find(t => t[2].test(node.n));
			g.fillStyle = colour(type[1]);
			g.globalAlpha = 0.9;
			g.fillRect(x, y, Math.max(w - 1, 0.5), Math.max(h - 1, 0.5));
			g.globalAlpha = 1;
			label(node.n, x, y, w, h, "#fff", size(node));
			return;
		}
		const head = h > 34 && w > 44 ? 17 : 0;
		if (depth > 0) {
			g.fillStyle = colour("--line");
			g.fillRect(x, y, w - 1, h - 1);
			if (head) label(`${node.n}/`, x, y, w, 17, colour("--text"), 0);
		}
		const pad = depth > 0 && w > 12 && h > 12 ? 2 : 0;
		squarify(node.c, x + pad, y + (depth > 0 ? head + (head ? 0 : pad) : 0), w - 2 * pad, h - (depth > 0 ? head + pad + (head ? 0 : pad) : 0),
			(n, cx, cy, cw, ch) => place(n, depth > 0 || stack.length > 1 ? here : "", cx, cy, cw, ch, depth + 1));
	};
	const label = (text, x, y, w, h, ink, bytes_of) => {
		if (w < 40 || h < 14) return;
		g.save();
		g.beginPath(); g.rect(x + 3, y, w - 7, h); g.clip();
		g.fillStyle = ink;
		g.textAlign = "left";
		g.fillText(text, x + 5, y + 9);
		if (bytes_of && h > 30) { g.globalAlpha = 0.85; g.fillText(bytes(bytes_of), x + 5, y + 24); }
		g.restore();
	};
	place(root, "", 0, 0, width, height, 0);
	const crumbs = $("crumbs");
	crumbs.replaceChildren(...stack.flatMap((n, i) => {
		const b = make("button", i ? n.n : "all");
		b.type = "button";
		b.onclick = () => { stack = stack.slice(0, i + 1); draw_sizes(); };
		return i ? [document.createTextNode(" / "), b] : [b];
	}));
	crumbs.hidden = stack.length < 2;
}

/* What lies under the pointer. */
const tip = $("tip");
function show_tip(ev, title, ...lines) {
	tip.replaceChildren(make("b", title), ...lines.filter(Boolean).map(l => make("div", l)));
	tip.hidden = false;
	const box = tip.getBoundingClientRect(), x = ev.clientX + 14, y = ev.clientY + 14;
	tip.style.left = `${Math.max(4, x + box.width > innerWidth - 4 ? ev.clientX - box.width - 10 : x)}px`;
	tip.style.top = `${Math.max(4, y + box.height > innerHeight - 4 ? ev.clientY - box.height - 10 : y)}px`;
}
const hide_tip = () => { tip.hidden = true; };
const time_at = ev => { const c = ev.currentTarget, r = c.getBoundingClientRect(); return view.from + (ev.clientX - r.left - LEFT) / (r.width - LEFT - RIGHT) * (view.to - view.from); };
function over_timeline(ev) {
	const t = time_at(ev), slot = Math.floor((ev.clientY - ev.currentTarget.getBoundingClientRect().top - TOP) / lane), near = (view.to - view.from) / 600;
	let best = null, least = Infinity;
	for (const u of units) {
		if (u.slot !== slot) continue;
		const far = Math.max(u.x0 - t, t - u.x1, 0);
		if (far < least && far <= near) { best = u; least = far; }
	}
	if (!best) {
		const s = slot < 0 && steps.find(q => t >= q.x0 && t <= q.x1);
		return s ? show_tip(ev, s.name, duration(s.x1 - s.x0)) : hide_tip();
	}
	show_tip(ev, best.path, `${duration(best.seconds)}${best.peak ? `, ${bytes(best.peak)}` : ""}, ${KIND[best.kind]} ${STATE[best.state]}`, best.source && `from ${best.source}`);
}
function over_series(ev) {
	const t = time_at(ev);
	let best = null;
	for (const p of points) if (!best || Math.abs(p.x - t) < Math.abs(best.x - t)) best = p;
	if (!best || t < view.from) return hide_tip();
	show_tip(ev, clock(Math.round(best.x)), `${bytes(best.memory)} in all processes`, `${best.processors.toFixed(1)} processors busy, ${best.compilers} units in the making`, best.pressure > 0 && `memory pressure ${best.pressure.toFixed(1)} %`);
}
function box_at(ev) {
	const r = ev.currentTarget.getBoundingClientRect(), x = ev.clientX - r.left, y = ev.clientY - r.top;
	let best = null;
	for (const b of boxes) if (x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h) best = b;
	return best;
}
function over_sizes(ev) {
	const b = box_at(ev);
	if (!b || b.depth === 0) return hide_tip();
	show_tip(ev, b.path, `${bytes(b.node.p)} compressed, ${bytes(b.node.r)} unpacked`, `${share(size(b.node), size(data.sizes))} of the wheel${b.node.k > 1 ? `, ${b.node.k} files` : ""}`);
}
function into_sizes(ev) {
	const r = ev.currentTarget.getBoundingClientRect(), x = ev.clientX - r.left, y = ev.clientY - r.top;
	const b = boxes.find(q => q.depth === 1 && q.node.c && x >= q.x && x < q.x + q.w && y >= q.y && y < q.y + q.h);
	if (b) { stack = [...stack, b.node]; hide_tip(); draw_sizes(); }
}

/* Dragging over the timeline shows that part of it. */
let from = null;
function set_view(a, b) {
	view = {from: Math.max(0, Math.min(a, b)), to: Math.min(total, Math.max(a, b))};
	if (view.to - view.from < 0.05) view = {from: 0, to: total};
	$("reset").disabled = view.from === 0 && view.to === total;
	draw_times();
}
for (const id of ["timeline", "memory", "processors"]) {
	const c = $(id);
	c.addEventListener("pointerdown", ev => { if (ev.button === 0) { from = time_at(ev); c.setPointerCapture(ev.pointerId); } });
	c.addEventListener("pointermove", ev => { if (from === null) (id === "timeline" ? over_timeline : over_series)(ev); else { hide_tip(); draw_times(); select(time_at(ev)); } });
	c.addEventListener("pointerup", ev => { const to = time_at(ev); if (from !== null && Math.abs(to - from) > (view.to - view.from) / 150) set_view(from, to); else draw_times(); from = null; });
	c.addEventListener("pointercancel", () => { from = null; draw_times(); });
	c.addEventListener("pointerleave", hide_tip);
	c.addEventListener("dblclick", () => set_view(0, total));
}
function select(to) {
	const g = $("timeline").getContext("2d"), x = scale($("timeline").clientWidth);
	g.fillStyle = colour("--accent");
	g.globalAlpha = 0.18;
	g.fillRect(x(Math.min(from, to)), 0, Math.abs(x(to) - x(from)), TOP + slots * lane);
	g.globalAlpha = 1;
}
$("timeline").addEventListener("keydown", ev => {
	const wide = view.to - view.from, mid = (view.to + view.from) / 2;
	if (ev.key === "+" || ev.key === "=") set_view(mid - wide / 4, mid + wide / 4);
	else if (ev.key === "-") set_view(mid - wide, mid + wide);
	else if (ev.key === "ArrowLeft") { const by_ = Math.min(wide / 4, view.from); set_view(view.from - by_, view.to - by_); }
	else if (ev.key === "ArrowRight") { const by_ = Math.min(wide / 4, total - view.to); set_view(view.from + by_, view.to + by_); }
	else if (ev.key === "Escape") set_view(0, total);
	else return;
	ev.preventDefault();
});
$("reset").onclick = () => set_view(0, total);
$("sizes").addEventListener("pointermove", over_sizes);
$("sizes").addEventListener("pointerleave", hide_tip);
$("sizes").addEventListener("click", into_sizes);
for (const [id, key] of [["by-packed", "p"], ["by-raw", "r"]]) $(id).onclick = () => {
	by = key;
	$("by-packed").setAttribute("aria-pressed", String(by === "p"));
	$("by-raw").setAttribute("aria-pressed", String(by === "r"));
	draw_sizes();
};
$("filter").oninput = () => {
	filter = $("filter").value.trim().toLowerCase();
	const found = filter ? units.filter(u => u.path.toLowerCase().includes(filter)) : [];
	$("filter-note").textContent = filter ? `${found.length} units, ${duration(sum(found, u => u.seconds))}` : "";
	draw_timeline();
};

/* Tables. */
function table(id, head, rows) {
	const t = make("table"), body = make("tbody");
	if (head) { const tr = make("tr"); for (const [text, cls] of head) tr.append(make("th", text, cls)); const thead = make("thead"); thead.append(tr); t.append(thead); }
	for (const cells of rows) { const tr = make("tr"); for (const c of cells) tr.append(c); body.append(tr); }
	t.append(body);
	$(id).replaceChildren(t);
}
const cell = (text, cls) => make("td", text, cls);
const number = text => cell(text, "n");
const path_cell = u => {
	const td = cell(u.path.replace(/^.*\//, ""), "path");
	const small = make("small");
	for (const word of u.path.split("/").slice(0, -1)) small.append(`${word}/`, make("wbr"));
	td.append(small);
	return td;
};
const meter = (value, most, name) => { const td = cell(undefined, "meter"), i = make("i"); i.style.width = `${most > 0 ? Math.max(0, 94 * value / most) : 0}%`; i.style.background = `var(${name})`; td.append(i); return td; };
function rank(id, key, none, show) {
	const best = units.filter(u => u[key] > 0).sort((a, b) => b[key] - a[key]).slice(0, 15);
	if (!best.length) return void $(id).replaceChildren(make("p", none, "note"));
	table(id, null, best.map(u => [path_cell(u), meter(u[key], best[0][key], colours.get(u.part)), ...show(u)]));
}
const facts = (id, rows) => table(id, null, rows.filter(r => r[1] != null && r[1] !== "").map(([name, value, cls]) => { const td = make("td"); td.append(cls ? make("span", value, cls) : make("code", value)); return [cell(name), td]; }));

function fill() {
	const b = record.build || {}, rows = record.steps || [], cache = b.compiler_cache || {}, wall = sum(rows, s => s.seconds);
	const made = units.filter(u => u.kind !== 2), hits = made.filter(u => u.state === 1).length, peak = Math.max(0, ...rows.map(s => s.peak_memory_bytes || 0));
	document.title = `${record.wheel} – build report`;
	$("variant").textContent = record.variant;
	$("wheel").textContent = record.wheel;
	$("summary").textContent = [record.made_at && `made ${record.made_at}`, record.ptbuild && `by ptbuild ${record.ptbuild}`, `release ${record.release}`, `tag ${record.tag}`, record.verified && (record.verified.ok ? "verified" : "NOT verified")].filter(Boolean).join(" · ");
	const tile = (value, name, more) => { const t = make("div", undefined, "tile"); t.append(make("b", value), make("span", name)); if (more) t.append(make("small", more)); return t; };
	$("tiles").replaceChildren(
		tile(duration(wall), "in all steps", `${duration(b.seconds)} of them building`),
		tile(String(made.length), "units", `${duration(sum(made, u => u.seconds))} of compiling`),
		tile(cache.hits != null ? share(cache.hits, cache.hits + cache.misses) : share(hits, made.length), "from the compiler cache", cache.hits != null ? `${cache.hits} of ${cache.hits + cache.misses} calls` : undefined),
		tile(peak ? bytes(peak) : "–", "memory at most", b.jobs ? `${b.jobs} job${b.jobs === 1 ? "" : "s"} at once` : undefined),
		tile(bytes(record.bytes), "wheel", `${bytes(record.unpacked_bytes)} unpacked, ${record.files} files`));
	$("timeline-note").textContent = `${units.length} units in ${slots} slot${slots === 1 ? "" : "s"}${spans.length > 1 ? `, ${spans.length} runs (idle time between them left out)` : ""}; drag to look closer`;
	$("timeline-legend").replaceChildren(...[...colours].filter(([name]) => units.some(u => u.part === name)).map(([name, c]) => { const s = make("span"), i = make("i"); i.style.background = `var(${c})`; s.append(i, name); return s; }),
		...[[1, "from the cache"], [2, "by an earlier run"]].filter(([state]) => units.some(u => u.state === state)).map(([, text]) => { const s = make("span"), i = make("i", undefined, "light"); i.style.background = "var(--text)"; s.append(i, text); return s; }));
	$("memory-note").textContent = points.length ? `at most ${bytes(Math.max(...points.map(p => p.memory)))}, resident, pages that are shared counted for each process` : "";
	$("processors-note").textContent = points.length ? `${duration(sum(rows, s => s.cpu_seconds || 0))} of processor time` : "";
	rank("slowest", "seconds", "No times were recorded.", u => [number(duration(u.seconds)), number(u.peak ? bytes(u.peak) : "")]);
	rank("largest", "peak", "No memory was recorded: nothing was compiled while somebody looked on.", u => [number(bytes(u.peak)), number(duration(u.seconds))]);
	$("sizes-note").textContent = `${bytes(data.sizes.p)} compressed, ${bytes(data.sizes.r)} unpacked, ${data.sizes.k} files; click to go into a directory`;
	$("sizes-legend").replaceChildren(...TYPES.map(([name, c]) => { const s = make("span"), i = make("i"); i.style.background = `var(${c})`; s.append(i, name); return s; }));
	const longest = Math.max(...rows.map(s => s.seconds), 0);
	table("steps", [["step"], [""], ["wall", "n"], ["processors", "n"], ["memory at most", "n"], ["processes", "n"], ["tree", "n"], ["disk free, least", "n"]],
		rows.map(s => [cell(s.step), meter(s.seconds, longest, "--c0"), number(duration(s.seconds)), number(s.cpu_seconds == null ? "" : duration(s.cpu_seconds)), number(s.peak_memory_bytes ? bytes(s.peak_memory_bytes) : ""), number(s.peak_processes ? String(s.peak_processes) : ""), number(s.tree_bytes ? bytes(s.tree_bytes) : ""), number(s.least_disk_free_bytes ? bytes(s.least_disk_free_bytes) : "")]));
	const v = record.verified || {}, used = record.used || {};
	const line = (ok, name, detail) => { const td = cell(undefined, "path"); td.append(make("span", ok ? "✓ " : "✗ ", ok ? "ok" : "no"), name); return [td, cell(detail || "", "path")]; };
	table("verified", null, [
		line(v.ok, "rules", `${v.members} members, ${v.elf_files} libraries and programs, ${v.errors} errors, ${v.warnings} warnings`),
		line(true, "asked = got", `${b.cache_entries_checked ?? 0} CMake entries, ${b.host_units_checked ?? 0} host and ${b.device_units_checked ?? 0} device units`),
		...(used.ran ? used.checks.map(c => line(c.ok, c.check, c.detail)) : [line(false, "not run", used.why_not)]),
		line(true, "platform tag", `${record.tag}: ${record.tag_why || ""}`)]);
	const vendored = record.vendored || [];
	if (vendored.length) table("vendored", null, vendored.map(l => [cell(l.name, "path"), cell(l.package, "path")]));
	$("card-vendored").hidden = !vendored.length;
	facts("cache", [["program", cache.program && `${cache.program} ${cache.version}`, "path"], ["mode", cache.mode, "path"], ["lenient about", cache.sloppiness, "path"], ["hits", cache.hits != null ? `${cache.hits} (${cache.direct_hits} direct, ${cache.preprocessed_hits} preprocessed, ${cache.remote_hits} from remote storage)` : null, "path"], ["misses", cache.misses != null ? String(cache.misses) : null, "path"],
		["counters", cache.counters && Object.entries(cache.counters).map(([k, n]) => `${k} ${n}`).join("\n")],
		["jobs", b.jobs && String(b.jobs), "path"], ...(b.reductions || []).map(r => ["fewer jobs", `${r.at}: ${r.from} → ${r.to}: ${r.why}`, "path"]), ["resumed", b.resumed == null ? null : b.resumed ? "yes" : "no", "path"], ["watching cost", data.watch_seconds ? `${duration(data.watch_seconds)} of processor time` : null, "path"]]);
	const inputs = record.inputs || {};
	facts("inputs", [["compile key", record.compile_key], ["output key", record.output_key], ["wheel", `sha256:${record.sha256}`],
		...(inputs.sources || []).map(s => [s.name, `sha256:${s.sha256}`]), ...(inputs.patches || []).map(s => [s.name, `sha256:${s.sha256}`]),
		["torch", inputs.torch && `${inputs.torch.version} ${inputs.torch.identity}`], ["root", inputs.root && `${inputs.root.id} ${inputs.root.fingerprint}`], ["toolchain", inputs.toolchain && inputs.toolchain.trim()],
		["Python packages", (inputs.python || []).join("\n")], ["sandbox", inputs.sandbox], ["notes", (record.notes || []).join("\n")]]);
}

function draw_times() {
	css = getComputedStyle(document.documentElement);
	draw_timeline();
	draw_series("memory", "memory", memory_top, v => bytes(v).replace(/\.0+\s/, "\u00a0"), "--c0");
	draw_series("processors", "processors", processors_top, v => String(+v.toFixed(1)), "--c1");
}
const draw = () => { draw_times(); draw_sizes(); };
fill();
draw();
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
Object.assign(document.documentElement.dataset, {ready: "yes", units: units.length, slots, samples: points.length, runs: spans.length, boxes: boxes.length});
})();
