// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What makes a report's page more than text: tables that sort, and charts (chart.py) drawn by D3.
// Nothing here makes markup out of text: names in results are whatever somebody wrote.
"use strict";
(() => {
	const SERIES_COLOURS = 8;
	const DASHES = ["", "7 3", "2 3", "9 3 2 3"];
	const MARKS = [
		d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross,
		d3.symbolStar, d3.symbolWye,
	];
	const NARROW = 520;
	const LETTER = 7.2;
	const NEAR = 40;
	const MARKED = 60;
	const ALL_FROM = 4;

	const number = (value) => {
		const size = Math.abs(value);
		if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(3);
		return value.toLocaleString("en-US", { maximumSignificantDigits: size >= 1000 ? 6 : 4 });
	};
	const tick = (value) => {
		const size = Math.abs(value);
		if (size > 0 && (size >= 1e6 || size < 1e-3)) return d3.format(".3~s")(value);
		return number(value);
	};
	const bytes = (value) => {
		const power = [2, 1].find((each) => value > 0 && value % 1024 ** each === 0);
		return power ? `${value / 1024 ** power} ${["", "Ki", "Mi"][power]}` : tick(value);
	};
	// What tells names apart is often at their ends.
	const shortened = (name, most) => {
		const half = Math.max(Math.floor((most - 1) / 2), 1);
		return name.length > most ? `${name.slice(0, half)}…${name.slice(-half)}` : name;
	};
	const element = (name, inside, text = "", kind = "") => {
		const made = inside.appendChild(document.createElement(name));
		made.textContent = text;
		if (kind) made.className = kind;
		return made;
	};

	// Rows without a value stay last, whichever way the others go.
	function sort(table, column, falling) {
		const body = table.tBodies[0];
		const keyed = [...body.rows].map((row, place) => {
			const cell = row.cells[column];
			const value = cell.dataset.v;
			return { row, place, value: value === undefined ? cell.textContent : Number(value) };
		});
		const way = falling ? -1 : 1;
		keyed.sort((a, b) => {
			const none = (a.value === "") - (b.value === "");
			if (none) return none;
			if (typeof a.value === "number" && typeof b.value === "number") {
				return way * (a.value - b.value) || a.place - b.place;
			}
			const words = String(a.value).localeCompare(String(b.value), "en", { numeric: true });
			return way * words || a.place - b.place;
		});
		body.append(...keyed.map((each) => each.row));
	}

	function sortable(table) {
		const heads = [...table.tHead.rows[0].cells];
		heads.forEach((head, column) => {
			const text = head.textContent;
			head.textContent = "";
			const button = element("button", head, text);
			button.type = "button";
			button.addEventListener("click", () => {
				const falling = head.getAttribute("aria-sort") === "ascending";
				heads.forEach((each) => each.removeAttribute("aria-sort"));
				head.setAttribute("aria-sort", falling ? "descending" : "ascending");
				sort(table, column, falling);
			});
		});
	}

	// How a chart's numbers lie in its drawing. With names, x is down the left side and y goes across.
	function layout(told, shown, width) {
		const named = told.names.length > 0;
		const narrow = width < NARROW;
		const longest = d3.max(told.names, (each) => each.length) || 0;
		const room = Math.min(longest * LETTER + 16, width * 0.45);
		const margin = { top: 12, right: 18, bottom: 46, left: named ? room : 66 };
		const rows = told.names.length;
		const height = named ? margin.top + margin.bottom + Math.max(rows, 2) * 26
			: Math.round(Math.min(420, Math.max(240, width * 0.55)));
		const points = shown.flatMap((each) => each.points);
		const values = points.flatMap(([, y, low, high]) => (low === null ? [y] : [y, low, high]));
		if (told.reference !== null) values.push(told.reference);
		const scale = (numbers, logarithmic, from, to) => {
			const some = logarithmic ? numbers.filter((each) => each > 0) : numbers;
			let [least, most] = some.length ? d3.extent(some) : [1, 10];
			if (!logarithmic) least = Math.min(0, least);
			if (least === most) [least, most] = logarithmic ? [least / 2, most * 2] : [least, most + 1];
			const made = (logarithmic ? d3.scaleLog() : d3.scaleLinear()).domain([least, most]);
			return made.range([from, to]);
		};
		const low = height - margin.bottom;
		const far = width - margin.right;
		const up = named ? scale(values, told.log[1], margin.left, far).nice()
			: scale(values, told.log[1], low, margin.top).nice();
		const across = named
			? d3.scalePoint().domain(d3.range(rows)).range([margin.top, low]).padding(0.6)
			: scale(points.map(([x]) => x), told.log[0], margin.left + 8, far);
		// Several points of one name stand beside each other.
		const alone = new Set(points.map(([x]) => x)).size === points.length;
		const step = named && !alone ? Math.min(6, across.step() / (shown.length + 1)) : 0;
		const at = (series, [x, y]) => {
			const place = shown.indexOf(series);
			const aside = step * (place - (shown.length - 1) / 2);
			return named ? [up(y), across(x) + aside] : [across(x), up(y)];
		};
		return { named, narrow, margin, height, low, far, up, across, at, points };
	}

	function axes(svg, told, place) {
		const { named, margin, low, far, up, across, narrow } = place;
		const few = narrow ? 4 : 8;
		// All ticks of a logarithmic axis get a line, not all have room for a number.
		const thinned = (axis, scale, most) => {
			const ticks = scale.ticks(most);
			const tens = ticks.filter((each) => Number.isInteger(Math.log10(each)));
			const own = ticks.length > most + 2 && tens.length > 1 ? tens : ticks;
			const step = Math.ceil(own.length / (most + 2));
			const written = new Set(own.filter((_, each) => each % step === 0));
			return axis.tickValues(ticks).tickFormat((each) => (written.has(each) ? tick(each) : ""));
		};
		let across_axis;
		if (named) {
			const most = Math.floor((margin.left - 14) / LETTER);
			across_axis = d3.axisLeft(across).tickFormat((each) => shortened(told.names[each], most));
		} else {
			const own = [...new Set(place.points.map(([x]) => x))].sort((a, b) => a - b);
			across_axis = d3.axisBottom(across);
			if (told.log[0] && own.length <= few + 4) {
				across_axis.tickValues(own).tickFormat(told.across.endsWith("(B)") ? bytes : tick);
			} else thinned(across_axis, across, few);
		}
		const up_axis = thinned(named ? d3.axisBottom(up) : d3.axisLeft(up), up, named ? few : 6);
		const drawn = (axis, x, y) => svg.append("g").attr("class", "axis")
			.attr("transform", `translate(${x},${y})`).call(axis);
		svg.append("g").selectAll("line").data(up.ticks(6)).enter().append("line").attr("class", "grid")
			.attr("x1", (each) => (named ? up(each) : margin.left)).attr("y1", (each) => (named ? margin.top : up(each)))
			.attr("x2", (each) => (named ? up(each) : far)).attr("y2", (each) => (named ? low : up(each)));
		drawn(across_axis, named ? margin.left : 0, named ? 0 : low);
		drawn(up_axis, named ? 0 : margin.left, named ? low : 0);
		const label = (text, x, y) => svg.append("text").attr("class", "label")
			.attr("x", x).attr("y", y).attr("text-anchor", "middle").text(text);
		label(named ? told.up : told.across, (margin.left + far) / 2, place.height - 6);
		if (!named) {
			label(told.up, 0, 0).attr("transform", `translate(14,${(margin.top + low) / 2}) rotate(-90)`);
		}
		if (told.reference === null) return;
		const where = up(told.reference);
		svg.append("line").attr("class", "reference")
			.attr("x1", named ? where : margin.left).attr("y1", named ? margin.top : where)
			.attr("x2", named ? where : far).attr("y2", named ? low : where);
	}

	function traces(svg, place, shown) {
		const { named, at, up } = place;
		for (const series of shown) {
			const spots = series.points.map((each) => at(series, each));
			const whole = series.points.filter((each) => each[2] !== null);
			const group = svg.append("g").attr("class", `trace ${series.kind}`).attr("data-series", series.name);
			// A curve that has an interval everywhere has a band, other points have whiskers.
			const banded = !named && whole.length > 2 && whole.length === series.points.length;
			if (banded) {
				group.append("path").attr("class", "band").datum(whole).attr("d", d3.area()
					.x((each) => at(series, each)[0]).y0((each) => up(each[2])).y1((each) => up(each[3])));
			} else if (whole.length) {
				const line = ([x, y, low, high]) => {
					const [a, b] = at(series, [x, y]);
					const [l, h] = [up(low), up(high)];
					return named ? `M${l},${b}H${h}M${l},${b - 4}v8M${h},${b - 4}v8`
						: `M${a},${l}V${h}M${a - 4},${l}h8M${a - 4},${h}h8`;
				};
				group.append("path").attr("class", "whisker").attr("d", whole.map(line).join(""));
			}
			if (!named) {
				group.append("path").attr("class", "curve").attr("d", d3.line()(spots))
					.attr("stroke-dasharray", series.paper ? null : series.dash || null);
			}
			if (spots.length > MARKED && !named) continue;
			group.selectAll("path.mark").data(spots).enter().append("path").attr("class", "mark")
				.attr("transform", ([x, y]) => `translate(${x},${y})`)
				.attr("d", d3.symbol().type(series.mark).size(34));
		}
	}

	function chart(figure) {
		const told = JSON.parse(figure.querySelector("script").textContent);
		told.series.forEach((each, place) => {
			each.kind = each.paper ? "paper" : `k${place % SERIES_COLOURS}`;
			each.dash = DASHES[Math.floor(place / SERIES_COLOURS) % DASHES.length];
			each.mark = each.paper ? d3.symbolCross : MARKS[place % MARKS.length];
			each.visible = true;
		});
		figure.classList.toggle("named", told.names.length > 0);
		const area = element("div", figure, "", "plot");
		area.tabIndex = 0;
		area.setAttribute("role", "group");
		area.setAttribute("aria-label", `${figure.querySelector("figcaption").textContent}: ${told.series.length} ` +
			"series; arrow keys go from point to point and from series to series");
		const tip = element("output", figure, "", "tip");
		tip.setAttribute("aria-live", "polite");
		const legend = element("div", figure, "", "legend");
		legend.setAttribute("role", "group");
		legend.setAttribute("aria-label", "Series");
		let place = null;
		let shown = [];
		let cursor = null;
		let at = null;

		const described = (series, [x, y, low, high]) => {
			const where = told.names.length ? told.names[x] : `${told.across}: ${number(x)}`;
			const interval = low === null ? "" : ` [${number(low)}, ${number(high)}]`;
			return `${series.paper ? "paper: " : ""}${series.name}\n${where}\n${told.up}: ${number(y)}${interval}`;
		};
		const point_to = (series, index) => {
			at = series === null ? null : { series, index };
			if (at === null) {
				tip.textContent = "";
				cursor.attr("visibility", "hidden");
				return;
			}
			const [x, y] = place.at(series, series.points[index]);
			cursor.attr("visibility", "visible").attr("cx", x).attr("cy", y);
			tip.textContent = described(series, series.points[index]);
			const left = Math.max(0, Math.min(x + 14, figure.clientWidth - tip.offsetWidth - 4));
			tip.style.left = `${left}px`;
			tip.style.top = `${area.offsetTop + y + 14}px`;
		};
		const near = (event) => {
			const [x, y] = d3.clientPoint(area.querySelector("svg"), event);
			let best = { distance: NEAR };
			for (const series of shown) {
				series.points.forEach((each, index) => {
					const [a, b] = place.at(series, each);
					const distance = Math.hypot(a - x, b - y);
					if (distance < best.distance) best = { distance, series, index };
				});
			}
			point_to(best.series || null, best.index);
		};
		const step = (event) => {
			const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key] || 0;
			const over = { ArrowDown: 1, ArrowUp: -1 }[event.key] || 0;
			if (event.key === "Escape") point_to(null);
			if (!(along || over) || !shown.length) return;
			event.preventDefault();
			if (at === null) {
				point_to(shown[0], 0);
				return;
			}
			const ring = (value, count) => (value + count) % count;
			const next = shown[ring(shown.indexOf(at.series) + over, shown.length)];
			point_to(next, Math.min(ring(at.index + along, at.series.points.length), next.points.length - 1));
		};

		function draw() {
			const width = Math.max(area.clientWidth, 280);
			shown = told.series.filter((each) => each.visible && each.points.length);
			place = layout(told, shown, width);
			area.textContent = "";
			const svg = d3.select(area).append("svg").attr("viewBox", `0 0 ${width} ${place.height}`)
				.attr("width", width).attr("height", place.height).attr("aria-hidden", "true");
			axes(svg, told, place);
			traces(svg, place, shown);
			cursor = svg.append("circle").attr("class", "cursor").attr("r", 7).attr("visibility", "hidden");
			point_to(null);
		}
		const buttons = told.series.map((series) => {
			const button = element("button", legend, (series.paper ? "paper: " : "") + series.name, series.kind);
			button.type = "button";
			button.addEventListener("click", () => show([series], !series.visible));
			return button;
		});
		function show(some, visible) {
			some.forEach((each) => { each.visible = visible; });
			told.series.forEach((each, index) => buttons[index].setAttribute("aria-pressed", each.visible));
			draw();
		}
		if (told.series.length >= ALL_FROM) {
			const all = element("button", legend, "all or none", "all");
			all.type = "button";
			all.addEventListener("click", () => show(told.series, !told.series.every((each) => each.visible)));
			legend.prepend(all);
		}
		area.addEventListener("pointermove", near);
		area.addEventListener("pointerdown", near);
		area.addEventListener("pointerleave", () => point_to(null));
		area.addEventListener("keydown", step);
		area.addEventListener("blur", () => point_to(null));
		show(told.series, true);
		let drawn = area.clientWidth;
		new ResizeObserver(() => {
			if (area.clientWidth === drawn || matchMedia("print").matches) return;
			drawn = area.clientWidth;
			draw();
		}).observe(area);
	}

	document.querySelectorAll("table").forEach(sortable);
	document.querySelectorAll("figure.chart").forEach(chart);
})();
